import { chmodSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readTestName } from "../../../../plugins/workspace-tools/editor/find-test-files.ts";
import { closeEditors, openEditor } from "../workspace-kit.ts";

afterAll(closeEditors);

const lines = (count: number): string => Array.from({ length: count }, (_, at) => `line ${at + 1}\n`).join("");

describe("read_file", () => {
  test.each<[what: string, content: string | Buffer, args: object, says: string]>([
    ["a file", "a\nb\n", {}, "Total 2 lines. Line range (1-based) 1 to 2:\n```txt\na\nb\n```"],
    ["one without a final line break", "a\nb", {}, "Total 2 lines. Line range (1-based) 1 to 2:\n```txt\na\nb\n```"],
    ["CRLF", "a\r\nb\r\n", {}, "Total 2 lines. Line range (1-based) 1 to 2:\n```txt\na\nb\n```"],
    ["a byte order mark", "\uFEFFa\n", {}, "Total 1 lines. Line range (1-based) 1 to 1:\n```txt\na\n```"],
    ["UTF-16", Buffer.from("\uFEFFä\n", "utf16le"), {}, "Total 1 lines. Line range (1-based) 1 to 1:\n```txt\nä\n```"],
    [
      "some lines",
      lines(9),
      { startLineNumberBaseOne: 3, endLineNumberBaseOne: 4 },
      "Total 9 lines. Line range (1-based) 3 to 4:\n```txt\nline 3\nline 4\n```",
    ],
    [
      "as many lines as are asked for",
      lines(9),
      { offset: 8, limit: 1 },
      "Total 9 lines. Line range (1-based) 8 to 8:\n```txt\nline 8\n```",
    ],
    [
      "to the end where more is asked for",
      lines(3),
      { offset: 3, limit: 9 },
      "Total 3 lines. Line range (1-based) 3 to 3:\n```txt\nline 3\n```",
    ],
    [
      "from the first line where less than that is asked for",
      lines(1),
      { startLineNumberBaseOne: -4 },
      "Total 1 lines. Line range (1-based) 1 to 1:\n```txt\nline 1\n```",
    ],
    ["what has fences itself", "```\na\n```\n", {}, "Total 3 lines. Line range (1-based) 1 to 3:\n````txt\n```\na\n```\n````"],
  ])("gives %s", async (_what, content, args, says) => {
    const { text } = await openEditor({ "f.txt": content });
    expect(await text("read_file", { filePath: "f.txt", ...args })).toBe(`File \`f.txt\`. ${says}`);
  });

  test("returns a long file in parts, and says where to continue", async () => {
    const { text } = await openEditor({
      "f.txt": lines(2_500),
      "wide.txt": `${"x".repeat(60_000)}\nend\n`,
      "many.txt": `${"y".repeat(999)}\n`.repeat(100),
    });
    const first = await text("read_file", { filePath: "f.txt" });
    expect(first).toMatch(/^File `f\.txt`\. Total 2500 lines\. Line range \(1-based\) 1 to 2000:\n/);
    expect(first).toMatch(
      /line 2000\n```\n\[File content truncated at line 2000\. Use read_file with startLineNumberBaseOne 2001 to view more\.\]$/,
    );
    expect(await text("read_file", { filePath: "f.txt", startLineNumberBaseOne: 2001 })).toMatch(/line 2500\n```$/);
    expect(await text("read_file", { filePath: "many.txt" })).toMatch(
      /truncated at line 50\. Use read_file with startLineNumberBaseOne 51 to/,
    );
    expect((await text("read_file", { filePath: "wide.txt" })).length).toBeLessThan(51_000);
  });

  test("returns a part of a file that is too large to be read as a whole", async () => {
    const { text } = await openEditor({ "f.txt": Buffer.alloc(22 * 1024 * 1024, "0123456789\n") });
    const said = await text("read_file", { filePath: "f.txt", startLineNumberBaseOne: 1_900_000, limit: 1 });
    expect(said).toBe(
      "File `f.txt`. It is too large for its lines to be counted. Line range (1-based) 1900000 to 1900000:\n```txt\n0123456789\n```",
    );
  });

  test("says that a file is empty, and refuses what cannot be read", async () => {
    const { folder, text, call } = await openEditor({ "f.txt": "", "b.bin": Buffer.from([0, 1]), "one.txt": "1\n", "sub/x": "" });
    expect(await text("read_file", { filePath: "f.txt" })).toBe("The file `f.txt` exists, but is empty.");
    const refusals: readonly (readonly [object, string | RegExp])[] = [
      [{ filePath: "b.bin" }, `File ${join(folder, "b.bin")} is binary and cannot be read as text.`],
      [{ filePath: "sub" }, /is a folder\. Name a file in it\.$/],
      [{ filePath: "none.txt" }, /does not exist/],
      [{ filePath: "one.txt", startLineNumberBaseOne: 2 }, /^There are no lines 2 to \d+: the file `one\.txt` has 1 lines\.$/],
      [{ filePath: "one.txt", startLineNumberBaseOne: 1, endLineNumberBaseOne: 0 }, /^There are no lines 1 to 0/],
    ];
    for (const [args, says] of refusals) {
      const { resultType, textResultForLlm } = await call("read_file", args);
      expect(resultType).toBe("failure");
      if (typeof says === "string") expect(textResultForLlm).toBe(says);
      else expect(textResultForLlm).toMatch(says);
    }
  });
});

