import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";
import { describe, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { packageVersion } from "../../../src/base/package-root.ts";
import { createEndpoint } from "../../../src/servers/mcp/endpoint.ts";
import { ReplayStore } from "../../../src/servers/mcp/replay-store.ts";
import { approveAll } from "../../../src/tools/tool.ts";
import { listen } from "../../mcp/http-doubles.ts";
import { deferred, initialize, serveSkill, toolModule } from "./serving-kit.ts";

// The same requests are sent to a server with the official SDK's transport and to ours. Both serve sessions of one host.

const tools = toolModule(`[
  defineTool("greet", { description: "Greets.", handler: ({ name }) => "Hello " + (name ?? "you") + ".", parameters: { type: "object", properties: { name: { type: "string" } } } }),
  defineTool("steps", {
    description: "Reports progress.",
    handler: (_args, _invocation, { progress }) => { progress({ progress: 1, total: 2 }); progress({ progress: 2, total: 2 }); return "Done."; },
  }),
  defineTool("fail", { description: "Fails.", handler: () => { throw new Error("no"); } }),
  defineTool("hold", {
    description: "Waits for the test.",
    handler: (_args, _invocation, { progress }) => { progress({ progress: 1 }); return globalThis.heldCalls().then(() => "Released."); },
  }),
]`);

type Headers = Readonly<Record<string, string | undefined>>;

interface Sent {
  readonly method?: string;
  /** Undefined: the header is left out. */
  readonly headers?: Headers;
  readonly body?: unknown;
}

interface Heard {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface Peer {
  readonly url: string;
  session: string;
  /** The revision that the client names in its requests. */
  version?: string;
}

/** A response whose body may be incomplete. */
interface Opened extends Heard {
  /** The body so far. */
  readonly text: string;
  readonly response: IncomingMessage;
}

const common: Headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };

/** Starts both servers, and initializes a session at each with the given revision. */
async function servePeers(version: string | undefined): Promise<readonly [official: Peer, ours: Peer]> {
  const session = { onPermissionRequest: approveAll };
  const served = await serveSkill({ "tools/all.ts": tools }, { session, http: { asksPermission: false, token: false } });
  onTestFinished(() => served[Symbol.asyncDispose]());
  const identity = { name: "skillhost", version: packageVersion };
  const endpoint = createEndpoint(served.test.host, { identity, session, asksPermission: false }, silentLogger);
  const transports = new Map<string, NodeStreamableHTTPServerTransport>();
  const { url } = await listen(async (incoming, outgoing) => {
    const id = incoming.headers["mcp-session-id"];
    const known = transports.get(String(id));
    if (id !== undefined && known === undefined) {
      outgoing.writeHead(404, { "Content-Type": "application/json" });
      return void outgoing.end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32001, message: "Session not found" }, id: null }));
    }
    await (known ?? (await open())).handleRequest(incoming, outgoing);
  });
  const open = async (): Promise<NodeStreamableHTTPServerTransport> => {
    const { server, end } = await endpoint.connect();
    const transport: NodeStreamableHTTPServerTransport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: eventStore(),
      retryInterval: 1_000,
      onsessioninitialized: (id) => void transports.set(id, transport),
    });
    await server.connect(transport);
    onTestFinished(async () => {
      await transport.close();
      await end();
    });
    return transport;
  };
  const peers = [
    { url, session: "" },
    { url: served.face.url, session: "" },
  ] as const satisfies readonly Peer[];
  if (version !== undefined) for (const peer of peers) await begin(peer, version);
  return peers;
}

async function begin(peer: Peer, version: string): Promise<void> {
  const { headers } = await send(peer, { body: { ...initialize, params: { ...initialize.params, protocolVersion: version } } });
  peer.session = String(headers["mcp-session-id"]);
  peer.version = version;
  await send(peer, { body: { jsonrpc: "2.0", method: "notifications/initialized" } });
}

function eventStore(): EventStore {
  const store = new ReplayStore();
  return {
    storeEvent: async (stream, message) => store.add(stream, "jsonrpc" in message ? JSON.stringify(message) : ""),
    getStreamIdForEventId: async (id) => store.streamOf(id),
    async replayEventsAfter(id, target) {
      const stream = store.streamOf(id)!;
      for (const event of store.after(id)) await target.send(event.id, JSON.parse(event.data) as JSONRPCMessage);
      return stream;
    },
  };
}

