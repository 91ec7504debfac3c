import { rmSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { scriptedModel } from "../../../src/models/scripted-model.ts";
import type { FeedMessage } from "../../../src/servers/inspector/feed-messages.ts";
import { serveInspector } from "../../../src/servers/inspector/serve-inspector.ts";
import { approveAll } from "../../../src/tools/tool.ts";
import { chatAnswer, startScriptedModel } from "../../doubles/scripted-model.ts";
import { serverNamed } from "../../host/servers-kit.ts";
import { put, skillMd } from "../../skills/kit.ts";
import { type InspectedHost, type Message, openInspected, TestReader } from "./inspector-kit.ts";

const toolModule = (name: string, body: string, more = ""): string => `import { defineTool } from "skillhost";
export default defineTool("${name}", { description: "Says it.", annotations: { readOnlyHint: true }, ${more}
  parameters: { type: "object", properties: { city: { type: "string" }, token: { type: "string" } }, required: ["city"] },
  handler: async (args, invocation, context) => { ${body} } });
`;

const weather = {
  "skills/weather/SKILL.md": skillMd("weather"),
  "skills/weather/prompts/tone.md": "Speak of the weather.",
  "skills/weather/tools/forecast.ts": toolModule("forecast", "return `sunny in ${args.city}`;", "skipPermission: true,"),
};

async function callAndWait(inspected: InspectedHost, reader: TestReader, tool: string, args: Record<string, unknown>) {
  const { callId } = await inspected.request("call", { tool, arguments: args });
  return (await reader.next("call", ({ call }) => call.id === callId && call.state !== "running")).call;
}

describe("the snapshot and what follows it", () => {
  test("a reader begins with everything that there is", async () => {
    const { host, folder, read } = await openInspected({
      ...weather,
      "skills/broken/SKILL.md": "---\nname: [\n---\n",
    });
    const snapshot = await read().next("snapshot");
    expect(snapshot).toMatchObject({
      version: 1,
      isReadOnly: false,
      isExport: false,
      host: { pid: process.pid, workingDirectory: folder, version: host.version },
      sessions: [],
      asks: [],
    });
    expect(snapshot.skills.find(({ name }) => name === "weather")).toMatchObject({
      state: "active",
      generation: 1,
      tools: ["forecast"],
      prompts: [{ path: "prompts/tone.md", size: 21 }],
    });
    expect(snapshot.tools).toMatchObject([
      {
        kind: "skill",
        source: "weather",
        state: "wins",
        isReadOnly: true,
        definition: { name: "forecast", parameters: { required: ["city"] } },
      },
    ]);
    const problem = snapshot.diagnostics.find(({ file }) => file?.includes("broken"));
    expect(problem?.frame?.lines.join("\n")).toContain("name: [");
  });

  test("a saved tool is announced with its reload, and a removed skill is gone", async () => {
    const inspected = await openInspected(weather);
    const { host, folder } = inspected;
    const reader = inspected.read();
    await reader.next("snapshot");
    put(`${folder}/skills/weather/tools/forecast.ts`, toolModule("forecast", "return `rain in ${args.city}`;", 'title: "New",'));
    await host.reload();
    const reload = await reader.next("reload");
    expect(reload).toMatchObject({ id: 1, updated: [{ name: "weather" }], files: [expect.stringContaining("forecast.ts")] });
    const changed = await reader.next("catalog");
    expect(changed.skills).toMatchObject([{ name: "weather", generation: 2 }]);
    expect(changed.tools).toMatchObject([{ definition: { title: "New" } }]);
    rmSync(`${folder}/skills/weather`, { recursive: true });
    await host.reload();
    const gone = await reader.next("catalog", ({ removedSkills }) => removedSkills.length > 0);
    expect(gone).toMatchObject({ removedSkills: [`${folder}/skills/weather`], removedTools: ["skill/weather/forecast"] });
  });

  test("a broken save is a diagnostic with its lines, and its repair ends that", async () => {
    const inspected = await openInspected(weather);
    const { host, folder } = inspected;
    const reader = inspected.read();
    await reader.next("snapshot");
    put(`${folder}/skills/weather/tools/forecast.ts`, "export default defineTool(;\n");
    await host.reload();
    const broken = await reader.next("diagnostics", ({ diagnostics }) => diagnostics.length > 0);
    expect(broken.diagnostics[0]?.frame?.lines[0]).toBe("export default defineTool(;");
    expect((await reader.next("catalog", ({ skills }) => skills[0]?.stale === true)).skills[0]?.generation).toBe(1);
    put(`${folder}/skills/weather/tools/forecast.ts`, weather["skills/weather/tools/forecast.ts"]);
    await host.reload();
    await reader.next("diagnostics", ({ diagnostics }) => diagnostics.length === 0);
  });

  test("a reader that reconnects gets what it missed, and a snapshot from another run of the host", async () => {
    const inspected = await openInspected(weather);
    const first = inspected.read();
    const { feed, seq } = await first.next("snapshot");
    first.close();
    await inspected.request("call", { tool: "forecast", arguments: { city: "Rome" } });
    const second = inspected.read(`?feed=${feed}&since=${seq}`);
    await second.next("call", ({ call }) => call.state === "completed");
    expect(second.seen.some(({ type }) => type === "snapshot")).toBe(false);
    expect(second.seen.map((message) => message.seq)).toEqual(second.seen.map((_, index) => seq + 1 + index));
    const other = inspected.read(`?feed=another&since=${seq}`);
    expect((await other.next("snapshot")).calls).toMatchObject([{ tool: "forecast", state: "completed" }]);
    expect((await inspected.read(`?feed=${feed}&since=99999999`).next("snapshot")).feed).toBe(feed);
  });

  test("a reader can ask for messages instead of following a stream", async () => {
    const inspected = await openInspected(weather);
    const { port, token } = inspected.inspector;
    const poll = async (query: string): Promise<readonly FeedMessage[]> => {
      const response = await fetch(`http://127.0.0.1:${port}/feed?poll=1${query}`, { headers: { Authorization: `Bearer ${token}` } });
      return ((await response.json()) as { readonly messages: readonly FeedMessage[] }).messages;
    };
    const [snapshot] = (await poll("")) as readonly [Message<"snapshot">];
    expect(snapshot.type).toBe("snapshot");
    expect(await poll(`&feed=${snapshot.feed}&since=${snapshot.seq}`)).toEqual([]);
    const session = await inspected.host.createSession({ sessionId: "polled" });
    const missed = await poll(`&feed=${snapshot.feed}&since=${snapshot.seq}`);
    expect(missed[0]).toMatchObject({ type: "session", seq: snapshot.seq + 1, session: { id: session.id } });
  });

  test("calls that run on an old generation are counted until they end", async () => {
    const inspected = await openInspected({
      "skills/slow/SKILL.md": skillMd("slow"),
      "skills/slow/tools/wait.ts": toolModule(
        "wait",
        "await new Promise((go) => { globalThis.releaseOldCall = go; }); return 'one';",
        "skipPermission: true,",
      ),
    });
    const { host, folder } = inspected;
    const reader = inspected.read();
    await inspected.request("call", { tool: "wait", arguments: { city: "x" } });
    await reader.next("event", ({ event }) => event.type === "tool.execution_start");
    put(`${folder}/skills/slow/tools/wait.ts`, toolModule("wait", "return 'two';", "skipPermission: true,"));
    await host.reload();
    const during = await reader.next("catalog", ({ skills }) => skills[0]?.oldGenerations !== undefined);
    expect(during.skills[0]).toMatchObject({ generation: 2, oldGenerations: [{ generation: 1, calls: 1 }] });
    (globalThis as unknown as { releaseOldCall(): void }).releaseOldCall();
    await reader.next("catalog", ({ seq, skills }) => seq > during.seq && skills[0]?.oldGenerations === undefined);
  });
});

describe("sessions of every client", () => {
  test("the events of a library session and of a call without a session appear", async () => {
    const inspected = await openInspected(weather);
    const { host } = inspected;
    const reader = inspected.read();
    await reader.next("snapshot");
    const session = await host.createSession({
      chatModel: scriptedModel({ calls: [{ name: "forecast", args: { city: "Oslo" } }] }, "It is sunny."),
    });
    await session.sendAndWait("How is the weather?");
    const done = await reader.next("event", ({ event }) => event.type === "tool.execution_complete");
    expect(done).toMatchObject({ sessionId: session.id, event: { data: { success: true, result: { content: "sunny in Oslo" } } } });
    expect((await reader.next("session", (each) => each.session.title !== undefined)).session).toMatchObject({
      id: session.id,
      client: "library",
      title: "How is the weather?",
    });
    await reader.next("session", (each) => each.session.id === session.id && each.session.state === "idle");
    const view = await inspected.request("session.modelView", { sessionId: session.id });
    expect(view.tools.map(({ name }) => name)).toContain("forecast");
    expect(view.messages.at(-1)).toMatchObject({ role: "tool" });
    expect(view.parts[0]).toMatchObject({ name: "system", tokens: Math.ceil(view.system.length / 4) });
    const { text } = await inspected.request("session.export", { sessionId: session.id });
    const types = text
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { readonly type: string }).type);
    expect(types).toContain("assistant.message");
    await host.callTool("forecast", { city: "Bern" });
    const other = await reader.next("event", ({ event }) => JSON.stringify(event.data).includes("Bern"));
    await reader.next("session.closed", ({ sessionId }) => sessionId === other.sessionId);
    expect((await inspected.read().next("snapshot")).sessions.map(({ state }) => state).sort()).toEqual(["closed", "idle"]);
  });

  test("the last request is shown as its endpoint got it, without secrets", async () => {
    const endpoint = await startScriptedModel(() => chatAnswer({ content: "ok" }));
    onTestFinished(() => endpoint.close());
    const inspected = await openInspected(weather);
    const session = await inspected.host.createSession({ model: "m", provider: { type: "openai", baseUrl: `${endpoint.url}/v1` } });
    await session.sendAndWait("My key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD. Forget it.");
    const { body } = await inspected.request("session.modelView", { sessionId: session.id });
    const sent = endpoint.requests[0]!.text;
    expect(body).toMatchObject({ size: Buffer.byteLength(sent) });
    expect(sent).toContain("sk-proj-");
    expect(JSON.stringify(body)).not.toContain("sk-proj-");
    expect(JSON.parse(body!.text as string)).toMatchObject({
      model: "m",
      tools: expect.arrayContaining([expect.objectContaining({ type: "function" })]),
    });
  });

  test("the inspector can open a session and send messages to it", async () => {
    const inspected = await openInspected(weather);
    const reader = inspected.read();
    const script = [{ text: "Let me look.", calls: [{ name: "forecast", args: { city: "Rome" } }] }, "Sunny."];
    const { sessionId } = await inspected.request("session.create", { script });
    await inspected.request("session.send", { sessionId, prompt: "Rome?" });
    await reader.next("event", (each) => each.event.type === "assistant.message" && each.event.data["content"] === "Sunny.");
    await inspected.request("session.close", { sessionId });
    await reader.next("session.closed", (each) => each.sessionId === sessionId);
    await expect(inspected.request("session.send", { sessionId, prompt: "?" })).rejects.toThrow("SESSION_NOT_FOUND");
  });

  test("a question of the inspector's own call waits for its answer", async () => {
    const inspected = await openInspected({ ...weather, "skills/weather/tools/ask.ts": toolModule("ask", "return 'done';") });
    const reader = inspected.read();
    const { callId } = await inspected.request("call", { tool: "ask", arguments: { city: "x" } });
    const { ask } = await reader.next("ask");
    expect(ask).toMatchObject({ kind: "permission", toolCallId: callId, data: { toolName: "ask" } });
    await expect(inspected.request("answer", { askId: ask.id, sessionId: ask.sessionId, answer: { kind: "what" } })).resolves.toEqual({
      isFirst: true,
    });
    expect((await reader.next("call", ({ call }) => call.id === callId && call.state === "completed")).call.result?.code).toBe("denied");
    await inspected.request("call", { tool: "ask", arguments: { city: "y" } });
    const second = await reader.next("ask", (each) => each.ask.id !== ask.id);
    await inspected.request("answer", { askId: second.ask.id, sessionId: second.ask.sessionId, answer: { kind: "approve-once" } });
    expect((await reader.next("call", ({ call }) => call.state === "completed" && call.id !== callId)).call.result).toMatchObject({
      ok: true,
      text: "done",
    });
    expect(await inspected.request("answer", { askId: ask.id, sessionId: ask.sessionId, answer: { kind: "approve-once" } })).toEqual({
      isFirst: false,
    });
  });

  test("of a question that another client is asked, the first answer counts; without clients it ends as without an inspector", async () => {
    const inspected = await openInspected({ ...weather, "skills/weather/tools/ask.ts": toolModule("ask", "return 'done';") });
    const { host } = inspected;
    const reader = inspected.read();
    await reader.next("snapshot");
    expect((await host.callTool("ask", { city: "x" })).resultType).toBe("denied");
    const session = await host.createSession({ onPermissionRequest: () => new Promise(() => {}) });
    const calling = session.callTool("ask", { city: "x" });
    const { ask } = await reader.next("ask", (each) => each.ask.sessionId === session.id);
    expect(await inspected.request("answer", { askId: ask.id, sessionId: session.id, answer: { kind: "approve-once" } })).toEqual({
      isFirst: true,
    });
    expect((await calling).ok).toBe(true);
    await reader.next("ask.settled", ({ askId }) => askId === ask.id);
    expect(reader.seen.filter(({ type }) => type === "ask")).toHaveLength(1);
  });
});

