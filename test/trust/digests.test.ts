import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { digestOf, isDigest } from "../../src/trust/folder-digests.ts";

test("equal data has one digest, whatever the order of its keys", () => {
  expect(digestOf({ a: 1, b: [{ d: 2, c: 3 }] })).toBe(digestOf({ b: [{ c: 3, d: 2 }], a: 1 }));
  expect(digestOf({})).toBe("sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
});

test("two values have one digest only if they are the same JSON", () => {
  const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);
  fc.assert(
    fc.property(json, json, (one, other) => {
      expect(digestOf(one) === digestOf(other)).toBe(isDeepStrictEqual(one, other));
      expect(digestOf(structuredClone(one))).toBe(digestOf(one));
    }),
    { numRuns: 300 },
  );
  expect(digestOf(["a", "b"])).not.toBe(digestOf(["b", "a"]));
  expect(digestOf({ a: "1" })).not.toBe(digestOf({ a: 1 }));
});

test("a value that JSON would lose or change has no digest", () => {
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  const deep = JSON.parse("[".repeat(5000) + "]".repeat(5000)) as unknown;
  for (const lost of [
    cycle,
    deep,
    undefined,
    { big: 1n },
    [undefined],
    { f() {} },
    Symbol("x"),
    Number.NaN,
    [Infinity],
    new Map([[1, 2]]),
    new Date(0),
  ]) {
    expect(() => digestOf(lost)).toThrow(TypeError);
  }
  expect(digestOf({ a: 1, b: undefined })).toBe(digestOf({ a: 1 }));
  expect(digestOf(Object.assign(Object.create(null), { a: 1 }))).toBe(digestOf({ a: 1 }));
});

test("a digest is recognised by its form", () => {
  expect(isDigest(digestOf(1))).toBe(true);
  for (const other of ["", "sha256:", `sha256:${"A".repeat(64)}`, `${digestOf(1)}0`, "a".repeat(64), 1, undefined]) {
    expect(isDigest(other)).toBe(false);
  }
});
