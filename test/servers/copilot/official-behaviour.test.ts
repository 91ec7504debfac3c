import { afterEach, describe, expect, test } from "vitest";
import { chatAnswer, jsonAnswer, type ModelScript } from "../../doubles/scripted-model.ts";
import { calling, type Json, Served, type TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

async function begin(options: object = {}): Promise<{ readonly client: TestClient; readonly sessionId: string }> {
  served = await Served.start();
  const client = await served.connect();
  return { client, sessionId: await client.create({ model: "m", ...options }) };
}

describe("events carry what the official runtime says in them", () => {
  test("a session's start has its reasoning effort, and a message the mode that it was sent in", async () => {
    const { client, sessionId } = await begin({ reasoningEffort: "high" });
    expect((await client.event("session.start")).data).toMatchObject({ selectedModel: "m", reasoningEffort: "high" });
    served.says("Planned.", "Done.");
    await client.say(sessionId, "Plan it", { agentMode: "plan" });
    await client.say(sessionId, "Do it", { agentMode: "interactive" });
    const modes = client.events.filter(({ event }) => event.type === "user.message").map(({ event }) => event.data["agentMode"]);
    expect(modes).toEqual(["plan", "interactive"]);
  });

  test.each([true, false])("a resume says whether pending work continues: %s", async (continuePendingWork) => {
    const { client, sessionId } = await begin();
    const other = await served.connect();
    await other.request("session.resume", { sessionId, continuePendingWork });
    expect((await other.event("session.resume")).data).toMatchObject({ sessionWasActive: true, continuePendingWork });
    served.says("Hello.");
    await client.say(sessionId, "Hi");
    for (const one of [client, other]) await one.request("session.destroy", { sessionId });
    const later = await served.connect();
    await later.request("session.resume", { sessionId, continuePendingWork });
    const resumed = await later.event("session.resume", ({ data }) => data["sessionWasActive"] === false);
    expect(resumed.data).toMatchObject({ continuePendingWork });
  });

  test("a line that a client logs is a notification, and is not kept if it is for the moment", async () => {
    const { client, sessionId } = await begin();
    const kept = await client.request("session.log", { sessionId, message: "Kept.", tip: "Try this." });
    const passing = await client.request("session.log", { sessionId, message: "Passing.", ephemeral: true, level: "warning" });
    const info = await client.event("session.info", ({ id }) => id === kept.eventId);
    expect(info.data).toEqual({ infoType: "notification", message: "Kept.", tip: "Try this." });
    const warning = await client.event("session.warning", ({ id }) => id === passing.eventId);
    expect([warning.ephemeral, warning.data["warningType"]]).toEqual([true, "notification"]);
    const { events } = await client.request("session.getMessages", { sessionId });
    const ids = events.map(({ id }: Json) => id);
    expect([ids.includes(kept.eventId), ids.includes(passing.eventId)]).toEqual([true, false]);
  });
});

describe("methods answer as the official runtime does", () => {
  test.each(["", "   ", "\n\t"])("session.name.set refuses %j, and the name stays", async (name) => {
    const { client, sessionId } = await begin();
    await client.request("session.name.set", { sessionId, name: " Trip " });
    expect((await client.refusal("session.name.set", { sessionId, name })).message).toContain("name");
    expect(await client.request("session.name.get", { sessionId })).toEqual({ name: "Trip" });
  });

  test("an interest in any type of events gives a handle, which may be released twice", async () => {
    const { client, sessionId } = await begin();
    for (const eventType of ["assistant.message", "user_input.requested"]) {
      const { handle } = await client.request("session.eventLog.registerInterest", { sessionId, eventType });
      for (let time = 0; time < 2; time++)
        expect(await client.request("session.eventLog.releaseInterest", { sessionId, handle })).toEqual({ success: true });
    }
    expect(await client.request("session.eventLog.releaseInterest", { sessionId, handle: "made-up" })).toEqual({ success: false });
  });

  test("after setApproveAll no client is asked, until it is taken back", async () => {
    const { client, sessionId } = await begin({ tools: [weather] });
    const ask = async (id: string): Promise<void> => {
      served.says(calling("get_weather", { city: "Rome" }, id), "Done.");
      await client.say(sessionId, "Go");
    };
    client.serve({ get_weather: () => "Sun." });
    await client.request("session.permissions.setApproveAll", { sessionId, enabled: true });
    expect(await client.request("session.permissions.getMode", { sessionId })).toEqual({ mode: "allow-all" });
    await ask("call-1");
    expect(served.asked.messages.at(-1).content).toBe("Sun.");
    expect(client.count("permission.requested")).toBe(0);
    await client.request("session.permissions.configure", {
      sessionId,
      rules: { approved: [], denied: [{ kind: "get_weather", argument: null }] },
    });
    await ask("call-2");
    expect(served.asked.messages.at(-1).content).not.toBe("Sun.");
    await client.request("session.permissions.configure", { sessionId, rules: { approved: [], denied: [] } });
    await client.request("session.permissions.setApproveAll", { sessionId, enabled: false });
    await ask("call-3");
    expect(client.count("permission.requested")).toBe(1);
  });

  test("a file system of a client comes too late once there are sessions", async () => {
    const { client } = await begin();
    const provider = { sessionStatePath: "/state", initialCwd: "/", conventions: "posix" };
    for (const one of [client, await served.connect()])
      expect((await one.refusal("sessionFs.setProvider", provider)).message).toContain("too late");
  });
});

describe("a session that names no model has the first of its endpoint for", () => {
  const script: ModelScript = ({ path }) =>
    path.startsWith("/models") ? jsonAnswer({ data: [{ id: "first-of-all" }] }) : chatAnswer({ content: "Me." });

  test.each([
    ["session.ui.ephemeralQuery", { question: "Who?" }],
    [
      "session.mcp.executeSampling",
      {
        requestId: "1",
        serverName: "s",
        mcpRequestId: 1,
        request: { messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 10 },
      },
    ],
  ])("%s", async (method, params) => {
    served = await Served.start({ script });
    const client = await served.connect();
    const sessionId = await client.create();
    await client.request(method, { sessionId, ...params });
    await expect.poll(() => served.asked?.model).toBe("first-of-all");
  });
});

test("a conversation is compacted at thresholds of a few messages, if a session wants that", async () => {
  served = await Served.start();
  const client = await served.connect();
  const infiniteSessions = { enabled: true, backgroundCompactionThreshold: 0.005, bufferExhaustionThreshold: 0.01 };
  const sessionId = await client.create({ model: "m", infiniteSessions });
  served.says("One.", "Two.", "A summary.", "Three.", "A summary.", "Four.");
  for (const text of ["First", "Second", "Third"]) await client.say(sessionId, `${text} ${"word ".repeat(400)}`);
  await client.event("session.compaction_start");
});

test("a message names the date, a selection before it, and pointers behind it", async () => {
  served = await Served.start({ files: { "notes.txt": "one\ntwo\n" } });
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", tools: [{ ...weather, name: "view", overridesBuiltInTool: true }] });
  served.says("Done.");
  const position = { line: 1, character: 0 };
  const url = "https://github.com/o/r/issues/1";
  const attachments = [
    { type: "file", path: "notes.txt", displayName: null },
    { type: "selection", filePath: "/a.cs", displayName: "a.cs", text: "let a;", selection: { start: position, end: position } },
    { type: "github_reference", number: 1, title: "Fix", referenceType: "issue", state: "open", url },
  ];
  await client.request("session.send", { sessionId, prompt: "Look.", attachments });
  const { data } = await client.event("user.message");
  await client.event("session.idle");
  const request: Json = served.model.requests.findLast(({ method }) => method === "POST");
  const { content } = request.body.messages.at(-1);
  expect(content).toMatch(
    /^<ide_selection>\n[\s\S]*<\/ide_selection>\n\n<current_datetime>.*<\/current_datetime>\n\nLook\.\n\n\n\n<tagged_files>\n\* .*notes\.txt \(2 lines\)\n<\/tagged_files>\n\n<github_references>\n#1 - Fix \[issue\] \[open\] .*\n<\/github_references>$/,
  );
  expect(data).toMatchObject({ content: "Look.", attachments: [{ type: "file" }, { type: "selection" }, { type: "github_reference" }] });
});

test("what fills the context is listed by source and by message, and nothing before the first request", async () => {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", tools: [weather] });
  client.serve({ get_weather: () => "Sunny. ".repeat(400) });
  const ask = (name: string, params: object = {}): Promise<Json> => client.request(`session.metadata.${name}`, { sessionId, ...params });
  expect(await ask("getContextAttribution")).toEqual({ contextAttribution: null });
  expect(await ask("getContextHeaviestMessages")).toEqual({ totalTokens: 0, messages: [] });
  served.says(calling("get_weather", { city: "Oslo" }, "call-1"), "Sun.");
  await client.say(sessionId, "Weather?");
  const { contextAttribution } = await ask("getContextAttribution");
  expect(contextAttribution).toMatchObject({ modelId: "m", compactions: { count: 0 } });
  const entry = (id: string): Json => contextAttribution.entries.find((one: Json) => one.id === id);
  expect(entry("tool:get_weather").tokens).toBeGreaterThan(600);
  expect(entry("toolDefinition:get_weather").tokens).toBeGreaterThan(0);
  expect(contextAttribution.totalTokens).toBeGreaterThan(entry("tool:get_weather").tokens);
  const { messages, totalTokens } = await ask("getContextHeaviestMessages", { limit: 1 });
  expect(messages).toMatchObject([{ role: "tool", label: "tool: get_weather" }]);
  expect(totalTokens).toBe(contextAttribution.totalTokens);
  expect((await client.refusal("session.metadata.getContextHeaviestMessages", { sessionId, limit: 0 })).message).toContain("limit");
});

test.each([
  [{ COPILOT_MCP_APPS: "true" }, true],
  [{ MCP_APPS: "1" }, true],
  [{ MCP_APPS: "0" }, false],
])("the environment may enable the pages of MCP servers for every session: %o", async (environment, isEnabled) => {
  served = await Served.start({ server: { environment } });
  const client = await served.connect();
  const sessionId = await client.create({ model: "m" });
  const params = { sessionId, context: { theme: "dark" } };
  if (!isEnabled) return expect((await client.refusal("session.mcp.apps.setHostContext", params)).message).toContain("mcp-apps");
  await client.request("session.mcp.apps.setHostContext", params);
  return expect(await client.request("session.mcp.apps.getHostContext", { sessionId })).toEqual({ context: { theme: "dark" } });
});

test("no session can be shown in the foreground, with the words of the official runtime", async () => {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m" });
  const answer = await client.request("session.setForeground", { sessionId });
  expect(answer).toMatchObject({ success: false, error: expect.stringContaining("Not running in TUI+server mode") });
});

describe("a client that waits at the end of the event log", () => {
  async function atEnd() {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ model: "m" });
    const { cursor } = await client.request("session.eventLog.tail", { sessionId });
    const read = (params: object = {}): Promise<Json> => client.request("session.eventLog.read", { sessionId, cursor, ...params });
    return { client, sessionId, cursor, read };
  }

  test("gets the next event, one that is not kept too", async () => {
    const { client, sessionId, cursor, read } = await atEnd();
    const waiting = read({ waitMs: 30_000, types: ["session.info"] });
    await client.request("session.log", { sessionId, message: "For now.", ephemeral: true });
    const arrived = await waiting;
    expect(arrived.events).toMatchObject([{ type: "session.info", ephemeral: true, data: { message: "For now." } }]);
    expect(arrived).toMatchObject({ cursor, hasMore: false, cursorStatus: "ok" });
  });

  test("continues behind a kept event, and does not get it twice", async () => {
    const { client, sessionId, read } = await atEnd();
    const waiting = read({ waitMs: 30_000, types: ["session.info"] });
    await client.request("session.log", { sessionId, message: "Kept." });
    const { events, cursor } = await waiting;
    expect(events).toMatchObject([{ data: { message: "Kept." } }]);
    expect((await read({ cursor, types: ["session.info"] })).events).toEqual([]);
  });

  test("gets nothing when nothing comes, and nothing is waited for backward", async () => {
    const { cursor, read } = await atEnd();
    expect(await read({ waitMs: 1, types: ["session.info"] })).toEqual({ events: [], cursor, hasMore: false, cursorStatus: "ok" });
    expect((await read({ waitMs: 30_000, direction: "backward", max: 1 })).events).toHaveLength(1);
  });
});
