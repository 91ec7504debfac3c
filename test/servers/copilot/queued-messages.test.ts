import { afterEach, describe, expect, test } from "vitest";
import { calling, type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

interface Waiting {
  readonly client: TestClient;
  readonly sessionId: string;
  /** Sends a request of the queue. */
  queue(method: string, params?: object): Promise<Json>;
  texts(): Promise<readonly string[]>;
  idOf(text: string): Promise<string>;
  /** Lets the running turn end, and settles when nothing waits any more. */
  finish(): Promise<void>;
}

/** A session whose first turn waits for a tool. */
async function waiting(...prompts: readonly string[]): Promise<Waiting> {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", tools: [{ name: "wait_here", skipPermission: true }] });
  served.says(calling("wait_here"), ...Array.from({ length: 8 }, () => "Done."));
  const said = client.say(sessionId, "first");
  const { data } = await client.event("external_tool.requested");
  for (const prompt of prompts) await client.request("session.send", { sessionId, prompt });
  const queue = (method: string, params: object = {}): Promise<Json> => client.request(`session.queue.${method}`, { sessionId, ...params });
  const items = async (): Promise<readonly Json[]> => (await queue("pendingItems")).items;
  return {
    client,
    sessionId,
    queue,
    texts: async () => (await items()).map(({ displayText }) => displayText),
    idOf: async (text) => (await items()).find(({ displayText }) => displayText === text).id,
    async finish() {
      await client.request("session.tools.handlePendingToolCall", { sessionId, requestId: data["requestId"], result: "x" });
      await said;
    },
  };
}

const said = (client: TestClient): readonly unknown[] =>
  client.events.filter(({ event }) => event.type === "user.message").map(({ event }) => event.data["content"]);

describe("the queue of a session", () => {
  test.each([
    ["b", 0, ["b", "a", "c"], true],
    ["a", 2, ["b", "c", "a"], true],
    ["a", 99, ["b", "c", "a"], true],
    ["c", -5, ["c", "a", "b"], true],
    ["b", 1, ["a", "b", "c"], false],
  ] as const)("moving %s to %i leads to %j", async (text, toPosition, order, changed) => {
    const { queue, texts, idOf, finish, client } = await waiting("a", "b", "c");
    expect(await queue("moveItem", { id: await idOf(text), toPosition })).toEqual({ changed });
    expect(await texts()).toEqual(order);
    await finish();
    expect(said(client)).toEqual(["first", ...order]);
  });

  test("a message is inserted, duplicated and edited", async () => {
    const { queue, texts, idOf, finish, client } = await waiting("a", "b");
    const { id } = await queue("insertAt", { position: 1, message: { prompt: "between" } });
    expect(await texts()).toEqual(["a", "between", "b"]);
    const copy = await queue("duplicateAt", { id });
    expect(copy.id).not.toBe(id);
    expect(await queue("updateText", { id: copy.id, prompt: "again" })).toEqual({ updated: true });
    expect(await queue("updateText", { id: copy.id, prompt: "again" })).toEqual({ updated: false });
    expect(await texts()).toEqual(["a", "between", "again", "b"]);
    expect(await queue("removeAt", { id: await idOf("a") })).toEqual({ removed: true });
    await finish();
    expect(said(client)).toEqual(["first", "between", "again", "b"]);
  });

  test("a message that is sent now reaches the running turn", async () => {
    const { queue, texts, idOf, finish, client } = await waiting("a", "b");
    expect(await queue("sendNow", { id: await idOf("b") })).toEqual({ steered: true });
    expect(await texts()).toEqual(["a"]);
    expect(await queue("snapshot")).toMatchObject({ steeringMessages: ["b"], itemOrders: [0], steeringMessageOrders: [1] });
    await finish();
    expect(said(client)).toEqual(["first", "b", "a"]);
  });

  test("a paused queue keeps its messages until it is released, and the running turn takes steering messages", async () => {
    const { queue, texts, idOf, finish, client, sessionId } = await waiting("a");
    expect(await queue("setDrainPaused", { paused: true })).toBe(null);
    await expect(queue("setDrainPaused", { paused: true })).rejects.toThrow("queue_already_paused");
    await client.request("session.send", { sessionId, prompt: "now", mode: "immediate" });
    await finish();
    expect(said(client)).toEqual(["first", "now"]);
    await client.request("session.send", { sessionId, prompt: "b" });
    expect(await texts()).toEqual(["a", "b"]);
    expect(await queue("sendNow", { id: await idOf("b") })).toEqual({ steered: false });
    const before = client.count("session.idle");
    expect(await queue("setDrainPaused", { paused: false })).toBe(null);
    await client.eventually(() => (client.count("session.idle") > before ? true : undefined));
    expect(said(client)).toEqual(["first", "now", "a", "b"]);
    expect(await queue("setDrainPaused", { paused: false })).toBe(null);
  });

  test("a command moves and is duplicated, but is neither edited nor sent now", async () => {
    const { queue, texts, idOf, finish, client, sessionId } = await waiting("a");
    await client.request("session.commands.enqueue", { sessionId, command: "/nothing" });
    const id = await idOf("/nothing");
    expect(await queue("updateText", { id, prompt: "x" })).toEqual({ updated: false });
    expect(await queue("sendNow", { id })).toEqual({ steered: false });
    expect(await queue("moveItem", { id, toPosition: 0 })).toEqual({ changed: true });
    await queue("duplicateAt", { id });
    expect(await texts()).toEqual(["/nothing", "/nothing", "a"]);
    await finish();
    expect(client.count("session.warning")).toBe(2);
  });

  test.each([
    ["moveItem", { id: "none", toPosition: 0 }, 'no queued message or command has the id "none"'],
    ["duplicateAt", { id: "none" }, 'no queued message or command has the id "none"'],
    ["updateText", { id: "none", prompt: "x" }, 'no queued message or command has the id "none"'],
    ["sendNow", { id: "none" }, 'no queued message or command has the id "none"'],
    ["moveItem", { id: "none", toPosition: 0.5 }, "toPosition must be an integer"],
    ["moveItem", { id: "none" }, "toPosition must be an integer"],
    ["insertAt", { position: 0 }, "message must be an object"],
    ["insertAt", { position: 0, message: {} }, "prompt must be a string"],
    ["insertAt", { position: 0, message: { prompt: "x", mode: "immediate" } }, "cannot have the mode immediate"],
    ["setDrainPaused", {}, "paused must be true or false"],
  ])("%s refuses %j", async (method, params, message) => {
    const { client, sessionId, queue, texts, finish } = await waiting("a");
    expect((await client.refusal(`session.queue.${method}`, { sessionId, ...params })).message).toContain(message);
    expect(await texts()).toEqual(["a"]);
    expect(await queue("hasPending")).toEqual({ hasPending: true });
    await finish();
  });

  test("the methods with which a host drains the queue have nothing to do", async () => {
    const { queue, finish } = await waiting();
    expect(await queue("beginDeferredIdleDrain", { activeBackgroundWork: false })).toEqual({ shouldDrain: false });
    const drain = { activeBackgroundWork: false, hasPending: false };
    expect(await queue("finishDeferredIdleDrain", drain)).toEqual({ action: "none", aborted: false });
    expect(await queue("enqueueResumePending")).toEqual({ queued: false });
    expect(await queue("process")).toBe(null);
    await finish();
  });
});
