import { describe, expect, test } from "vitest";
import { parseSkillDocument } from "../../../src/formats/skills/skill-document.ts";

const at = { file: "/skills/tidy/SKILL.md", directoryName: "tidy" };
const parse = (text: string) => parseSkillDocument(text, at);
const withKeys = (keys: string) => parse(`---\nname: tidy\ndescription: Tidies up.\n${keys}\n---\nBody`);
const codes = (text: string) => parse(text).diagnostics.map(({ code }) => code);

test("reads a document that keeps to the specification without a word", () => {
  const { document, diagnostics } = parse(
    "---\nname: tidy\ndescription: Tidies up.\nlicense: MIT\ncompatibility: Needs git\n---\n\n  code\n\nText\n\n",
  );
  expect(diagnostics).toEqual([]);
  expect(document).toMatchObject({
    name: "tidy",
    description: "Tidies up.",
    descriptionInferred: false,
    license: "MIT",
    compatibility: "Needs git",
    body: "  code\n\nText",
    disableModelInvocation: false,
    userInvocable: true,
    frontMatterState: "parsed",
  });
  expect(Object.keys(document)).not.toContain("metadata");
});

describe("fields of a SKILL.md", () => {
  test.each([
    ["text with spaces", "allowed-tools: Read Bash(git:*) Grep", ["Read", "Bash(git:*)", "Grep"]],
    ["text with commas", "allowed-tools: Read, Bash(git add:*), mcp__x__y", ["Read", "Bash(git add:*)", "mcp__x__y"]],
    ["commas inside parentheses", "allowed-tools: Bash(a, b (c)),Read", ["Bash(a, b (c))", "Read"]],
    ["a list", "allowed-tools:\n  - Read\n  - Bash(npm run test:*)", ["Read", "Bash(npm run test:*)"]],
    ["a flow list", "allowed-tools: [Read, Write]", ["Read", "Write"]],
    ["an open parenthesis", "allowed-tools: Bash(git Read", ["Bash(git Read"]],
    ["nothing", "allowed-tools: ''", []],
  ])("allowed-tools from %s", (_what, keys, expected) => {
    expect(withKeys(keys).document.allowedTools).toEqual(expected);
  });

  test.each([
    ["[file]", "[file]"],
    ["[file, line]", "[file, line]"],
    ["[file] [line]", "[file] [line]"],
    ["'<file>'", "<file>"],
    ["<file>", "<file>"],
  ])("argument-hint %s is text", (written, expected) => {
    expect(withKeys(`argument-hint: ${written}`).document.argumentHint).toBe(expected);
  });

  test.each([
    ["file line", ["file", "line"]],
    ["[file, line]", ["file", "line"]],
    ["\n  - file\n  - line", ["file", "line"]],
  ])("arguments %s are names", (written, expected) => {
    expect(withKeys(`arguments: ${written}`).document.arguments?.map(({ name }) => name)).toEqual(expected);
  });

  test.each(["true", "yes", "on", "1", "True", "'yes'"])("disable-model-invocation: %s is true", (word) => {
    expect(withKeys(`disable-model-invocation: ${word}`)).toMatchObject({ document: { disableModelInvocation: true }, diagnostics: [] });
  });

  test.each(["false", "no", "off", "0"])("user-invocable: %s is false", (word) => {
    expect(withKeys(`user-invocable: ${word}`)).toMatchObject({ document: { userInvocable: false }, diagnostics: [] });
  });

  test("values of a wrong type are left out with a warning at their line", () => {
    const { document, diagnostics } = withKeys(
      "license:\n  a: b\nmetadata: text\nuser-invocable: maybe\nwhen_to_use: [x]\nallowed-tools: [[a], Read]",
    );
    expect(document).toMatchObject({ userInvocable: true, allowedTools: ["Read"] });
    for (const key of ["license", "metadata", "whenToUse"]) expect(document).not.toHaveProperty(key);
    expect(diagnostics.map(({ code, severity, range }) => [code, severity, range?.start.line])).toEqual([
      ["SKILL_FIELD_TYPE", "warning", 4],
      ["SKILL_FIELD_TYPE", "warning", 6],
      ["SKILL_FIELD_TYPE", "warning", 9],
      ["SKILL_FIELD_TYPE", "warning", 8],
      ["SKILL_FIELD_TYPE", "warning", 7],
    ]);
  });

  test("numbers are taken as they would be written", () => {
    const { document } = parseSkillDocument("---\nname: 42\ndescription: 7\n---\n", { file: "f", directoryName: "42" });
    expect(document).toMatchObject({ name: "42", description: "7" });
  });

  test("unknown keys are kept, without a word", () => {
    const { document, diagnostics } = withKeys("version: 1.0\nauthor: {name: A}\nhooks:\n  x: []");
    expect({ ...document.extra }).toEqual({ version: 1, author: { name: "A" }, hooks: { x: [] } });
    expect(document.frontMatter).toHaveProperty("description", "Tidies up.");
    expect(diagnostics).toEqual([]);
  });

  test("metadata may nest", () => {
    expect(withKeys('metadata: {"host":{"emoji":"x","bins":["git"]}}').document.metadata).toEqual({ host: { emoji: "x", bins: ["git"] } });
  });
});

