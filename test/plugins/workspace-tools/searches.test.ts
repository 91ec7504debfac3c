import { realpathSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { parseGlob } from "../../../plugins/workspace-tools/operations/glob-pattern.ts";
import { isIgnored, parseIgnoreFile } from "../../../plugins/workspace-tools/operations/ignore-rules.ts";
import { SearchSteps, walkFiles } from "../../../plugins/workspace-tools/operations/walk-files.ts";
import { tempFolder } from "../../skills/kit.ts";
import { openWorkspace } from "./workspace-kit.ts";

describe("grep", () => {
  const files = {
    "data.txt": "apple\nbanana\napricot\n",
    "src/one.ts": "const a = 1;\r\nconst b = 2;\r\n// end\r\n",
    "src/two.js": "let a = 3;\n",
    "many.txt": "m\nx\nm\ny\ny\ny\ny\nm\n",
    "wide.txt": Buffer.from("\uFEFFapple in UTF-16\n", "utf16le"),
    "binary.bin": Buffer.from("apple\0"),
    "text.md": "```\nopen(\nclose)\n",
  };
  test.each<[name: string, args: object, expected: string]>([
    ["names files by default", { pattern: "const" }, "./src/one.ts"],
    ["counts lines", { pattern: "a", output_mode: "count", glob: "*.{ts,js}" }, "./src/one.ts:1\n./src/two.js:1"],
    ["gives lines", { pattern: "const", output_mode: "content" }, "./src/one.ts:const a = 1;\n./src/one.ts:const b = 2;"],
    [
      "gives lines with numbers",
      { pattern: "^ap", output_mode: "content", "-n": true, path: "data.txt" },
      "data.txt:1:apple\ndata.txt:3:apricot",
    ],
    ["takes capitals for small letters", { pattern: "APRI", "-i": true }, "./data.txt"],
    ["does not otherwise", { pattern: "APRI" }, "No matches found."],
    ["finds line ends before CR", { pattern: "2;$", output_mode: "content" }, "./src/one.ts:const b = 2;"],
    ["goes by a type", { pattern: "a", type: "js" }, "./src/two.js"],
    ["goes by a glob with folders", { pattern: "a", glob: "src/*.ts" }, "./src/one.ts"],
    ["leaves out what a glob with ! names", { pattern: "a = ", glob: "!*.ts" }, "./src/two.js"],
    ["reads UTF-16 and passes over binary files", { pattern: "apple" }, "./data.txt\n./wide.txt"],
    ["searches the given paths, shown by their names", { pattern: "a = ", paths: ["src/", "data.txt"] }, "src/one.ts\nsrc/two.js"],
    ["stops at a limit", { pattern: "m", path: "many.txt", output_mode: "content", head_limit: 2 }, "many.txt:m\nmany.txt:m"],
    [
      "gives lines around, with what is between left out",
      { pattern: "^m$", path: "many.txt", output_mode: "content", "-n": true, "-C": 1 },
      "many.txt:1:m\nmany.txt-2-x\nmany.txt:3:m\nmany.txt-4-y\n--\nmany.txt-7-y\nmany.txt:8:m",
    ],
    ["gives lines after", { pattern: "x", path: "many.txt", output_mode: "content", "-A": 1 }, "many.txt:x\nmany.txt-m"],
    ["gives lines before", { pattern: "x", path: "many.txt", output_mode: "content", "-B": 5 }, "many.txt-m\nmany.txt:x"],
    [
      "spans lines when asked to",
      { pattern: "open\\(.close", multiline: true, output_mode: "content", "-n": true },
      "./text.md:2:open(\n./text.md:3:close)",
    ],
    ["counts places that span lines", { pattern: "m.", multiline: true, output_mode: "count", path: "many.txt" }, "many.txt:3"],
  ])("%s", async (_name, args, expected) => {
    const { text } = await openWorkspace(files);
    expect(await text("grep", args)).toBe(expected);
  });

  test("shows files by the absolute path that was searched, as in the recorded conversations", async () => {
    const { folder, text } = await openWorkspace(files);
    const found = await text("grep", { pattern: "^ap", path: `${folder}/data.txt`, output_mode: "content", "-n": true });
    expect(found).toBe(`${folder}/data.txt:1:apple\n${folder}/data.txt:3:apricot`);
    expect(await text("glob", { pattern: "**/*.ts", paths: folder })).toBe(`${folder}/src/one.ts`);
  });

  test.each<[why: string, args: object, expected: RegExp]>([
    ["look-around", { pattern: "(?=a)" }, /RE2/],
    ["back-references", { pattern: "(a)\\1" }, /RE2/],
    ["what is not a pattern", { pattern: "(" }, /RE2/],
    ["nothing", { pattern: "" }, /is empty/],
    ["too much repetition", { pattern: "((a{100}){100}){100}" }, /cannot be used/],
    ["a pattern without end", { pattern: "a".repeat(1_001) }, /longer than 1000 characters/],
    ["a line break without multiline", { pattern: "a\\nb" }, /multiline must be set/],
    ["an unknown type", { pattern: "a", type: "__proto__" }, /the type "__proto__" is not known/],
    ["too many alternatives", { pattern: "a", glob: "{a,b}".repeat(20) }, /too many alternatives/],
    ["a path that is missing", { pattern: "a", path: "nowhere" }, /^Path nowhere does not exist\. Please provide a valid path\.$/],
  ])("refuses %s", async (_why, args, expected) => {
    const { call } = await openWorkspace(files);
    expect(await call("grep", args)).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringMatching(expected) });
  });

  test("searches in linear time, whatever the pattern and the globs", async () => {
    const { text } = await openWorkspace({
      "a.txt": `${"a".repeat(20_000)}\n`,
      [`${"a".repeat(200)}.txt`]: "",
      ".gitignore": `${"*a".repeat(60)}*b\n`,
    });
    expect(await text("grep", { pattern: "(a+)+$|(a|a)*b|(.*a){20}", "-n": true })).toBe("./a.txt");
    expect(await text("grep", { pattern: "(a*)*c", glob: `${"*a".repeat(60)}*b` })).toBe("No matches found.");
    expect(await text("glob", { pattern: `${"**/*a*".repeat(40)}/*b` })).toBe("No files matched the pattern.");
  });

  test("cuts lines and lists that are too long", async () => {
    const { text } = await openWorkspace(
      { "min.js": `${"x".repeat(50_000)}\n`, "lines.txt": "x\n".repeat(6_000) },
      { largeOutput: { enabled: false } },
    );
    expect(await text("grep", { pattern: "x", path: "min.js", output_mode: "content" })).toHaveLength(
      "min.js:".length + 2_000 + " [Line truncated.]".length,
    );
    const lines = (await text("grep", { pattern: "x", path: "lines.txt", output_mode: "content" })).split("\n");
    expect([lines.length, lines.at(-1)]).toEqual([5_001, "[There may be more: name a narrower pattern, path or glob.]"]);
  });
});