describe("calls", () => {
  test("a call shows its progress, its log and its result; arguments can be checked before", async () => {
    const inspected = await openInspected({
      "skills/a/SKILL.md": skillMd("a"),
      "skills/a/tools/work.ts": toolModule(
        "work",
        "context.progress({ progress: 1, total: 2, message: 'half' }); context.progress({ level: 'info', message: 'a line' }); return { city: args.city };",
        "skipPermission: true,",
      ),
    });
    const reader = inspected.read();
    const call = await callAndWait(inspected, reader, "skill/a/work", { city: "Rome" });
    expect(call).toMatchObject({
      tool: "work",
      state: "completed",
      progress: { progress: 1, total: 2, message: "half" },
      logs: ["info a line"],
      result: { ok: true, code: "success" },
    });
    expect(await inspected.request("validate", { tool: "work", arguments: { city: 5 } })).toMatchObject({ problems: [{ path: "/city" }] });
    expect(await inspected.request("validate", { tool: "work", arguments: { city: "x" } })).toEqual({ problems: [] });
    await expect(inspected.request("validate", { tool: "nothing", arguments: {} })).rejects.toThrow("TOOL_UNKNOWN");
  });

  test("a running call can be cancelled", async () => {
    const inspected = await openInspected({
      "skills/a/SKILL.md": skillMd("a"),
      "skills/a/tools/wait.ts": toolModule(
        "wait",
        "return new Promise((_, reject) => invocation.signal.addEventListener('abort', () => reject(invocation.signal.reason)));",
        "skipPermission: true,",
      ),
    });
    const reader = inspected.read();
    const { callId } = await inspected.request("call", { tool: "wait", arguments: { city: "x" } });
    await reader.next("event", ({ event }) => event.type === "tool.execution_start");
    await inspected.request("cancel", { callId });
    expect((await reader.next("call", ({ call }) => call.state === "cancelled")).call.result?.ok).toBe(false);
    await expect(inspected.request("cancel", { callId })).rejects.toThrow("CALL_UNKNOWN");
  });

  test("secrets are replaced, but a parameter that is called token stays in the schema", async () => {
    const inspected = await openInspected({
      ...weather,
      "skills/weather/tools/leak.ts": toolModule(
        "leak",
        "return { token: 'abc123456', note: 'Bearer abcdefghijkl', text: '{\"password\":\"hunter2\"}' };",
        "skipPermission: true,",
      ),
    });
    const reader = inspected.read();
    const call = await callAndWait(inspected, reader, "leak", { city: "x", token: "argument-secret" });
    expect(call.result?.ok).toBe(true);
    const all = JSON.stringify(reader.seen);
    for (const secret of ["argument-secret", "abc123456", "abcdefghijkl", "hunter2"]) expect(all).not.toContain(secret);
    const { tools } = await reader.next("snapshot");
    expect(tools[0]?.definition.parameters).toMatchObject({ properties: { token: { type: "string" } } });
  });

  test("markup in names, texts and results stays data", async () => {
    const markup = `</script><img src=x onerror="alert(1)">`;
    const inspected = await openInspected({
      "skills/a/SKILL.md": `---\nname: a\ndescription: ${JSON.stringify(markup)}\n---\nBody`,
      "skills/a/tools/x.ts": toolModule("x", `return ${JSON.stringify(markup)};`, "skipPermission: true,"),
    });
    const reader = inspected.read();
    expect((await callAndWait(inspected, reader, "x", { city: markup })).result?.text).toBe(markup);
    expect((await reader.next("snapshot")).skills[0]?.description).toBe(markup);
  });

  test("a result of 50 MB is a blob, whose beginning the message has", async () => {
    const inspected = await openInspected({
      "skills/a/SKILL.md": skillMd("a"),
      "skills/a/tools/big.ts": toolModule("big", "return 'x'.repeat(50 * 1024 * 1024);", "skipPermission: true,"),
    });
    const reader = inspected.read();
    const { result } = await callAndWait(inspected, reader, "big", { city: "x" });
    const { $blob } = result!.text as { readonly $blob: { readonly id: string; readonly size: number; readonly head: string } };
    expect($blob).toMatchObject({ size: 50 * 1024 * 1024, head: "x".repeat(400) });
    expect(JSON.stringify(reader.seen).length).toBeLessThan(100_000);
    const { port, token } = inspected.inspector;
    const blob = await fetch(`http://127.0.0.1:${port}/blob/${$blob.id}`, { headers: { Authorization: `Bearer ${token}` } });
    expect([blob.status, blob.headers.get("content-type"), (await blob.text()).length]).toEqual([
      200,
      "text/plain; charset=utf-8",
      50 * 1024 * 1024,
    ]);
  });
});

