import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../../src/models/model.ts";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import type { ToolContext } from "../../../src/tools/tool.ts";
import type { SkillEntry } from "../../../src/tools/tool-source.ts";
import { type FakeReply, fakeChat } from "../../doubles/fake-chat.ts";
import { createTestEnvironment, deferred, nextEvent, openSession, recordEvents, settleMicrotasks, sourceOf } from "../session-kit.ts";

type Say = string | FakeReply;
type Step = Say | ((request: ModelRequest) => Say | Promise<Say>);

/** A model that answers each conversation according to its first message: the steps in order, then the last one again. */
function routed(routes: Readonly<Record<string, readonly Step[]>>) {
  const taken = new Map<string, number>();
  const requests = new Map<string, ModelRequest[]>();
  const chat = fakeChat((request) => {
    const key = String(request.messages.find(({ role }) => role === "user")?.content);
    requests.set(key, [...(requests.get(key) ?? []), request]);
    const steps = routes[key] ?? [`Nothing is planned for ${key}.`];
    const at = taken.get(key) ?? 0;
    taken.set(key, at + 1);
    const step = steps[Math.min(at, steps.length - 1)]!;
    return typeof step === "function" ? step(request) : step;
  });
  return { chat, of: (key: string): readonly ModelRequest[] => requests.get(key) ?? [] };
}

let calls = 0;
const call = (name: string, args: object = {}, id = `c${++calls}`): FakeReply => ({ calls: [{ id, name, args }] });
const task = (args: object = {}, id?: string) =>
  call("task", { description: "Look", prompt: "Find it.", agent_type: "explore", name: "finder", ...args }, id);
const tool = (name: string, handler: () => unknown = () => `${name} ran`) => ({ name, handler });
const namesOf = (request: ModelRequest | undefined) => request?.tools?.map(({ name }) => name) ?? [];
const resultsOf = (request: ModelRequest | undefined) =>
  (request?.messages ?? []).flatMap((message) => (message.role === "tool" ? [message.content] : []));
const usersOf = (request: ModelRequest | undefined) =>
  (request?.messages ?? []).flatMap((message) => (message.role === "user" ? [message.content] : []));
const systemOf = (request: ModelRequest | undefined) => request?.messages.find(({ role }) => role === "system")?.content;
const seconds = /(elapsed|duration): \d+s/g;
const agentTools = ["list_agents", "read_agent", "task", "write_agent"];

const environment = () =>
  createTestEnvironment(
    sourceOf("builtin", "workspace", tool("view"), tool("grep"), tool("edit")),
    sourceOf("mcp", "git", tool("git-log")),
    sourceOf("skill", "quality", tool("lint")),
  );
const open = (chatModel: SessionOptions["chatModel"], options: SessionOptions = {}, where = environment()) =>
  openSession(where, { chatModel, ...options });

