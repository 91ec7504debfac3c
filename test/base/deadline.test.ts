import { expect, test } from "vitest";
import { withinDeadline } from "../../src/base/deadline.ts";

const never = new Promise<never>(() => {});
const expired = () => new Error("too late");

test("gives what the work gives, and rejects with what it rejects with", async () => {
  const { signal } = new AbortController();
  await expect(withinDeadline(Promise.resolve(1), 1000, signal, expired)).resolves.toBe(1);
  await expect(withinDeadline(Promise.reject(new Error("bad")), 1000, signal, expired)).rejects.toThrow("bad");
});

test("rejects when the time is over, and when the signal fires before or during the wait", async () => {
  const controller = new AbortController();
  await expect(withinDeadline(never, 1, controller.signal, expired)).rejects.toThrow("too late");
  const waiting = withinDeadline(never, 10_000, controller.signal, expired);
  controller.abort(new Error("closed"));
  await expect(waiting).rejects.toThrow("closed");
  await expect(withinDeadline(never, 10_000, controller.signal, expired)).rejects.toThrow("closed");
});
