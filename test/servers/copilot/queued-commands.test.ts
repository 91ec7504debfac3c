import { afterEach, describe, expect, test } from "vitest";
import { calling, type Json, Served, type TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

const skills = { "skills/beta/SKILL.md": "---\nname: beta\ndescription: Reads.\n---\nRead slowly.\n" };

interface Begun {
  readonly client: TestClient;
  readonly sessionId: string;
  enqueue(command: string): Promise<void>;
  /** The event of a command whose turn has come. */
  offered(command: string): Promise<string>;
  respond(requestId: string, result: object): Promise<Json>;
  pending(): Promise<readonly (readonly [string, string])[]>;
}

async function begin({
  isInterested = true,
  ...options
}: {
  readonly isInterested?: boolean;
  readonly [option: string]: unknown;
} = {}): Promise<Begun> {
  served = await Served.start({ files: skills });
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", ...options });
  if (isInterested) await client.request("session.eventLog.registerInterest", { sessionId, eventType: "command.queued" });
  return {
    client,
    sessionId,
    enqueue: async (command) => expect(await client.request("session.commands.enqueue", { sessionId, command })).toEqual({ queued: true }),
    offered: async (command) => {
      const { data } = await client.event("command.queued", (event) => event.data["command"] === command);
      return String(data["requestId"]);
    },
    respond: (requestId, result) => client.request("session.commands.respondToQueuedCommand", { sessionId, requestId, result }),
    pending: async () => {
      const { items } = await client.request("session.queue.pendingItems", { sessionId });
      return items.map(({ kind, displayText }: Json) => [kind, displayText]);
    },
  };
}

/** Begins a turn that ends when what it gives is called. */
async function beginTurn(client: TestClient, sessionId: string): Promise<() => void> {
  let release = (): void => {};
  const held = new Promise<string>((resolve) => {
    release = () => resolve("Sun.");
  });
  client.serve({ get_weather: () => held });
  await client.request("session.tools.set", { sessionId, tools: [weather] });
  served.says(calling("get_weather", { city: "Oslo" }), "One.");
  await client.request("session.send", { sessionId, prompt: "First" });
  await client.event("external_tool.requested");
  return release;
}

const idle = (client: TestClient, count = 1): Promise<unknown> =>
  client.eventually(() => (client.count("session.idle") >= count ? true : undefined));

describe("a queued command", () => {
  test("is offered to clients that are interested; those behind it wait, and can be removed", async () => {
    const { client, sessionId, enqueue, offered, respond, pending } = await begin({ model: undefined });
    await enqueue("/first one");
    const requestId = await offered("/first one");
    expect(await pending()).toEqual([]);
    await enqueue("/second");
    expect(await pending()).toEqual([["command", "/second"]]);
    expect(await client.request("session.queue.removeMostRecent", { sessionId })).toEqual({ removed: true });
    await enqueue("/third");
    expect(await pending()).toEqual([["command", "/third"]]);
    await client.request("session.queue.clear", { sessionId });
    expect(await pending()).toEqual([]);
    expect(client.count("session.idle")).toBe(0);
    expect(await respond("made-up", { handled: true })).toEqual({ success: false });
    expect(await respond(requestId, { handled: true, stopProcessingQueue: true })).toEqual({ success: true });
    expect(await respond(requestId, { handled: true })).toEqual({ success: false });
    expect((await client.event("command.completed")).data).toEqual({ requestId });
    await idle(client);
    expect([served.model.requests.length, client.count("command.queued"), client.count("session.warning")]).toEqual([0, 1, 0]);
  });

  test("has its turn after the messages before it, and the next message after it", async () => {
    const { client, sessionId, enqueue, offered, respond, pending } = await begin();
    const release = await beginTurn(client, sessionId);
    await enqueue("/between");
    await client.request("session.send", { sessionId, prompt: "Last" });
    expect(await pending()).toEqual([
      ["command", "/between"],
      ["message", "Last"],
    ]);
    expect(client.count("command.queued")).toBe(0);
    served.says("Two.");
    release();
    const requestId = await offered("/between");
    expect(client.count("user.message")).toBe(1);
    await respond(requestId, { handled: true });
    await idle(client);
    const order = client.types().filter((type) => ["user.message", "command.queued", "command.completed", "session.idle"].includes(type));
    expect(order).toEqual(["user.message", "command.queued", "command.completed", "user.message", "session.idle"]);
  });

  test("waits for the next request if the client stops the queue before it; messages do not", async () => {
    const { client, sessionId, enqueue, offered, respond, pending } = await begin();
    await enqueue("/first");
    const first = await offered("/first");
    await enqueue("/second");
    await respond(first, { handled: true, stopProcessingQueue: true });
    await idle(client);
    expect(await pending()).toEqual([["command", "/second"]]);
    expect(client.count("command.queued")).toBe(1);
    served.says("Hello.");
    await client.request("session.send", { sessionId, prompt: "Hi" });
    await respond(await offered("/second"), { handled: true });
    await client.event("assistant.message");
    await idle(client, 2);
    expect(await pending()).toEqual([]);
  });

  test.each([
    ["says that it did not do it", async ({ respond, offered }: Begun) => void (await respond(await offered("/what"), { handled: false }))],
    [
      "is not interested any more",
      async ({ client, sessionId, offered }: Begun) => {
        const { handle } = await client.request("session.eventLog.registerInterest", { sessionId, eventType: "command.queued" });
        await offered("/what");
        await client.request("session.eventLog.releaseInterest", { sessionId, handle });
        expect(client.count("command.completed")).toBe(0);
        await client.request("session.eventLog.releaseInterest", { sessionId, handle: (client as unknown as { first: string }).first });
      },
    ],
  ])("is not run if the only client %s, and a warning reports it", async (_title, act) => {
    const begun = await begin({ isInterested: false });
    const { client, sessionId, enqueue } = begun;
    const { handle } = await client.request("session.eventLog.registerInterest", { sessionId, eventType: "command.queued" });
    Object.assign(client, { first: handle });
    await enqueue("/what");
    await act(begun);
    expect((await client.event("session.warning")).data["message"]).toContain('"/what"');
    await idle(client);
    expect(served.model.requests).toEqual([]);
  });

  test("of a client that goes is not waited for", async () => {
    const { client, sessionId, enqueue, offered } = await begin();
    const other = await served.connect();
    await other.request("session.resume", { sessionId });
    await enqueue("/what");
    await offered("/what");
    client.drop();
    await other.event("session.warning");
    await idle(other);
  });

  test("without an answer ends with an abort", async () => {
    const { client, sessionId, enqueue, offered, respond } = await begin();
    await enqueue("/what");
    const requestId = await offered("/what");
    await client.request("session.abort", { sessionId });
    expect((await client.event("session.idle")).data).toEqual({ aborted: true });
    expect(await respond(requestId, { handled: true })).toEqual({ success: false });
    expect(client.count("session.warning")).toBe(0);
  });

  test.each([{}, { handled: "yes" }, { handled: null }])("cannot be answered with %j", async (result) => {
    const { client, sessionId, enqueue, offered } = await begin();
    await enqueue("/what");
    const requestId = await offered("/what");
    const { message } = await client.refusal("session.commands.respondToQueuedCommand", { sessionId, requestId, result });
    expect(message).toContain("handled");
  });
});

describe("without an interested client, a queued command", () => {
  test("of a client is done by that client", async () => {
    const { client, sessionId, enqueue } = await begin({ isInterested: false, commands: [{ name: "deploy", description: "Ships it." }] });
    await enqueue("/deploy to staging");
    const { data } = await client.event("command.execute");
    expect(data).toMatchObject({ commandName: "deploy", args: "to staging" });
    expect(client.count("session.idle")).toBe(0);
    await client.request("session.commands.handlePendingCommand", { sessionId, requestId: data["requestId"], error: "No." });
    await idle(client);
    expect((await client.event("session.error")).data["message"]).toBe('Command "/deploy" failed: No.');
    expect(served.model.requests).toEqual([]);
  });

  test("that names a skill is a message to the model", async () => {
    const { client, enqueue } = await begin({ isInterested: false });
    served.says("I read.");
    await enqueue("/beta now");
    await idle(client);
    expect(served.asked.messages.at(-1).content).toContain("Read slowly.");
  });

  test("that is unknown reaches no model, and a warning reports it", async () => {
    const { client, enqueue } = await begin({ isInterested: false });
    await enqueue("Hello");
    expect((await client.event("session.warning")).data).toMatchObject({ warningType: "command" });
    await idle(client);
    expect([served.model.requests.length, client.count("command.queued")]).toEqual([0, 0]);
  });
});

test("a command that a client sends while a turn runs does not make the session idle", async () => {
  const { client, sessionId } = await begin({ isInterested: false, commands: [{ name: "deploy", description: "Ships it." }] });
  const release = await beginTurn(client, sessionId);
  await client.request("session.send", { sessionId, prompt: "/deploy" });
  const { data } = await client.event("command.execute");
  await client.request("session.commands.handlePendingCommand", { sessionId, requestId: data["requestId"] });
  await client.event("command.completed");
  await client.request("session.metadata.activity", { sessionId });
  expect(client.count("session.idle")).toBe(0);
  release();
  await idle(client);
  expect(client.count("assistant.message")).toBe(2);
});
