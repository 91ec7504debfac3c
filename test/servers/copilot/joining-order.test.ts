import { afterEach, expect, test, vi } from "vitest";
import { Served } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

test.each([
  ["session.log", { message: "Said at once." }, "session.info"],
  ["session.name.set", { name: "Named at once" }, "session.title_changed"],
  ["session.mode.set", { mode: "plan" }, "session.mode_changed"],
])("a client that has just joined gets the events of %s before its answer", async (method, params, type) => {
  served = await Served.start();
  const owner = await served.connect();
  const sessionId = await owner.create({ model: "m" });
  const session = served.server.sessions.get(sessionId)!;
  const past = session.past.bind(session);
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  // Reading a long conversation, or one that lies at a client, takes time.
  vi.spyOn(session, "past").mockImplementation(async () => {
    await held;
    return past();
  });
  const second = await served.connect();
  await second.request("session.resume", { sessionId });
  const before = owner.count(type);
  let isAnswered = false;
  const answered = second.request(method, { sessionId, ...params }).then(() => {
    isAnswered = true;
    return second.count(type);
  });
  await owner.eventually(() => (owner.count(type) > before ? true : undefined));
  // The other client's own requests are not held back.
  await owner.request("session.metadata.activity", { sessionId });
  expect(isAnswered).toBe(false);
  release();
  expect(await answered).toBe(1);
});
