import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { unifiedDiff } from "../../../../plugins/workspace-tools/operations/unified-diff.ts";
import { closeEditors, openEditor, openWorkspace } from "../workspace-kit.ts";

afterAll(closeEditors);

describe("the permission request", () => {
  test.each<[tool: string, args: object, expected: (folder: string) => object]>([
    ["read_file", { filePath: "a.txt" }, (folder) => ({ kind: "read", intention: `Read ${folder}/a.txt`, path: `${folder}/a.txt` })],
    ["list_dir", { path: "sub" }, (folder) => ({ kind: "read", intention: `List ${folder}/sub`, path: `${folder}/sub` })],
    ["file_search", { query: "*.ts" }, (folder) => ({ kind: "read", intention: 'Find files by "*.ts"', path: folder })],
    ["grep_search", { query: "x", includePattern: "*.ts" }, (folder) => ({ kind: "read", intention: 'Search for "x"', path: folder })],
    ["find_test_files", { filePaths: ["a.txt"] }, (folder) => ({ kind: "read", intention: "Find test files", path: folder })],
    ["get_errors", {}, (folder) => ({ kind: "read", intention: "Check files for errors", path: folder })],
    [
      "create_directory",
      { dirPath: "d" },
      (folder) => ({ kind: "write", intention: `Create the folder ${folder}/d`, fileName: `${folder}/d` }),
    ],
    [
      "create_file",
      { filePath: "new.txt", content: "x\n" },
      (folder) => ({
        kind: "write",
        intention: `Edit ${folder}/new.txt`,
        fileName: `${folder}/new.txt`,
        diff: `--- /dev/null\n+++ b/${folder}/new.txt\n@@ -0,0 +1,1 @@\n+x`,
        newFileContents: "x\n",
        canOfferSessionApproval: true,
      }),
    ],
    [
      "multi_replace_string",
      {
        replacements: [
          { filePath: "a.txt", oldString: "1\n2\n", newString: "one\n2\n" },
          { filePath: "a.txt", oldString: "20\n", newString: "twenty\n" },
        ],
      },
      (folder) => ({
        kind: "write",
        fileName: `${folder}/a.txt`,
        diff: [
          `--- a/${folder}/a.txt`,
          `+++ b/${folder}/a.txt`,
          "@@ -1,4 +1,4 @@",
          ...["-1", "+one", " 2", " 3", " 4"],
          "@@ -17,4 +17,4 @@",
          ...[" 17", " 18", " 19", "-20", "+twenty"],
        ].join("\n"),
      }),
    ],
    [
      "apply_patch",
      { input: "*** Begin Patch\n*** Update File: a.txt\n@@\n-5\n+five\n 6\n*** Delete File: sub/b.txt\n*** End Patch" },
      (folder) => ({
        kind: "write",
        intention: "Edit 2 files",
        fileName: folder,
        possiblePaths: [`${folder}/a.txt`, `${folder}/sub/b.txt`],
        diff: [
          `--- a/${folder}/a.txt`,
          `+++ b/${folder}/a.txt`,
          "@@ -2,7 +2,7 @@",
          ...[" 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"],
          `--- a/${folder}/sub/b.txt`,
          "+++ /dev/null",
          "@@ -1,1 +0,0 @@",
          "-b",
        ].join("\n"),
      }),
    ],
    [
      "run_in_terminal",
      { command: "git status > log.txt", explanation: "Looks around" },
      () => ({
        kind: "shell",
        intention: "Looks around",
        fullCommandText: "git status > log.txt",
        possiblePaths: ["log.txt"],
        hasWriteFileRedirection: true,
      }),
    ],
    [
      "fetch_web_page",
      { urls: ["http://127.0.0.1:9/x"] },
      () => ({ kind: "url", intention: "Fetch a web page", url: "http://127.0.0.1:9/x" }),
    ],
  ])("of %s %j", async (tool, args, expected) => {
    const numbers = Array.from({ length: 20 }, (_, at) => `${at + 1}\n`).join("");
    const { folder, call, asked } = await openEditor({ "a.txt": numbers, "sub/b.txt": "b\n" });
    await call(tool, args);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ toolName: tool, toolArgs: expect.objectContaining(args), ...expected(folder) });
  });
});

describe("without permission", () => {
  test("no tool changes anything", async () => {
    const { folder, call, changed } = await openEditor({ "a.txt": "a\n" }, {}, () => ({ kind: "reject" }));
    const calls: readonly (readonly [string, object])[] = [
      ["create_file", { filePath: "n.txt", content: "" }],
      ["create_directory", { dirPath: "n" }],
      ["insert_edit_into_file", { filePath: "a.txt", code: "b" }],
      ["apply_patch", { input: "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch" }],
      ["run_in_terminal", { command: "touch ran" }],
      ["run_tests", { command: "touch ran" }],
      ["read_file", { filePath: "a.txt" }],
      ["get_errors", {}],
    ];
    for (const [name, args] of calls) expect([name, (await call(name, args)).resultType]).toEqual([name, "rejected"]);
    expect(changed).toEqual([]);
    const { text } = await openEditor({}, { workingDirectory: folder });
    expect(await text("list_dir", { path: "." })).toBe("a.txt");
  });
});

