import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../src/models/model.ts";
import type { SessionOptions } from "../../src/session/session-config.ts";
import type { SkillEntry } from "../../src/tools/tool-source.ts";
import { fakeChat } from "../doubles/fake-chat.ts";
import { createTestEnvironment, deferred, openSession, recordEvents, sourceOf } from "./session-kit.ts";

const skill = (name: string, more: Partial<SkillEntry> = {}): SkillEntry => ({
  name,
  description: `About ${name}.`,
  folder: `/skills/${name}`,
  instructions: () => Promise.resolve(`\n# ${name}\n\nDo it well.\n`),
  read: () => Promise.reject(new Error("nothing to read")),
  ...more,
});
const open = (options: SessionOptions = {}, ...skills: SkillEntry[]) => {
  const environment = createTestEnvironment();
  environment.publishSkills(...skills);
  return openSession(environment, { chatModel: fakeChat("Hello."), ...options });
};
const names = (session: ReturnType<typeof open>): string[] => session.tools.map(({ name }) => name);
const agentTools = ["list_agents", "read_agent", "task", "write_agent"];
const userMessages = ({ messages }: ModelRequest) => messages.flatMap(({ role, content }) => (role === "user" ? [content] : []));

describe("which tools a session brings", () => {
  test("none without a model to talk to", () => {
    expect(names(open({ chatModel: undefined, onUserInputRequest: () => ({ answer: "x" }) }, skill("pdf")))).toEqual([]);
  });

  test("those for agents with a model, by chatModel or by name and provider", () => {
    const provider = { type: "openai", baseUrl: "http://127.0.0.1:9/v1" } as const;
    expect(names(open())).toEqual(agentTools);
    expect(names(open({ chatModel: undefined, model: "m", provider }))).toEqual(agentTools);
    expect(names(open({ chatModel: undefined, provider }))).toEqual([]);
  });

  test("skill while there is one that the model may load", () => {
    const tools = ["list_agents", "read_agent", "skill", "task", "write_agent"];
    expect(names(open({}, skill("pdf")))).toEqual(tools);
    expect(names(open({}, skill("secret", { hiddenFromModel: true }), skill("toolbox", { hasInstructions: false })))).toEqual(agentTools);
    const environment = createTestEnvironment();
    const session = openSession(environment, { chatModel: fakeChat("Hello.") });
    expect(names(session)).toEqual(agentTools);
    environment.publishSkills(skill("pdf"));
    expect(names(session)).toEqual(tools);
  });

  test("ask_user while somebody can answer: this program, or a client that is attached", async () => {
    expect(names(open({ onUserInputRequest: () => ({ answer: "x" }) }))).toContain("ask_user");
    const session = open();
    const updates = recordEvents(session, "session.tools_updated");
    const client = session.attach({ level: "connection", answers: ["userInput"] });
    await session.ready();
    expect(names(session)).toContain("ask_user");
    await client[Symbol.asyncDispose]();
    expect(names(session)).not.toContain("ask_user");
    await session.update({ onUserInputRequest: () => ({ answer: "x" }) });
    expect(names(session)).toContain("ask_user");
    expect(updates).toHaveLength(3);
  });

  test("they are built-in, need no permission, and a name of theirs takes the flag to be replaced", async () => {
    const session = open({ onPermissionRequest: () => ({ kind: "reject" }) });
    expect(session.listTools().map(({ source }) => source)).toEqual(agentTools.map(() => ({ kind: "builtin", name: "session" })));
    expect(await session.callTool("list_agents", {})).toMatchObject({ resultType: "success", textResultForLlm: "There are no agents." });
    await expect(session.setTools([{ name: "task" }])).rejects.toThrow(/has the name of a built-in tool/);
    await session.setTools([{ name: "task", overridesBuiltInTool: true, handler: () => "mine" }]);
    expect((await session.callTool("task")).resultType).toBe("rejected");
  });

  test("an equal set of agents has the same tools, another set another", () => {
    const taskOf = (options: SessionOptions) => open(options).catalog.executables.get("task");
    expect(taskOf({})).toBe(taskOf({ sessionId: "other" }));
    const own = taskOf({
      customAgents: [
        { name: "tester", description: "Runs tests." },
        { name: "quiet", infer: false },
      ],
    });
    expect(own?.definition.description).toContain("- tester: Runs tests.");
    expect(own?.definition.description).not.toContain("quiet");
    expect(own?.definition.parameters?.["properties"]).toMatchObject({
      agent_type: { enum: ["explore", "task", "general-purpose", "code-review", "research", "security-review", "tester"] },
    });
    const excluded = taskOf({ excludedBuiltinAgents: ["explore", "task", "code-review", "research", "security-review"] });
    expect(excluded?.definition.parameters?.["properties"]).toMatchObject({ agent_type: { enum: ["general-purpose"] } });
  });

  test("no other code can use them to get at a session", () => {
    const tool = open({}, skill("pdf")).catalog.executables.get("skill")!;
    const context = { invocation: {}, ask() {}, callTool() {}, progress() {}, fileChanged() {} };
    return expect(tool.execute({ skill: "pdf" }, context as never)).rejects.toThrow(/called without a session/);
  });
});

