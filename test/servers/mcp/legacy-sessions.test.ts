import { Server } from "@modelcontextprotocol/server";
import { afterEach, expect, test, vi } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { LegacySessions, type ServedConnection } from "../../../src/servers/mcp/legacy-sessions.ts";
import { deferred, initialize, serveSessions } from "./serving-kit.ts";

afterEach(() => void vi.useRealTimers());

function connection(end: () => void = () => {}): ServedConnection {
  return { server: new Server({ name: "test", version: "1.0.0" }, { capabilities: {} }), end: async () => end() };
}

interface Served {
  send(message: object, sessionId?: string, accept?: string): Promise<Response>;
}

/** Serves sessions as Node's HTTP server does. */
async function serve(sessions: LegacySessions): Promise<Served> {
  const url = await serveSessions(sessions);
  return {
    send: (message, sessionId, accept = "application/json, text/event-stream") => {
      const headers = new Headers({ "Content-Type": "application/json", Accept: accept });
      if (sessionId !== undefined) headers.set("Mcp-Session-Id", sessionId);
      return fetch(url, { method: "POST", headers, body: JSON.stringify(message) });
    },
  };
}

const ping = { jsonrpc: "2.0", id: 2, method: "ping" };

async function begin({ send }: Served): Promise<string> {
  const response = await send(initialize);
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
}

test("no more sessions begin at the same time than there may be", async () => {
  const waiting = deferred<ServedConnection>();
  await using sessions = new LegacySessions(() => waiting.promise, { maxSessions: 1, idleMs: 60_000 }, silentLogger);
  const { send } = await serve(sessions);
  // Which of them begins is not defined.
  const both = [send(initialize), send(initialize)];
  expect((await Promise.race(both)).status).toBe(503);
  waiting.resolve(connection());
  expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 503]);
});

test("an unused session ends, and a used one does not", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  const ended: string[] = [];
  const names = ["idle", "busy"];
  const connect = async (): Promise<ServedConnection> => {
    const name = names.shift() ?? "";
    return connection(() => ended.push(name));
  };
  await using sessions = new LegacySessions(connect, { maxSessions: 10, idleMs: 60_000 }, silentLogger);
  const served = await serve(sessions);
  const [idle, busy] = [await begin(served), await begin(served)];
  vi.advanceTimersByTime(50_000);
  await (await served.send(ping, busy)).text();
  vi.advanceTimersByTime(20_000);
  expect((await served.send(ping, idle)).status).toBe(404);
  expect((await served.send(ping, busy)).status).toBe(200);
  expect(ended).toEqual(["idle"]);
});

test("a beginning that is refused leaves no session behind", async () => {
  const ended = vi.fn();
  await using sessions = new LegacySessions(async () => connection(ended), { maxSessions: 10, idleMs: 60_000 }, silentLogger);
  const { send } = await serve(sessions);
  const refused = await send(initialize, undefined, "text/plain");
  expect(refused.status).toBe(406);
  expect(ended).toHaveBeenCalledOnce();
});
