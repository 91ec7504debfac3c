import fc from "fast-check";
import { expect, test } from "vitest";
import { parseFullYamlMap, readPlainYaml } from "../../../src/formats/text/parse-yaml.ts";
import { generated } from "../../rounds.ts";

// What the texts of front matter are made of, and what is special in YAML.
const keys = ["name", "description", "a", "a-b", "A_1", "metadata", "true", "null", "x", "__proto__", "1a", "é"];
const values = [
  ..."word|two words|C#|a #b|a: b|a:|http://x.y|Tom's|a\"b|true|True|null|~|no|1|01|1.0|1.10|1.2.3|0x1f|1e3|.inf|-1|+1|2026-01-25|1:30".split(
    "|",
  ),
  ...[
    '"quoted"',
    '"a\\"b"',
    '"a\\n"',
    '"\\u0041"',
    '"a',
    "'it''s'",
    "'a'b'",
    "''",
    '""',
    "[a, b]",
    "{a: b}",
    "&a b",
    "*a",
    "!tag x",
    "@x",
    "`x`",
    "%x",
    "? x",
  ],
  ...[">", ">-", "|", "|-", "|+", ">2", "- x", "-", "--- x", "é", "\u00a0x", "x\u00a0", "x\ty", "\ufeffx", "🙂", "constructor", "x  "],
];
const indents = ["", " ", "  ", "    ", "\t"];
const lineText = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(
        fc.constantFrom(...indents),
        fc.constantFrom(...keys),
        fc.constantFrom(": ", ":  ", ":", " : "),
        fc.constantFrom("", ...values),
      )
      .map((parts) => parts.join("")),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...indents), fc.constantFrom("- ", "-", "-  "), fc.constantFrom("", ...values))
      .map((parts) => parts.join("")),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constantFrom(...indents), fc.constantFrom("", ...values)).map((parts) => parts.join("")) },
  { weight: 1, arbitrary: fc.constantFrom("", "", "# comment", "---", "...", " ", "\r") },
);
// Texts in which the plain form is likely.
const plainLine = fc.oneof(
  fc
    .tuple(
      fc.constantFrom("name", "a", "b-c", "d_e", "f"),
      fc.constantFrom("word", "two words", "'it''s'", '"q\\"q"', "1.2.3", "12", "true", "x y: z"),
    )
    .map(([key, value]) => `${key}: ${value}`),
  fc
    .tuple(
      fc.constantFrom("g", "h"),
      fc.array(fc.constantFrom("x: y", "z: 1", "- p", "- q r", "more", ""), { maxLength: 3 }),
      fc.constantFrom("", "  "),
    )
    .map(([key, below, indent]) => [`${key}:`, ...below.map((text) => indent + text)].join("\n")),
  fc
    .tuple(
      fc.constantFrom("i", "j"),
      fc.constantFrom(">", ">-", "|", "|-"),
      fc.array(fc.constantFrom("word", "two words", "", "- x", "k: v", " more"), { minLength: 1, maxLength: 4 }),
    )
    .map(([key, style, texts]) => [`${key}: ${style}`, ...texts.map((text) => (text === "" ? "" : `  ${text}`))].join("\n")),
);
const documents = fc
  .oneof(fc.array(lineText, { maxLength: 6 }), fc.array(plainLine, { minLength: 1, maxLength: 5 }))
  .map((lines) => lines.join("\n"));

test("what is read without the YAML parser is what the parser reads", () => {
  let read = 0;
  fc.assert(
    fc.property(documents, fc.constantFrom("", "\n", "\n\n"), (text, end) => {
      const plain = readPlainYaml(text + end);
      if (plain === undefined) return;
      read++;
      expect(plain).toEqual(parseFullYamlMap(text + end));
    }),
    { numRuns: generated(3_000, 200_000) },
  );
  expect(read).toBeGreaterThan(300);
});

test.each([
  ["texts", 'name: a-b\ndescription: "Says: hello"\nlicense: MIT\n'],
  [
    "a mapping and lists",
    "name: a\nmetadata:\n  author: Ada L\n  version: \"1.0\"\n  count: 3\ntags:\n  - one\n  - 'it''s'\nmore:\n- two\n",
  ],
  [
    "folded and literal texts",
    "name: a\ndescription: >-\n  One line,\n  and another.\n\n  A paragraph.\nnotes: |\n  - a\n  - b: c\nend: true\n",
  ],
  ["a version and figures", "name: a\nversion: 1.2.3\nsize: 1.50\nmany: 12\n"],
])("front matter of the usual form is read without the parser: %s", (_form, text) => {
  expect(readPlainYaml(text)).toEqual(parseFullYamlMap(text));
  expect(readPlainYaml(text)).toBeDefined();
});

test.each([
  "a: [b]",
  "a: b: c",
  "a: b\n c",
  "a: &x b",
  "a: b # c",
  "a: null",
  "a: ~",
  "a:",
  "true: a",
  "a: b\na: c",
  "- a",
  "a: |2\n    b",
  'a: "\\x41"',
  "a\u0085: b",
  "a: \ud800",
])("the parser decides about %j", (text) => {
  expect(readPlainYaml(text)).toBeUndefined();
});
