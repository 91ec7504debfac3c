import fc from "fast-check";
import { expect, test } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import { expandPrompt } from "../../src/formats/skills/expand-prompt.ts";
import { lintSkillDocument } from "../../src/formats/skills/lint-skill-document.ts";
import { parsePromptFile } from "../../src/formats/skills/prompt-file.ts";
import { parseSkillDocument } from "../../src/formats/skills/skill-document.ts";
import { parseSkillManifest } from "../../src/formats/skills/skill-manifest.ts";
import { parseToolJson, toToolJson } from "../../src/formats/skills/tool-json.ts";
import { decodeText } from "../../src/formats/text/decode-text.ts";
import { rounds } from "../rounds.ts";

const runs = { numRuns: rounds(300, 10_000) };
const at = { file: "/s/tidy/SKILL.md", directoryName: "tidy" };

const skillTexts = [
  "---\nname: tidy\ndescription: Tidies up.\nallowed-tools: Bash(git:*) Read\nmetadata:\n  a: b\n---\n\n# Tidy\n\nText\n",
  "---\nname: tidy\ndescription: |\n  Use when: asked\n  - or not\narguments: [a, b]\n---\nBody",
  "---\nname: &a tidy\ndescription: *a\nx: {y: [1, 'z', \"w\"]}\n? k\n: v\n---\nBody",
  "# Title\n\nA paragraph.\n\n---\n\nMore",
  "name: tidy\ndescription: d\n---\nBody",
];
const jsonTexts = [
  '{"name": "tidy", "version": "1.0.0", "prompts": ["a.md"], "tools": ["b.json", {"name": "x"}], "author": {"name": "A"}, "engines": {"skillhost": "^1"}}',
  '{"name": "lint", "parameters": {"type": "object", "properties": {"p": {}}}, "timeout": 5, "handler": {"command": "x", "args": ["${p}"], "env": {"A": "b"}}}',
  '{"name": "get", "inputSchema": {}, "handler": {"http": {"method": "POST", "url": "https://a.b/${p}?q=${env:X:-y}", "headers": {"A": "b"}, "body": {"c": "${p}"}}}}',
  '{"name": "m", "handler": {"mcp": {"server": "a", "tool": "b"}}, "annotations": {"readOnlyHint": true}}',
];
const pieces = [
  "",
  "---\n",
  "\n",
  " ",
  "\t",
  ": ",
  "- ",
  "#",
  '"',
  "'",
  "[",
  "]",
  "{",
  "}",
  ",",
  "&a ",
  "*a",
  "!t ",
  "|",
  ">",
  "%",
  "\0",
  "\r",
  "\uFEFF",
  "\\",
  "$0",
  "__proto__",
  "constructor",
  "null",
  "1e999",
  "../",
  "${p}",
  "\uD800",
];

// A valid text with up to four pieces cut out and replaced.
const mutated = (texts: readonly string[]) =>
  fc
    .tuple(
      fc.constantFrom(...texts),
      fc.array(fc.tuple(fc.nat(400), fc.nat(12), fc.constantFrom(...pieces)), { minLength: 1, maxLength: 4 }),
    )
    .map(([text, cuts]) =>
      cuts.reduce(
        (now, [from, length, put]) => now.slice(0, from % (now.length + 1)) + put + now.slice((from % (now.length + 1)) + length),
        text,
      ),
    );
const assembled = fc
  .array(fc.constantFrom(...pieces, "name", "description", "tidy", "x"), { maxLength: 40 })
  .map((parts) => parts.join(""));
const anyText = (texts: readonly string[]) =>
  fc.oneof(mutated(texts), mutated(texts), assembled, fc.string({ unit: "binary", maxLength: 60 }));

function expectSound(diagnostics: readonly Diagnostic[], text: string): void {
  const lineCount = text.split(/\r\n|\r|\n/).length;
  expect(diagnostics.length).toBeLessThanOrEqual(110);
  for (const { severity, code, message, range } of diagnostics) {
    expect(["error", "warning", "info"]).toContain(severity);
    expect(code).toMatch(/^[A-Z][A-Z0-9_]+$/);
    expect(message.length).toBeLessThan(2_500);
    if (range && !(range.start.line >= 1 && range.start.line <= lineCount && range.start.column >= 1))
      expect.fail(`${code} is outside the text`);
  }
}

