import { expect, test } from "vitest";
import { countCalls } from "../../src/skills/load/calls-in-flight.ts";

test("calls in flight end when the last call has settled, whatever its outcome", async () => {
  const calls = countCalls();
  let finish: (value: string) => void = () => {};
  let fail: (error: Error) => void = () => {};
  const slow = calls.track(
    () =>
      new Promise<string>((resolve) => {
        finish = resolve;
      }),
  )();
  const failing = calls.track(
    () =>
      new Promise<string>((_resolve, reject) => {
        fail = reject;
      }),
  )();
  const seen: string[] = [];
  const ended = calls.ended().then(() => seen.push("ended"));
  fail(new Error("bad"));
  await expect(failing).rejects.toThrow("bad");
  seen.push("one left");
  finish("done");
  await expect(slow).resolves.toBe("done");
  await ended;
  expect(seen).toEqual(["one left", "ended"]);
});

test("a synchronous call is counted only while it runs, and its error is rethrown", async () => {
  const calls = countCalls();
  expect(calls.track((n: number) => n + 1)(1)).toBe(2);
  expect(() =>
    calls.track(() => {
      throw new Error("sync");
    })(),
  ).toThrow("sync");
  await calls.ended();
});
