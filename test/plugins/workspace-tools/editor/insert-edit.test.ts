import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { isElided, mergeElided } from "../../../../plugins/workspace-tools/operations/merge-elided.ts";
import { closeEditors, openEditor } from "../workspace-kit.ts";

afterAll(closeEditors);

const person = `import { log } from "./log.js";

class Person {
  name: string;

  constructor(name: string) {
    this.name = name;
  }

  greet() {
    log(this.name);
  }

  leave() {
    log("bye");
  }
}
`;

const twins = "function a() {\n  x();\n  return 1;\n}\n\nfunction b() {\n  x();\n  return 1;\n}\n";

describe("code with comments for unchanged lines", () => {
  test.each<[what: string, text: string, code: string, merged: string]>([
    [
      "replaces what stands between two lines that it repeats",
      person,
      "class Person {\n  // ...existing code...\n  greet() {\n    log(`Hello ${this.name}`);\n  }\n  // ...existing code...\n}",
      person.replace("log(this.name)", "log(`Hello ${this.name}`)"),
    ],
    [
      "puts lines after the one that it repeats",
      person,
      "class Person {\n  name: string;\n  age: number;\n  // ...existing code...\n}\n",
      person.replace("  name: string;\n", "  name: string;\n  age: number;\n"),
    ],
    [
      "puts lines before the one that it repeats",
      person,
      '// ...existing code...\n  wave() {}\n\n  leave() {\n    log("bye");\n  }\n// ...existing code...\n',
      person.replace("  leave() {", "  wave() {}\n\n  leave() {"),
    ],
    [
      "puts lines before the end of a block whose beginning it repeats",
      twins,
      "// ...existing code...\nfunction b() {\n  // ...existing code...\n  done();\n}\n",
      `${twins.slice(0, -2)}  done();\n}\n`,
    ],
    [
      "makes several changes, in the order of the file",
      person,
      'import { log } from "./log.js";\nimport { wave } from "./wave.js";\n\n// ...existing code...\n  constructor(name: string) {\n    this.name = name.trim();\n  }\n// ...existing code...\n    log("bye");\n    wave();\n  }\n}\n',
      person
        .replace('"./log.js";\n', '"./log.js";\nimport { wave } from "./wave.js";\n')
        .replace("= name;", "= name.trim();")
        .replace('log("bye");\n', 'log("bye");\n    wave();\n'),
    ],
    ["takes lines away between two that it repeats", "a\nb\nc\nd\n", "a\nc\n// ...existing code...\n", "a\nc\nd\n"],
    ["puts what begins a file first", person, 'import "./first.js";\n// ...existing code...\n', `import "./first.js";\n${person}`],
    ["puts what ends a file last", person, "// ...existing code...\n\nnew Person();\n", `${person}\nnew Person();\n`],
    ["puts what ends a file last, also without a final line break", "a\nb", "// ...existing code...\nc", "a\nb\nc"],
    ["leaves a file as it is when it says nothing else", person, "// ...existing code...\n", person],
    ["knows the comments of other languages", "a: 1\nb: 2\n", "# ...existing code...\nb: 3\n", "a: 1\nb: 2\nb: 3\n"],
    [
      "knows the comments of HTML",
      "<p>\n  <b/>\n</p>\n",
      "<p>\n  <!-- ...existing code... -->\n  <i/>\n</p>\n",
      "<p>\n  <b/>\n  <i/>\n</p>\n",
    ],
    ["knows dots with spaces, in one sign, and in capitals", "a\nb\n", "a\nA\n/* … Existing Code … */\n", "a\nA\nb\n"],
    ["keeps the line breaks of the file", "a\r\nb\r\nc\r\n", "a\nA\n// ...existing code...\n", "a\r\nA\r\nb\r\nc\r\n"],
    ["does not mind white space at the ends of lines", "a  \nb\n", "a\nA\n// ...existing code...\n", "a\nA\nb\n"],
  ])("%s", (_what, text, code, merged) => {
    expect(mergeElided(text, code)).toEqual({ kind: "merged", text: merged });
  });

  test.each<[what: string, text: string, code: string, why: RegExp]>([
    [
      "repeats nothing",
      person,
      "class Person {\n  // ...existing code...\n  age: number;\n  // ...existing code...\n}\n",
      /"age: number;" does not repeat a line that occurs only once in the file/,
    ],
    [
      "repeats only what is there several times",
      twins,
      "// ...existing code...\n  x();\n  y();\n// ...existing code...\n",
      /"x\(\);" does not repeat a line that occurs only once in the file/,
    ],
    ["turns the order of the file round", "a1\nb1\nc1\n", "b1\na1\n// ...existing code...\n", /in a different order/],
    [
      "comes back to what was before",
      "a1\nb1\nc1\n",
      "b1\n// ...existing code...\na1\n// ...existing code...\n",
      /"a1" does not repeat a line/,
    ],
    [
      "encloses what it leaves out in a block that is not there",
      person,
      "function wrap() {\n  // ...existing code...\n}\n",
      /"function wrap\(\) \{" does not repeat a line/,
    ],
    [
      "has a line of another block by chance",
      twins.replace("return 1", "return 2"),
      "// ...existing code...\nfunction c() {\n  return 2;\n}\n",
      /lies deeper than they do/,
    ],
    [
      "would reach into another block",
      twins.replace(/return 1(?=;\n}\n$)/, "return 2"),
      "function a() {\n  return 2;\n// ...existing code...\n",
      /would remove 6 lines of the file, from line 2 on/,
    ],
    [
      "would take many lines away",
      Array.from({ length: 40 }, (_, at) => `line ${at}\n`).join(""),
      "line 1\nline 30\n// ...existing code...\n",
      /would remove 28 lines of the file, from line 3 on/,
    ],
  ])("is refused when it %s", (_what, text, code, why) => {
    const merged = mergeElided(text, code);
    expect(merged).toMatchObject({ kind: "unclear", why: expect.stringMatching(why) });
  });

  test.each([["const a = 'existing code';"], ["// existing code"], ["a // ...existing code..."], [""]])(
    "is complete without such a comment: %j",
    (code) => {
      expect([isElided(code), mergeElided("a\n", code)]).toEqual([false, { kind: "whole" }]);
    },
  );

  test("is merged in linear time, whatever the text", () => {
    const line = "x".repeat(1000);
    const text = `${line}\n`.repeat(20_000);
    const code = `${"}\n".repeat(2_000)}// ...existing code...\n${`${line}\n`.repeat(2_000)}`;
    expect(mergeElided(text, code)).toMatchObject({ kind: "merged" });
    const white = " ".repeat(200_000);
    for (const hostile of [
      white,
      `${white}x`,
      `// ...${white}existing code`,
      `// ...existing code${white}x`,
      "}".repeat(200_000),
      `${"}".repeat(200_000)}x`,
    ])
      expect(mergeElided("a\n", `${hostile}\na\n// ...existing code...\n`).kind).not.toBe("whole");
  });
});

