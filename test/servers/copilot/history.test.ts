import { afterEach, describe, expect, test } from "vitest";
import { jsonAnswer } from "../../doubles/scripted-model.ts";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

async function session(options: object = {}): Promise<{ readonly client: TestClient; readonly sessionId: string }> {
  served = await Served.start();
  const client = await served.connect();
  return { client, sessionId: await client.create({ model: "m", ...options }) };
}

const small = { modelCapabilities: { limits: { max_context_window_tokens: 2_000 } } };
const long = "All work and no play makes Jack a dull boy. ".repeat(60);

function texts(): readonly string[] {
  return served.asked.messages.filter(({ role }: Json) => role !== "system").map(({ content }: Json) => content);
}

async function userEvents(client: TestClient, sessionId: string): Promise<Json[]> {
  const { events } = await client.request("session.getMessages", { sessionId });
  return events.filter(({ type }: Json) => type === "user.message");
}

describe("going back", () => {
  test("truncate takes an event and all after it out of the history, for the model and for clients", async () => {
    const { client, sessionId } = await session();
    served.says("One.", "Two.", "Three.");
    await client.say(sessionId, "first");
    await client.say(sessionId, "second");
    const second = (await userEvents(client, sessionId))[1];
    const { eventsRemoved } = await client.request("session.history.truncate", { sessionId, eventId: second.id });
    expect(eventsRemoved).toBeGreaterThanOrEqual(2);
    expect((await client.event("session.snapshot_rewind")).data).toEqual({ upToEventId: second.id, eventsRemoved });
    expect((await userEvents(client, sessionId)).map(({ data }) => data.content)).toEqual(["first"]);
    await client.say(sessionId, "instead");
    expect(texts().slice(0, 2)).toEqual(["first", "One."]);
    expect(texts().at(-1)).toContain("instead");
    expect(texts().join()).not.toContain("second");
  });

  test("the chain of parents has no gap after it", async () => {
    const { client, sessionId } = await session();
    served.says("One.", "Two.");
    await client.say(sessionId, "first");
    const [first] = await userEvents(client, sessionId);
    await client.request("session.history.truncate", { sessionId, eventId: first.id });
    await client.say(sessionId, "again");
    const { events } = await client.request("session.getMessages", { sessionId });
    const ids = events.map(({ id }: Json) => id);
    expect(events.map(({ parentId }: Json) => parentId)).toEqual([null, ...ids.slice(0, -1)]);
  });

  test("what was taken back stays so when the session is resumed from its log", async () => {
    const { client, sessionId } = await session();
    served.says("One.", "Two.", "Three.");
    await client.say(sessionId, "first");
    await client.say(sessionId, "second");
    const second = (await userEvents(client, sessionId))[1];
    await client.request("session.history.truncate", { sessionId, eventId: second.id });
    await client.request("session.destroy", { sessionId });
    await client.request("session.resume", { sessionId, model: "m", requestPermission: true });
    await client.say(sessionId, "third");
    expect(texts().slice(0, 2)).toEqual(["first", "One."]);
    expect(texts().join()).not.toContain("second");
  });

  test("an unknown event, and the session's first, are refused", async () => {
    const { client, sessionId } = await session();
    const { events } = await client.request("session.getMessages", { sessionId });
    for (const eventId of ["nothing", events[0].id]) {
      expect((await client.refusal("session.history.truncate", { sessionId, eventId })).message).toContain(
        "The history cannot be truncated",
      );
    }
  });

  test("rewind points are the user's messages, and rewinding to one leaves files alone", async () => {
    const { client, sessionId } = await session();
    served.says("One.", "Two.");
    await client.say(sessionId, "first");
    await client.say(sessionId, "second");
    const { points, fileChangeTrackingEnabled } = await client.request("session.history.listRewindPoints", { sessionId });
    expect(points.map(({ userMessage }: Json) => userMessage)).toEqual(["first", "second"]);
    expect(fileChangeTrackingEnabled).toBe(false);
    const [{ eventId }] = points;
    const files = await client.request("session.history.rewind", { sessionId, eventId, mode: "conversation-and-files" });
    expect(files.outcome).toBe("file-change-tracking-disabled");
    const rewound = await client.request("session.history.rewind", { sessionId, eventId, mode: "conversation" });
    expect(rewound).toMatchObject({ outcome: "success", restoredFiles: [] });
    expect(await userEvents(client, sessionId)).toEqual([]);
  });

  test("nothing is taken back while a turn runs", async () => {
    const { client, sessionId } = await session({ tools: [{ name: "wait_here", skipPermission: true }] });
    served.says({ toolCalls: [{ id: "c1", name: "wait_here", arguments: {} }] }, "Done.");
    const said = client.say(sessionId, "first");
    const { data } = await client.event("external_tool.requested");
    const [first] = await userEvents(client, sessionId);
    expect((await client.refusal("session.history.truncate", { sessionId, eventId: first.id })).message).toContain(
      "A turn of this session is running",
    );
    expect((await client.request("session.history.rewind", { sessionId, eventId: first.id })).outcome).toBe("session-busy");
    await client.request("session.tools.handlePendingToolCall", { sessionId, requestId: data["requestId"], result: "x" });
    await said;
  });

  test("clearing the context leaves only what is said next", async () => {
    const { client, sessionId } = await session();
    served.says("One.", "Fresh.");
    await client.say(sessionId, "first");
    const before = client.count("session.idle");
    expect(await client.request("session.history.clearContext", { sessionId, prompt: "again" })).toEqual({ messagesCleared: 2 });
    await client.eventually(() => (client.count("session.idle") > before ? true : undefined));
    expect(texts()).toHaveLength(1);
    expect(texts()[0]).toContain("again");
    expect((await client.event("session.context_cleared")).data).toEqual({ messagesCleared: 2, initialMessage: "again" });
  });
});

