import fc from "fast-check";
import { expect, test } from "vitest";
import { positionAt } from "../../../src/base/diagnostic.ts";
import { parseJson } from "../../../src/formats/text/json-document.ts";
import { rounds } from "../../rounds.ts";

const faultAt = (text: string) => {
  const { document, faults } = parseJson(text);
  expect(document).toBeUndefined();
  expect(faults).toHaveLength(1);
  const { line, column } = positionAt(text, faults[0]!.offset);
  return `${line}:${column} ${faults[0]!.message}`;
};

test.each([
  ["an empty file", " \n", /^2:1 The file is empty/],
  ["a comma before a brace", '{\n  "a": 1,\n}', /^2:9 JSON does not allow a comma before }/],
  ["a comma before a bracket", "[1, 2,]", /^1:6 JSON does not allow a comma before \]/],
  ["two commas", "[1,,2]", /^1:4 Expected a value, but found a comma/],
  ["a missing comma", '{\n  "a": 1\n  "b": 2\n}', /^3:3 A comma or } is missing/],
  ["a line comment", '{\n  // note\n  "a": 1\n}', /^2:3 JSON does not allow comments/],
  ["a block comment", '{"a": /* note */ 1}', /^1:7 JSON does not allow comments/],
  ["a hash comment", "# note\n{}", /^1:1 JSON does not allow comments/],
  ["single quotes", "{'a': 1}", /^1:2 Strings in JSON need straight double quotes/],
  ["curly quotes", "{“a”: 1}", /^1:2 Strings in JSON need straight double quotes/],
  ["a bare key", "{name: 1}", /^1:2 The key name needs double quotes: "name"/],
  ["a bare word", '{"a": yes}', /^1:7 yes is not a JSON value/],
  ["a word of Python", "[True]", /^1:2 True is not a JSON value/],
  ["an unclosed object", '{\n  "a": {"b": 1}\n', /^1:1 The file ends before the } /],
  ["an unclosed list", '{"a": [1', /^1:7 The file ends before the ] /],
  ["unclosed text", '{"a": "b}', /^1:7 The string that begins here has no closing quote/],
  ["a line break in text", '{"a": "b\n"}', /^1:9 A string cannot contain a line break/],
  ["a tab in text", '{"a": "b\tc"}', /^1:9 A string cannot contain control characters/],
  ["a wrong escape", '{"a": "C:\\x"}', /^1:10 This is not a valid JSON escape/],
  ["a number with a leading zero", '{"a": 012}', /^1:7 This is not a valid JSON number/],
  ["a number that begins with a point", '{"a": .5}', /^1:7 Expected a value, but found "\."/],
  ["a lone minus", "[-]", /^1:2 This is not a valid JSON number/],
  ["a missing colon", '{"a" 1}', /^1:6 A colon is missing after the key "a"/],
  ["a missing value", '{"a": }', /^1:7 Expected a value, but found "}"/],
  ["text after the end", '{}\n{"b": 1}', /^2:1 There is more text after the end/],
  ["a wrong bracket", '{"a": [1}', /^1:9 A comma or \] is missing/],
  ["deep nesting", "[".repeat(100_000), /^1:129 The JSON is nested more than 128 levels/],
  ["a link that was stored as text", "../../shared/skill.json", /^1:1 Expected a value, but found "\."/],
])("a fault in JSON is reported with its place and remedy: %s", (_what, text, expected) => {
  expect(faultAt(text)).toMatch(expected);
});

