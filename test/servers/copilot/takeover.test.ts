import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { calling, type Json, Served, type TestClient } from "./wire-kit.ts";

const all: Served[] = [];

afterEach(async () => {
  for (const served of all.splice(0)) await served[Symbol.asyncDispose]();
});

/** Two runtimes that store their sessions in the same folder, each with a client. */
async function two(): Promise<{ first: TestClient; second: TestClient; runtimes: readonly Served[] }> {
  const one = await Served.start();
  const sessionsDirectory = join(one.folder, ".home", "sessions");
  const other = await Served.start({ server: { sessionsDirectory }, host: { sessionsDirectory } });
  all.push(one, other);
  return { first: await one.connect(), second: await other.connect(), runtimes: [one, other] };
}

test("a second runtime resumes an idle session of the first, whose clients are notified that it ended there", async () => {
  const { first, second, runtimes } = await two();
  const sessionId = await first.create({ model: "m" });
  runtimes[0]!.says("One.");
  await first.say(sessionId, "first");
  await second.request("session.resume", { sessionId, model: "m", requestPermission: true });
  const warning = await first.event("session.warning", ({ data }) => data["warningType"] === "session_taken_over");
  expect(warning).toMatchObject({ ephemeral: true, data: { message: expect.stringContaining(sessionId) } });
  await first.event("session.shutdown");
  expect((await first.refusal("session.send", { sessionId, prompt: "late" })).message).toContain(sessionId);
  runtimes[1]!.says("Two.");
  await second.say(sessionId, "second");
  expect(runtimes[1]!.asked.messages.map(({ content }: Json) => content).slice(1, 3)).toEqual(["first", "One."]);
  // And back, with all that was said.
  await first.request("session.resume", { sessionId, model: "m", requestPermission: true });
  const { events } = await first.request("session.getMessages", { sessionId });
  const said = events.filter(({ type }: Json) => type === "user.message").map(({ data }: Json) => data.content);
  expect(said).toEqual(["first", "second"]);
});

test("a session whose turn is running is not taken over", async () => {
  const { first, second, runtimes } = await two();
  const sessionId = await first.create({
    model: "m",
    tools: [{ name: "get_time", description: "The time.", skipPermission: true }],
  });
  runtimes[0]!.says(calling("get_time", {}), "Done.");
  await first.request("session.send", { sessionId, prompt: "go" });
  const { data } = await first.event("external_tool.requested");
  const refusal = await second.refusal("session.resume", { sessionId, model: "m" });
  expect(refusal.message).toContain("A turn or an agent of it is running there");
  await first.request("session.tools.handlePendingToolCall", { sessionId, requestId: data["requestId"], result: "ok" });
  await first.event("session.idle");
  await second.request("session.resume", { sessionId, model: "m", requestPermission: true });
});