describe("glob", () => {
  const files = {
    "src/index.ts": "",
    "src/deep/b.tsx": "",
    "top.ts": "",
    "README.md": "",
    ".github/workflows/ci.yml": "",
    ".env": "",
    ".git/config": "",
  };
  test.each<[pattern: string, expected: string]>([
    ["**/*.ts", "./top.ts\n./src/index.ts"],
    ["*.ts", "./top.ts"],
    ["src/**", "./src/index.ts\n./src/deep/b.tsx"],
    ["./src/*", "./src/index.ts"],
    ["**/*.{ts,tsx}", "./top.ts\n./src/index.ts\n./src/deep/b.tsx"],
    ["**/[a-i]*.ts*", "./src/index.ts\n./src/deep/b.tsx"],
    ["src/?????.ts", "./src/index.ts"],
    ["**/*.py", "No files matched the pattern."],
    [".github/**/*.yml", "./.github/workflows/ci.yml"],
    ["**/.env", "./.env"],
    ["**/*", "./README.md\n./top.ts\n./src/index.ts\n./src/deep/b.tsx"],
    [".git/*", "No files matched the pattern."],
  ])("finds %s", async (pattern, expected) => {
    const { text } = await openWorkspace(files);
    expect(await text("glob", { pattern })).toBe(expected);
  });
});

test("a glob may be absolute, as models write it", async () => {
  const { folder, text, asked } = await openWorkspace({ "src/a.ts": "", "src/b/c.ts": "" });
  expect(await text("glob", { pattern: `${folder}/src/**/*.ts` })).toBe(`${folder}/src/a.ts\n${folder}/src/b/c.ts`);
  expect(await text("glob", { pattern: `${folder}/src/a.ts` })).toBe(`${folder}/src/a.ts`);
  expect(asked.map(({ path }) => path)).toEqual([`${folder}/src`, `${folder}/src`]);
  expect(await text("glob", { pattern: "/etc/*" })).toMatch(/^Path \/etc is outside the accessible folders/);
});