/** Sends a request and returns the head of the response. */
async function openRequest({ url, session, version }: Peer, { method = "POST", headers = {}, body }: Sent): Promise<Opened> {
  const ofSession = session === "" ? {} : { "Mcp-Session-Id": session, "MCP-Protocol-Version": version };
  const all: Record<string, string | undefined> = { ...common, ...ofSession, ...headers };
  const given = Object.entries(all).flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]]));
  const text = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
  const sent = request(url, { method, agent: false, headers: { ...Object.fromEntries(given), "Content-Length": Buffer.byteLength(text) } });
  sent.end(text);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  let heard = "";
  response.setEncoding("utf8").on("error", () => {});
  response.on("data", (piece: string) => {
    heard += piece;
  });
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    get text() {
      return heard;
    },
    response,
  };
}

async function send(peer: Peer, sent: Sent): Promise<Heard> {
  const opened = await openRequest(peer, sent);
  if (!opened.response.readableEnded) await once(opened.response, "end");
  return { status: opened.status, headers: opened.headers, text: opened.text };
}

/** Waits for the first events of a stream. */
async function readEvents(opened: Opened, count: number): Promise<string> {
  await expect.poll(() => opened.text.split("\n\n").length).toBeGreaterThan(count);
  return opened.text;
}

/** The parts of a response that matter to a client. Ids of sessions and texts of errors of the transport differ. */
function essenceOf({ status, headers, text }: Heard): unknown {
  const names = ["content-type", "cache-control", "x-accel-buffering", "allow"];
  const matter = Object.fromEntries(names.map((name) => [name, headers[name]]));
  const isStream = String(headers["content-type"]).includes("text/event-stream");
  return { status, ...matter, hasSession: headers["mcp-session-id"] !== undefined, body: isStream ? eventsOf(text) : bodyOf(text, status) };
}

function bodyOf(text: string, status: number): unknown {
  if (text === "") return "";
  const message = JSON.parse(text) as { readonly error?: { readonly code: number } };
  return status >= 400 ? { ...message, error: message.error?.code } : message;
}

function eventsOf(text: string): readonly unknown[] {
  const events = text.split("\n\n").filter((event) => event !== "");
  return events.map((event) => {
    const fields = event.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()] as const);
    const all = Object.fromEntries(fields);
    return all["data"] ? { ...all, data: JSON.parse(all["data"]) } : all;
  });
}

const call = (name: string, args: object = {}, id: unknown = 7, more: object = {}) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args, ...more },
});
const ping = { jsonrpc: "2.0", id: "p", method: "ping" };
const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 99 } };
const many = (count: number) => Array.from({ length: count }, (_, index) => ({ ...ping, id: index }));
const handshake = (params: object, id: unknown = 1) => ({ ...initialize, id, params: { ...initialize.params, ...params } });

