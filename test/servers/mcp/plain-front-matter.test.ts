import { skillEntry } from "@modelcontextprotocol/server/ext/skills";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readPlainFrontMatter } from "../../../src/servers/mcp/handlers/plain-front-matter.ts";

/** The front matter that the SDK reads. Undefined: it refuses the document. */
async function readBySdk(document: string): Promise<unknown> {
  try {
    return (await skillEntry("helper", { "SKILL.md": document })).frontmatter;
  } catch {
    return undefined;
  }
}

const documentOf = (lines: readonly string[]): string => `---\n${lines.join("\n")}\n---\n\nText.\n`;

test.each([
  ["plain texts", ["name: helper", "description: Reads (all) pages, then writes them."]],
  ["a quoted text", ["name: helper", 'description: "Reads: pages # all"']],
  ["a text in single quotes", ["name: helper", "description: 'Use: it''s # ''all'''"]],
  ["empty texts", ["name: helper", "description: Reads.", "license: ''", 'x: ""']],
  ["other fields", ["name: helper", "description: Reads.", "license: MIT", "allowed-tools: Read, Write"]],
  ["letters of other scripts", ["name: helper", "description: Prüft Größen — 読む"]],
  ["numbers and truth values", ["name: helper", "description: Reads.", "version: 1.0", "level: 12", "eager: true", "release: 1.2.3"]],
  ["lists", ["name: helper", "description: Reads.", "tags:", "  - a b", '  - "c: d"', "  - 3", "others:", "- x", "license: MIT"]],
  ["escapes", ["name: helper", String.raw`description: "Reads \"all\",\nthen\twrites C:\\."`]],
  ["a map of texts in JSON", ["name: helper", "description: Reads.", 'metadata: {"author":"me, you","url":"https://x.y/#z"}']],
  ["words in brackets", ["name: helper", "description: Reads.", "allowed-tools: [Read, Write-All, x_y]"]],
  ["a map", ["name: helper", "description: Reads.", "metadata:", "  author: me", '  version: "1.0"', "license: MIT"]],
  ["a block of lines", ["name: helper", "description: |", "  Reads: pages.", "  - # all", "license: MIT"]],
  ["a block without its last line end", ["name: helper", "description: |-", "    Reads.", "    Writes."]],
  ["a folded block", ["name: helper", "description: >", "  Reads: pages", "  and 'writes'.", "license: MIT"]],
  ["a folded block without its line end", ["name: helper", "description: >-", "  Reads.", "  Writes."]],
  ["a text of several lines", ["name: helper", "description: Reads", "  pages and", "  writes.", "license: MIT"]],
  ["quotes inside a text", ["name: helper", 'description: It\'s "good" & 100% *bold* [x] {y}']],
])("front matter of %s is read as the SDK reads it", async (_title, lines) => {
  const read = readPlainFrontMatter(documentOf(lines), "helper");
  expect(read).toBeDefined();
  expect(read).toEqual(await readBySdk(documentOf(lines)));
});

