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
  ["a text of several lines", documentOf(["name: helper", "description: Reads", "  pages."])],
  ["a block", documentOf(["name: helper", "description: |", "  Reads."])],
  ["a list", documentOf(["name: helper", "description: Reads.", "tags: [a, b]"])],
  ["a number", documentOf(["name: helper", "description: Reads.", "version: 1.0"])],
  ["a truth value", documentOf(["name: helper", "description: Reads.", "eager: true"])],
  ["a colon in a plain text", documentOf(["name: helper", "description: Use: reading."])],
  ["a comment", documentOf(["name: helper", "description: Reads. # pages"])],
  ["an escape", documentOf(["name: helper", 'description: "Reads\\n"'])],
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
  ];
  const text = fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((all) => all.join(""));
  const line = fc.tuple(
    fc.constantFrom("description", "license", "version", "a-b", "x_y"),
    fc.constantFrom(": ", ":", ":  "),
    fc.constantFrom("", '"', "'", "x"),
    text,
  );
  let readCount = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 3 }), async (lines) => {
      const all = lines.map(([key, colon, quote, value]) => `${key}${colon}${quote}${value}${quote === "x" ? "" : quote}`);
      const document = documentOf(["name: helper", "description: Reads.", ...all]);
      const own = readPlainFrontMatter(document, "helper");
      if (own === undefined) return;
      readCount++;
      expect(own).toEqual(await readBySdk(document));
    }),
    { numRuns: 3_000 },
  );
  expect(readCount).toBeGreaterThan(100);
});