describe("compaction", () => {
  test("on demand, a summary takes the place of what was said", async () => {
    const { client, sessionId } = await session();
    served.says("One.", "THE SUMMARY", "Two.");
    await client.say(sessionId, "first");
    const done = await client.request("session.history.compact", { sessionId, customInstructions: "Keep names." });
    expect(done).toMatchObject({ success: true, messagesRemoved: 2, summaryContent: "THE SUMMARY" });
    expect(done.contextWindow.messagesLength).toBe(1);
    expect(texts().join()).toContain("Keep names.");
    await client.say(sessionId, "second");
    expect(texts()).toHaveLength(2);
    expect(texts()[0]).toContain("THE SUMMARY");
    expect((await client.event("session.compaction_complete")).data).toMatchObject({ success: true, trigger: "manual" });
  });

  test("a context that is full waits for the summary before the model is asked", async () => {
    const { client, sessionId } = await session({
      ...small,
      infiniteSessions: { backgroundCompactionThreshold: 0.5, bufferExhaustionThreshold: 0.5 },
    });
    served.says(long, "A SHORT SUMMARY", "Well.");
    await client.say(sessionId, "first");
    await client.say(sessionId, long);
    expect(client.types().filter((type) => type.startsWith("session.compaction"))).toEqual([
      "session.compaction_start",
      "session.compaction_complete",
    ]);
    expect(texts()).toHaveLength(1);
    expect(texts()[0]).toContain("A SHORT SUMMARY");
  });

  test("what is said while the summary is made stays behind it", async () => {
    const { client, sessionId } = await session({
      ...small,
      infiniteSessions: { backgroundCompactionThreshold: 0.2, bufferExhaustionThreshold: 1 },
    });
    served.says(long, "LATER OR SUMMARY", "SUMMARY OR LATER", "Last.");
    await client.say(sessionId, "first");
    await client.say(sessionId, "second");
    await client.event("session.compaction_complete");
    await client.say(sessionId, "third");
    const said = texts();
    expect(said[0]).toContain("summarized to free up context");
    expect(said.at(-1)).toContain("third");
    expect(said).toHaveLength(3);
  });

  test("a request that the endpoint finds too long is made once more with the summary", async () => {
    const { client, sessionId } = await session({
      ...small,
      infiniteSessions: { backgroundCompactionThreshold: 1, bufferExhaustionThreshold: 1 },
    });
    served.says(long);
    await client.say(sessionId, "first");
    const error = { message: "This model's maximum context length is 2000 tokens.", code: "context_length_exceeded" };
    served.model.answer(jsonAnswer({ error }, { status: 400 }));
    served.says("BRIEFLY", "Well.");
    await client.say(sessionId, "second");
    expect((await client.event("session.compaction_start")).data["trigger"]).toBe("context_limit_retry");
    expect(texts()).toHaveLength(1);
    expect(texts()[0]).toContain("BRIEFLY");
    expect(client.types()).not.toContain("session.error");
  });

  test("infiniteSessions of enabled: false never makes one", async () => {
    const { client, sessionId } = await session({ ...small, infiniteSessions: { enabled: false } });
    served.says(long, "Well.");
    await client.say(sessionId, long);
    await client.say(sessionId, long);
    expect(client.types().filter((type) => type.startsWith("session.compaction"))).toEqual([]);
    expect(texts()).toHaveLength(3);
  });

  test("a model that fails to summarise leaves the conversation as it is", async () => {
    const { client, sessionId } = await session();
    served.says("One.", "", "Two.");
    await client.say(sessionId, "first");
    expect((await client.refusal("session.history.compact", { sessionId })).message).toContain("Compaction failed");
    await client.say(sessionId, "second");
    expect(texts().slice(0, 2)).toEqual(["first", "One."]);
  });

  test("a handoff summary and an ephemeral query do not change the conversation", async () => {
    const { client, sessionId } = await session();
    served.says("One.", "HANDOFF", "Forty-two.", "Two.");
    await client.say(sessionId, "first");
    expect(await client.request("session.history.summarizeForHandoff", { sessionId })).toEqual({ summary: "HANDOFF" });
    expect(await client.request("session.ui.ephemeralQuery", { sessionId, question: "How many?" })).toEqual({ answer: "Forty-two." });
    await client.say(sessionId, "second");
    expect(texts().slice(0, 2)).toEqual(["first", "One."]);
  });

  test("nothing is cancelled where nothing runs", async () => {
    const { client, sessionId } = await session();
    expect(await client.request("session.history.abortManualCompaction", { sessionId })).toEqual({ aborted: false });
    expect(await client.request("session.history.cancelBackgroundCompaction", { sessionId })).toEqual({ cancelled: false });
  });
});