test.each([
  ["no end", "---\nname: helper\ndescription: Reads."],
  ["another name", documentOf(["name: other", "description: Reads."])],
  ["no description", documentOf(["name: helper"])],
  ["a long description", documentOf(["name: helper", `description: ${"x".repeat(1025)}`])],
  ["a repeated key", documentOf(["name: helper", "description: a", "description: b"])],
  ["a text of lines with different indentation", documentOf(["name: helper", "description: Reads", "  pages", "    now."])],
  ["a block with a blank line", documentOf(["name: helper", "description: |", "  Reads.", "", "  Writes."])],
  ["a block that keeps line ends", documentOf(["name: helper", "description: |+", "  Reads."])],
  ["a block of lines that are indented further", documentOf(["name: helper", "description: >", "  Reads", "    pages."])],
  ["a list in brackets with other values", documentOf(["name: helper", "description: Reads.", "tags: [a, true]"])],
  ["a list in brackets inside a list", documentOf(["name: helper", "description: Reads.", "tags:", "  - [a, b]"])],
  ["a list of maps", documentOf(["name: helper", "description: Reads.", "tags:", "  - a: b"])],
  ["a map of maps", documentOf(["name: helper", "description: Reads.", "x:", "  a:", "    b: c"])],
  ["a repeated key in a map", documentOf(["name: helper", "description: Reads.", "x:", "  a: b", "  a: c"])],
  ["a number with a leading zero", documentOf(["name: helper", "description: Reads.", "version: 01"])],
  ["a date", documentOf(["name: helper", "description: Reads.", "date: 2020-01-01"])],
  ["no value", documentOf(["name: helper", "description: Reads.", "license:"])],
  ["a description that is a number", documentOf(["name: helper", "description: 1"])],
  ["metadata with a number", documentOf(["name: helper", "description: Reads.", "metadata:", "  version: 1.0"])],
  ["a list as metadata", documentOf(["name: helper", "description: Reads.", "metadata:", "  - a"])],
  ["an empty compatibility", documentOf(["name: helper", "description: Reads.", "compatibility: ''"])],
  ["a long compatibility", documentOf(["name: helper", "description: Reads.", `compatibility: ${"x".repeat(501)}`])],
  ["a colon in a plain text", documentOf(["name: helper", "description: Use: reading."])],
  ["a comment", documentOf(["name: helper", "description: Reads. # pages"])],
  ["an escape that JSON does not have", documentOf(["name: helper", 'description: "Reads\\x41"'])],
  ["a map in braces that is not JSON", documentOf(["name: helper", "description: Reads.", "metadata: {a: b}"])],
  ["a repeated key in braces", documentOf(["name: helper", "description: Reads.", 'metadata: {"a":"b","a":"c"}'])],
  ["a prototype in braces", documentOf(["name: helper", "description: Reads.", 'metadata: {"__proto__":"c"}'])],
  ["line ends of Windows", documentOf(["name: helper", "description: Reads."]).replaceAll("\n", "\r\n")],
  ["metadata", documentOf(["name: helper", "description: Reads.", "metadata: x"])],
  ["a prototype", documentOf(["name: helper", "description: Reads.", "__proto__: x"])],
])("front matter with %s is left to the SDK", (_title, document) => {
  expect(readPlainFrontMatter(document, "helper")).toBeUndefined();
});

test("what is read of any lines is what the SDK reads", async () => {
  const pieces = [
    "a",
    "Z",
    "9",
    " ",
    ":",
    "#",
    "-",
    "'",
    '"',
    "\\",
    "\\n",
    "\\t",
    '\\"',
    "[",
    "]",
    "{",
    "}",
    ",",
    "|",
    ">",
    "&",
    "*",
    "!",
    "%",
    "@",
    "`",
    "?",
    "=",
    "~",
    ".",
    "é",
    "\u2028",
    "😀",
    "true",
    "null",
    "0x1",
    "2020-01-01",
    "1.0.2",
  ];
  const text = fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((all) => all.join(""));
  const written = fc.tuple(fc.constantFrom("", '"', "'", "x"), text).map(([quote, all]) => `${quote}${all}${quote === "x" ? "" : quote}`);
  const line = fc
    .tuple(fc.constantFrom("description", "license", "version", "a-b", "x_y", "metadata"), fc.constantFrom(": ", ":", ":  "), written)
    .map((parts) => [parts.join("")]);
  const words = fc
    .array(fc.constantFrom("a", "b-c", "x_y", "true", "n", "", "1", "-", "B"), { maxLength: 3 })
    .chain((all) => fc.constantFrom(", ", ",", " ", ",  ").map((separator) => [`tags: [${all.join(separator)}]`]));
  const map = fc
    .array(fc.tuple(fc.constantFrom("a", "b", "c-d", "1", "true", "constructor"), text), { maxLength: 3 })
    .map((all) => [`metadata: {${all.map(([key, value]) => `"${key}":"${value}"`).join(",")}}`]);
  const below = fc.tuple(fc.constantFrom("  ", "  ", "    ", "", " ", "\t"), fc.constantFrom("", "", "- ", "a: ", "b: "), written);
  const several = fc
    .tuple(
      fc.constantFrom("description", "license", "metadata", "x_y"),
      fc.constantFrom("", "", " |", " >", " |-", " >-", " |+", " >2", " a b"),
      fc.array(below, { minLength: 1, maxLength: 3 }),
    )
    .map(([key, head, lines]) => [`${key}:${head}`, ...lines.map((parts) => parts.join(""))]);
  let readCount = 0;
  let severalCount = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(line, several, words, map), { minLength: 1, maxLength: 3 }), async (all) => {
      const hasDescription = all.some(([first]) => first!.startsWith("description"));
      const document = documentOf(["name: helper", ...(hasDescription ? [] : ["description: Reads."]), ...all.flat()]);
      const own = readPlainFrontMatter(document, "helper");
      if (own === undefined) return;
      readCount++;
      if (all.some((lines) => lines.length > 1)) severalCount++;
      expect(own).toEqual(await readBySdk(document));
    }),
    { numRuns: 10_000 },
  );
  expect(readCount).toBeGreaterThan(300);
  expect(severalCount).toBeGreaterThan(100);
});
