import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { ReplayStore } from "../../../src/servers/mcp/replay-store.ts";
import { approveAll } from "../../../src/tools/tool.ts";
import { authorization, deferred, type ServedSkill, serveSkill, textOf, toolModule } from "./serving-kit.ts";

const tools = toolModule(`[
  defineTool("greet", { description: "Greets.", handler: () => "Hello." }),
  defineTool("hold", {
    description: "Waits for the test.",
    handler: (_args, _invocation, { progress }) => { progress({ progress: 1 }); return globalThis.heldCall.then(() => "Released."); },
  }),
]`);

async function serve(): Promise<ServedSkill> {
  const served = await serveSkill(
    { "tools/all.ts": tools },
    { session: { onPermissionRequest: approveAll }, http: { asksPermission: false } },
  );
  onTestFinished(() => served[Symbol.asyncDispose]());
  return served;
}

/** The call of "hold" ends when what this gives is called. */
function holdCalls(): () => void {
  const held = deferred();
  Object.assign(globalThis, { heldCall: held.promise });
  onTestFinished(() => void Reflect.deleteProperty(globalThis, "heldCall"));
  return () => held.resolve();
}

interface Raw {
  send(message: object, signal?: AbortSignal): Promise<Response>;
  resume(lastEventId: string): Promise<Response>;
}

async function openSession({ face }: ServedSkill, protocolVersion: string): Promise<Raw> {
  const accept = { accept: "application/json, text/event-stream", ...authorization(face.url) };
  const common = { ...accept, "content-type": "application/json" };
  const clientInfo = { name: "raw", version: "1" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion, capabilities: {}, clientInfo } });
  const begun = await fetch(face.url, { method: "POST", headers: common, body });
  await begun.text();
  const session = { "mcp-session-id": begun.headers.get("mcp-session-id")!, "mcp-protocol-version": protocolVersion };
  const send = (message: object, signal?: AbortSignal): Promise<Response> => {
    const init = { method: "POST", headers: { ...common, ...session }, body: JSON.stringify({ jsonrpc: "2.0", ...message }) };
    return fetch(face.url, { ...init, ...(signal && { signal }) });
  };
  await send({ method: "notifications/initialized" });
  return { send, resume: (id) => fetch(face.url, { headers: { ...accept, ...session, "last-event-id": id } }) };
}

const calling = (name: string) => ({ id: 1, method: "tools/call", params: { name, arguments: {} } });

/** The text of a stream up to the first event that ends with this. */
async function readUntil(response: Response, end: RegExp): Promise<string> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!end.test(text)) {
    const { done, value } = await reader.read();
    if (done) break;
    text += value;
  }
  return text;
}

describe("a stream of events for revision 2025-11-25", () => {
  test("begins with an event that has an id, no data, and the time after which to resume", async () => {
    const session = await openSession(await serve(), "2025-11-25");
    const text = await (await session.send(calling("greet"))).text();
    expect(text).toMatch(/^id: (\S+)\nretry: 1000\ndata: \n\n/);
    expect(text).toMatch(/\nevent: message\nid: \S+\ndata: \{.*"Hello\."/s);
  });

  test("that breaks off is resumed, with what came meanwhile", async () => {
    const release = holdCalls();
    const session = await openSession(await serve(), "2025-11-25");
    const breaking = new AbortController();
    const first = await readUntil(await session.send(calling("hold"), breaking.signal), /\n\n/);
    breaking.abort();
    release();
    const [, id] = /^id: (\S+)/.exec(first)!;
    const resumed = await session.resume(id!);
    expect(resumed.status).toBe(200);
    expect(await resumed.text()).toContain("Released.");
  });

  test.each(["made-up", "999", "-1"])("cannot be resumed after %s, which is not an event of the session", async (id) => {
    const served = await serve();
    const session = await openSession(served, "2025-11-25");
    await openSession(served, "2025-11-25");
    expect((await session.resume(id)).status).toBe(400);
  });
});

test("a stream for revision 2025-06-18 begins with the answer, since its clients expect data in every event", async () => {
  const session = await openSession(await serve(), "2025-06-18");
  const text = await (await session.send(calling("greet"))).text();
  expect(text).not.toContain("retry:");
  expect(text).toMatch(/^(?:event: message\n)?(?:id: \S+\n)?(?:event: message\n)?data: \{/);
});

/** Breaks off the stream of the first call after its first event. */
function breakingFetch(onBroken: () => void): typeof fetch {
  let isBroken = false;
  return async (input, init) => {
    const response = await fetch(input, init);
    if (isBroken || !String(init?.body).includes('"tools/call"')) return response;
    isBroken = true;
    const text = await readUntil(response, /\n\n/);
    onBroken();
    return new Response(text, { status: response.status, headers: response.headers });
  };
}

describe("a client of the SDK whose connection breaks during a call gets its result", () => {
  test("of the first generation", async () => {
    const { face } = await serve();
    const client = new OldClient({ name: "old", version: "1" });
    const requestInit = { headers: authorization(face.url) };
    await client.connect(new OldTransport(new URL(face.url), { requestInit, fetch: breakingFetch(holdCalls()) }) as never);
    expect(textOf(await client.callTool({ name: "hold", arguments: {} }))).toBe("Released.");
    await client.close();
  });

  test("of the second", async () => {
    const { face } = await serve();
    const client = new Client({ name: "new", version: "1" }, { versionNegotiation: { mode: "legacy" } });
    const requestInit = { headers: authorization(face.url) };
    await client.connect(new StreamableHTTPClientTransport(new URL(face.url), { requestInit, fetch: breakingFetch(holdCalls()) }));
    expect(textOf(await client.callTool({ name: "hold", arguments: {} }))).toBe("Released.");
    await client.close();
  });
});

describe("what is kept for clients that resume", () => {
  const replayed = (store: ReplayStore, id: string): readonly string[] => store.after(id).map((event) => event.id);

  test("are the newest events of each stream, in order", () => {
    const store = new ReplayStore();
    const ids = ["a", "b", "a", "a", "b"].map((stream) => store.add(stream, `{"of":"${stream}"}`));
    expect(store.after(ids[0]!)).toEqual([
      { id: ids[2], data: '{"of":"a"}' },
      { id: ids[3], data: '{"of":"a"}' },
    ]);
    expect(replayed(store, ids[4]!)).toEqual([]);
    expect(store.streamOf(ids[1]!)).toBe("b");
  });

  test.each([
    ["many", 2_000, 10],
    ["large", 40, 100_000],
  ])("is bounded for %s events", (_title, count, size) => {
    const store = new ReplayStore();
    const ids = Array.from({ length: count }, () => store.add("a", "x".repeat(size)));
    const left = ids.filter((id) => store.streamOf(id) !== undefined);
    expect(left.at(-1)).toBe(ids.at(-1));
    expect(left.length).toBeLessThanOrEqual(256);
    expect(left.length * size).toBeLessThanOrEqual(512 * 1024);
    expect(replayed(store, ids[0]!)).toEqual([]);
  });

  test("is one event, even if it is larger than all that is kept otherwise", () => {
    const store = new ReplayStore();
    const first = store.add("a", "x");
    const large = store.add("a", "x".repeat(3_000_000));
    expect([store.streamOf(first), store.streamOf(large)]).toEqual([undefined, "a"]);
  });
});