describe("what waits and what was", () => {
  test("queued messages are listed, and taken back newest first", async () => {
    const { client, sessionId } = await session({ tools: [{ name: "wait_here", skipPermission: true }] });
    served.says({ toolCalls: [{ id: "c1", name: "wait_here", arguments: {} }] }, "Done.");
    const said = client.say(sessionId, "first");
    const { data } = await client.event("external_tool.requested");
    for (const prompt of ["second", "third"]) await client.request("session.send", { sessionId, prompt });
    const { items } = await client.request("session.queue.pendingItems", { sessionId });
    expect(items.map(({ displayText }: Json) => displayText)).toEqual(["second", "third"]);
    await client.request("session.send", { sessionId, prompt: "steering", mode: "immediate" });
    const removeAt = (id: string): Promise<Json> => client.request("session.queue.removeAt", { sessionId, id });
    expect(await removeAt("unknown")).toEqual({ removed: false });
    expect(await removeAt(items[0].id)).toEqual({ removed: true });
    expect(await removeAt(items[0].id)).toEqual({ removed: false });
    const left = await client.request("session.queue.pendingItems", { sessionId });
    expect([left.items.length, left.items[0].displayText, left.steeringMessages]).toEqual([1, "third", ["steering"]]);
    expect(await client.request("session.queue.removeMostRecent", { sessionId })).toEqual({ removed: true });
    expect(await client.request("session.queue.hasPending", { sessionId })).toEqual({ hasPending: true });
    await client.request("session.queue.clear", { sessionId });
    expect(await client.request("session.queue.removeMostRecent", { sessionId })).toEqual({ removed: false });
    await client.request("session.tools.handlePendingToolCall", { sessionId, requestId: data["requestId"], result: "x" });
    await said;
    expect(await userEvents(client, sessionId)).toHaveLength(1);
  });

  test("the log of events is read in pages, forwards and backwards, and from its tail on", async () => {
    const { client, sessionId } = await session();
    served.says("One.", "Two.");
    await client.say(sessionId, "first");
    const all = (await client.request("session.getMessages", { sessionId })).events.map(({ id }: Json) => id);
    const one = await client.request("session.eventLog.read", { sessionId, max: 2 });
    const two = await client.request("session.eventLog.read", { sessionId, cursor: one.cursor });
    expect([...one.events, ...two.events].map(({ id }: Json) => id)).toEqual(all);
    expect([one.hasMore, two.hasMore]).toEqual([true, false]);
    const back = await client.request("session.eventLog.read", { sessionId, direction: "backward", max: 1 });
    expect(back.events.map(({ id }: Json) => id)).toEqual(all.slice(-1));
    const { cursor } = await client.request("session.eventLog.tail", { sessionId });
    await client.say(sessionId, "second");
    const later = await client.request("session.eventLog.read", { sessionId, cursor, types: ["user.message"] });
    expect(later.events.map(({ data }: Json) => data.content)).toEqual(["second"]);
    expect((await client.request("session.eventLog.read", { sessionId, cursor: "after:gone" })).cursorStatus).toBe("expired");
  });

  test("usage counts requests by model", async () => {
    const { client, sessionId } = await session();
    served.says("One.");
    await client.say(sessionId, "first");
    const metrics = await client.request("session.usage.getMetrics", { sessionId });
    expect(metrics.totalUserRequests).toBe(1);
    expect(Object.values(metrics.modelMetrics)).toMatchObject([{ requests: { count: 1 } }]);
    const { contextInfo } = await client.request("session.metadata.contextInfo", { sessionId, promptTokenLimit: 0, outputTokenLimit: 0 });
    expect(contextInfo.totalTokens).toBeGreaterThan(0);
    expect(contextInfo.modelName).toBe("m");
  });
});
