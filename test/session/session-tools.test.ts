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

describe("the built-in tools of a session", () => {
  test("a session without a model has no built-in tools", () => {
    expect(names(open({ chatModel: undefined, onUserInputRequest: () => ({ answer: "x" }) }, skill("pdf")))).toEqual([]);
  });

  test("a session with a model, by chatModel or by name and provider, has the tools for agents", () => {
    const provider = { type: "openai", baseUrl: "http://127.0.0.1:9/v1" } as const;
    expect(names(open())).toEqual(agentTools);
    expect(names(open({ chatModel: undefined, model: "m", provider }))).toEqual(agentTools);
    expect(names(open({ chatModel: undefined, provider }))).toEqual([]);
  });

  test("a session has the skill tool while there is a skill for the model", () => {
    const tools = ["list_agents", "read_agent", "skill", "task", "write_agent"];
    expect(names(open({}, skill("pdf")))).toEqual(tools);
    expect(names(open({}, skill("secret", { hiddenFromModel: true }), skill("toolbox", { hasInstructions: false })))).toEqual(agentTools);
    const environment = createTestEnvironment();
    const session = openSession(environment, { chatModel: fakeChat("Hello.") });
    expect(names(session)).toEqual(agentTools);
    environment.publishSkills(skill("pdf"));
    expect(names(session)).toEqual(tools);
  });

  test("a session has ask_user while this program or an attached client can answer", async () => {
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

  test("built-in tools need no permission, and replacing one needs the flag", async () => {
    const session = open({ onPermissionRequest: () => ({ kind: "reject" }) });
    expect(session.listTools().map(({ source }) => source)).toEqual(agentTools.map(() => ({ kind: "builtin", name: "session" })));
    expect(await session.callTool("list_agents", {})).toMatchObject({ resultType: "success", textResultForLlm: "There are no agents." });
    await expect(session.setTools([{ name: "task" }])).rejects.toThrow(/has the name of a built-in tool/);
    await session.setTools([{ name: "task", overridesBuiltInTool: true, handler: () => "mine" }]);
    expect((await session.callTool("task")).resultType).toBe("rejected");
  });

  test("equal sets of agents have the same tools, different sets have others", () => {
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

  test("other code cannot use built-in tools to access a session", () => {
    const tool = open({}, skill("pdf")).catalog.executables.get("skill")!;
    const context = { invocation: {}, ask() {}, callTool() {}, progress() {}, fileChanged() {} };
    return expect(tool.execute({ skill: "pdf" }, context as never)).rejects.toThrow(/called without a session/);
  });
});

describe("the skill tool", () => {
  test("the skill tool returns the instructions in a user message after the result and emits an event", async () => {
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

  test("of two skills with the same name the later is loaded, and one without a folder does not mention it", async () => {
    const chat = fakeChat({ calls: [{ name: "skill", args: { skill: "pdf" } }] }, "Loaded.");
    const { folder: _none, ...remote } = skill("pdf", { instructions: () => Promise.resolve("From afar.") });
    await open({ chatModel: chat }, skill("pdf"), remote).sendAndWait("Go.");
    expect(userMessages(chat.requests[1]!).at(-1)).toBe('<skill-context name="pdf">\nFrom afar.\n\n</skill-context>');
  });

  test("the skill tool fails for unknown and hidden skills and lists the available ones", async () => {
    const session = open({}, skill("pdf"), skill("docx"), skill("secret", { hiddenFromModel: true }));
    const text = "does not exist. Available skills are pdf, docx.";
    expect(await session.callTool("skill", { skill: "pfd" })).toMatchObject({
      resultType: "failure",
      textResultForLlm: `Skill "pfd" ${text}`,
    });
    expect((await session.callTool("skill", { skill: "secret" })).textResultForLlm).toBe(`Skill "secret" ${text}`);
  });

  test("the skill tool fails for an unreadable skill without the reason", async () => {
    const session = open({}, skill("pdf", { instructions: () => Promise.reject(new Error("ENOENT /home/me/secret")) }));
    expect(await session.callTool("skill", { skill: "pdf" })).toEqual({
      resultType: "failure",
      textResultForLlm: 'Skill "pdf" could not be loaded. Continue without it.',
    });
  });
});

describe("the ask_user tool", () => {
  const args = { question: "Which?", choices: ["red", "blue"] };
  test.each([
    [{ answer: "red", wasFreeform: false }, "User selected: red"],
    [{ answer: "green", wasFreeform: true }, "User responded: green"],
    [{ answer: "blue" }, "User selected: blue"],
    [{ answer: "green" }, "User responded: green"],
  ])("ask_user converts the answer %j to: %s", async (answer, text) => {
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

  test("ask_user without an answer fails and lets the model continue", async () => {
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

  test("ask_user waits longer than a tool's deadline", async () => {
    const person = deferred<unknown>();
    const hanging = { name: "hang", handler: () => new Promise(() => {}) };
    const session = open({ toolTimeout: 1, tools: [hanging], onUserInputRequest: () => person.promise });
    const called = session.callTool("ask_user", { question: "Which?" });
    expect((await session.callTool("hang")).resultType).toBe("timeout");
    person.resolve({ answer: "this" });
    expect((await called).textResultForLlm).toBe("User responded: this");
  });
});

test("tool search finds deferred tools, which the model calls in its next request", async () => {
  const chat = fakeChat(
    { calls: [{ name: "tool_search_tool_regex", args: { pattern: "invoice" } }] },
    { calls: [{ name: "get_invoice" }] },
    "Here it is.",
  );
  const tools = Array.from({ length: 40 }, (_, index) => ({ name: `other_${index}`, handler: () => "" }));
  const environment = createTestEnvironment(sourceOf("mcp", "s", ...tools, { name: "get_invoice", handler: () => "No. 7" }));
  const session = openSession(environment, { chatModel: chat, excludedTools: agentTools });
  await session.sendAndWait("Get my invoice.");
  const offered = chat.requests.map((request) => request.tools?.map(({ name }) => name));
  expect(offered).toEqual([
    ["tool_search_tool_regex"],
    ["tool_search_tool_regex", "get_invoice"],
    ["tool_search_tool_regex", "get_invoice"],
  ]);
  expect(chat.requests[2]?.messages.at(-1)).toMatchObject({ role: "tool", content: "No. 7" });
});
