import { afterEach, describe, expect, test } from "vitest";
import { type Json, minimal, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

async function connected(): Promise<TestClient> {
  served = await Served.start();
  return served.connect();
}

describe("sessions.open", () => {
  test("creates a session, resumes it by a prefix or as the last one, and attaches to an open one", async () => {
    const client = await connected();
    const options = { ...minimal, model: "m", workingDirectory: served.folder };
    const created = await client.request("sessions.open", { kind: "create", options: { ...options, sessionId: "abc-1" } });
    expect(created).toEqual({ status: "created", sessionId: "abc-1", startupPrompts: [] });
    served.says("One.", "Two.");
    await client.say("abc-1", "first");
    expect(await client.request("sessions.open", { kind: "attach", sessionId: "abc-1" })).toMatchObject({ status: "resumed" });
    await client.request("session.destroy", { sessionId: "abc-1" });
    expect(await client.request("sessions.open", { kind: "attach", sessionId: "abc-1" })).toEqual({ status: "not_found" });
    const resumed = await client.request("sessions.open", { kind: "resume", sessionId: "abc", options });
    expect(resumed).toEqual({ status: "resumed", sessionId: "abc-1", startupPrompts: [] });
    await client.say("abc-1", "second");
    expect(served.asked.messages.map(({ content }: Json) => content).slice(1, 3)).toEqual(["first", "One."]);
    await client.request("session.destroy", { sessionId: "abc-1" });
    const context = { cwd: served.folder };
    expect(await client.request("sessions.open", { kind: "resumeLast", context, options })).toMatchObject({ sessionId: "abc-1" });
  });

  test("answers that nothing was found, and refuses what is not local", async () => {
    const client = await connected();
    await client.create({ sessionId: "ab-1" });
    await client.create({ sessionId: "ab-2" });
    for (const sessionId of ["missing", "", "ab"])
      expect(await client.request("sessions.open", { kind: "resume", sessionId })).toEqual({ status: "not_found" });
    expect(await client.request("sessions.open", { kind: "resumeLast", context: { cwd: "/elsewhere" } })).toEqual({ status: "not_found" });
    for (const kind of ["remote", "cloud", "handoff"])
      expect((await client.refusal("sessions.open", { kind })).message).toContain("only on this machine");
    for (const kind of ["constructor", "", 7, undefined])
      expect((await client.refusal("sessions.open", { kind })).message).toContain("kind");
  });
});

test("sessions with messages are listed, the newest first, however long their messages are", async () => {
  const client = await connected();
  for (const sessionId of ["empty", "short", "long"]) await client.create({ sessionId, model: "m" });
  served.says("One.", "Two.");
  await client.say("short", "Hello");
  await client.say("long", "Hello ".repeat(30_000));
  for (const sessionId of ["empty", "short", "long"]) await client.request("session.destroy", { sessionId });
  const ids = (params: object): Promise<Json> => client.request("sessions.listNonEmptySessionIds", params);
  expect([...(await ids({})).sessionIds].sort()).toEqual(["long", "short"]);
  expect((await ids({ limit: 1 })).sessionIds).toHaveLength(1);
  expect(await ids({ limit: 0 })).toEqual({ sessionIds: [] });
  expect((await client.refusal("sessions.listNonEmptySessionIds", { limit: -1 })).message).toContain("limit");
});

describe("the stored events of a session", () => {
  async function stored(): Promise<{ client: TestClient; sessionId: string; all: readonly string[] }> {
    const client = await connected();
    const sessionId = await client.create({ model: "m" });
    served.says("One.", "Two.", "Three.", "Four.");
    await client.say(sessionId, "first");
    await client.say(sessionId, "second");
    await client.request("session.destroy", { sessionId });
    const { events } = await client.request("sessions.readPersistedEvents", { sessionId, max: 1_000 });
    return { client, sessionId, all: events.map(({ id }: Json) => id) };
  }

  test.each(["forward", "backward"])("are read in pages %s without opening the session", async (direction) => {
    const { client, sessionId, all } = await stored();
    expect(all.length).toBeGreaterThan(6);
    const pages: string[][] = [];
    for (let page: Json = { hasMore: true }; page.hasMore; ) {
      page = await client.request("sessions.readPersistedEvents", { sessionId, max: 2, direction, cursor: page.cursor });
      expect(page.cursorStatus).toBe("ok");
      pages.push(page.events.map(({ id }: Json) => id));
    }
    expect((direction === "forward" ? pages : pages.reverse()).flat()).toEqual(all);
    const [first] = (await client.request("sessions.readPersistedEvents", { sessionId, max: 1 })).events;
    expect(first.data).not.toHaveProperty("options");
    expect((await client.refusal("session.getMessages", { sessionId })).message).toContain("not found");
  });

  test("are those of the first page's moment; after a rewind the cursor has expired", async () => {
    const { client, sessionId, all } = await stored();
    const { cursor } = await client.request("sessions.readPersistedEvents", { sessionId, max: 3 });
    await client.request("session.resume", { sessionId, model: "m", requestPermission: true });
    await client.say(sessionId, "third");
    const rest = await client.request("sessions.readPersistedEvents", { sessionId, cursor });
    expect([...all.slice(0, 3), ...rest.events.map(({ id }: Json) => id)]).toEqual(all);
    expect(rest.hasMore).toBe(false);
    const second = rest.events.find(({ data }: Json) => data.content === "second");
    await client.request("session.history.truncate", { sessionId, eventId: second.id });
    const expired = { events: [], hasMore: false, cursorStatus: "expired" };
    for (const given of [cursor, "nonsense", "1/2/x", "9/1/"])
      expect(await client.request("sessions.readPersistedEvents", { sessionId, cursor: given })).toMatchObject(expired);
    expect((await client.refusal("sessions.readPersistedEvents", { sessionId: "missing" })).message).toContain("missing");
  });
});
