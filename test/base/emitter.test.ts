import { expect, test } from "vitest";
import { Emitter, SnapshotStore } from "../../src/base/emitter.ts";

test("calls listeners in order, and one that throws is reported without stopping the rest", () => {
  const errors: string[] = [];
  const emitter = new Emitter<{ change: number }>((error, type) => errors.push(`${String(type)}: ${error.message}`));
  const seen: string[] = [];
  emitter.on("change", (n) => seen.push(`a${n}`));
  emitter.on("change", () => {
    throw new Error("bad listener");
  });
  emitter.on("change", (n) => seen.push(`b${n}`));
  emitter.emit("change", 1);
  expect({ seen, errors }).toEqual({ seen: ["a1", "b1"], errors: ["change: bad listener"] });
});

test("one function added twice has two lives, and a listener may leave while it is called", () => {
  const emitter = new Emitter<{ x: string }>(() => {});
  const seen: string[] = [];
  const listener = (value: string) => void seen.push(value);
  const first = emitter.on("x", listener);
  const second = emitter.on("x", (value) => {
    listener(value);
    second[Symbol.dispose]();
  });
  emitter.emit("x", "one");
  first[Symbol.dispose]();
  emitter.emit("x", "two");
  expect({ seen, has: emitter.has("x") }).toEqual({ seen: ["one", "one"], has: false });
});

test("a snapshot store notifies subscribers after it holds the new snapshot, and only of changes", () => {
  const store = new SnapshotStore<readonly string[]>(["a"], () => {});
  const seen: unknown[] = [];
  using _subscription = store.subscribe((snapshot) => seen.push([snapshot, snapshot === store.current]));
  const next = ["b"];
  store.publish(next);
  store.publish(next);
  expect(seen).toEqual([[["b"], true]]);
});
