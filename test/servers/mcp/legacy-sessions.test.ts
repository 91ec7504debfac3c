import { Server } from "@modelcontextprotocol/server";
import { afterEach, expect, test, vi } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { LegacySessions, type ServedConnection } from "../../../src/servers/mcp/legacy-sessions.ts";
import { deferred, initialize } from "./serving-kit.ts";

afterEach(() => void vi.useRealTimers());

function connection(end: () => void = () => {}): ServedConnection {
  return { server: new Server({ name: "test", version: "1.0.0" }, { capabilities: {} }), end: async () => end() };
}

function request(sessionId?: string): Request {
  const headers = new Headers({ "Content-Type": "application/json", Accept: "application/json, text/event-stream" });
  if (sessionId !== undefined) headers.set("Mcp-Session-Id", sessionId);
  return new Request("http://localhost/mcp", { method: "POST", headers, body: "{}" });
}

const ping = { jsonrpc: "2.0", id: 2, method: "ping" };

async function begin(sessions: LegacySessions): Promise<string> {
  const response = await sessions.fetch(request(), initialize);
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
}

test("no more sessions begin at the same time than there may be", async () => {
  const waiting = deferred<ServedConnection>();
  await using sessions = new LegacySessions(() => waiting.promise, { maxSessions: 1, idleMs: 60_000 }, silentLogger);
  const first = sessions.fetch(request(), initialize);
  expect((await sessions.fetch(request(), initialize)).status).toBe(503);
  waiting.resolve(connection());
  expect((await first).status).toBe(200);
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
  const [idle, busy] = [await begin(sessions), await begin(sessions)];
  vi.advanceTimersByTime(50_000);
  await (await sessions.fetch(request(busy), ping)).text();
  vi.advanceTimersByTime(20_000);
  expect((await sessions.fetch(request(idle), ping)).status).toBe(404);
  expect((await sessions.fetch(request(busy), ping)).status).toBe(200);
  expect(ended).toEqual(["idle"]);
});

test("a beginning that is refused leaves no session behind", async () => {
  const ended = vi.fn();
  await using sessions = new LegacySessions(async () => connection(ended), { maxSessions: 10, idleMs: 60_000 }, silentLogger);
  const headers = { "Content-Type": "application/json", Accept: "text/plain" };
  const refused = await sessions.fetch(new Request("http://localhost/mcp", { method: "POST", headers, body: "{}" }), initialize);
  expect(refused.status).toBe(406);
  expect(ended).toHaveBeenCalledOnce();
});
