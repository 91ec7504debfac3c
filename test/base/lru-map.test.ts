import { expect, test } from "vitest";
import { LruMap } from "../../src/base/lru-map.ts";

test("drops the entry that was not used for the longest time", () => {
  const map = new LruMap<string, number>(2);
  map.set("a", 1);
  map.set("b", 2);
  expect(map.get("a")).toBe(1);
  map.set("c", 3);
  expect([map.get("a"), map.get("b"), map.get("c")]).toEqual([1, undefined, 3]);
});

test("a value that is set again counts as used", () => {
  const map = new LruMap<string, number>(2);
  map.set("a", 1);
  map.set("b", 2);
  map.set("a", 3);
  map.set("c", 4);
  expect([map.get("a"), map.get("b")]).toEqual([3, undefined]);
});

test("creates a missing value once and counts each request as a use", () => {
  const map = new LruMap<string, number>(2);
  let created = 0;
  const request = (key: string): number => map.getOrCreate(key, () => ++created);
  expect([request("a"), request("b"), request("a"), request("c"), request("a"), request("b")]).toEqual([1, 2, 1, 3, 1, 4]);
});

test("keeps a value that is undefined out of the way of others", () => {
  const map = new LruMap<string, string | undefined>(1);
  expect(map.getOrCreate("a", () => undefined)).toBeUndefined();
  expect(map.getOrCreate("a", () => "later")).toBe("later");
  map.clear();
  expect(map.get("a")).toBeUndefined();
});
