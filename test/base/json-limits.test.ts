import fc from "fast-check";
import { expect, test } from "vitest";
import { hasTooManyValues, isNestedTooDeep, JsonValueCount, maxJsonValues } from "../../src/base/json.ts";

const nested = (depth: number, open = "[", close = "]"): unknown => JSON.parse(`${open.repeat(depth)}1${close.repeat(depth)}`);

test.each([
  ["lists", "[", "]"],
  ["objects", '{"a":', "}"],
  ["both", '[{"a":', "}]"],
])("data is nested too deeply by its %s", (_, open, close) => {
  const levels = open === '[{"a":' ? 2 : 1;
  expect(isNestedTooDeep(nested(128 / levels, open, close))).toBe(false);
  expect(isNestedTooDeep(nested(129, open, close))).toBe(true);
  expect(isNestedTooDeep(nested(300_000 / levels, open, close))).toBe(true);
});

test("data that contains itself is nested too deeply", () => {
  const cyclic: Record<string, unknown> = { a: 1 };
  cyclic["self"] = [cyclic];
  expect(isNestedTooDeep(cyclic)).toBe(true);
});

/** Commas and openings outside of texts, and one. */
function countOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const members = Object.values(value);
  return 1 + Math.max(0, members.length - 1) + members.reduce<number>((sum, member) => sum + countOf(member), 0);
}

test("the values of a text are counted, in whatever pieces it comes", () => {
  const tricky = fc.constantFrom('"', "\\", ',"', "[{", '\\"', "\\\\");
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), fc.array(tricky)), fc.array(fc.nat(40)), (value, cuts) => {
      const text = Buffer.from(JSON.stringify(value));
      const count = new JsonValueCount();
      let from = 0;
      for (const cut of cuts) {
        count.add(text.subarray(from, from + cut));
        from += cut;
      }
      count.add(text.subarray(from));
      expect(count.count).toBe(1 + countOf(value));
    }),
  );
});

test("a text with more values than may be parsed is distinguished from a long text", () => {
  expect(
    hasTooManyValues(
      Buffer.from(
        `[${Array(maxJsonValues + 1)
          .fill("1")
          .join()}]`,
      ),
    ),
  ).toBe(true);
  expect(
    hasTooManyValues(
      Buffer.from(
        `[${Array(maxJsonValues - 2)
          .fill("1")
          .join()}]`,
      ),
    ),
  ).toBe(false);
  expect(hasTooManyValues(Buffer.from(JSON.stringify("a,[{".repeat(maxJsonValues))))).toBe(false);
});
