import { expect, test } from "vitest";
import { expandPrompt } from "../../src/formats/skills/expand-prompt.ts";
import { lintSkillDocument } from "../../src/formats/skills/lint-skill-document.ts";
import { parseSkillDocument } from "../../src/formats/skills/skill-document.ts";
import { parseSkillManifest } from "../../src/formats/skills/skill-manifest.ts";
import { parseToolJson } from "../../src/formats/skills/tool-json.ts";
import { rounds } from "../rounds.ts";

// Each of these takes milliseconds. Something that costs the square of the length, or a stack frame for each level, would
// run into the runner's time-out or end the process.
const at = { file: "/s/a/SKILL.md", directoryName: "a" };
const inFrontMatter = (yaml: string) => `---\n${yaml}\n---\nBody\n`;
const lines = (count: number, line: (index: number) => string) => Array.from({ length: count }, (_, index) => line(index)).join("\n");

const documents: readonly [string, string][] = [
  ["open lists", inFrontMatter("[".repeat(rounds(10_000, 65_000)))],
  ["open mappings", inFrontMatter(`name: ${"{a: ".repeat(rounds(4_000, 16_000))}`)],
  ["nested dashes", inFrontMatter("- ".repeat(rounds(8_000, 32_000)))],
  ["nested question marks", inFrontMatter("? ".repeat(rounds(8_000, 32_000)))],
  ["nested blocks", inFrontMatter(lines(350, (index) => `${" ".repeat(index)}k:`))],
  ["nested blocks with a fault", inFrontMatter(`${lines(350, (index) => `${" ".repeat(index)}- k: [`)}\nname: a: b`)],
  ["thousands of keys", inFrontMatter(lines(rounds(2_000, 7_000), (index) => `k${index}: v`))],
  ["thousands of keys to repair", inFrontMatter(lines(rounds(2_000, 6_000), (index) => `k${index}: v: w`))],
  ["thousands of lists to repair", inFrontMatter(lines(rounds(800, 5_000), (index) => `k${index}: [a] [`))],
  ["one key thousands of times", inFrontMatter("a: 1\n".repeat(rounds(5_000, 13_000)))],
  [
    "thousands of anchors",
    inFrontMatter(
      `${lines(rounds(1_000, 3_000), (index) => `k${index}: &a${index} x`)}\nz: [${lines(rounds(800, 2_000), (index) => `*a${index},`)}]`,
    ),
  ],
  ["a hundred thousand lines", inFrontMatter("key: v\n".repeat(rounds(30_000, 100_000)))],
  ["a hundred thousand blank lines", inFrontMatter(`name: a: b\n${"\n".repeat(100_000)}x`)],
  ["blank lines for ever", `---\n${"\n".repeat(300_000)}`],
  ["nothing but spaces", " ".repeat(300_000)],
  ["nothing but dashes", "-".repeat(300_000)],
  ["nothing but rules", "---\n".repeat(80_000)],
  ["almost rules", `---\n${`---${" ".repeat(50)}x\n`.repeat(6_000)}`],
  ["comments that never end", "<!--".repeat(80_000)],
  ["comments that end at once", `${"<!---->".repeat(40_000)}\n---\nname: a\n---\n`],
  ["headings only", "# a\n\n".repeat(60_000)],
  ["stars only", "* ".repeat(150_000)],
  ["fences only", "```\n\n".repeat(60_000)],
  ["one long line", "a".repeat(300_000)],
  ["hashes", "#".repeat(300_000)],
  ["open parentheses", inFrontMatter(`name: a\nallowed-tools: ${"Bash(,".repeat(10_000)}`)],
  ["commas", inFrontMatter(`name: a\nallowed-tools: ${",".repeat(60_000)}`)],
  ["quotes", inFrontMatter('name: "'.repeat(rounds(3_000, 9_000)))],
  ["tags", inFrontMatter("!a ".repeat(rounds(3_000, 20_000)))],
  ["colons", inFrontMatter(": ".repeat(rounds(8_000, 32_000)))],
  ["hash signs after spaces", inFrontMatter(`name: x ${"# ".repeat(30_000)}`)],
  ["carriage returns", "---\rname: x\r---\rbody\r".repeat(10_000)],
];

test.each(documents)("a document of %s gives a skill", (_what, text) => {
  const { document } = parseSkillDocument(text, at);
  expect(document.name).toEqual(expect.any(String));
  expect(document.body.length).toBeLessThanOrEqual(text.length);
  expect(lintSkillDocument(text, at).length).toBeLessThanOrEqual(100);
});

const jsonTexts: readonly [string, string][] = [
  ["open lists", "[".repeat(1_000_000)],
  ["open objects", '{"a":'.repeat(200_000)],
  ["thousands of keys", `{${lines(40_000, (index) => `"k${index}":1,`)}"name":"x"}`],
  ["one key thousands of times", `{"name":"x"${',"name":"x"'.repeat(90_000)}}`],
  ["long text", `{"name":"${"a".repeat(1_000_000)}"}`],
  ["long text of escapes", `{"name":"${"\\n".repeat(400_000)}"}`],
  ["a long number", `{"name":${"1".repeat(1_000_000)}}`],
  ["comments", `{${"/*".repeat(400_000)}`],
  ["wrong paths", `{"name":"x","prompts":[${Array(100_000).fill('"../a"')}]}`],
  ["ranges", `{"name":"x","engines":{"skillhost":"${"1.x || ".repeat(20_000)}"}}`],
  ["a version of dots", `{"name":"x","version":"${"1.".repeat(400_000)}"}`],
  ["open placeholders", `{"name":"x","handler":{"http":{"url":"http://a/${"${a:-".repeat(150_000)}"}}}`],
  ["placeholders in arguments", `{"name":"x","handler":{"command":"x","args":[${Array(100_000).fill('"${q}"')}]}}`],
];

test.each(jsonTexts)("a JSON file of %s is read or refused", (_what, text) => {
  for (const parse of [parseSkillManifest, parseToolJson]) {
    const { diagnostics } = parse(text, "x.json");
    expect(diagnostics.length).toBeLessThanOrEqual(100);
  }
});

test.each([
  ["dollars", "$".repeat(300_000)],
  ["backslashes", "\\".repeat(300_000)],
  ["escaped positions", "\\$1".repeat(100_000)],
  ["open indexes", "$ARGUMENTS[".repeat(30_000)],
  ["directories", "{baseDir}".repeat(30_000)],
])("a prompt of %s is expanded", (_what, body) => {
  const text = expandPrompt(body, { baseDir: "/b", argumentsText: "a 'b ".repeat(10_000), argumentNames: ["a", "aa", "aaa"] });
  expect(text).toEqual(expect.any(String));
});
