import { describe, expect, test } from "vitest";
import type { CatalogSource } from "../../../src/session/catalog/tool-catalog.ts";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import { fakeChat } from "../../doubles/fake-chat.ts";
import { createTestEnvironment, openSession, recordEvents, settleMicrotasks, sourceOf } from "../session-kit.ts";

const named = (name: string, more: object = {}) => ({ name, handler: () => name, ...more });
const sources = (): CatalogSource[] => [
  sourceOf("builtin", "workspace", named("view"), named("edit")),
  sourceOf("mcp", "git", named("git-log")),
  sourceOf("skill", "quality", named("lint"), named("format")),
];
const open = (options: SessionOptions = {}, ...more: CatalogSource[]) => openSession(createTestEnvironment(...sources(), ...more), options);
const names = (session: ReturnType<typeof open>): string[] => session.listTools().map(({ name }) => name);
const everything = ["edit", "view", "git-log", "format", "lint"];
const sessionTools = ["list_agents", "read_agent", "task", "write_agent"];

describe("the tools of an agent", () => {
  const cases: readonly (readonly [string, SessionOptions, readonly string[]])[] = [
    ["no agent: all", {}, everything],
    ["agents, but none selected: all", { customAgents: [{ name: "a", tools: ["view"] }] }, everything],
    ["defaultAgent without some", { defaultAgent: { excludedTools: ["lint", "mcp:*"] } }, ["edit", "view", "format"]],
    [
      "defaultAgent has no say beside an explicit allow-list",
      { defaultAgent: { excludedTools: ["lint"] }, availableTools: ["lint", "view"] },
      ["view", "lint"],
    ],
    ["a selected agent without a list: all", { agent: "a", customAgents: [{ name: "a" }] }, everything],
    ["tools: null", { agent: "a", customAgents: [{ name: "a", tools: null }] }, everything],
    ['tools: ["*"]', { agent: "a", customAgents: [{ name: "a", tools: ["*"] }] }, everything],
    [
      "tools by name and pattern",
      { agent: "a", customAgents: [{ name: "a", tools: ["view", "skill:quality"] }] },
      ["view", "format", "lint"],
    ],
    ["tools: []", { agent: "a", customAgents: [{ name: "a", tools: [] }] }, []],
    [
      "the agent's list comes after the session's filter",
      { agent: "a", customAgents: [{ name: "a", tools: ["view", "lint"] }], excludedTools: ["lint"] },
      ["view"],
    ],
    [
      "what the default agent goes without, a selected one may have",
      { agent: "a", customAgents: [{ name: "a", tools: ["lint"] }], defaultAgent: { excludedTools: ["lint"] } },
      ["lint"],
    ],
  ];

  test.each(cases)("an agent's tools: %s", (_title, options, expected) => {
    const session = open(options);
    expect(names(session)).toEqual(expected);
    expect(session.tools.map(({ name }) => name)).toEqual(expected);
  });

  test("hidden tools cannot be called", async () => {
    const session = open({ agent: "a", customAgents: [{ name: "a", tools: ["view"] }] });
    expect((await session.callTool("view")).resultType).toBe("success");
    expect(await session.callTool("lint")).toMatchObject({
      resultType: "failure",
      textResultForLlm: "Tool 'lint' does not exist. Available tools that can be called are view.",
    });
  });

  test.each([
    [[], []],
    [["view"], ["view"]],
    [
      ["view", "task"],
      ["list_agents", "read_agent", "task", "view", "write_agent"],
    ],
    [["agent"], sessionTools],
    [["read_agent"], ["read_agent"]],
    [["builtin:*"], ["edit", "list_agents", "read_agent", "task", "view", "write_agent"]],
    [["*"], [...sessionTools, ...everything]],
    [null, [...sessionTools, ...everything]],
  ])("an agent with the tools %j starts further agents if they name that", (tools, expected) => {
    const session = open({ chatModel: fakeChat("Hello."), agent: "a", customAgents: [{ name: "a", tools }] });
    expect(names(session).sort()).toEqual([...expected].sort());
  });

  test("the session's filter affects the tools for further agents", () => {
    const only = { chatModel: fakeChat("Hello."), agent: "a", customAgents: [{ name: "a", tools: ["task"] }] };
    expect(names(open({ ...only, excludedTools: ["task"] }))).toEqual(sessionTools.filter((name) => name !== "task"));
    expect(names(open({ ...only, availableTools: ["view", "read_agent"] }))).toEqual(["read_agent"]);
  });

  test("sources for some agents are available to those agents only", () => {
    const own: CatalogSource = { ...sourceOf("mcp", "db", named("db-query")), forAgents: ["reader"] };
    const any: CatalogSource = { ...sourceOf("mcp", "notes", named("notes-add")), forAgents: "any" };
    const customAgents = [{ name: "reader" }, { name: "writer" }];
    expect(names(open({ customAgents }, own, any))).toEqual(everything);
    expect(names(open({ customAgents, agent: "writer" }, own, any))).toEqual(["edit", "view", "git-log", "notes-add", "format", "lint"]);
    expect(names(open({ customAgents, agent: "reader" }, own, any))).toContain("db-query");
  });

  test("a name without effect in an agent's list is reported once", async () => {
    const session = open({ agent: "a", customAgents: [{ name: "a", tools: ["lint", "nonsense", "view"] }], excludedTools: ["lint"] });
    const infos = recordEvents(session, "session.info");
    await session.ready();
    await settleMicrotasks();
    expect(infos.map(({ data }) => data["message"])).toEqual([
      `Disabled tool name in agent.tools: "lint" (the session's excludedTools hides it).`,
      'Unknown tool name in agent.tools: "nonsense" (it matches no tool of this session).',
    ]);
  });
});