test("accepts and refuses what JSON.parse does, and gives the same value", () => {
  const seed = fc.json({ maxDepth: 4 }).filter((text) => !text.includes("__proto__"));
  const cut = fc.tuple(seed, fc.nat(), fc.nat(3), fc.constantFrom("", ",", "}", "]", '"', "\\", "0", "-", " ", "e1", "\n", "null"));
  const mutated = cut.map(
    ([text, at, length, put]) => text.slice(0, at % (text.length + 1)) + put + text.slice((at % (text.length + 1)) + length),
  );
  fc.assert(
    fc.property(fc.oneof(seed, mutated), (text) => {
      const own = parseJson(text).document;
      let expected: unknown;
      try {
        expected = { value: JSON.parse(text) };
      } catch {
        // Then ours must refuse it too.
        expected = undefined;
      }
      expect(own && { value: own.value }).toEqual(expected);
    }),
    { numRuns: rounds(2_000, 10_000) },
  );
});

test("a JSON document gives the positions of members and elements", () => {
  const text = '{\n  "a": [\n    1,\n    {"b": 2}\n  ]\n}';
  const { document } = parseJson(text);
  const place = (path: (string | number)[]) => {
    const offset = document!.offsetOf(path);
    return offset === undefined ? undefined : positionAt(text, offset);
  };
  expect(place(["a"])).toEqual({ line: 2, column: 3 });
  expect(place(["a", 0])).toEqual({ line: 3, column: 5 });
  expect(place(["a", 1, "b"])).toEqual({ line: 4, column: 6 });
  expect(place(["a", 1, "c", "d"])).toEqual({ line: 4, column: 5 });
  expect(place(["a", 0, "toString"])).toEqual({ line: 3, column: 5 });
  expect(place(["constructor"])).toBeUndefined();
  expect(place([])).toBeUndefined();
});

test("takes the last of equal keys, leaves out __proto__, and says so", () => {
  const { document, faults } = parseJson('\uFEFF{"a": 1, "__proto__": {"x": 1}, "a": 2, "b": {"\\u005f_proto__": 3, "constructor": 4}}');
  expect(document?.value).toEqual({ a: 2, b: { constructor: 4 } });
  expect(faults.map(({ severity, code, offset }) => [severity, code, offset])).toEqual([
    ["warning", "JSON_KEY_REFUSED", 10],
    ["warning", "JSON_DUPLICATE_KEY", 33],
    ["warning", "JSON_KEY_REFUSED", 47],
  ]);
  expect(({} as { x?: number }).x).toBeUndefined();
});

// A comment takes a text to the reader that determines positions, which has to agree with the short way.
test("the value, the warnings and the positions of a text do not depend on a comment after it", () => {
  const key = fc.constantFrom("a", "b", "__proto__", "a:b", 'quote"', "back\\", "\u2028", "", "constructor");
  const text = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc
        .oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.string(), key, fc.boolean(), fc.constant(null))
        .map((v) => JSON.stringify(v)),
      fc.array(tie("value"), { maxLength: 3 }).map((items) => `[${items.join(" ,")}]`),
      fc
        .array(fc.tuple(key, tie("value")), { maxLength: 4 })
        .map((members) => `{\n${members.map(([k, v]) => `${JSON.stringify(k)} : ${v}`).join(",\n")} }`),
    ),
  })).value;
  const deep = fc
    .integer({ min: 120, max: 135 })
    .chain((depth) => fc.constantFrom("1", "[]", "{}").map((core) => "[".repeat(depth) + core + "]".repeat(depth)));
  fc.assert(
    fc.property(fc.oneof({ weight: 20, arbitrary: text }, deep), fc.constantFrom("", "\uFEFF", " "), (json, before) => {
      const [short, long] = [parseJson(before + json), parseJson(`${before}${json} //`, { comments: true })];
      expect(short.faults).toEqual(long.faults);
      expect(short.document?.value).toEqual(long.document?.value);
      for (const path of pathsOf(long.document?.value)) expect(short.document?.offsetOf(path)).toBe(long.document?.offsetOf(path));
    }),
    { numRuns: rounds(500, 20_000) },
  );
});

function pathsOf(value: unknown, path: readonly string[] = []): (string | number)[][] {
  if (typeof value !== "object" || value === null) return [[...path]];
  return [
    [...path],
    ...Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, Array.isArray(value) ? (Number(key) as never) : key])),
  ];
}
