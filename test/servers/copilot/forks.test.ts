import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { Disk } from "./client-disk.ts";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

const texts = (): readonly string[] =>
  served.asked.messages.filter(({ role }: Json) => role === "user").map(({ content }: Json) => content);

async function userEvents(client: TestClient, sessionId: string): Promise<Json[]> {
  const { events } = await client.request("session.getMessages", { sessionId });
  return events.filter(({ type }: Json) => type === "user.message");
}

test("a client forks a session, up to an event or as a whole, and resumes the fork", async () => {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m" });
  served.says("One.", "Two.", "Three.", "Four.");
  await client.say(sessionId, "first");
  await client.say(sessionId, "second");
  await client.request("session.workspaces.createFile", { sessionId, path: "a.txt", content: "kept" });
  const second = (await userEvents(client, sessionId))[1];

  const part = await client.request("sessions.fork", { sessionId, toEventId: second.id, name: "A part" });
  expect(part).toEqual({ sessionId: expect.any(String), name: "A part" });
  await client.eventually(() => client.lifecycle.find((one) => one.type === "session.created" && one.sessionId === part.sessionId));
  await client.request("session.resume", { sessionId: part.sessionId, model: "m", requestPermission: true });
  expect(await client.request("session.workspaces.readFile", { sessionId: part.sessionId, path: "a.txt" })).toEqual({ content: "kept" });
  expect(await client.request("session.name.get", { sessionId: part.sessionId })).toEqual({ name: "A part" });
  await client.say(part.sessionId, "instead");
  expect(texts()).toEqual(["first", expect.stringContaining("instead")]);

  const whole = await client.request("sessions.fork", { sessionId });
  expect(whole).toEqual({ sessionId: expect.any(String) });
  await client.request("session.resume", { sessionId: whole.sessionId, model: "m", requestPermission: true });
  await client.say(whole.sessionId, "third");
  expect(texts()).toEqual(["first", "second", expect.stringContaining("third")]);
  expect((await userEvents(client, sessionId)).map(({ data }) => data.content)).toEqual(["first", "second"]);
});

test("forks are refused with the reason", async () => {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m" });
  expect((await client.refusal("sessions.fork", { sessionId: "missing" })).message).toContain("missing");
  expect((await client.refusal("sessions.fork", {})).message).toContain("sessionId");
  expect((await client.refusal("sessions.fork", { sessionId, toEventId: "nothing" })).message).toContain("no such event");
  expect((await client.refusal("sessions.fork", { sessionId, name: "  " })).message).toContain("name");
});

test("a session that its client stores is forked at the client", async () => {
  served = await Served.start();
  const disk = new Disk();
  const client = await served.connect();
  disk.serve(client);
  await client.request("sessionFs.setProvider", { initialCwd: served.folder, sessionStatePath: "/state", conventions: "posix" });
  const sessionId = await client.create({ model: "m" });
  served.says("One.", "Two.");
  await client.say(sessionId, "first");
  await client.request("session.workspaces.createFile", { sessionId, path: "deep/a.txt", content: "kept" });
  await client.request("session.plan.update", { sessionId, content: "# Plan" });
  const fork = await client.request("sessions.fork", { sessionId });
  expect(disk.files.get(`${fork.sessionId}:/state/files/deep/a.txt`)).toBe("kept");
  expect(disk.files.get(`${fork.sessionId}:/state/plan.md`)).toBe("# Plan");
  await client.request("session.resume", { sessionId: fork.sessionId, model: "m", requestPermission: true });
  await client.say(fork.sessionId, "second");
  expect(texts()).toEqual(["first", expect.stringContaining("second")]);
  expect(existsSync(join(served.folder, ".home", "sessions", fork.sessionId, "events.jsonl"))).toBe(false);
});
