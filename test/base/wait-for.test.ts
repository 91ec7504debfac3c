import { expect, test } from "vitest";
import { onAbort, settlesWithin, waitFor, whenAborted } from "../../src/base/wait.ts";

const never: Promise<never> = new Promise(() => {});
const expired = (): Error => new Error("too late");

test("waits for work that settles within the limits", async () => {
  const { signal } = new AbortController();
  await expect(waitFor(Promise.resolve(1), { milliseconds: 1000, signal, expired })).resolves.toBe(1);
  await expect(waitFor(Promise.reject(new Error("bad")), { milliseconds: 1000, signal, expired })).rejects.toThrow("bad");
  await expect(waitFor(Promise.resolve(1), {})).resolves.toBe(1);
});

test("gives up at the deadline and when the signal fires, before or meanwhile", async () => {
  const controller = new AbortController();
  await expect(waitFor(never, { milliseconds: 1, signal: controller.signal, expired })).rejects.toThrow("too late");
  const waiting = waitFor(never, { milliseconds: 10_000, signal: controller.signal, expired });
  controller.abort(new Error("closed"));
  await expect(waiting).rejects.toThrow("closed");
  await expect(waitFor(never, { signal: controller.signal })).rejects.toThrow("closed");
});

test("does not count the time of work in this process, where only waiting counts", async () => {
  const work = async (): Promise<string> => {
    for (let turn = 0; turn < 20; turn++) {
      for (const end = performance.now() + 50; performance.now() < end; );
      await new Promise(setImmediate);
    }
    return "done";
  };
  await expect(waitFor(work(), { milliseconds: 400, expired })).rejects.toThrow("too late");
  await expect(waitFor(work(), { milliseconds: 400, countsWaiting: true, expired })).resolves.toBe("done");
  await expect(waitFor(never, { milliseconds: 30, countsWaiting: true, expired })).rejects.toThrow("too late");
});

test("ignores the failure of work after its wait has ended", async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  let fail = (_reason: Error): void => {};
  const work = new Promise<never>((_resolve, reject) => {
    fail = reject;
  });
  await expect(waitFor(work, { milliseconds: 1, expired })).rejects.toThrow("too late");
  fail(new Error("late"));
  await new Promise(setImmediate);
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});

test("returns whether work settles in time, fulfilled or rejected", async () => {
  expect(await settlesWithin(Promise.resolve(), 10_000)).toBe(true);
  expect(await settlesWithin(Promise.reject(new Error("bad")), 10_000)).toBe(true);
  expect(await settlesWithin(never, 1)).toBe(false);
});

test("leaves no listener on a signal that a thousand waits hung on", async () => {
  const controller = new AbortController();
  for (let count = 0; count < 1_000; count++) await waitFor(Promise.resolve(), { signal: controller.signal });
  let runs = 0;
  onAbort(controller.signal, () => runs++)[Symbol.dispose]();
  const aborted = whenAborted(controller.signal);
  controller.abort();
  await aborted;
  onAbort(controller.signal, () => runs++);
  expect(runs).toBe(1);
});
