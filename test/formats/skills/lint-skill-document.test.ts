import { describe, expect, test } from "vitest";
import { lintSkillDocument, withLint } from "../../../src/formats/skills/lint-skill-document.ts";
import { parseSkillDocument } from "../../../src/formats/skills/skill-document.ts";

const at = { file: "/skills/tidy/SKILL.md", directoryName: "tidy" };
const lint = (text: string) =>
  lintSkillDocument(text, at).map(({ severity, code, range }) => `${severity} ${code} ${range?.start.line}:${range?.start.column}`);
const lintKeys = (keys: string) => lint(`---\n${keys}\n---\nBody\n`);
const good = "name: tidy\ndescription: d";

test.each([
  ["the smallest document", good],
  ["all six fields", `${good}\nlicense: MIT\ncompatibility: git\nmetadata:\n  a: b\n  c: 1\nallowed-tools: Bash(git add, x:*) Read`],
  ["quoted and folded text", 'name: "tidy"\ndescription: >-\n  one\n  two'],
  ["scalars that look like other types", "name: tidy\ndescription: 42\nlicense: yes"],
])("the linter of skills finds nothing wrong with %s", (_what, keys) => {
  expect(lintKeys(keys)).toEqual([]);
});

describe("errors of the reference validator", () => {
  test.each([
    ["no front matter", "# Title\n", "FRONT_MATTER_MISSING 1:1"],
    ["a byte order mark", `\uFEFF---\n${good}\n---\nBody`, "FRONT_MATTER_MISSING 1:1"],
    ["a blank first line", `\n---\n${good}\n---\nBody`, "FRONT_MATTER_MISSING 1:1"],
    ["no closing line", `---\n${good}\n\nBody`, "FRONT_MATTER_UNCLOSED 1:1"],
    ["too much of it", `---\n${"k: v\n".repeat(20_000)}---\nBody`, "FRONT_MATTER_TOO_LARGE 1:1"],
  ])("%s", (_what, text, expected) => {
    expect(lint(text)).toEqual([`error ${expected}`]);
  });

  test.each([
    ["no YAML", "name: tidy\ndescription: Use when: asked", ["SKILL_YAML_INVALID 3:14"]],
    ["no mapping", "just text", ["FRONT_MATTER_NOT_MAP 2:1"]],
    ["nothing", "", ["FRONT_MATTER_NOT_MAP 2:1"]],
    ["nesting", `${good}\nmetadata: ${"[".repeat(70)}${"]".repeat(70)}`, ["SKILL_YAML_INVALID 4:74"]],
    ["a flow list", `${good}\ncompatibility: []`, ["SKILL_YAML_FLOW_LIST 4:16", "SKILL_COMPATIBILITY_TYPE 4:1"]],
    ["a flow mapping", `${good}\nmetadata: {a: b}`, ["SKILL_YAML_FLOW_MAP 4:11"]],
    ["an anchor and its alias", `${good}\ncompatibility: &c git\nlicense: *c`, ["SKILL_YAML_ANCHOR 4:19", "SKILL_YAML_ALIAS 5:10"]],
    ["a tag", `${good}\nlicense: !!str MIT`, ["SKILL_YAML_TAG 4:16"]],
    ["a key twice", `${good}\nname: tidy`, ["FRONT_MATTER_DUPLICATE_KEY 4:1"]],
    ["other fields", `author: x\n${good}\nversion: 1`, ["SKILL_FIELDS_UNEXPECTED 2:1"]],
    ["no name", "description: d", ["SKILL_NAME_MISSING 2:1"]],
    ["a blank name", "name: ''\ndescription: d", ["SKILL_NAME_EMPTY 2:1"]],
    ["a list as name", "name:\n  - tidy\ndescription: d", ["SKILL_NAME_EMPTY 2:1"]],
    ["no description", "name: tidy", ["SKILL_DESCRIPTION_MISSING 2:1"]],
    ["a blank description", "name: tidy\ndescription:", ["SKILL_DESCRIPTION_EMPTY 3:1"]],
    ["a long description", `name: tidy\ndescription: ${"x".repeat(1_025)}`, ["SKILL_DESCRIPTION_TOO_LONG 3:1"]],
    ["a long name", `name: ${"a".repeat(65)}\ndescription: d`, ["SKILL_NAME_TOO_LONG 2:1", "SKILL_NAME_MISMATCH 2:1"]],
    ["capitals", "name: Tidy\ndescription: d", ["SKILL_NAME_NOT_LOWERCASE 2:1", "SKILL_NAME_MISMATCH 2:1"]],
    ["hyphens", "name: -tidy--\ndescription: d", ["SKILL_NAME_HYPHEN_EDGE 2:1", "SKILL_NAME_DOUBLE_HYPHEN 2:1", "SKILL_NAME_MISMATCH 2:1"]],
    ["other characters", "name: tidy_up\ndescription: d", ["SKILL_NAME_CHARACTERS 2:1", "SKILL_NAME_MISMATCH 2:1"]],
    ["compatibility that is not a string", `${good}\ncompatibility:\n  - git`, ["SKILL_COMPATIBILITY_TYPE 4:1"]],
    ["long compatibility", `${good}\ncompatibility: ${"x".repeat(501)}`, ["SKILL_COMPATIBILITY_TOO_LONG 4:1"]],
  ])("%s", (_what, keys, expected) => {
    expect(lintKeys(keys)).toEqual(expected.map((found) => `error ${found}`));
  });

  test("lengths count code points, and letters of any script are letters", () => {
    expect(lintKeys(`name: tidy\ndescription: ${"🌳".repeat(1_024)}`)).toEqual([]);
    expect(lintSkillDocument("---\nname: ordnung-ö\ndescription: d\n---\nBody", { file: "f", directoryName: "ordnung-ö" })).toMatchObject([
      { severity: "warning", code: "SKILL_NAME_NOT_ASCII" },
    ]);
  });
});