describe("MCP servers", () => {
  test("their state, their messages and a restart appear", async () => {
    const inspected = await openInspected(weather, { mcpServers: { notes: serverNamed("n") } });
    const reader = inspected.read();
    await reader.next("snapshot");
    await inspected.host.connectServers();
    const ready = await reader.next("server", ({ server }) => server.status === "connected");
    expect(ready.server).toMatchObject({ name: "notes", transport: "stdio", pid: expect.any(Number), capabilities: { tools: {} } });
    await reader.next("catalog", ({ tools }) => tools.some(({ kind }) => kind === "mcp"));
    const session = await inspected.host.createSession({ onPermissionRequest: approveAll });
    await session.callTool("notes/echo", { text: "hello" });
    const { traffic } = await reader.next("traffic", (each) => each.traffic.method === "tools/call");
    expect(traffic).toMatchObject({ server: "notes", direction: "sent", message: { params: { arguments: { text: "hello" } } } });
    await reader.next("traffic", (each) => each.traffic.direction === "received" && each.traffic.rpcId === traffic.rpcId);
    // A reader that comes later has what was exchanged before.
    const later = await inspected.read().next("snapshot");
    expect(later.traffic.map(({ method }) => method)).toEqual(expect.arrayContaining(["initialize", "tools/list", "tools/call"]));
    expect(later.traffic.find(({ id }) => id === traffic.id)).toEqual(traffic);
    await inspected.request("server.restart", { name: "notes" });
    await reader.next("server", ({ server }) => server.status === "connected" && server.pid !== ready.server.pid);
    await expect(inspected.request("server.restart", { name: "missing" })).rejects.toThrow("MCP_SERVER_UNKNOWN");
  });
});

