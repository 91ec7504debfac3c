import { describe, expect, test } from "vitest";
import { expandArguments, expandPrompt, parsePromptFile } from "../../src/formats/prompt-file.ts";

describe("parsePromptFile", () => {
  test("takes a text without front matter as it is", () => {
    expect(parsePromptFile("\uFEFFBe brief.\r\nBe kind.", "p.md")).toEqual({ prompt: { body: "Be brief.\nBe kind." }, diagnostics: [] });
  });

  test("reads name, description and arguments", () => {
    const { prompt, diagnostics } = parsePromptFile(
      "---\nname: review\ndescription: Reviews.\narguments: file line\n---\nReview $file",
      "p.md",
    );
    expect(prompt).toEqual({ name: "review", description: "Reviews.", argumentNames: ["file", "line"], body: "Review $file" });
    expect(diagnostics).toEqual([]);
  });

  test("reports what it cannot use, with file and line", () => {
    const { prompt, diagnostics } = parsePromptFile("---\nname: {a: b}\n---\nText", "p.md");
    expect(prompt).toEqual({ body: "Text" });
    expect(diagnostics).toMatchObject([{ code: "PROMPT_FIELD_TYPE", severity: "warning", file: "p.md", range: { start: { line: 2 } } }]);
  });
});

describe("expandPrompt", () => {
  test("fills the skill's directory in both notations, and nothing else", () => {
    const body = "Run {baseDir}/x and ${CLAUDE_SKILL_DIR}/y; $0 $ARGUMENTS ${HOME} {other} !`rm -rf /`";
    expect(expandPrompt(body, { baseDir: "/s" })).toBe("Run /s/x and /s/y; $0 $ARGUMENTS ${HOME} {other} !`rm -rf /`");
  });

  test("never reads again what it filled in", () => {
    const expanded = expandPrompt("{baseDir} $ARGUMENTS $0 ${CLAUDE_SKILL_DIR}", {
      baseDir: "/$0/$&/$ARGUMENTS",
      argumentsText: "'{baseDir}' $0",
    });
    expect(expanded).toBe("/$0/$&/$ARGUMENTS '{baseDir}' $0 {baseDir} /$0/$&/$ARGUMENTS");
  });
});

describe("expandArguments", () => {
  test.each([
    ["the whole text", "Do $ARGUMENTS now", "a  'b c'", [], "Do a  'b c' now"],
    ["by index", "$ARGUMENTS[1]-$ARGUMENTS[0]", "a 'b c'", [], "b c-a"],
    ["by position, from 0", "$0, $1", 'x "y z"', [], "x, y z"],
    ["by name", "Fix $issue in $file-name", "12 a.ts", ["issue", "file-name"], "Fix 12 in a.ts"],
    ["the longest name", "$file-name $file", "1 2", ["file", "file-name"], "2 1"],
    ["a missing position stays", "$0 costs $5", "it", [], "it costs $5"],
    ["a missing index stays", "$0 $ARGUMENTS[7]", "a", [], "a $ARGUMENTS[7]"],
    ["a missing name becomes empty", "<$a><$b>", "x", ["a", "b"], "<x><>"],
    ["escaped ones stay, without the backslash", "\\$0 \\$ARGUMENTS \\$a $0", "x", ["a"], "$0 $ARGUMENTS $a x"],
    ["other backslashes stay", "\\$HOME \\n $0", "x", [], "\\$HOME \\n x"],
    ["longer words are other words", "$ARGUMENTSX $0th $ab $0", "x", ["a"], "$ARGUMENTSX $0th $ab x"],
    ["nothing given", "Do $ARGUMENTS $0 $a.", "", ["a"], "Do  $0 ."],
    ["appended if nothing takes them", "Do it.\n", "a b", [], "Do it.\n\nARGUMENTS: a b"],
    ["appended after a dollar amount", "It costs $5.", "a b", [], "It costs $5.\n\nARGUMENTS: a b"],
    ["not appended if blank", "Do it.\n", " ", [], "Do it.\n"],
    ["escaped white space", "<$0><$1>", "a\\ b c", [], "<a b><c>"],
    ["empty quotes", "<$0><$1>", "'' b", [], "<><b>"],
    ["an unclosed quote", "<$0>", "'a b", [], "<a b>"],
    ["quotes inside a word", "<$0>", "a'b c'd", [], "<ab cd>"],
    ["a name that is no word", "$.* $0", "x", [".*", "a|b", "("], "$.* x"],
    ["a name of every object", "$constructor $0", "x", [], "$constructor x"],
    ["dollars in an argument", "$0", "$1$&$ARGUMENTS", [], "$1$&$ARGUMENTS"],
  ] as const)("%s", (_what, body, argumentsText, names, expected) => {
    expect(expandArguments(body, argumentsText, names)).toBe(expected);
  });
});