describe("rules for several files or addresses", () => {
  const edit = (...names: readonly string[]): object => ({
    input: ["*** Begin Patch", ...names.flatMap((name) => [`*** Update File: ${name}`, "@@", "-a", "+b"]), "*** End Patch"].join("\n"),
  });
  const files = { "src/a.ts": "a\n", "src/b.ts": "a\n", "src/keys/k.ts": "a\n", "other/c.ts": "a\n" };

  test.each<[permissions: object, names: readonly string[], outcome: string]>([
    [{ allow: ["write(src/**)"] }, ["src/a.ts", "src/b.ts"], "allowed"],
    [{ allow: ["write(src/**)"] }, ["src/a.ts", "other/c.ts"], "asked"],
    [{ allow: ["write(src/*.ts)"] }, ["src/a.ts", "src/b.ts"], "allowed"],
    [{ allow: ["write"], deny: ["write(src/keys/**)"] }, ["src/a.ts", "src/keys/k.ts"], "denied"],
    [{ allow: ["write"], deny: ["write(src/keys)"] }, ["src/keys/k.ts"], "denied"],
    [{ allow: ["write"], ask: ["write(other/**)"] }, ["src/a.ts", "other/c.ts"], "asked"],
    [{ allow: ["write"], deny: ["write(src/keys/**)"] }, ["src/a.ts", "src/b.ts"], "allowed"],
  ])("apply to each of them: %j for %j", async (permissions, names, outcome) => {
    const { folder, call, asked } = await openEditor(files, { permissions }, () => ({ kind: "reject" }));
    const { resultType } = await call("apply_patch", edit(...names));
    expect({ resultType, asked: asked.length }).toEqual(
      {
        allowed: { resultType: "success", asked: 0 },
        asked: { resultType: "rejected", asked: 1 },
        denied: { resultType: "denied", asked: 0 },
      }[outcome],
    );
    for (const name of names) expect(readFileSync(join(folder, name), "utf8")).toBe(outcome === "allowed" ? "b\n" : "a\n");
  });

  test.each<[permissions: object, outcome: [resultType: string, asked: number]]>([
    [{ allow: ["url(127.0.0.1:9)"] }, ["rejected", 1]],
    [{ allow: ["url(127.0.0.1:9)", "url(localhost:9)"] }, ["rejected", 1]],
    [{ allow: ["url"], deny: ["url(localhost:9)"] }, ["denied", 0]],
    [{ allow: ["url"] }, ["rejected", 1]],
    [{ allow: ["url(127.0.0.1:9)"], deny: ["url(evil.example)"] }, ["rejected", 1]],
  ])("apply to each address: %j", async (permissions, outcome) => {
    const { call, asked } = await openEditor({}, { permissions }, () => ({ kind: "reject" }));
    const { resultType } = await call("fetch_web_page", { urls: ["http://127.0.0.1:9/", "http://localhost:9/"] });
    expect([resultType, asked.length]).toEqual(outcome);
  });

  test("an approval for the session covers every host of the request", async () => {
    const { call, asked } = await openEditor({}, {}, () => ({ kind: "approve-for-session" }));
    const fetch = (...urls: readonly string[]): Promise<object> => call("fetch_web_page", { urls });
    await fetch("http://127.0.0.1:9/", "http://localhost:9/");
    await fetch("http://localhost:9/other");
    await fetch("http://localhost:9/", "http://127.0.0.1:9/");
    expect(asked).toHaveLength(1);
    await fetch("http://localhost:9/", "http://[::1]:9/");
    expect(asked).toHaveLength(2);
  });
});

describe("rules that deny reading", () => {
  const files = { "open/a.txt": "needle\n", "secret/b.txt": "needle\n", "secret/deep/c.json": "{", "d.key": "needle\n", "e.json": "{}" };

  test.each([{ deny: ["read(secret/**)", "read(*.key)"] }, { ask: ["read(secret)", "read(*.key)"] }])(
    "exclude those paths from searches above them: %j",
    async (rules) => {
      const permissions = { allow: ["read"], ...rules };
      const { folder, text } = await openEditor(files, { permissions }, () => ({ kind: "reject" }));
      expect(await text("grep_search", { query: "needle" })).toBe(`Searched text for: needle, 1 result\n${folder}/open/a.txt:1:needle`);
      expect(await text("file_search", { query: "**/*" })).toBe(
        `Found 2 files matching query: **/*\n${folder}/e.json\n${folder}/open/a.txt`,
      );
      expect(await text("get_errors")).toMatch(/^No errors found\.\nChecked: 1 file for JSON syntax\./);
      const copilot = await openWorkspace(files, { permissions }, () => ({ kind: "reject" }));
      expect(await copilot.text("grep", { pattern: "needle" })).toBe("./open/a.txt");
      expect(await copilot.text("glob", { pattern: "**/*.{txt,key}" })).toBe("./open/a.txt");
    },
  );

  test("do not affect other files", async () => {
    const { text } = await openEditor(files, { permissions: { allow: ["read"], deny: ["read(none/**)", "write(secret/**)"] } });
    expect(await text("grep_search", { query: "needle" })).toMatch(/3 results/);
  });
});