const inSession: readonly (readonly [title: string, sent: Sent])[] = [
  ["a call", { body: call("greet", { name: "Ann" }) }],
  ["a call with the header of the latest version", { body: call("greet"), headers: { "MCP-Protocol-Version": "2025-11-25" } }],
  ["a call without a version header", { body: call("greet"), headers: { "MCP-Protocol-Version": undefined } }],
  ["a call with the header of an earlier version", { body: call("greet"), headers: { "MCP-Protocol-Version": "2025-06-18" } }],
  ["a call with the header of the first version", { body: call("greet"), headers: { "MCP-Protocol-Version": "2024-11-05" } }],
  ["a call with the header of an unknown version", { body: call("greet"), headers: { "MCP-Protocol-Version": "1999-01-01" } }],
  ["a call with an empty version header", { body: call("greet"), headers: { "MCP-Protocol-Version": "" } }],
  ["a call with text as its id", { body: call("greet", {}, "seven") }],
  ["a call with an empty id", { body: call("greet", {}, "") }],
  ["a call with zero as its id", { body: call("greet", {}, 0) }],
  ["a call with a negative id", { body: call("greet", {}, -3) }],
  ["a call of text that is not ASCII", { body: call("greet", { name: "Zoë 😀\u2028" }) }],
  ["a call of a long text", { body: call("greet", { name: "x".repeat(300_000) }) }],
  ["a call with progress", { body: call("steps", {}, 7, { _meta: { progressToken: "t" } }) }],
  ["a call with a number as its progress token", { body: call("steps", {}, 7, { _meta: { progressToken: 5 } }) }],
  ["a call with other metadata", { body: call("greet", {}, 7, { _meta: { "example.com/trace": [1] } }) }],
  ["a call without a wanted progress", { body: call("steps") }],
  ["a call that fails", { body: call("fail") }],
  ["a call of an unknown tool", { body: call("nothing") }],
  ["a call with arguments that are not an object", { body: call("greet", [] as never) }],
  ["a call with invalid arguments", { body: call("greet", { name: 5 }) }],
  ["a call without a name", { body: { ...call("greet"), params: {} } }],
  ["a call without parameters", { body: { jsonrpc: "2.0", id: 1, method: "tools/call" } }],
  ["a ping", { body: ping }],
  ["a ping with empty parameters", { body: { ...ping, params: {} } }],
  ["a list of tools", { body: { jsonrpc: "2.0", id: 1, method: "tools/list" } }],
  ["a list of prompts", { body: { jsonrpc: "2.0", id: 1, method: "prompts/list", params: {} } }],
  ["an unknown resource", { body: { jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri: "a:b" } } }],
  ["an unknown method", { body: { jsonrpc: "2.0", id: 1, method: "no/such" } }],
  ["a change of the log level", { body: { jsonrpc: "2.0", id: 1, method: "logging/setLevel", params: { level: "error" } } }],
  ["a second handshake", { body: initialize }],
  ["a handshake without parameters", { body: { jsonrpc: "2.0", id: 1, method: "initialize" } }],
  ["a notification", { body: cancelled }],
  ["an unknown notification", { body: { jsonrpc: "2.0", method: "notifications/x" } }],
  ["a notification with an unknown version", { body: cancelled, headers: { "MCP-Protocol-Version": "1999-01-01" } }],
  ["an answer to no request", { body: { jsonrpc: "2.0", id: 55, result: {} } }],
  ["an error as an answer to no request", { body: { jsonrpc: "2.0", id: 55, error: { code: 1, message: "x" } } }],
  ["a batch of requests", { body: [ping, call("greet"), call("steps", {}, 8, { _meta: { progressToken: 1 } })] }],
  ["a batch of requests and notifications", { body: [cancelled, ping] }],
  ["a batch of notifications", { body: [cancelled, cancelled] }],
  ["a batch of one", { body: [ping] }],
  ["a batch with a handshake", { body: [ping, initialize] }],
  ["a batch at the limit", { body: many(100) }],
  ["a batch over the limit", { body: many(101) }],
  ["a call that accepts only JSON", { body: ping, headers: { Accept: "application/json" } }],
  ["a call that accepts only events", { body: ping, headers: { Accept: "text/event-stream" } }],
  ["a call that accepts anything", { body: ping, headers: { Accept: "*/*" } }],
  ["a call without Accept", { body: ping, headers: { Accept: undefined } }],
  ["a call that accepts both with weights", { body: ping, headers: { Accept: "text/event-stream;q=0.5, application/json" } }],
  ["a call with a character set", { body: ping, headers: { "Content-Type": "application/json; charset=utf-8" } }],
  ["a call in capitals", { body: ping, headers: { "Content-Type": "Application/JSON" } }],
  ["a call as text", { body: ping, headers: { "Content-Type": "text/plain" } }],
  ["a call as a kind of JSON", { body: ping, headers: { "Content-Type": "application/json-seq" } }],
  ["a call without a type", { body: ping, headers: { "Content-Type": undefined } }],
  ["a body that is not JSON", { body: '{"jsonrpc":' }],
  ["an empty body", { body: "" }],
  ["a request with another session", { body: ping, headers: { "Mcp-Session-Id": "11111111-2222-3333-4444-555555555555" } }],
  ["a GET of JSON", { method: "GET", headers: { Accept: "application/json" } }],
  ["a GET with an unknown version", { method: "GET", headers: { "MCP-Protocol-Version": "1999-01-01" } }],
  ["a GET of another session", { method: "GET", headers: { "Mcp-Session-Id": "other" } }],
  ["a GET after an unknown event", { method: "GET", headers: { "Last-Event-ID": "999" } }],
  ["a GET after an event that is not a number", { method: "GET", headers: { "Last-Event-ID": "x" } }],
  ["a DELETE", { method: "DELETE" }],
  ["a DELETE with an unknown version", { method: "DELETE", headers: { "MCP-Protocol-Version": "1999-01-01" } }],
  ["a DELETE of another session", { method: "DELETE", headers: { "Mcp-Session-Id": "other" } }],
  ["a PUT", { method: "PUT", body: ping }],
  ["a PATCH", { method: "PATCH", body: ping }],
];

