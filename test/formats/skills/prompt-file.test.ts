import { describe, expect, test } from "vitest";
import { expandPrompt, takesArguments } from "../../../src/formats/skills/expand-prompt.ts";
import { parsePromptFile } from "../../../src/formats/skills/prompt-file.ts";

describe("parsePromptFile", () => {
  test("takes a text without front matter as it is", () => {
    expect(parsePromptFile("\uFEFFBe brief.\r\nBe kind.", "p.md")).toEqual({ prompt: { body: "Be brief.\nBe kind." }, diagnostics: [] });
  });

  test("reads name, description and arguments", () => {
    const { prompt, diagnostics } = parsePromptFile(
      "---\nname: review\ndescription: Reviews.\narguments: file line\n---\nReview $file",
      "p.md",
    );
    expect(prompt).toEqual({
      name: "review",
      description: "Reviews.",
      arguments: [{ name: "file" }, { name: "line" }],
      body: "Review $file",
    });
    expect(diagnostics).toEqual([]);
  });

  test.each([
    ["[file, line]", [{ name: "file" }, { name: "line" }]],
    [
      "\n  - file\n  - name: line\n    description: Which one.\n    required: yes\n  - name: file",
      [{ name: "file" }, { name: "line", description: "Which one.", required: true }],
    ],
    ["[]", []],
  ])("arguments %j are names, or objects with a name; the first of two with the same name counts", (written, expected) => {
    const { prompt, diagnostics } = parsePromptFile(`---\narguments: ${written}\n---\nText`, "p.md");
    expect([prompt.arguments, diagnostics]).toEqual([expected, []]);
  });

  test.each([
    ["[{ description: nameless }, a]", /objects with a name/],
    ["[[a], a]", /objects with a name/],
    ["[{ name: [b] }, a]", /`name` of an argument must be a string/],
    ["[{ name: a, required: often }]", /`required` of an argument must be true or false/],
  ])("in arguments %s what cannot be used is left out, with a warning", (written, message) => {
    const { prompt, diagnostics } = parsePromptFile(`---\narguments: ${written}\n---\nText`, "p.md");
    expect(prompt.arguments).toEqual([{ name: "a" }]);
    expect(diagnostics[0]).toMatchObject({ code: "PROMPT_FIELD_TYPE", severity: "warning", message: expect.stringMatching(message) });
  });

  test("reads what people are shown, and whether they may call it up", () => {
    const text = "---\ntitle: Review\nargument-hint: [file]\nuser-invocable: false\n---\nReview";
    expect(parsePromptFile(text, "p.md").prompt).toEqual({ title: "Review", argumentHint: "[file]", userInvocable: false, body: "Review" });
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

describe("expandPrompt with values by name", () => {
  const expand = (body: string, argumentValues: Record<string, string>): string =>
    expandPrompt(body, { argumentNames: ["city", "days", "__proto__"], argumentValues });

  test.each<[what: string, body: string, values: Record<string, string>, expected: string]>([
    ["by name", "$city for $days", { city: "Oslo", days: "3" }, "Oslo for 3"],
    ["by name in braces", "${city}s ${days}d ${other}", { city: "Oslo", days: "3" }, "Oslos 3d ${other}"],
    ["by place", "$0 $1 $ARGUMENTS[0]", { days: "3", city: "Oslo" }, "Oslo 3 Oslo"],
    ["all of them", "For $ARGUMENTS.", { days: "3", city: "New York" }, "For New York 3."],
    ["one that was not given", "<$city><$0><${days}>", { days: "3" }, "<><$0><3>"],
    ["never twice", "$city ${days}", { city: "$days ${days} $ARGUMENTS", days: "$city" }, "$days ${days} $ARGUMENTS $city"],
    ["escaped", "\\$city \\${city} $days", { city: "Oslo", days: "3" }, "$city ${city} 3"],
    ["appended if nothing takes them", "Weather.", { city: "Oslo", days: "3" }, "Weather.\n\nARGUMENTS: Oslo 3"],
    ["nothing to append", "Weather.", {}, "Weather."],
    ["a name of every object", "$__proto__ $constructor", { city: "x" }, " $constructor"],
  ])("%s", (_what, body, values, expected) => {
    expect(expand(body, values)).toBe(expected);
  });

  test("a value that is large fills a body full of placeholders only so far", () => {
    expect(expand("$city ".repeat(100_000), { city: "x".repeat(10_000) }).length).toBeLessThan(20_000_000);
  });
});

test.each([
  ["Do $ARGUMENTS", true],
  ["$0", true],
  ["$ARGUMENTS[1]", true],
  ["It costs $5", true],
  ["{baseDir} $name ${name}", false],
  ["\\$ARGUMENTS", false],
  ["$ARGUMENTSX", false],
  ["", false],
])("whether %j has a place for arguments: %s", (body, expected) => {
  expect(takesArguments(body)).toBe(expected);
});

describe("arguments are filled in", () => {
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
    ["a name that is not a word", "$.* $0", "x", [".*", "a|b", "("], "$.* x"],
    ["a name of every object", "$constructor $0", "x", [], "$constructor x"],
    ["dollars in an argument", "$0", "$1$&$ARGUMENTS", [], "$1$&$ARGUMENTS"],
  ] as const)("%s", (_what, body, argumentsText, names, expected) => {
    expect(expandPrompt(body, { argumentsText, argumentNames: names })).toBe(expected);
  });
});