describe("a diff of two texts", () => {
  const texts = fc
    .tuple(fc.array(fc.constantFrom("a", "b", "c", ""), { maxLength: 30 }), fc.constantFrom("", "\n"))
    .map(([lines, end]) => lines.join("\n") + end);

  test("leads from one to the other", () => {
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        expect(applied(before, unifiedDiff("f", before, after))).toBe(after);
      }),
      { numRuns: 500 },
    );
  });

  test("has one hunk when they have nothing in common, however long they are", () => {
    const text = (word: string): string => Array.from({ length: 8_000 }, (_, at) => `${word} line ${at}\n`).join("");
    const diff = unifiedDiff("f", text("old"), text("new"));
    expect(diff.split("\n")[2]).toBe("@@ -1,8000 +1,8000 @@");
    expect(diff).toMatch(/\[Diff truncated\.\]$/);
  });

  // To find an edit, all lines before it are compared: the number of edits that are looked for falls as the texts grow.
  test.each([
    [1_000, 51],
    [20_000, 1],
  ])("has hunks of its own for changes %i lines apart: %i", (distance, hunks) => {
    const blocks = (mark: string): string => Array.from({ length: 51 }, () => `${"a\n".repeat(distance)}${mark}\n`).join("");
    expect(unifiedDiff("f", blocks("b"), blocks("c")).match(/^@@ |truncated/gm)).toHaveLength(hunks + (hunks === 1 ? 1 : 0));
  });

  test("that has one hunk shows what is between the first change and the last", () => {
    const lines = (from: number, word: string): string => Array.from({ length: 400 }, (_, at) => `${word} ${from + at}\n`).join("");
    const [before, after] = ["old", "new"].map((word) => `1\n2\n3\n4\n${lines(5, word)}5\n6\n7\n8`) as [string, string];
    const diff = unifiedDiff("f", before, after);
    expect(diff.split("\n").slice(2, 7)).toEqual(["@@ -2,406 +2,406 @@", " 2", " 3", " 4", "-old 5"]);
    expect(diff.split("\n").slice(-4)).toEqual(["+new 404", " 5", " 6", " 7"]);
    expect(applied(before, diff)).toBe(after);
    expect(applied(before, unifiedDiff("f", before, `${before}\n${after}`))).toBe(`${before}\n${after}`);
  });

  test("shows a missing line break at the end, and the kind of line breaks only where nothing else changes", () => {
    expect(unifiedDiff("f", "a\n", "a")).toBe("--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of file");
    expect(unifiedDiff("f", "a\r\nb\r\n", "a\nc\n")).toBe("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c");
    expect(unifiedDiff("f", "a\r\n", "a\n")).toBe("--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\r\n+a");
    expect(unifiedDiff("f", "a\n", "a\n")).toBe("--- a/f\n+++ b/f");
    expect(unifiedDiff("f", undefined, "")).toBe("--- /dev/null\n+++ b/f");
  });

  test("has the file's name in one line, whatever it is", () => {
    expect(unifiedDiff("é\n+++ b/other", "a\n", undefined)).toBe('--- "a/é\\n+++ b/other"\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a');
    expect(unifiedDiff("C:\\é", undefined, "a\n")).toBe("--- /dev/null\n+++ b/C:\\é\n@@ -0,0 +1,1 @@\n+a");
  });
});

const noBreak = "\0";

/** What a text becomes by the hunks of a diff, whose lines have to fit. */
function applied(text: string, diff: string): string {
  const before: readonly string[] = text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const lines = `${diff}\n`.replaceAll("\n\\ No newline at end of file\n", `${noBreak}\n`).split("\n").slice(2, -1);
  const after: string[] = [];
  let at = 0;
  for (const line of lines) {
    const [, start, length] = /^@@ -(\d+),(\d+) \+\d+,\d+ @@$/.exec(line) ?? [];
    const whole = line.endsWith(noBreak) ? line.slice(1, -1) : `${line.slice(1)}\n`;
    if (start !== undefined) {
      // The line that a hunk of no lines follows is counted from 0.
      const next = length === "0" ? Number(start) : Number(start) - 1;
      after.push(...before.slice(at, next));
      at = next;
    } else if (line.startsWith("+")) after.push(whole);
    else {
      expect(before[at]).toBe(whole);
      if (line.startsWith(" ")) after.push(whole);
      at++;
    }
  }
  return [...after, ...before.slice(at)].join("");
}
