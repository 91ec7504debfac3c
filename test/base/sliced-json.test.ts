import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonTooDeep, SlicedJson } from "../../src/base/sliced-json.ts";
import { rounds } from "../rounds.ts";

/** What it comes to, as a text: keys in their order, `__proto__` among them. */
function outcomeOf(parse: () => unknown): string {
  try {
    return JSON.stringify(parse());
  } catch (error) {
    return (error as Error).name;
  }
}

function parseInSlices(text: string, most: number, perSlice = 1): unknown {
  const json = new SlicedJson(text, { most });
  while (!json.advance(perSlice));
  return json.value;
}

const key = fc.constantFrom("a", "b", "__proto__", "1", 'q"', "\\", "é", "");
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom<unknown>(null, true, 0, -0, 1.5e300, "", "]", '"', "\\", '\\"', ",", "{", "😀", "x".repeat(200)),
    fc.array(tie("value"), { maxLength: 6 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 5 }),
  ),
})).value;

/** With keys more than once, and blanks. */
function write(value: unknown, blank: string): string {
  if (!Array.isArray(value)) return JSON.stringify(value);
  const isObject = value.length > 0 && value.every((item) => Array.isArray(item) && item.length === 2 && typeof item[0] === "string");
  const parts = value.map((item) =>
    isObject ? `${blank}${JSON.stringify(item[0])}${blank}:${blank}${write(item[1], blank)}` : `${blank}${write(item, blank)}${blank}`,
  );
  return isObject ? `{${parts.join(`${blank},`)}${blank}}` : `[${parts.join(",")}${blank}]`;
}

describe("JSON that is parsed in slices", () => {
  test("is what JSON.parse makes of it", () => {
    fc.assert(
      fc.property(json, fc.constantFrom("", " ", "\n\t\r "), fc.integer({ min: 1, max: 12 }), (value, blank, most) => {
        const text = blank + write(value, blank) + blank;
        expect(outcomeOf(() => parseInSlices(text, most))).toBe(outcomeOf(() => JSON.parse(text)));
      }),
      { numRuns: rounds(300, 2_000) },
    );
  });

  test("is refused where JSON.parse refuses it", () => {
    const fragment = fc.constantFrom(...'[]{},:"\\1 ', "a", "true", "nul", "1e", "-", '"a":', "\u00a0", "\u0001", "//", "'");
    const broken = fc.tuple(json, fc.nat(1_000), fc.nat(3), fragment).map(([value, at, removed, inserted]) => {
      const text = write(value, "");
      const place = at % (text.length + 1);
      return text.slice(0, place) + inserted + text.slice(place + removed);
    });
    fc.assert(
      fc.property(
        fc.oneof(
          broken,
          fc.array(fragment).map((all) => all.join("")),
        ),
        fc.integer({ min: 1, max: 12 }),
        (text, most) => {
          expect(outcomeOf(() => parseInSlices(text, most))).toBe(outcomeOf(() => JSON.parse(text)));
        },
      ),
      { numRuns: rounds(800, 5_000) },
    );
  });

  test.each([
    ["records", (count: number) => JSON.stringify(Array.from({ length: count }, (_, id) => ({ id, tags: ["x"] })))],
    ["members", (count: number) => JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, id) => [`k${id}`, id])))],
    ["lists in each other", (count: number) => `${`[${"1,".repeat(count / 100)}`.repeat(100)}1${"]".repeat(100)}`],
    [
      "long texts in lists in each other",
      (count: number) => `${"[".repeat(100)}${JSON.stringify('"'.repeat(count * 10))}${"]".repeat(100)}`,
    ],
  ])("twice as many %s take twice as many slices", (_what, textOf) => {
    const slicesOf = (count: number): number => {
      const parse = new SlicedJson(textOf(count));
      let slices = 1;
      while (!parse.advance(1_000)) slices++;
      return slices;
    };
    const [once, twice] = [slicesOf(100_000), slicesOf(200_000)];
    expect(once).toBeGreaterThan(10);
    expect(twice / once).toBeLessThan(2.2);
  });

  test.each([
    ["lists", 1_000_000, "[", "]"],
    ["objects", 1_000_000, '{"a":', "}"],
    ["lists behind many values", 129, `[${"1,".repeat(3_000)}`, "]"],
  ])("is refused for its depth: %s", (_what, depth, open, close) => {
    expect(() => parseInSlices(`${open.repeat(depth)}1${close.repeat(depth)}`, 2_000, 5_000)).toThrow(JsonTooDeep);
  });

  test("may be nested as deep as messages may be", () => {
    const text = `${`[${"1,".repeat(50)}`.repeat(128)}1${"]".repeat(128)}`;
    expect(JSON.stringify(parseInSlices(text, 100))).toBe(text);
  });
});