describe("list_dir", () => {
  test("marks folders, and refuses a path that is not a folder", async () => {
    const { folder, text, call } = await openEditor({ "b.txt": "", "sub/x": "", ".hidden": "" });
    symlinkSync("b.txt", join(folder, "a-link"));
    expect(await text("list_dir", { path: folder })).toBe(".hidden\na-link\nb.txt\nsub/");
    expect(await call("list_dir", { path: "b.txt" })).toMatchObject({
      resultType: "failure",
      textResultForLlm: `${join(folder, "b.txt")} is a file. Read it with read_file.`,
    });
    expect((await call("list_dir", { path: "none" })).textResultForLlm).toMatch(/does not exist/);
  });

  test("returns a part of a very large folder", async () => {
    const files = Object.fromEntries(Array.from({ length: 1_001 }, (_, at) => [`f${at}`, ""]));
    const { text } = await openEditor(files);
    const names = (await text("list_dir", { path: "." })).split("\n");
    expect([names.length, names.at(-1)]).toEqual([1_001, "[There are more than these 1000 names. Use file_search to find others.]"]);
  });
});

const tree = {
  ".gitignore": "ignored/\n",
  ".hidden/x.ts": "needle\n",
  "a.ts": "needle one\n",
  "b.js": "x\nneedle (two)\n",
  "data.bin": Buffer.from("needle\0"),
  "ignored/c.ts": "needle\n",
  "src/Button.tsx": "export {};\nNEEDLE\n",
  "src/deep/d.ts": "a needle\r\n",
};

describe("file_search", () => {
  test.each<[query: string, found: readonly string[]]>([
    ["*.ts", ["a.ts", "src/deep/d.ts"]],
    ["**/*.{js,tsx}", ["b.js", "src/Button.tsx"]],
    ["src/**", ["src/Button.tsx", "src/deep/d.ts"]],
    ["src/*", ["src/Button.tsx"]],
    ["button", ["src/Button.tsx"]],
    ["deep/d", ["src/deep/d.ts"]],
    [".hidden/*", [".hidden/x.ts"]],
    ["none", []],
  ])("finds %s", async (query, found) => {
    const { folder, text } = await openEditor(tree);
    const title = found.length === 0 ? "No files found" : found.length === 1 ? "Found 1 file" : `Found ${found.length} files`;
    const expected = [`${title} matching query: ${query}`, ...found.map((name) => join(folder, name))].join("\n");
    expect(await text("file_search", { query })).toBe(expected);
  });

  test("accepts absolute patterns, and returns at most the requested number", async () => {
    const { folder, text } = await openEditor(tree);
    expect(await text("file_search", { query: `${folder}/src/**/*.ts` })).toBe(
      `Found 1 file matching query: ${folder}/src/**/*.ts\n${join(folder, "src/deep/d.ts")}`,
    );
    expect(await text("file_search", { query: "*", maxResults: 1 })).toBe(
      `Found 1 file matching query: *\n${join(folder, "a.ts")}\n[There may be more: give a narrower query, or a larger maxResults.]`,
    );
  });
});

