import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson, sha256 } from "../../src/base/canonical-json.ts";

test("key order and white space do not change the text", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const shuffled = JSON.parse(JSON.stringify(value), (_key, item) =>
        item && typeof item === "object" && !Array.isArray(item) ? Object.fromEntries(Object.entries(item).reverse()) : item,
      );
      expect(canonicalJson(shuffled)).toBe(canonicalJson(value));
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("refuses cyclic data and what JSON cannot hold", () => {
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  expect(() => canonicalJson(cyclic)).toThrow(expect.objectContaining({ code: "JSON_TOO_DEEP" }));
  expect(() => canonicalJson(undefined)).toThrow(TypeError);
});

test("refuses what is nested too deeply, at the same depth everywhere, and never overflows the stack", () => {
  const nested = (depth: number): unknown => JSON.parse(`${"[".repeat(depth)}1${"]".repeat(depth)}`);
  expect(canonicalJson(nested(256))).toHaveLength(513);
  for (const depth of [257, 4_000, 300_000])
    expect(() => canonicalJson(nested(depth))).toThrow(expect.objectContaining({ code: "JSON_TOO_DEEP" }));
});

test("a digest hashes the UTF-8 bytes of a text", () => {
  expect(sha256("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});