describe("skill", () => {
  test("gives the instructions in a user message after the result, and tells of it", async () => {
    const chat = fakeChat({ calls: [{ name: "skill", args: { skill: "pdf" } }] }, "Loaded.");
    const session = open({ chatModel: chat }, skill("pdf"));
    const invoked = recordEvents(session, "skill.invoked");
    await session.sendAndWait("Make a PDF.");
    const context = '<skill-context name="pdf">\nBase directory for this skill: /skills/pdf\n\n# pdf\n\nDo it well.\n\n</skill-context>';
    expect(chat.requests[1]?.messages.slice(-2)).toEqual([
      {
        role: "tool",
        toolCallId: "call-1",
        content: 'Skill "pdf" loaded successfully. Follow the instructions in the skill context.',
      },
      { role: "user", content: context },
    ]);
    expect(invoked.map(({ data }) => data)).toEqual([
      { name: "pdf", path: "/skills/pdf", content: context, description: "About pdf.", source: "custom", trigger: "agent-invoked" },
    ]);
  });

  test("of two with one name the later is loaded; one without a folder says nothing of it", async () => {
    const chat = fakeChat({ calls: [{ name: "skill", args: { skill: "pdf" } }] }, "Loaded.");
    const { folder: _none, ...remote } = skill("pdf", { instructions: () => Promise.resolve("From afar.") });
    await open({ chatModel: chat }, skill("pdf"), remote).sendAndWait("Go.");
    expect(userMessages(chat.requests[1]!).at(-1)).toBe('<skill-context name="pdf">\nFrom afar.\n\n</skill-context>');
  });

  test("that is unknown or hidden is a failure that names those that there are", async () => {
    const session = open({}, skill("pdf"), skill("docx"), skill("secret", { hiddenFromModel: true }));
    const text = "does not exist. Available skills are pdf, docx.";
    expect(await session.callTool("skill", { skill: "pfd" })).toMatchObject({
      resultType: "failure",
      textResultForLlm: `Skill "pfd" ${text}`,
    });
    expect((await session.callTool("skill", { skill: "secret" })).textResultForLlm).toBe(`Skill "secret" ${text}`);
  });

  test("that cannot be read is a failure without the reason", async () => {
    const session = open({}, skill("pdf", { instructions: () => Promise.reject(new Error("ENOENT /home/me/secret")) }));
    expect(await session.callTool("skill", { skill: "pdf" })).toEqual({
      resultType: "failure",
      textResultForLlm: 'Skill "pdf" could not be loaded. Continue without it.',
    });
  });
});

describe("ask_user", () => {
  const args = { question: "Which?", choices: ["red", "blue"] };
  test.each([
    [{ answer: "red", wasFreeform: false }, "User selected: red"],
    [{ answer: "green", wasFreeform: true }, "User responded: green"],
    [{ answer: "blue" }, "User selected: blue"],
    [{ answer: "green" }, "User responded: green"],
  ])("%j: %s", async (answer, text) => {
    const asked: unknown[] = [];
    const session = open({
      onUserInputRequest: (data) => {
        asked.push(data);
        return answer;
      },
    });
    expect((await session.callTool("ask_user", args)).textResultForLlm).toBe(text);
    await session.callTool("ask_user", { ...args, allow_freeform: false });
    expect(asked).toEqual([
      { ...args, allowFreeform: true },
      { ...args, allowFreeform: false },
    ]);
  });

  test("that nobody answers is a failure that lets the model go on", async () => {
    const session = open({
      onUserInputRequest: () => {
        throw new Error("closed the window at /dev/tty");
      },
    });
    expect(await session.callTool("ask_user", args)).toMatchObject({
      resultType: "failure",
      textResultForLlm: "The user did not answer. Decide for yourself, and state what you assumed.",
    });
  });

  test("waits for a person longer than a tool may take", async () => {
    const person = deferred<unknown>();
    const hanging = { name: "hang", handler: () => new Promise(() => {}) };
    const session = open({ toolTimeout: 1, tools: [hanging], onUserInputRequest: () => person.promise });
    const called = session.callTool("ask_user", { question: "Which?" });
    expect((await session.callTool("hang")).resultType).toBe("timeout");
    person.resolve({ answer: "this" });
    expect((await called).textResultForLlm).toBe("User responded: this");
  });
});

test("tools for many are found by the model and called in its next request", async () => {
  const chat = fakeChat(
    { calls: [{ name: "tool_search_tool_regex", args: { pattern: "invoice" } }] },
    { calls: [{ name: "get_invoice" }] },
    "Here it is.",
  );
  const tools = Array.from({ length: 40 }, (_, index) => ({ name: `other_${index}`, handler: () => "" }));
  const environment = createTestEnvironment(sourceOf("mcp", "s", ...tools, { name: "get_invoice", handler: () => "No. 7" }));
  const session = openSession(environment, { chatModel: chat, excludedTools: agentTools });
  await session.sendAndWait("Get my invoice.");
  const told = chat.requests.map((request) => request.tools?.map(({ name }) => name));
  expect(told).toEqual([["tool_search_tool_regex"], ["tool_search_tool_regex", "get_invoice"], ["tool_search_tool_regex", "get_invoice"]]);
  expect(chat.requests[2]?.messages.at(-1)).toMatchObject({ role: "tool", content: "No. 7" });
});