const noSession = { "Mcp-Session-Id": undefined };
const outside: readonly (readonly [title: string, sent: Sent])[] = [
  ["a handshake", { body: initialize }],
  ["a handshake of an earlier revision", { body: handshake({ protocolVersion: "2025-03-26" }) }],
  ["a handshake of an unknown revision", { body: handshake({ protocolVersion: "3000-01-01" }) }],
  ["a handshake with text as its id", { body: handshake({}, "first") }],
  ["a handshake with an unknown version header", { body: initialize, headers: { "MCP-Protocol-Version": "1999-01-01" } }],
  ["a handshake that accepts only JSON", { body: initialize, headers: { Accept: "application/json" } }],
  ["a call", { body: call("greet"), headers: noSession }],
  ["a notification", { body: cancelled, headers: noSession }],
  ["a batch", { body: [ping, ping], headers: noSession }],
  ["a handshake without capabilities", { body: handshake({ capabilities: undefined }) }],
  ["a DELETE", { method: "DELETE", headers: noSession }],
];

describe.each(["2025-11-25", "2025-06-18"])("in a session of revision %s, the SDK's transport and ours answer alike to", (version) => {
  test("single requests of all kinds", async () => {
    for (const [title, sent] of inSession) {
      const peers = await servePeersOnce(version);
      const [official, ours] = [await send(peers[0], sent), await send(peers[1], sent)];
      expect([title, essenceOf(ours)]).toEqual([title, essenceOf(official)]);
    }
  });
});

let started: Promise<readonly [Peer, Peer]> | undefined;

/** New sessions on servers that one test starts once. */
async function servePeersOnce(version: string): Promise<readonly [Peer, Peer]> {
  if (started === undefined) {
    started = servePeers(undefined);
    onTestFinished(() => {
      started = undefined;
    });
  }
  const peers = (await started).map(({ url }) => ({ url, session: "" }));
  for (const peer of peers) await begin(peer, version);
  return peers as unknown as readonly [Peer, Peer];
}

test.each(outside)("without a session, the SDK's transport and ours answer alike to %s", async (_title, sent) => {
  const [official, ours] = await servePeers(undefined);
  expect(essenceOf(await send(ours, sent))).toEqual(essenceOf(await send(official, sent)));
});

// A server of both eras classifies messages before a transport gets them.
test.each([
  ["a value that is not a message", { body: {} }, -32600],
  ["an empty batch", { body: [] }, -32600],
  ["a request with a fraction as its id", { body: { ...ping, id: 1.5 } }, -32600],
  ["a request with null as its id", { body: { ...ping, id: null } }, -32600],
  ["a request with an additional field", { body: { ...ping, more: 1 } }, -32600],
  ["a request with a list as its parameters", { body: { ...ping, params: [] } }, -32600],
  ["a request with null as its metadata", { body: { ...ping, params: { _meta: null } } }, -32600],
  ["a batch with a value that is not a message", { body: [ping, 5] }, -32600],
  ["the version header of the newer era", { body: ping, headers: { "MCP-Protocol-Version": "2026-07-28" } }, -32602],
] as const)("both refuse %s, with codes of their own", async (_title, sent, code) => {
  const [official, ours] = await servePeers("2025-11-25");
  const heard = await send(ours, sent as Sent);
  expect([heard.status, JSON.parse(heard.text)]).toEqual([400, expect.objectContaining({ error: expect.objectContaining({ code }) })]);
  const { status } = await send(official, sent as Sent);
  expect(status).toBe(Array.isArray(sent.body) && sent.body.length === 0 ? 202 : 400);
});

/** Runs the same steps with both servers and compares what they saw. */
async function expectAlike(version: string, steps: (peer: Peer) => Promise<unknown>): Promise<void> {
  const [official, ours] = await servePeers(version);
  const expected = await steps(official);
  expect(await steps(ours)).toEqual(expected);
}

/** Calls of "hold" end when the result is called. */
function holdCalls(): () => void {
  let held = deferred();
  Object.assign(globalThis, { heldCalls: () => held.promise });
  onTestFinished(() => void Reflect.deleteProperty(globalThis, "heldCalls"));
  return () => {
    held.resolve();
    held = deferred();
  };
}