describe("insert_edit_into_file", () => {
  test("uses code without such comments as the whole content of a new or existing file", async () => {
    const { folder, text, changed } = await openEditor({ "a.ts": "old\r\nold\r\n" });
    for (const [name, code] of [
      ["a.ts", "new\nnew\n"],
      ["b.ts", "b\n"],
    ] as const) {
      expect(await text("insert_edit_into_file", { filePath: name, code, explanation: "x" })).toBe(
        `The following files were successfully edited:\n${join(folder, name)}`,
      );
    }
    expect(changed.map(({ content }) => content)).toEqual(["new\r\nnew\r\n", "b\n"]);
    expect(readFileSync(join(folder, "a.ts"), "utf8")).toBe("new\r\nnew\r\n");
  });

  test("merges code at the lines that it repeats", async () => {
    const { folder, text } = await openEditor({ "person.ts": person });
    await text("insert_edit_into_file", {
      filePath: "person.ts",
      code: "class Person {\n  name: string;\n  age = 1;\n  // ...existing code...\n}",
    });
    expect(readFileSync(join(folder, "person.ts"), "utf8")).toContain("  name: string;\n  age = 1;\n\n  constructor");
  });

  test("refuses ambiguous code, says what to do, and changes nothing", async () => {
    const { folder, call, changed } = await openEditor({ "person.ts": person });
    const code = "class Person {\n  // ...existing code...\n  age = 1;\n  // ...existing code...\n}";
    const result = await call("insert_edit_into_file", { filePath: "person.ts", code });
    expect(result.resultType).toBe("failure");
    expect(result.textResultForLlm).toBe(
      `The code cannot be placed in ${join(folder, "person.ts")} unambiguously: The stretch that begins with "age = 1;" does not repeat a line that occurs only once in the file, so its place is ambiguous. Nothing was changed. Repeat unchanged lines directly before and after each change, with "...existing code..." comments for all others; or use replace_string_in_file; or give the complete content without such comments.`,
    );
    expect([readFileSync(join(folder, "person.ts"), "utf8"), changed]).toEqual([person, []]);
  });

  test("says if nothing changes, and that a missing file has no existing code", async () => {
    const { folder, text, changed } = await openEditor({ "a.ts": "a\n" });
    expect(await text("insert_edit_into_file", { filePath: "a.ts", code: "a\n" })).toBe("File a.ts has this content already.");
    expect(await text("insert_edit_into_file", { filePath: "b.ts", code: "// ...existing code...\nb\n" })).toBe(
      `File ${join(folder, "b.ts")} does not exist, so there is no existing code that "...existing code..." could stand for. Give its complete content.`,
    );
    expect(changed).toEqual([]);
  });
});
