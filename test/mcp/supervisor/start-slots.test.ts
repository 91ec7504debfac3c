import { expect, test } from "vitest";
import { StartSlots } from "../../../src/mcp/supervisor/start-slots.ts";
import { ManualClock, settled } from "../manual-clock.ts";
import { neverAborted } from "../supervisor-kit.ts";

test("a slot goes to the caller that waits longest, and one that gives up leaves the queue", async () => {
  const slots = new StartSlots(1, 1_000, new ManualClock());
  const order: string[] = [];
  const first = await slots.take(neverAborted);
  const controller = new AbortController();
  const impatient = slots.take(controller.signal);
  const second = slots.take(neverAborted).then((place) => {
    order.push("second");
    return place;
  });
  const third = slots.take(neverAborted).then(() => void order.push("third"));
  controller.abort(new Error("enough"));
  await expect(impatient).rejects.toThrow("enough");
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  await settled();
  expect(order).toEqual(["second"]);
  (await second)[Symbol.dispose]();
  await third;
  expect(order).toEqual(["second", "third"]);
});

test("a place that was given up in time is free again, once", async () => {
  const clock = new ManualClock();
  const slots = new StartSlots(1, 1_000, clock);
  const slow = await slots.take(neverAborted);
  await clock.pass(1_000);
  await slots.take(neverAborted);
  slow[Symbol.dispose]();
  let isTaken = false;
  void slots.take(neverAborted).then(() => {
    isTaken = true;
  });
  await settled();
  expect(isTaken).toBe(false);
});

test("who comes with a signal that has fired gets no place, and takes none from others", async () => {
  const slots = new StartSlots(1, 1_000, new ManualClock());
  await expect(slots.take(AbortSignal.abort(new Error("before")))).rejects.toThrow("before");
  await slots.take(neverAborted);
});