describe("invalid agents are refused with the place of the mistake", () => {
  test.each([
    [{ customAgents: [{ name: "a" }, { name: "a" }] }, /two agents are named "a"/],
    [{ customAgents: [{ name: "a" }], agent: "b" }, /agent: "b" is not one of the customAgents \(these are "a"\)/],
    [{ agent: "b" }, /there are none/],
    [{ customAgents: [{}] }, /customAgents\[0\]\.name must be/],
    [{ customAgents: [{ name: "a", tools: "view" }] }, /customAgents\[0\]\.tools must be an array/],
    [{ customAgents: [{ name: "a", colour: "red" }] }, /customAgents\[0\]\.colour is not one of the fields of customAgents\[0\]: name, /],
    [{ customAgents: [{ name: "a", tools: ["a*"] }], agent: "a" }, /agent\.tools\[0\]: "a\*" is not a tool pattern/],
    [{ defaultAgent: { excludedTools: ["*"] } }, /defaultAgent\.excludedTools\[0\]/],
    [{ toolSearch: { deferThreshold: -1 } }, /toolSearch\.deferThreshold must be an integer/],
    [{ modelTools: { "gpt-*": { availableTools: 3 } } }, /modelTools\["gpt-\*"\]\.availableTools/],
  ])("an invalid agent is refused: %j", (options, message) => {
    expect(() => open(options as unknown as SessionOptions)).toThrow(message);
  });
});