describe("ignore files", () => {
  test("apply from the workspace down, inner before outer, for both tools", async () => {
    const { text } = await openWorkspace({
      ".gitignore": "node_modules/\n*.log\n/build\n!keep.log\n",
      "node_modules/x/index.js": "hit",
      "build/out.js": "hit",
      "src/build/in.js": "hit",
      "a.log": "hit",
      "keep.log": "hit",
      "src/.gitignore": "!b.log\nlocal.js\n",
      "src/b.log": "hit",
      "src/local.js": "hit",
      "src/.ignore": "ignored.js\n",
      "src/ignored.js": "hit",
      "local.js": "hit",
    });
    const expected = "./keep.log\n./local.js\n./src/b.log\n./src/build/in.js";
    expect(await text("grep", { pattern: "hit" })).toBe(expected);
    expect(await text("glob", { pattern: "**/*" })).toBe(expected);
    // Ignore files above the searched folder apply, too; a file that is named itself is searched anyway.
    expect(await text("grep", { pattern: "hit", path: "src" })).toBe("src/b.log\nsrc/build/in.js");
    expect(await text("grep", { pattern: "hit", paths: ["build", "a.log"] })).toBe("build/out.js\na.log");
  });

  test.each<[rules: string, path: string, isFolder: boolean, ignored: boolean | undefined]>([
    ["foo", "a/b/foo", false, true],
    ["/foo", "a/foo", false, undefined],
    ["foo/", "foo", false, undefined],
    ["foo/", "a/foo", true, true],
    ["a/*.js", "a/x.js", false, true],
    ["a/*.js", "b/a/x.js", false, undefined],
    ["**/a/x", "b/a/x", false, true],
    ["a/**", "a", true, undefined],
    ["a/**", "a/b/c", false, true],
    ["a/**/z", "a/z", false, true],
    ["*.js\n!x.js", "x.js", false, false],
    ["!x.js\n*.js", "x.js", false, true],
    ["\\!x", "!x", false, true],
    ["\\#x", "#x", false, true],
    ["# x", "# x", false, undefined],
    ["x\\ ", "x ", false, true],
    ["x  ", "x", false, true],
    ["x\r", "x", false, true],
    ["[ab].c", "b.c", false, true],
    ["[!ab].c", "b.c", false, undefined],
    ["[", "[", false, true],
    ["", "a", false, undefined],
  ])("%j says of %s (folder: %s): %s", (rules, path, isFolder, ignored) => {
    expect(isIgnored(parseIgnoreFile(rules), path.split("/"), isFolder)).toBe(ignored);
  });
});

test.each<[glob: string, path: string, matches: boolean]>([
  ["a*b", "a/b", false],
  ["**", "a/b/c", true],
  ["**/c", "c", true],
  ["a/**/c", "a/c", true],
  ["a/**/c", "a/b/b/c", true],
  ["a/**/c", "a/b/b/d", false],
  ["*a*b*", "xxaxxbxx", true],
  ["*a*b*", "xxbxxaxx", false],
  ["{a,b{c,d}}.x", "bd.x", true],
  ["{a}", "{a}", true],
  ["{a,b", "{a,b", true],
  ["\\*", "*", true],
  ["\\*", "a", false],
  ["[]]", "]", true],
  ["[a-c-]", "-", true],
])("the glob %s and %s", (glob, path, matches) => {
  expect(parseGlob(glob)?.matches(path)).toBe(matches);
});

test("searches skip what cannot be read, and end when the call is cancelled", async () => {
  const { folder, session } = await openWorkspace(Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`d${index}/f.txt`, "x"])));
  const controller = new AbortController();
  const running = session.callTool("grep", { pattern: "nothing", path: join(folder, ".") }, { signal: controller.signal });
  controller.abort();
  expect((await running).resultType).toBe("failure");
});

test("the result of a walk depends on the number of files, not on time", async () => {
  const folder = realpathSync(tempFolder(Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`d${at}/f.txt`, "x"]))));
  const walk = async (steps: SearchSteps): Promise<{ found: string[]; isPart: boolean }> => {
    const found: string[] = [];
    const files = walkFiles(folder, { signal: new AbortController().signal, steps, top: folder });
    for (;;) {
      const { done, value } = await files.next();
      if (done === true) return { found, isPart: value.isPart };
      found.push(value.names.join("/"));
    }
  };
  const now = vi.spyOn(performance, "now");
  onTestFinished(() => now.mockRestore());
  // Each read of the clock is an hour later.
  let hours = 0;
  now.mockImplementation(() => ++hours * 3_600_000);
  expect((await walk(new SearchSteps())).found).toHaveLength(30);
  const part = await walk(new SearchSteps(40));
  expect(part.isPart).toBe(true);
  expect(await walk(new SearchSteps(40))).toEqual(part);
});