describe("a sub-agent in the foreground", () => {
  test("a sub-agent has its own conversation, and its last message is the result", async () => {
    const { chat, of } = routed({ "Go.": [task({}, "t1"), "Reported."], "Find it.": [call("view"), "Found in line 7."] });
    const session = open(chat);
    expect((await session.sendAndWait("Go.")).content).toBe("Reported.");
    expect(resultsOf(of("Go.")[1])).toEqual(["Found in line 7."]);
    expect(of("Find it.")[1]?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool"]);
    expect(systemOf(of("Find it.")[0])).toContain("You answer questions about the files");
    expect(systemOf(of("Go.")[0])).not.toContain("You answer questions about the files");
  });

  test("events of a sub-agent carry its call and are not part of the session's conversation", async () => {
    const usage = { inputTokens: 10, outputTokens: 5 };
    const { chat, of } = routed({
      "Go.": [task({}, "t1"), "Reported."],
      "Find it.": [
        { ...call("view", {}, "v1"), usage },
        { content: "Found.", usage },
      ],
    });
    const session = open(chat);
    const events = recordEvents(session);
    await session.sendAndWait("Go.");
    const lifecycle = events.filter(({ type }) => type.startsWith("subagent."));
    expect(lifecycle.map(({ type, agentId }) => [type, agentId])).toEqual([
      ["subagent.started", "t1"],
      ["subagent.completed", "t1"],
    ]);
    const names = { agentName: "explore", agentDisplayName: "Explore Agent", toolCallId: "t1" };
    expect(lifecycle[0]?.data).toEqual({ ...names, agentDescription: expect.stringContaining("Answers questions") });
    expect(lifecycle[1]?.data).toEqual({ ...names, durationMs: expect.any(Number), totalToolCalls: 1, totalTokens: 30 });
    const ofChild = events.filter(({ agentId }) => agentId === "t1").map(({ type }) => type);
    for (const type of ["user.message", "assistant.message", "tool.execution_start", "tool.execution_complete"])
      expect(ofChild).toContain(type);
    expect(usersOf(of("Go.")[1])).toEqual(["Go."]);
  });

  test("a sub-agent uses the session's hooks, with its call as their session, and the session's clients", async () => {
    const { chat } = routed({ "Go.": [task({}, "t1"), "Reported."], "Find it.": [call("view"), "Found."] });
    const seen: unknown[] = [];
    const asked: unknown[] = [];
    const session = open(chat, {
      hooks: { onPreToolUse: (input) => void seen.push([input.toolName, input.sessionId]) },
      onPermissionRequest: (ask) => {
        asked.push(ask.toolName);
        return { kind: "approve-once" };
      },
    });
    await session.sendAndWait("Go.");
    expect(seen).toEqual([
      ["task", session.id],
      ["view", "t1"],
    ]);
    expect(asked).toEqual(["view"]);
  });

  test("a sub-agent starts with the context of subagentStart hooks and continues while subagentStop hooks require it", async () => {
    const { chat, of } = routed({ "Find it.": ["Found."], "Go.": [task(), "Reported."] });
    let stops = 0;
    const session = open(chat, {
      hooks: {
        onSubagentStart: ({ agentName }) => ({ additionalContext: `Mind, ${agentName}.` }),
        onSubagentStop: () => (stops++ === 0 ? { decision: "block", reason: "Look again." } : {}),
      },
    });
    await session.sendAndWait("Go.");
    expect(usersOf(of("Find it.").at(-1))).toEqual(["Find it.", "Mind, explore.", "Look again."]);
    expect(stops).toBe(2);
  });

  test("a sub-agent may take longer than a tool's deadline", async () => {
    const looked = deferred();
    const { chat } = routed({ "Go.": [task(), "Reported."], "Find it.": [() => looked.promise.then(() => "Found.")] });
    const session = open(chat, { toolTimeout: 1, tools: [tool("hang", () => new Promise(() => {}))] });
    const started = nextEvent(session, "subagent.started");
    const answered = session.sendAndWait("Go.");
    await started;
    expect((await session.callTool("hang")).resultType).toBe("timeout");
    looked.resolve();
    expect((await answered).content).toBe("Reported.");
  });

  test("an empty, an unknown and a failed sub-agent give results that the model can read", async () => {
    const { chat, of } = routed({
      "Go.": [task(), task({ agent_type: "magic" }), task({ prompt: "Break." }), "Reported."],
      "Find it.": [""],
      "Break.": [() => Promise.reject(new Error("connect ECONNREFUSED 10.0.0.1:443"))],
    });
    const session = open(chat);
    const failed = nextEvent(session, "subagent.failed");
    await session.sendAndWait("Go.");
    const [silent, magic, broken] = resultsOf(of("Go.")[3]);
    expect(silent).toBe('Agent "finder" (explore) completed without output.');
    expect(magic).toMatch(/^Invalid arguments for tool 'task': agent_type: /);
    expect(broken).toBe('Agent "finder-2" (explore) failed. Detailed information is not available.');
    expect((await failed).data).toMatchObject({ agentName: "explore", error: "connect ECONNREFUSED 10.0.0.1:443" });
  });

  test("a sub-agent ends with the turn that waits for it, with its calls and its own sub-agents", async () => {
    const { chat } = routed({
      "Go.": [task({ agent_type: "general-purpose" }), "Reported."],
      "Find it.": [task({ name: "inner", prompt: "Deeper." })],
      "Deeper.": [call("hang")],
    });
    const hangs = deferred<AbortSignal>();
    const hang = { name: "hang", handler: (_: unknown, { signal }: { signal: AbortSignal }) => new Promise(() => hangs.resolve(signal)) };
    const session = open(chat, { tools: [hang], customAgents: [{ name: "explore" }] });
    const ended = recordEvents(session, "subagent.completed");
    const answered = session.sendAndWait("Go.").catch((error: { code: string }) => error.code);
    const signal = await hangs.promise;
    await session.abort();
    expect(await answered).toBe("TURN_ABORTED");
    await session.disconnect();
    expect(signal.aborted).toBe(true);
    expect(ended.map(({ data }) => [data["agentName"], data["cancelled"]]).sort()).toEqual([
      ["explore", true],
      ["general-purpose", true],
    ]);
  });
});

describe("the tools of a sub-agent", () => {
  const toolsOf = async (options: SessionOptions, agent = "general-purpose", where = environment()) => {
    const { chat, of } = routed({ "Go.": [task({ agent_type: agent }), "Reported."], "Find it.": ["Found."] });
    await open(chat, options, where).sendAndWait("Go.");
    return { parent: namesOf(of("Go.")[0]), child: namesOf(of("Find it.")[0]) };
  };

  test("a sub-agent has all tools of the session except those reserved for the main agent", async () => {
    const { parent, child } = await toolsOf({ tools: [tool("pushed")], defaultAgent: { excludedTools: ["lint", "edit"] } });
    expect(parent).toEqual(["grep", ...["list_agents", "read_agent", "task"], "view", "write_agent", "git-log", "pushed"]);
    expect(child).toEqual(["edit", "grep", ...["list_agents", "read_agent", "task"], "view", "write_agent", "git-log", "lint", "pushed"]);
  });

  test("a sub-agent's own list is applied after the session's filter, not after that of its starter", async () => {
    const customAgents = [
      { name: "editor", tools: ["edit", "lint"] },
      { name: "lead", tools: ["grep", "task"] },
    ];
    const { parent, child } = await toolsOf({ customAgents, agent: "lead", excludedTools: ["lint"] }, "editor");
    expect([parent.includes("edit"), parent.includes("grep")]).toEqual([false, true]);
    expect(child).toEqual(["edit"]);
  });

  test("a sub-agent has the session's database, unless its own list leaves it out", async () => {
    const customAgents = [
      { name: "limited", tools: ["grep"] },
      { name: "named", tools: ["grep", "sql"] },
    ];
    const hasSql = async (agent: string, sessionDatabase: boolean): Promise<readonly boolean[]> => {
      const { parent, child } = await toolsOf({ customAgents, sessionDatabase }, agent);
      return [parent.includes("sql"), child.includes("sql")];
    };
    expect(await hasSql("general-purpose", true)).toEqual([true, true]);
    expect(await hasSql("limited", true)).toEqual([true, false]);
    expect(await hasSql("named", true)).toEqual([true, true]);
    expect(await hasSql("named", false)).toEqual([false, false]);
  });

  test("a sub-agent has its own servers, and the later source gets a name", async () => {
    const log = (text: string) => sourceOf("mcp", "git", { name: "git-log", description: text, handler: () => text });
    const where = createTestEnvironment(
      log("parent"),
      { ...log("child"), forAgents: ["editor"] },
      { ...sourceOf("mcp", "db", tool("db-get")), forAgents: ["editor"] },
    );
    const { chat, of } = routed({
      "Go.": [{ calls: [{ name: "git-log" }, task({ agent_type: "editor" }).calls![0]!] }, "Reported."],
      "Find it.": [call("git-log"), "Found."],
    });
    await open(chat, { customAgents: [{ name: "editor" }] }, where).sendAndWait("Go.");
    expect(resultsOf(of("Go.")[1])[0]).toBe("parent");
    expect(namesOf(of("Find it.")[0])).toEqual([...agentTools, "db-get", "git-log"]);
    expect(resultsOf(of("Find it.")[1])).toEqual(["child"]);
  });

  test("a sub-agent defers tools according to its own model and number of tools", async () => {
    const many = sourceOf("mcp", "big", ...Array.from({ length: 40 }, (_, index) => tool(`big-${index}`)));
    const customAgents = [
      { name: "few", tools: ["big-1", "big-2"] },
      { name: "plain", model: "plain-model" },
    ];
    const options = { customAgents, modelTools: { "plain-*": { toolSearch: { enabled: false } } } };
    const few = await toolsOf(options, "few", createTestEnvironment(many));
    expect(few.parent).toEqual(["list_agents", "read_agent", "task", "tool_search_tool_regex", "write_agent"]);
    expect(few.child).toEqual(["big-1", "big-2"]);
    expect((await toolsOf(options, "plain", createTestEnvironment(many))).child).toHaveLength(44);
    expect((await toolsOf(options, "general-purpose", createTestEnvironment(many))).child).toEqual(few.parent);
  });

  test("tools that a sub-agent found are visible to it alone", async () => {
    const many = sourceOf("mcp", "big", ...Array.from({ length: 40 }, (_, index) => tool(`big-${index}`)));
    const { chat, of } = routed({
      "Go.": [task({ agent_type: "general-purpose" }, "t1"), "Reported."],
      "Find it.": [call("tool_search_tool_regex", { pattern: "big-7$" }), "Found."],
    });
    const session = open(chat, {}, createTestEnvironment(many));
    const activated = recordEvents(session, "tool_search.activated");
    await session.sendAndWait("Go.");
    expect(namesOf(of("Find it.")[1])).toContain("big-7");
    expect(namesOf(of("Go.")[1])).not.toContain("big-7");
    expect(activated.map(({ agentId, data }) => [agentId, data["toolNames"]])).toEqual([["t1", ["big-7"]]]);
  });

  test("a sub-agent's tools change while it works", async () => {
    const where = environment();
    const { chat, of } = routed({
      "Go.": [task({ agent_type: "general-purpose" }), "Reported."],
      "Find it.": [
        () => {
          where.publish(sourceOf("skill", "quality", tool("lint2")));
          return call("lint");
        },
        "Found.",
      ],
    });
    await open(chat, {}, where).sendAndWait("Go.");
    expect(resultsOf(of("Find it.")[1])[0]).toMatch(/^Tool 'lint' is no longer available\./);
    expect(namesOf(of("Find it.")[1])).toEqual([...agentTools, "lint2"]);
  });

  test("a sub-agent has no skill tool, and its initial skills are part of its system message", async () => {
    const where = environment();
    const pdf: SkillEntry = {
      name: "pdf",
      description: "PDF.",
      folder: "/skills/pdf",
      instructions: () => Promise.resolve("Use a pen."),
      read: () => Promise.reject(new Error()),
    };
    where.publishSkills(pdf);
    const { chat, of } = routed({ "Go.": [task({ agent_type: "writer" }, "t1"), "Reported."], "Find it.": ["Found."] });
    const session = open(chat, { customAgents: [{ name: "writer", prompt: "You write.", skills: ["pdf", "gone"], tools: [] }] }, where);
    const invoked = recordEvents(session, "skill.invoked");
    await session.sendAndWait("Go.");
    expect(namesOf(of("Go.")[0])).toContain("skill");
    expect(namesOf(of("Find it.")[0])).toEqual([]);
    expect(systemOf(of("Find it.")[0])).toContain(
      '<agent_instructions>\nYou write.\n\n<skill-context name="pdf">\nBase directory for this skill: /skills/pdf\n\nUse a pen.\n\n</skill-context>\n</agent_instructions>',
    );
    expect(invoked.map(({ agentId, data }) => [agentId, data["trigger"]])).toEqual([["t1", "context-load"]]);
    expect(where.lines.some(({ message }) => message.includes('"gone"'))).toBe(true);
  });

  test("sub-agents can start sub-agents up to a depth of three", async () => {
    const general = { agent_type: "general-purpose", name: "g" };
    const { chat, of } = routed({
      "Go.": [task({ ...general, prompt: "1" }), "Reported."],
      "1": [task({ ...general, prompt: "2" }), "One."],
      "2": [task({ ...general, prompt: "3" }), "Two."],
      "3": [task({ ...general, prompt: "4" }), "Three."],
    });
    await open(chat).sendAndWait("Go.");
    expect(namesOf(of("2")[0])).toContain("task");
    expect(namesOf(of("3")[0])).not.toContain("task");
    expect(resultsOf(of("3")[1])[0]).toMatch(/^Tool 'task' does not exist\./);
    expect([of("4").length, resultsOf(of("Go.")[1])]).toEqual([0, ["One."]]);
  });
});

describe("a sub-agent in the background", () => {
  const background = { mode: "background" };

  test("a background agent starts at once, and the model is notified of its end and reads its result", async () => {
    const looked = deferred();
    const { chat, of } = routed({
      "Go.": [task(background), "I wait.", call("read_agent", { agent_id: "finder" }), "It is in line 7."],
      "Find it.": [() => looked.promise.then(() => "Found in line 7.")],
    });
    const session = open(chat);
    expect((await session.sendAndWait("Go.")).content).toBe("I wait.");
    expect(resultsOf(of("Go.")[1])).toEqual([
      "Agent started in background with agent_id: finder. You'll be notified when it completes. Tell the user you're waiting and end your response, or continue unrelated work until notified.",
    ]);
    const rested = nextEvent(session, "session.idle");
    looked.resolve();
    await rested;
    expect(usersOf(of("Go.")[2])).toEqual([
      "Go.",
      '<system_notification>\nAgent "finder" (explore) has completed successfully. Use read_agent with agent_id "finder" to retrieve the full results.\n</system_notification>',
    ]);
    expect(resultsOf(of("Go.")[3])[1]?.replace(seconds, "$1: 0s")).toBe(
      "Agent completed. agent_id: finder, agent_type: explore, status: completed, description: Look, elapsed: 0s, total_turns: 0, duration: 0s\n\nFound in line 7.",
    );
  });

  test("reading a background agent waits no longer than requested, and the list shows its state", async () => {
    const looked = deferred();
    const { chat } = routed({ "Find it.": [() => looked.promise.then(() => "Found.")] });
    const session = open(chat);
    const text = async (name: string, args: object = {}) =>
      (await session.callTool(name, args)).textResultForLlm.replace(seconds, "$1: 0s");
    const start = { description: "Look\nand more", prompt: "Find it.", agent_type: "explore", name: "my finder!", mode: "background" };
    expect(await text("task", start)).toContain("agent_id: my-finder.");
    expect(await text("task", start)).toContain("agent_id: my-finder-2.");
    expect(await text("read_agent", { agent_id: "my-finder" })).toBe(
      "Agent is still running. agent_id: my-finder, agent_type: explore, status: running, description: Look, elapsed: 0s, total_turns: 0 You will be automatically notified when this agent completes, so there is no need to poll.",
    );
    expect(await text("read_agent", { agent_id: "my-finder", wait: true, timeout: 0 })).toContain("(timed out waiting for completion)");
    const waiting = text("read_agent", { agent_id: "my-finder", wait: true });
    looked.resolve();
    expect(await waiting).toMatch(/^Agent completed\. .*\n\nFound\.$/);
    await text("read_agent", { agent_id: "my-finder-2", wait: true });
    expect(await text("list_agents")).toBe(
      ["my-finder", "my-finder-2"]
        .map((id) => `- agent_id: ${id}, agent_type: explore, status: completed, description: Look, elapsed: 0s, total_turns: 0`)
        .join("\n"),
    );
    expect(await text("list_agents", { include_completed: false })).toBe("There are no agents.");
    expect(await session.callTool("read_agent", { agent_id: "missing" })).toMatchObject({
      resultType: "failure",
      textResultForLlm: "No agent found with agent_id: missing. The agent may have been cleared or never existed.",
    });
  });

  test("a background agent gets messages with its next request and resumes when it was finished", async () => {
    const looked = deferred();
    const { chat, of } = routed({ "Find it.": [() => looked.promise.then(() => call("view")), "Found.", "Found more."] });
    const session = open(chat);
    const write = async (message: string) => (await session.callTool("write_agent", { agent_id: "finder", message })).textResultForLlm;
    await session.callTool("task", { description: "Look", prompt: "Find it.", agent_type: "explore", name: "finder", mode: "background" });
    expect(await write("Mind the tests.")).toBe("Message delivered to agent finder. Use read_agent to check the agent's response.");
    looked.resolve();
    const read = async (more = {}) => (await session.callTool("read_agent", { agent_id: "finder", wait: true, ...more })).textResultForLlm;
    expect(await read()).toMatch(/total_turns: 0.*\n\nFound\.$/);
    expect(usersOf(of("Find it.")[1])).toEqual(["Find it.", "Mind the tests."]);
    await write("Look on.");
    expect(await read()).toMatch(/total_turns: 1.*\n\nFound more\.$/);
    expect(await read({ since_turn: 0 })).toMatch(/\n\nFound\.\n\nFound more\.$/);
    expect(usersOf(of("Find it.")[2])).toEqual(["Find it.", "Mind the tests.", "Look on."]);
    expect((await session.callTool("write_agent", { message: "Hello?" })).resultType).toBe("failure");
    expect((await session.callTool("write_agent", { agent_ids: ["finder", "missing"], message: "Both." })).textResultForLlm).toContain(
      "No agent found with agent_id: missing.",
    );
  });

  test("a background agent answers a message that arrives while it ends", async () => {
    const { chat, of } = routed({ "Find it.": ["Found.", "Found more."] });
    const written: unknown[] = [];
    const session = open(chat, {
      hooks: {
        // The model has answered, but the agent has not ended yet.
        async onSubagentStop() {
          if (written.length === 0) written.push(await session.callTool("write_agent", { agent_id: "finder", message: "Look on." }));
          return {};
        },
      },
    });
    await session.callTool("task", { description: "Look", prompt: "Find it.", agent_type: "explore", name: "finder", mode: "background" });
    const read = await session.callTool("read_agent", { agent_id: "finder", wait: true });
    expect(read.textResultForLlm).toMatch(/^Agent completed\. .*\n\nFound more\.$/s);
    expect(written).toHaveLength(1);
    expect(of("Find it.").map(usersOf)).toEqual([["Find it."], ["Find it.", "Look on."]]);
  });

  test("the failure of a background agent is reported and can be read", async () => {
    const { chat, of } = routed({
      "Go.": [task(background), "I wait.", "Too bad."],
      "Find it.": [() => Promise.reject(new Error("boom at /srv/x"))],
    });
    const session = open(chat);
    const notification = new Promise<unknown>(
      (resolve) =>
        void session.on(
          "user.message",
          ({ data, agentId }) => agentId === undefined && data["source"] === "agent" && resolve(data["content"]),
        ),
    );
    await session.sendAndWait("Go.");
    expect(await notification).toBe('<system_notification>\nAgent "finder" (explore) has failed.\n</system_notification>');
    expect((await session.callTool("read_agent", { agent_id: "finder" })).textResultForLlm).toMatch(
      /^Agent failed\. .*\n\nAgent "finder" \(explore\) failed\. Detailed information is not available\.$/,
    );
    expect(JSON.stringify(of("Go."))).not.toContain("boom");
  });

  test("a background agent outlives the turn that started it and ends with the session", async () => {
    const { chat } = routed({
      "Go.": [task(background), () => new Promise<never>(() => {})],
      "Find it.": [() => new Promise<never>(() => {})],
    });
    const session = open(chat);
    const ended = recordEvents(session, "subagent.completed");
    const started = nextEvent(session, "subagent.started");
    const answered = session.sendAndWait("Go.").catch((error: { code: string }) => error.code);
    await started;
    await session.abort();
    expect(await answered).toBe("TURN_ABORTED");
    expect(ended).toEqual([]);
    await session.disconnect();
    expect(ended.map(({ data }) => data["cancelled"])).toEqual([true]);
  });

  describe("session idle with background agents", () => {
    const eventTypes = ["user.message", "subagent.completed", "subagent.failed", "assistant.idle", "session.idle"];
    const seen = (events: readonly { readonly type: string; readonly agentId?: string | undefined }[]) =>
      events.map(({ type, agentId }) => (agentId === undefined ? type : `${type} of an agent`));

    test("the session is idle when the agent has ended and its notification was answered, and sessionEnd hooks run after each turn", async () => {
      const looked = deferred();
      const { chat } = routed({
        "Go.": [task(background), "I wait.", "It is in line 7."],
        "Find it.": [() => looked.promise.then(() => "Found.")],
      });
      const ends: unknown[] = [];
      const session = open(chat, { hooks: { onSessionEnd: ({ reason }) => void ends.push(reason) } });
      const events = recordEvents(session, ...eventTypes);
      const reply = await session.sendAndWait("Go.");
      expect([reply.content, session.conversation.isBusy, ends]).toEqual(["I wait.", false, ["complete"]]);
      expect(seen(events)).toEqual(["user.message", "user.message of an agent", "assistant.idle"]);
      const idle = nextEvent(session, "session.idle");
      looked.resolve();
      await idle;
      expect(seen(events).slice(3)).toEqual(["subagent.completed of an agent", "user.message", "assistant.idle", "session.idle"]);
      expect(ends).toEqual(["complete", "complete"]);
    });

    test("the session is not idle before the last of several agents has ended, and messages are still answered", async () => {
      const [one, two] = [deferred(), deferred()];
      const { chat } = routed({
        "Go.": [
          { calls: [...(task({ ...background, prompt: "1" }).calls ?? []), ...(task({ ...background, prompt: "2" }).calls ?? [])] },
          "I wait.",
          "Yes?",
          "Noted.",
        ],
        "1": [() => one.promise.then(() => "One.")],
        "2": [() => two.promise.then(() => Promise.reject(new Error("boom")))],
      });
      const session = open(chat);
      const events = recordEvents(session, "assistant.idle", "session.idle");
      await session.sendAndWait("Go.");
      expect((await session.sendAndWait("Hello?")).content).toBe("Yes?");
      const paused = nextEvent(session, "assistant.idle");
      one.resolve();
      await paused;
      expect(seen(events)).toEqual(["assistant.idle", "assistant.idle", "assistant.idle"]);
      const idle = nextEvent(session, "session.idle");
      two.resolve();
      await idle;
      expect(seen(events).slice(3)).toEqual(["assistant.idle", "session.idle"]);
    });

    test("an abort does not stop background agents, and the session is idle when they end", async () => {
      const looked = deferred();
      const { chat } = routed({
        "Go.": [task(background), () => new Promise<never>(() => {}), "Noted."],
        "Find it.": [() => looked.promise.then(() => "Found.")],
      });
      const session = open(chat);
      const events = recordEvents(session, "assistant.idle", "session.idle");
      const answered = session.sendAndWait("Go.").catch((error: { code: string }) => error.code);
      await chat.request(2);
      await session.abort();
      expect(await answered).toBe("TURN_ABORTED");
      expect(events.map(({ type, data }) => [type, data])).toEqual([["assistant.idle", { aborted: true }]]);
      const idle = nextEvent(session, "session.idle");
      looked.resolve();
      expect((await idle).data).toEqual({});
    });

    test("disconnecting stops background agents", async () => {
      const { chat } = routed({ "Go.": [task(background), "I wait."], "Find it.": [() => new Promise<never>(() => {})] });
      const session = open(chat);
      const events = recordEvents(session, "session.idle");
      await session.sendAndWait("Go.");
      await session.disconnect();
      expect(events.map(({ data }) => data)).toEqual([{ aborted: true }]);
    });

    test("the session is idle when background work of tools has settled in any way", async () => {
      const [one, two] = [deferred(), deferred()];
      const start = {
        name: "start",
        handler: (_args: unknown, _invocation: unknown, context: ToolContext) => {
          context.background(one.promise);
          context.background(two.promise);
          return "started";
        },
      };
      const { chat } = routed({ "Go.": [call("start"), "It runs."] });
      const session = open(chat, {}, createTestEnvironment(sourceOf("builtin", "workspace", start)));
      const events = recordEvents(session, "assistant.idle", "session.idle");
      await session.sendAndWait("Go.");
      one.resolve();
      await settleMicrotasks();
      expect(seen(events)).toEqual(["assistant.idle"]);
      const idle = nextEvent(session, "session.idle");
      two.reject(new Error("It crashed."));
      await idle;
      expect(seen(events)).toEqual(["assistant.idle", "session.idle"]);
    });
  });

  test("a stopped background agent resumes when it gets a message", async () => {
    const { chat } = routed({ "Go.": [task(), "Good."], "Find it.": [() => new Promise<never>(() => {}), "Found."] });
    const session = open(chat);
    const stopped = nextEvent(session, "subagent.completed");
    const answered = session.sendAndWait("Go.").catch((error: { code: string }) => error.code);
    await chat.request(1);
    await session.abort();
    await answered;
    expect((await stopped).data).toMatchObject({ cancelled: true });
    const read = async () => (await session.callTool("read_agent", { agent_id: "finder", wait: true })).textResultForLlm;
    expect(await read()).toMatch(/^Agent cancelled\. .*\n\nAgent "finder" \(explore\) was stopped before it completed\.$/);
    await session.callTool("write_agent", { agent_id: "finder", message: "Continue." });
    expect(await read()).toMatch(/^Agent completed\. .*\n\nFound\.$/);
  });

  test("at most thirty-two background agents run at once", async () => {
    const { chat } = routed({ "Find it.": [() => new Promise<never>(() => {})] });
    const session = open(chat);
    const start = { description: "Look", prompt: "Find it.", agent_type: "explore", mode: "background" };
    const results = await Promise.all(Array.from({ length: 33 }, () => session.callTool("task", start)));
    expect(results.filter(({ resultType }) => resultType === "success")).toHaveLength(32);
    expect(results[32]?.textResultForLlm).toMatch(/^The agent was not started: 32 agents are already running/);
  });
});