describe("agents that change during the session", () => {
  const customAgents = [{ name: "reader", displayName: "The Reader", tools: ["view"] }, { name: "all" }];

  test("selecting and deselecting an agent causes one rebuild and one event each", async () => {
    const session = open({ customAgents });
    const events = recordEvents(session, "session.tools_updated", "subagent.selected", "subagent.deselected");
    expect(names(session)).toEqual(everything);
    await session.update({ agent: "reader", defaultAgent: { excludedTools: ["lint"] }, disabledSkills: ["x"] });
    await session.update({ agent: undefined });
    expect(names(session)).toEqual(["edit", "view", "git-log", "format"]);
    expect(events.map(({ type, data }) => [type, data["agentName"] ?? data["version"]])).toEqual([
      ["session.tools_updated", 1],
      ["subagent.selected", "reader"],
      ["session.tools_updated", 2],
      ["subagent.deselected", undefined],
      ["session.tools_updated", 3],
    ]);
    expect(events[1]?.data).toEqual({ agentName: "reader", agentDisplayName: "The Reader", tools: ["view"] });
  });

  test("selecting an agent with the same tools changes the agent but not the tools", async () => {
    const session = open({ customAgents });
    const events = recordEvents(session, "session.tools_updated", "subagent.selected");
    await session.ready();
    await session.update({ agent: "all" });
    expect(events.map(({ type }) => type)).toEqual(["session.tools_updated", "subagent.selected"]);
    expect(events[1]?.data["tools"]).toBeNull();
  });

  test("agents can be replaced, unless the selected one would be removed", async () => {
    const session = open({ customAgents, agent: "reader" });
    const events = recordEvents(session, "session.custom_agents_updated");
    await expect(session.update({ customAgents: [{ name: "other" }] })).rejects.toThrow(/agent: "reader" is not one of/);
    expect(names(session)).toEqual(["view"]);
    await session.update({ customAgents: [{ name: "other", tools: ["edit"] }], agent: "other" });
    expect(names(session)).toEqual(["edit"]);
    expect(events.map(({ data }) => (data["agents"] as { name: string }[]).map(({ name }) => name))).toEqual([["other"]]);
  });

  test("the first listener receives the initially selected agent once", async () => {
    const session = open({ customAgents, agent: "reader" });
    const heard = recordEvents(session, "subagent.selected");
    await settleMicrotasks();
    const late = recordEvents(session, "subagent.selected");
    await settleMicrotasks();
    expect([heard.length, late.length]).toEqual([1, 0]);
  });

  test("the selected agent's model and effort apply while it is selected", async () => {
    const session = open({ customAgents: [{ name: "deep", model: "m-deep", reasoningEffort: "high" }], model: "m" });
    expect(session.config.turn).toMatchObject({ model: "m" });
    await session.update({ agent: "deep" });
    expect(session.config.turn).toMatchObject({ model: "m-deep", reasoningEffort: "high" });
  });
});

describe("tools that differ by model", () => {
  const modelTools = {
    "gpt-*": { excludedTools: ["lint"] },
    "gpt-5*": { editingStyle: "patch", toolSearch: { deferThreshold: 2 } },
    "*-mini": { availableTools: ["view"] },
    "o?": { excludedTools: ["view"] },
  };
  const editors = sourceOf(
    "builtin",
    "editors",
    named("edit_file", { metadata: { editingStyle: "edit" } }),
    named("apply_patch", { metadata: { editingStyle: "patch" } }),
  );
  const of = (model: string | undefined) => open({ model, modelTools, excludedTools: ["format"] }, editors);

  test.each([
    [undefined, ["edit", "edit_file", "view", "git-log", "lint"]],
    ["claude", ["edit", "edit_file", "view", "git-log", "lint"]],
    ["gpt-4.1", ["edit", "edit_file", "view", "git-log", "format"]],
    ["other-mini", ["view"]],
    ["o3", ["edit", "edit_file", "git-log", "format", "lint"]],
    ["o30", ["edit", "edit_file", "view", "git-log", "lint"]],
  ])("the options of a model's tools: %s", (model, expected) => {
    expect(names(of(model))).toEqual(expected);
  });

  test("several matching patterns are combined, and the model can change during the session", async () => {
    const session = of("GPT-5.4");
    expect(names(session)).toEqual(["apply_patch", "edit", "tool_search_tool_regex", "view", "git-log", "format"]);
    expect(session.tools.map(({ name }) => name)).toEqual(["apply_patch", "edit", "tool_search_tool_regex", "view"]);
    await session.update({ model: "claude" });
    expect(names(session)).toEqual(["edit", "edit_file", "view", "git-log", "lint"]);
  });
});
