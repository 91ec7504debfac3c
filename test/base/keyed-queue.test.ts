import { expect, test } from "vitest";
import { KeyedQueue } from "../../src/base/keyed-queue.ts";

const gate = () => {
  let open: () => void = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, passed };
};

test("runs one job at a time in a lane and keeps only the latest of those that wait", async () => {
  const queue = new KeyedQueue(() => {});
  const first = gate();
  const ran: string[] = [];
  queue.add("a", async () => {
    await first.passed;
    ran.push("first");
  });
  queue.add("a", async () => {
    ran.push("dropped");
  });
  queue.add("a", async () => {
    ran.push("latest");
  });
  queue.add("b", async () => {
    ran.push("other lane");
  });
  first.open();
  await queue.idle();
  expect(ran).toEqual(["other lane", "first", "latest"]);
});

test("aborts the signal of a job that a newer one replaces, and not of the newer one", async () => {
  const queue = new KeyedQueue(() => {});
  const signals: AbortSignal[] = [];
  const first = gate();
  queue.add("a", async (signal) => {
    signals.push(signal);
    await first.passed;
  });
  queue.add("a", async (signal) => {
    signals.push(signal);
  });
  expect(signals[0]?.aborted).toBe(true);
  first.open();
  await queue.idle();
  expect(signals[1]?.aborted).toBe(false);
});

test("reports the error of a job and continues with the lane", async () => {
  const errors: string[] = [];
  const queue = new KeyedQueue((error, key) => errors.push(`${key}: ${error.message}`));
  const ran: string[] = [];
  queue.add("a", async () => {
    throw new Error("bad");
  });
  queue.add("a", async () => {
    ran.push("next");
  });
  await queue.idle();
  expect({ errors, ran }).toEqual({ errors: ["a: bad"], ran: ["next"] });
});

test("close drops what waits, aborts what runs, waits for it, and refuses more", async () => {
  const queue = new KeyedQueue(() => {});
  const ran: string[] = [];
  queue.add("a", async (signal) => {
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    ran.push("ended");
  });
  queue.add("b", async () => {
    ran.push("b");
  });
  queue.add("b", async () => {
    ran.push("never");
  });
  await queue.close();
  expect(ran).toEqual(["b", "ended"]);
  expect(() => queue.add("a", async () => {})).toThrow(expect.objectContaining({ code: "QUEUE_CLOSED" }));
});