test("a reader that does not read waits at its own place, and gets a snapshot when the messages are gone", async () => {
  const inspected = await openInspected({
    "skills/a/SKILL.md": skillMd("a"),
    "skills/a/tools/flood.ts": toolModule(
      "flood",
      "for (let i = 0; i < 30000; i++) context.progress({ message: `step ${i} ` + '.'.repeat(200) }); return 'done';",
      "skipPermission: true,",
    ),
  });
  const { port, token } = inspected.inspector;
  // Not read: its body is left where it is.
  const slow = await fetch(`http://127.0.0.1:${port}/feed`, { headers: { Authorization: `Bearer ${token}` } });
  const reader = inspected.read();
  await reader.next("snapshot");
  const { callId } = await inspected.request("call", { tool: "flood", arguments: { city: "x" } });
  // More messages than are kept in one turn of the event loop: this reader loses some, and begins again.
  expect((await reader.next("dropped")).count).toBeGreaterThan(20_000);
  const again = await reader.next("snapshot", ({ seq }) => seq > 30_000);
  expect(again.calls).toMatchObject([{ id: callId, state: "completed", result: { text: "done" } }]);
  let tail = "";
  for await (const chunk of slow.body!) {
    tail = (tail + Buffer.from(chunk as Uint8Array).toString("utf8")).slice(-100_000);
    if (tail.includes('"type":"dropped"') && tail.includes('"state":"completed"')) break;
  }
  expect(tail).toContain('"type":"snapshot"');
});

test("two inspectors of one host are independent, and a closed one ends its readers", async () => {
  const inspected = await openInspected(weather);
  const second = await serveInspector(inspected.host);
  const reader = new TestReader(second);
  await reader.next("snapshot");
  await second[Symbol.asyncDispose]();
  await expect(reader.next("reload")).rejects.toThrow("The feed ended");
  expect((await inspected.read().next("snapshot")).skills).toHaveLength(1);
});