// Own keys only, and the prototypes that data has: nothing in the text may have reached another.
function expectPlain(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype && prototype !== Array.prototype) expect.fail("a prototype was replaced");
  if (Object.hasOwn(value, "__proto__")) expect.fail("__proto__ came through");
  for (const inner of Object.values(value)) expectPlain(inner);
}

test("parseSkillDocument gives a document for every text", () => {
  fc.assert(
    fc.property(anyText(skillTexts), (text) => {
      const { document, diagnostics } = parseSkillDocument(text, at);
      expectSound(diagnostics, text);
      expectPlain(document);
      if (document.name.trim() === "" || diagnostics.some(({ severity }) => severity === "error")) expect.fail("not loaded");
      if (document.body.length > text.length) expect.fail("the body grew");
    }),
    runs,
  );
});

test("lintSkillDocument finds something or nothing, and accepts only what loads without repair", () => {
  fc.assert(
    fc.property(anyText(skillTexts), (text) => {
      const findings = lintSkillDocument(text, at);
      expectSound(findings, text);
      if (findings.some(({ severity }) => severity === "error")) return;
      const { document } = parseSkillDocument(text, at);
      if (document.frontMatterState !== "parsed" || document.descriptionInferred) expect.fail("the lint is laxer than the loader");
    }),
    runs,
  );
});

test("parseSkillManifest reads or refuses every text", () => {
  fc.assert(
    fc.property(anyText(jsonTexts), (text) => {
      const { manifest, diagnostics } = parseSkillManifest(text, "skill.json");
      expectSound(diagnostics, text);
      expectPlain(manifest);
      if (manifest === undefined && diagnostics.length === 0) expect.fail("refused without a reason");
    }),
    runs,
  );
});

test("parseToolJson reads or refuses every text", () => {
  fc.assert(
    fc.property(anyText(jsonTexts), (text) => {
      const { tool, diagnostics } = parseToolJson(text, "t.json");
      expectSound(diagnostics, text);
      expectPlain(tool);
      if ((tool === undefined) !== diagnostics.some(({ severity }) => severity === "error"))
        expect.fail("a tool with an error, or none without");
    }),
    runs,
  );
});

test("toToolJson reads or refuses every value", () => {
  const keys = fc.constantFrom(
    "name",
    "parameters",
    "handler",
    "command",
    "args",
    "module",
    "http",
    "url",
    "mcp",
    "timeout",
    "__proto__",
    "x",
  );
  const record = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, maxDepth: 1 }),
      tie("object"),
    ),
    object: fc.dictionary(keys, tie("value"), { maxKeys: 5 }),
  }));
  fc.assert(
    fc.property(record.object, (value) => {
      const { tool, diagnostics } = toToolJson(value, "skill.json");
      expectSound(diagnostics, "");
      expectPlain(tool);
      if ((tool === undefined) !== diagnostics.some(({ severity }) => severity === "error"))
        expect.fail("a tool with an error, or none without");
    }),
    runs,
  );
});

test("parsePromptFile and expandPrompt take every text", () => {
  fc.assert(
    fc.property(anyText(skillTexts), assembled, (text, argumentsText) => {
      const { prompt, diagnostics } = parsePromptFile(text, "p.md");
      expectSound(diagnostics, text);
      const unchanged = expandPrompt(prompt.body.replaceAll(/[${]/g, ""), { baseDir: "/b", argumentsText: "", argumentNames: ["name"] });
      if (unchanged !== prompt.body.replaceAll(/[${]/g, "")) expect.fail("text without placeholders changed");
      expandPrompt(prompt.body, { baseDir: "/b", argumentsText, argumentNames: prompt.arguments?.map(({ name }) => name) ?? ["name"] });
    }),
    runs,
  );
});

test("decodeText takes every sequence of bytes, and UTF-8 unchanged", () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 80 }),
    mutated(skillTexts).map((text) => new TextEncoder().encode(text)),
    fc.tuple(mutated(skillTexts), fc.nat(), fc.nat(255)).map(([text, index, byte]) => {
      const encoded = new TextEncoder().encode(text);
      if (encoded.length > 0) encoded[index % encoded.length] = byte;
      return encoded;
    }),
  );
  fc.assert(
    fc.property(bytes, (input) => {
      const { text, diagnostics } = decodeText(input, "f");
      expectSound(diagnostics, text);
      if (text.includes("\0")) expect.fail("a NUL came through");
      const again = new TextEncoder().encode(text);
      if (diagnostics.length === 0 && Buffer.compare(again, input.slice(input.length - again.length)) !== 0)
        expect.fail("changed without a word");
    }),
    runs,
  );
});