describe("grep_search", () => {
  test.each<[args: { query: string; isRegexp?: boolean; includePattern?: string }, found: readonly string[]]>([
    [{ query: "needle" }, ["a.ts:1:needle one", "b.js:2:needle (two)", "src/deep/d.ts:1:a needle"]],
    [{ query: "needle (two)" }, ["b.js:2:needle (two)"]],
    [{ query: "needle (two)", isRegexp: true }, []],
    [{ query: "(?i)^needle", isRegexp: true }, ["a.ts:1:needle one", "b.js:2:needle (two)", "src/Button.tsx:2:NEEDLE"]],
    [{ query: "needle", includePattern: "*.ts" }, ["a.ts:1:needle one", "src/deep/d.ts:1:a needle"]],
    [{ query: "needle", includePattern: "src/**" }, ["src/deep/d.ts:1:a needle"]],
    [{ query: "needle", includePattern: "b.js" }, ["b.js:2:needle (two)"]],
  ])("finds %j", async (args, found) => {
    const { folder, text } = await openEditor(tree);
    const { query } = args;
    const title =
      found.length === 0
        ? `Searched text for ${query}, no results`
        : `Searched text for: ${query}, ${found.length === 1 ? "1 result" : `${found.length} results`}`;
    expect(await text("grep_search", args)).toBe([title, ...found.map((line) => join(folder, line))].join("\n"));
  });

  test("accepts the absolute path of a folder or file, and returns at most the requested number", async () => {
    const { folder, text } = await openEditor(tree);
    expect(await text("grep_search", { query: "needle", includePattern: join(folder, "src") })).toMatch(/1 result\n.*d\.ts:1:a needle$/);
    expect(await text("grep_search", { query: "needle", includePattern: join(folder, "b.js") })).toMatch(
      /1 result\n.*b\.js:2:needle \(two\)$/,
    );
    expect(await text("grep_search", { query: "needle", maxResults: 1 })).toMatch(/1 result\n.*a\.ts:1:needle one\n\[There may be more: /);
  });

  test.each<[args: object, says: RegExp]>([
    [{ query: "(a+", isRegexp: true }, /^The query cannot be used: it is not a supported regular expression/],
    [{ query: "(?=a)", isRegexp: true }, /^The query cannot be used: it is not a supported regular expression/],
    [{ query: "" }, /^The query cannot be used: it is empty/],
    [{ query: "a\nb" }, /^The query cannot be used: it spans lines/],
    [{ query: "a", includePattern: "{a,b}".repeat(20) }, /^Nothing was searched: the glob is too long or has too many alternatives/],
  ])("refuses %j", async (args, says) => {
    const { call } = await openEditor(tree);
    expect(await call("grep_search", args)).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringMatching(says) });
  });

  test("skips files that it may not read", async () => {
    const { folder, text } = await openEditor(tree);
    chmodSync(join(folder, "a.ts"), 0o000);
    expect(await text("grep_search", { query: "(two)" })).toMatch(/1 result\n.*b\.js:2/);
  });
});

describe("find_test_files", () => {
  const files = Object.fromEntries(
    [
      "src/math/add.ts",
      "src/math/add.test.ts",
      "test/math/add.spec.ts",
      "test/other/add.test.ts",
      "pkg/tool.py",
      "tests/test_tool.py",
      "src/main/java/app/Cart.java",
      "src/test/java/app/CartTest.java",
      "go/sum.go",
      "go/sum_test.go",
      "lib/user.rb",
      "spec/user_spec.rb",
      "__tests__/view.js",
      "view.js",
      "lonely.ts",
      "notes.txt",
    ].map((name) => [name, ""]),
  );

  test.each<[of: string, found: readonly string[], what: string]>([
    ["src/math/add.ts", ["src/math/add.test.ts", "test/math/add.spec.ts", "test/other/add.test.ts"], "test"],
    ["test/math/add.spec.ts", ["src/math/add.ts"], "source"],
    ["pkg/tool.py", ["tests/test_tool.py"], "test"],
    ["tests/test_tool.py", ["pkg/tool.py"], "source"],
    ["src/main/java/app/Cart.java", ["src/test/java/app/CartTest.java"], "test"],
    ["src/test/java/app/CartTest.java", ["src/main/java/app/Cart.java"], "source"],
    ["go/sum.go", ["go/sum_test.go"], "test"],
    ["spec/user_spec.rb", ["lib/user.rb"], "source"],
    ["view.js", ["__tests__/view.js"], "test"],
  ])("finds those of %s", async (of, found, what) => {
    const { folder, text } = await openEditor(files);
    const expected = [`The ${what} files of ${join(folder, of)}, the likeliest first:`, ...found.map((name) => join(folder, name))].join(
      "\n",
    );
    expect(await text("find_test_files", { filePaths: [of] })).toBe(expected);
  });

  test("says if there are none, and which files it does not know", async () => {
    const { folder, text, call } = await openEditor(files);
    expect(await text("find_test_files", { filePaths: ["lonely.ts", "notes.txt"] })).toBe(
      `No test files found for ${join(folder, "lonely.ts")}\n\n${join(folder, "notes.txt")} is not a source file whose tests can be found by name.`,
    );
    expect((await call("find_test_files", { filePaths: [] })).textResultForLlm).toMatch(/filePaths/);
  });

  test.each([
    ["a.test.tsx", "a", true],
    ["a-test.js", "a", true],
    ["test_a.py", "a", true],
    ["aTests.cs", "a", true],
    ["TestThing.java", "thing", true],
    ["ContestThing.java", "contestthing", false],
    ["latest.ts", "latest", false],
    ["test.ts", "test", false],
  ])("reads the name %s", (name, subject, isTest) => {
    expect(readTestName([name])).toMatchObject({ subject, isTest });
  });
});
