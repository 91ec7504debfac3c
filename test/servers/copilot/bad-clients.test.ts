import { afterEach, describe, expect, test } from "vitest";
import { calling, Served, type TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

const free = { ...weather, skipPermission: true };

/** A session whose turn waits for the client to answer a call. */
async function waiting(
  options: object = {},
): Promise<{ readonly client: TestClient; readonly sessionId: string; readonly requestId: unknown }> {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", tools: [free], ...options });
  served.says(calling("get_weather", { city: "Oslo" }), "Thank you.");
  await client.request("session.send", { sessionId, prompt: "Weather?" });
  const { data } = await client.event("external_tool.requested");
  return { client, sessionId, requestId: data["requestId"] };
}

describe("a client that never answers a call", () => {
  test("a client that does not answer blocks only its own turn, which abort ends", async () => {
    const { client, sessionId } = await waiting();
    const other = await served.connect();
    const theirs = await other.create({ model: "m" });
    served.model.answer({
      headers: { "content-type": "application/json" },
      steps: ['{"choices":[{"message":{"role":"assistant","content":"Hello."}}]}'],
    });
    await other.say(theirs, "Hi");
    expect(client.count("session.idle", sessionId)).toBe(0);
    expect(await client.request("session.abort", { sessionId })).toEqual({ success: true });
    await client.event("session.idle");
    expect((await client.event("tool.execution_complete")).data).toMatchObject({ success: false });
  });

  test("has the call settled as a failure when the session ends", async () => {
    const { client, sessionId, requestId } = await waiting();
    await client.request("session.destroy", { sessionId });
    expect((await client.event("tool.execution_complete")).data).toMatchObject({ success: false });
    const late = await client.refusal("session.tools.handlePendingToolCall", { sessionId, requestId, result: "Late." });
    expect(late.message).toContain("Session not found");
    expect(await client.request("ping")).toMatchObject({ protocolVersion: 3 });
  });

  test("a client that disconnects during a turn gets no more events, and the server continues", async () => {
    const { client, sessionId, requestId } = await waiting();
    client.drop();
    const other = await served.connect();
    await other.request("session.resume", { sessionId });
    const late = { sessionId, requestId, result: "Not mine to say." };
    expect(await other.request("session.tools.handlePendingToolCall", late)).toEqual({ success: false });
    await other.request("session.abort", { sessionId });
    served.says("Still here.");
    await other.say(sessionId, "Hello?");
    expect(served.asked.messages.at(-1).content).toContain("Hello?");
  });
});

describe("unexpected answers", () => {
  test("are refused: a second one, one of another kind, one for a call that never was", async () => {
    const { client, sessionId, requestId } = await waiting();
    const answer = (id: unknown): Promise<object> =>
      client.request("session.tools.handlePendingToolCall", { sessionId, requestId: id, result: "Sun." });
    const permission = { sessionId, requestId, result: { kind: "approve-once" } };
    const refused = await client.refusal("session.permissions.handlePendingPermissionRequest", permission);
    expect(refused.message).toContain("The question stays open.");
    expect(await answer("never-was")).toEqual({ success: false });
    expect(await answer(requestId)).toEqual({ success: true });
    expect(await answer(requestId)).toEqual({ success: false });
    await client.event("session.idle");
    expect(served.asked.messages.at(-1).content).toBe("Sun.");
  });

  test("a permission request takes only the first answer", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ model: "m", tools: [weather] });
    served.says(calling("get_weather", { city: "Oslo" }), "Thank you.");
    await client.request("session.send", { sessionId, prompt: "Weather?" });
    const { data } = await client.event("permission.requested");
    const answer = (kind: string): Promise<object> =>
      client.request("session.permissions.handlePendingPermissionRequest", { sessionId, requestId: data["requestId"], result: { kind } });
    expect(await Promise.all([answer("user-not-available"), answer("approve-once")])).toEqual([{ success: true }, { success: false }]);
    await client.event("session.idle");
    expect(served.asked.messages.at(-1).content).toBe("Permission denied and could not request permission from user");
  });
});

test("requests before connect are those of a client of protocol 2, where no token is asked for", async () => {
  served = await Served.start();
  const client = served.open();
  const sessionId = await client.create({ model: "m" });
  served.says("Hello.");
  await client.say(sessionId, "Hi");
  expect(client.types()).toContain("assistant.message");
});

test("a reader that takes nothing is let go before ten thousand events fill the memory", async () => {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m" });
  await client.event("session.start");
  const { session } = served.server.sessions.get(sessionId)!;
  const { PassThrough } = await import("node:stream");
  let taken = 0;
  const output = {
    write: (text: string) => {
      taken += text.length;
    },
    get pendingBytes() {
      return taken;
    },
  };
  const toServer = new PassThrough();
  const { wire } = served.server.accept({ input: toServer, output });
  const frame = (body: object): string => {
    const text = JSON.stringify({ jsonrpc: "2.0", ...body });
    return `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
  };
  toServer.write(frame({ id: 1, method: "connect", params: {} }) + frame({ id: 2, method: "session.resume", params: { sessionId } }));
  await expect.poll(() => served.server.sessions.get(sessionId)!.clients.length).toBe(2);
  const message = "x".repeat(20_000);
  for (let count = 0; count < 10_000 && wire.isOpen; count++) {
    session.events.append("session.info", { infoType: "count", message });
    if (count % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(wire.isOpen).toBe(false);
  expect(taken).toBeLessThan(80 * 1024 * 1024);
  expect(await client.request("ping")).toMatchObject({ protocolVersion: 3 });
});