describe("what the specification says beyond it", () => {
  test.each([
    ["dashes inside", "name: tidy\ndescription: a --- b", "warning SKILL_DASHES_IN_FRONT_MATTER 3:16"],
    ["commas between tools", `${good}\nallowed-tools: Read, Write`, "warning SKILL_ALLOWED_TOOLS_FORM 4:1"],
    ["a list of tools", `${good}\nallowed-tools:\n  - Read`, "warning SKILL_ALLOWED_TOOLS_FORM 4:1"],
    ["nested metadata", `${good}\nmetadata:\n  a:\n    b: c`, "warning SKILL_METADATA_TYPE 4:1"],
    ["metadata as text", `${good}\nmetadata: x`, "warning SKILL_METADATA_TYPE 4:1"],
    ["a licence that is not a string", `${good}\nlicense:\n  a: b`, "warning SKILL_LICENSE_TYPE 4:1"],
    ["empty compatibility", `${good}\ncompatibility: ''`, "warning SKILL_COMPATIBILITY_EMPTY 4:1"],
    ["hidden characters", "name: tidy\ndescription: a\u202Eb", "warning SKILL_HIDDEN_CHARACTERS 3:1"],
  ])("%s", (_what, keys, expected) => {
    expect(lintKeys(keys)).toEqual([expected]);
  });

  test("an empty body, and a long one", () => {
    expect(lint(`---\n${good}\n---\n\n`)).toEqual(["warning SKILL_BODY_EMPTY 5:1"]);
    expect(lint(`---\n${good}\n---\n${"x\n".repeat(501)}`)).toEqual(["info SKILL_BODY_LONG 5:1"]);
  });
});

test("every finding says what to do", () => {
  const messages = lintSkillDocument("---\nname: A_B\nother: [x]\nother: {y: &z 1}\n---\n", at).map(({ message }) => message);
  expect(messages.length).toBeGreaterThan(5);
  for (const message of messages) expect(message).toMatch(/\. (?:Write|Put|Remove|Rename|Allowed|For example)|For example/);
});

test("an error of the lint stands in for the warning of the same kind", () => {
  const text = "---\nname: Tidy\ndescription: Use when: asked\n---\n";
  const merged = withLint(parseSkillDocument(text, at).diagnostics, lintSkillDocument("---\nname: Tidy\ndescription: d\n---\nBody", at));
  expect(merged.map(({ severity, code }) => `${severity} ${code}`)).toEqual(
    [
      "warning FRONT_MATTER_REPAIRED",
      "warning SKILL_DESCRIPTION_INFERRED",
      "error SKILL_NAME_NOT_LOWERCASE",
      "error SKILL_NAME_MISMATCH",
    ].filter((line) => !line.includes("INFERRED")),
  );
});