describe("names", () => {
  test.each([
    ["Tidy Up", ["SKILL_NAME_NOT_LOWERCASE", "SKILL_NAME_CHARACTERS", "SKILL_NAME_MISMATCH"]],
    ["other", ["SKILL_NAME_MISMATCH"]],
    [`${"a".repeat(65)}`, ["SKILL_NAME_TOO_LONG", "SKILL_NAME_MISMATCH"]],
    ["-tidy--up", ["SKILL_NAME_HYPHEN_EDGE", "SKILL_NAME_DOUBLE_HYPHEN", "SKILL_NAME_MISMATCH"]],
    ["a/b:c", ["SKILL_NAME_CHARACTERS", "SKILL_NAME_MISMATCH"]],
  ])("%s loads under that name, with warnings", (name, expected) => {
    const { document, diagnostics } = parse(`---\nname: "${name}"\ndescription: d\n---\n`);
    expect(document.name).toBe(name);
    expect(diagnostics.map(({ code }) => code)).toEqual(expected);
    expect(diagnostics.every(({ severity, range }) => severity === "warning" && range?.start.line === 2)).toBe(true);
  });

  test("a missing or blank name is the directory's", () => {
    expect(parse("---\ndescription: d\n---\n")).toMatchObject({
      document: { name: "tidy" },
      diagnostics: [{ code: "SKILL_NAME_MISSING" }],
    });
    expect(parse("---\nname: ' '\ndescription: d\n---\n").document.name).toBe("tidy");
  });
});

describe("descriptions", () => {
  test("a long one loads whole, with a warning", () => {
    const { document, diagnostics } = parse(`---\nname: tidy\ndescription: ${"x".repeat(1_025)}\n---\n`);
    expect(document.description).toHaveLength(1_025);
    expect(diagnostics).toMatchObject([{ code: "SKILL_DESCRIPTION_TOO_LONG", severity: "warning", range: { start: { line: 3 } } }]);
  });

  test.each([
    ["the first paragraph", "# T\n\nDoes it.\n\nMore", "Does it."],
    ["a paragraph of several lines", "# T\n\nDoes it\nand that.\n", "Does it and that."],
    ["CRLF", "# T\r\n\r\nDoes it\r\nand that.\r\n", "Does it and that."],
    ["a list", "# T\n\n- one\n- two\n", "- one - two"],
    ["a quotation", "# T\n\n> It works.\n", "> It works."],
    ["after a table", "# T\n\n| a |\n|---|\n| b |\n\nDoes it.", "Does it."],
    ["after comments and tags", "<!-- x\ny -->\n\n<p>hi</p>\n\nDoes it.", "Does it."],
    ["after badges and images", "[![b](c)](d)\n\n![e](f)\n\nDoes it.", "Does it."],
    ["after a fence", "```sh\nrun\n```\n\nDoes it.", "Does it."],
    ["after thematic breaks", "***\n\n- - -\n\n___\n\nDoes it.", "Does it."],
    ["after an underlined heading", "Title\n=====\n\nDoes it.", "Does it."],
    ["under a heading without a blank line, the next paragraph", "# T\n\n## Use\n- x\n\nDoes it.", "Does it."],
    ["a labelled paragraph, as it stands", "# T\n\ndescription: Does it.\n", "description: Does it."],
    ["the heading, if there is nothing else", "# The Title\n\n## Other\ntext", "The Title"],
    ["one word", "test\n", "test"],
  ])("are inferred from the body: %s", (_what, text, expected) => {
    const { document, diagnostics } = parse(text);
    expect(document).toMatchObject({ name: "tidy", description: expected, descriptionInferred: true });
    expect(diagnostics.map(({ code }) => code)).toEqual(["FRONT_MATTER_MISSING", "SKILL_DESCRIPTION_INFERRED"]);
  });

  test("are inferred also below front matter that has none", () => {
    const { document, diagnostics } = parse("---\nname: tidy\ndescription:\n---\n\nDoes it.\n");
    expect(document).toMatchObject({ description: "Does it.", descriptionInferred: true });
    expect(diagnostics).toMatchObject([{ code: "SKILL_DESCRIPTION_INFERRED", severity: "warning", file: at.file }]);
  });

  test("are inferred from the beginning of a long text, and no longer than the specification allows", () => {
    const { document, diagnostics } = parse(`# T\n\n${"x".repeat(1_022)}😀${" y".repeat(1_000_000)}\n`);
    expect(document.description).toBe(`${"x".repeat(1_022)}…`);
    expect(diagnostics.map(({ code }) => code)).toEqual(["FRONT_MATTER_MISSING", "SKILL_DESCRIPTION_INFERRED"]);
    expect(parse(`# T\n${"\n".repeat(1_000_000)}Does it.`).document.description).toBe("T");
  });

  test("are empty when there is nothing at all", () => {
    expect(parse("")).toMatchObject({ document: { name: "tidy", description: "", descriptionInferred: true, body: "" } });
    expect(codes("")).toEqual(["FRONT_MATTER_MISSING", "SKILL_DESCRIPTION_MISSING"]);
    expect(parse("---\nname: tidy\n---\n").diagnostics).toMatchObject([{ code: "SKILL_DESCRIPTION_MISSING", severity: "warning" }]);
  });
});

test("front matter that had to be repaired still gives the skill, and says so", () => {
  const { document, diagnostics } = parse("---\nname: tidy\ndescription: Use when: asked\n---\nBody");
  expect(document).toMatchObject({ description: "Use when: asked", frontMatterState: "repaired" });
  expect(diagnostics).toMatchObject([{ code: "FRONT_MATTER_REPAIRED", file: at.file, range: { start: { line: 3 } } }]);
});

test("a body of 300 kB comes through whole", () => {
  const body = "A line of text.\n".repeat(20_000).trimEnd();
  expect(parse(`---\nname: tidy\ndescription: d\n---\n${body}\n`).document.body).toBe(body);
});