function firstId(events: string): string {
  return (eventsOf(events)[0] as { readonly id: string }).id;
}

const listening: Sent = { method: "GET", headers: { Accept: "text/event-stream" } };
const resume = (id: string): Sent => ({ method: "GET", headers: { Accept: "text/event-stream", "Last-Event-ID": id } });
const held = call("hold", {}, 7, { _meta: { progressToken: "t" } });

describe("the SDK's transport and ours behave alike when", () => {
  test("a client opens a second stream for messages of the server", () =>
    expectAlike("2025-11-25", async (peer) => {
      const first = await openRequest(peer, listening);
      const second = await send(peer, listening);
      first.response.destroy();
      await expect
        .poll(async () => {
          const again = await openRequest(peer, listening);
          again.response.destroy();
          return again.status;
        })
        .toBe(200);
      return [essenceOf(first), essenceOf(second)];
    }));

  test("a session ends while streams are open", () => {
    holdCalls();
    return expectAlike("2025-11-25", async (peer) => {
      const stream = await openRequest(peer, listening);
      const waiting = await openRequest(peer, { body: held });
      const begun = await readEvents(waiting, 2);
      const ended = [once(stream.response, "end"), once(waiting.response, "end")];
      const deleted = await send(peer, { method: "DELETE" });
      await Promise.all(ended);
      return [essenceOf(stream), eventsOf(begun), essenceOf(deleted), essenceOf(await send(peer, { body: ping }))];
    });
  });

  test("a client disconnects during a call and resumes it after its end", () => {
    const release = holdCalls();
    return expectAlike("2025-11-25", async (peer) => {
      const first = await openRequest(peer, { body: held });
      const begun = await readEvents(first, 2);
      const conflict = await send(peer, resume(firstId(begun)));
      first.response.destroy();
      release();
      const resumed: Heard[] = [];
      await expect
        .poll(async () => {
          resumed[0] = await send(peer, resume(firstId(begun)));
          return resumed[0].text;
        })
        .toContain("Released.");
      return [eventsOf(begun), essenceOf(conflict), resumed.map(essenceOf)];
    });
  });

  test("a client disconnects during a call and resumes it before its end", () => {
    const release = holdCalls();
    return expectAlike("2025-11-25", async (peer) => {
      const first = await openRequest(peer, { body: held });
      const begun = await readEvents(first, 2);
      first.response.destroy();
      let resumed: Opened | undefined;
      await expect
        .poll(async () => {
          resumed = await openRequest(peer, resume(firstId(begun)));
          return resumed.status;
        })
        .toBe(200);
      release();
      await once(resumed!.response, "end");
      return essenceOf(resumed!);
    });
  });

  test("a client resumes a stream that has ended, after its last event", () =>
    expectAlike("2025-11-25", async (peer) => {
      const whole = await send(peer, { body: call("steps", {}, 7, { _meta: { progressToken: "t" } }) });
      const ids = eventsOf(whole.text).map((event) => (event as { readonly id: string }).id);
      const heard: unknown[] = [];
      for (const id of ids) heard.push(essenceOf(await send(peer, resume(id))));
      return [ids, heard];
    }));

  test("a client uses the id of a running request again", () => {
    const release = holdCalls();
    return expectAlike("2025-11-25", async (peer) => {
      const first = await openRequest(peer, { body: held });
      await readEvents(first, 2);
      const second = await send(peer, { body: call("greet", {}, 7) });
      release();
      first.response.destroy();
      return essenceOf(second);
    });
  });

  test("a client cancels a request: its stream stays open without an answer", () => {
    const release = holdCalls();
    return expectAlike("2025-11-25", async (peer) => {
      const first = await openRequest(peer, { body: held });
      await readEvents(first, 2);
      await send(peer, { body: { ...cancelled, params: { requestId: 7 } } });
      release();
      const next = await send(peer, { body: call("greet", {}, 8) });
      first.response.destroy();
      return [eventsOf(first.text), essenceOf(next)];
    });
  });
});

test("a call that is answered in the turn of its request takes one write, with its length", async () => {
  const [, ours] = await servePeers("2025-11-25");
  const heard = await send(ours, { body: call("greet") });
  expect(Number(heard.headers["content-length"])).toBe(Buffer.byteLength(heard.text));
});
