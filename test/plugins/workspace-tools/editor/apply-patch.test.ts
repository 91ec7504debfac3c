import { chmodSync, existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { closeEditors, openEditor } from "../workspace-kit.ts";

afterAll(closeEditors);

const patch = (...lines: readonly string[]): string => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");
const update = (...lines: readonly string[]): string => patch("*** Update File: f.txt", ...lines);
const letters = "a\nb\nc\nd\ne\n";
const twins = "function a() {\n  x();\n}\n\nfunction b() {\n  x();\n}\n";

describe("an update by apply_patch", () => {
  test.each<[what: string, before: string, patched: string, after: string]>([
    ["replaces a line", letters, update("@@", " b", "-c", "+C", " d"), "a\nb\nC\nd\ne\n"],
    ["needs no @@ for its first hunk", letters, update(" b", "-c", "+C"), "a\nb\nC\nd\ne\n"],
    ["makes several hunks, in their order", letters, update("@@", "-a", "+A", "@@", "-e", "+E"), "A\nb\nc\nd\nE\n"],
    [
      "finds what is there several times by a header",
      twins,
      update("@@ function b() {", "-  x();", "+  y();"),
      twins.replace(/x(?=\(\);\n}\n$)/, "y"),
    ],
    [
      "goes past several headers",
      "class A {\n  m() {\n    x\n  }\n}\nclass B {\n  m() {\n    x\n  }\n}\n",
      update("@@ class B {", "@@   m() {", "-    x", "+    y"),
      "class A {\n  m() {\n    x\n  }\n}\nclass B {\n  m() {\n    y\n  }\n}\n",
    ],
    [
      "takes a header that its hunk repeats",
      twins,
      update("@@ function b() {", " function b() {", "+  w();", "   x();"),
      twins.replace("function b() {\n", "function b() {\n  w();\n"),
    ],
    [
      "takes a part of a line for a header",
      "def greet(self, name):\n    pass\n",
      update("@@ def greet", "-    pass", "+    go()"),
      "def greet(self, name):\n    go()\n",
    ],
    [
      "puts lines after a header",
      twins,
      update("@@ function b() {", "+  w();"),
      twins.replace("function b() {\n", "function b() {\n  w();\n"),
    ],
    ["puts lines at the end", letters, update("@@", "+f"), `${letters}f\n`],
    ["accepts that its lines are the last", "a\nb\na\n", update("@@", "-a", "+z", "*** End of File"), "a\nb\nz\n"],
    ["overlooks line numbers as other formats have them", letters, update("@@ -1,2 +1,2 @@", "-b", "+B"), "a\nB\nc\nd\ne\n"],
    ["overlooks white space at the ends of lines", "a  \nb\n", update("@@", " a", "-b", "+B"), "a  \nB\n"],
    ["overlooks another indentation", "\ta\n\tb\n", update("@@", " a", "-b", "+\tB"), "\ta\n\tB\n"],
    ["takes an empty line for one that is kept", "a\n\nb\n", update("@@", " a", "", "-b", "+B"), "a\n\nB\n"],
    ["keeps CRLF", "a\r\nb\r\nc\r\n", update("@@", " a", "-b", "+B", "+B", " c"), "a\r\nB\r\nB\r\nc\r\n"],
    ["keeps an end without a line break", "a\nb", update("@@", "-b", "+B"), "a\nB"],
    ["keeps a byte order mark", "\uFEFFa\n", update("@@", "-a", "+A"), "\uFEFFA\n"],
    ["empties a file", "a\n", update("@@", "-a"), ""],
    ["fills an empty file", "", update("@@", "+a"), "a\n"],
  ])("%s", async (_what, before, input, after) => {
    const { folder, text, changed } = await openEditor({ "f.txt": before });
    expect(await text("apply_patch", { input, explanation: "x" })).toBe(`Edited files:\n  - ${join(folder, "f.txt")}`);
    expect(readFileSync(join(folder, "f.txt"), "utf8")).toBe(after);
    expect(changed).toMatchObject([{ content: after.replace("\uFEFF", "") }]);
  });

  test.each<[what: string, before: string, patched: string, says: RegExp]>([
    [
      "fits nowhere",
      letters,
      update("@@", "-x", "+y"),
      /^Applying the patch failed: The hunk at line 3 of the patch does not fit anywhere in the file: its first line is "x"\. Read the file and try again\. The file is .*f\.txt\. Nothing was changed\.$/,
    ],
    [
      "fits only before another hunk",
      letters,
      update("@@", "-e", "+E", "@@", "-a", "+A"),
      /The hunk at line 6 of the patch does not fit anywhere behind the hunk before it/,
    ],
    [
      "fits at several places",
      twins,
      update("@@", "-  x();", "+  y();"),
      /fits at lines 2, 6\. Add lines around it, or "@@" with a line that comes before it/,
    ],
    [
      "names a header that is not there",
      twins,
      update("@@ function c() {", "-  x();"),
      /names "function c\(\) \{", and no such line follows/,
    ],
    [
      "is not about the last lines as it says",
      letters,
      update("@@", "-a", "*** End of File"),
      /does not fit anywhere at the end of the file/,
    ],
  ])("is refused when a hunk %s", async (_what, before, input, says) => {
    const { folder, call } = await openEditor({ "f.txt": before });
    expect(await call("apply_patch", { input })).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringMatching(says) });
    expect(readFileSync(join(folder, "f.txt"), "utf8")).toBe(before);
  });
});

describe("a patch", () => {
  test("adds, changes, deletes and renames files, and says which", async () => {
    const { folder, text, changed } = await openEditor({ "f.txt": letters, "old.txt": "old\n", "gone.txt": "gone\n" });
    chmodSync(join(folder, "old.txt"), 0o755);
    const input = patch(
      "*** Add File: new/n.txt",
      "+one",
      "+",
      "+two",
      "*** Update File: f.txt",
      "@@",
      "-a",
      "+A",
      "*** Update File: old.txt",
      "*** Move to: moved/here.txt",
      "@@",
      "-old",
      "+new",
      `*** Delete File: ${folder}/gone.txt`,
    );
    const at = (name: string): string => join(folder, name);
    expect(await text("apply_patch", { input })).toBe(
      `Edited files:\n  - ${at("f.txt")}\n\nCreated files:\n  - ${at("new/n.txt")}\n  - ${at("moved/here.txt")}\n\nDeleted files:\n  - ${at("old.txt")}\n  - ${at("gone.txt")}`,
    );
    expect(readFileSync(at("new/n.txt"), "utf8")).toBe("one\n\ntwo\n");
    expect(readFileSync(at("moved/here.txt"), "utf8")).toBe("new\n");
    expect(statSync(at("moved/here.txt")).mode & 0o777).toBe(0o755);
    expect([existsSync(at("old.txt")), existsSync(at("gone.txt"))]).toEqual([false, false]);
    expect(changed.map(({ path }) => path)).toEqual([at("new/n.txt"), at("f.txt"), at("moved/here.txt")]);
  });

  test("renames a file without another change", async () => {
    const { folder, text } = await openEditor({ "f.txt": letters });
    await text("apply_patch", { input: patch("*** Update File: f.txt", "*** Move to: g.txt") });
    expect([existsSync(join(folder, "f.txt")), readFileSync(join(folder, "g.txt"), "utf8")]).toEqual([false, letters]);
  });

  test("may change what it has added", async () => {
    const { folder, text } = await openEditor();
    await text("apply_patch", { input: patch("*** Add File: f.txt", "+a", "*** Update File: f.txt", "@@", "-a", "+b") });
    expect(readFileSync(join(folder, "f.txt"), "utf8")).toBe("b\n");
  });

  test.each<[what: string, last: readonly string[], says: RegExp]>([
    ["a file to change is missing", ["*** Update File: none.txt", "@@", "-a"], /none\.txt does not exist/],
    ["a file to delete is missing", ["*** Delete File: none.txt"], /none\.txt does not exist/],
    ["a file to add is there", ["*** Add File: there.txt", "+a"], /there\.txt already exists/],
    ["a file is there where one is to go", ["*** Update File: f.txt", "*** Move to: there.txt"], /there\.txt already exists/],
    ["a file to delete is a folder", ["*** Delete File: sub"], /sub is a folder/],
  ])("changes nothing at all when %s", async (_what, last, says) => {
    const { folder, call, changed } = await openEditor({ "f.txt": letters, "there.txt": "there\n", "sub/x": "" });
    const result = await call("apply_patch", { input: patch("*** Add File: new.txt", "+x", ...last) });
    expect(result).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringMatching(says) });
    expect(result.textResultForLlm).toMatch(/Nothing was changed\.$/);
    expect([existsSync(join(folder, "new.txt")), changed]).toEqual([false, []]);
  });

  test.each<[what: string, input: string, says: string]>([
    ["empty", "", 'its first line must be "*** Begin Patch"'],
    ["without an end", "*** Begin Patch\n*** Add File: a\n+a", 'its last line must be "*** End Patch"'],
    ["without a file", patch(), "it names no file"],
    ["of another format", "--- a/f.txt\n+++ b/f.txt", 'its first line must be "*** Begin Patch"'],
    ["without a path", patch("*** Add File:", "+a"), "line 2: the path is missing"],
    [
      "with lines of its own",
      patch("Hello"),
      'line 2: a line "*** Add File: <path>", "*** Update File: <path>" or "*** Delete File: <path>" is expected',
    ],
    [
      "with a line in a new file that has no plus",
      patch("*** Add File: a", "a"),
      'line 3: every line of a file that is added must begin with "+"',
    ],
    ["that says nothing of a file", patch("*** Update File: f.txt"), "line 3: nothing is said of what is to change in f.txt"],
    ["with a line in a hunk that has no sign", update("@@", "-a", "oops"), 'line 5: every line of a hunk must begin with " ", "-" or "+"'],
    ["with an empty hunk", update("@@", "@@"), "line 5: the hunk has no lines"],
  ])("that is %s is refused with the line, and the user is not asked", async (_what, input, says) => {
    const { call, asked } = await openEditor({ "f.txt": letters });
    const result = await call("apply_patch", { input });
    expect([result.resultType, result.textResultForLlm, asked]).toEqual([
      "failure",
      `The patch cannot be read: ${says}. Nothing was changed.`,
      [],
    ]);
  });

  test("with much white space is parsed in linear time", async () => {
    const { call } = await openEditor({ "f.txt": letters });
    const white = " ".repeat(200_000);
    for (const line of [`*** Add File: a${white}b`, `*** Update File: f.txt\n*** Move to: ${white}a${white}b`, `*** Update File:${white}`])
      expect((await call("apply_patch", { input: patch(line) })).resultType).toBe("failure");
  });

  test("with many hunks is applied in linear time", async () => {
    const { folder, call } = await openEditor({ "f.txt": Array.from({ length: 5_000 }, (_, at) => `line ${at}\n`).join("") });
    const hunks = Array.from({ length: 1_000 }, (_, at) => ["@@", `-line ${at * 5}`, `+LINE ${at * 5}`]).flat();
    expect((await call("apply_patch", { input: update(...hunks) })).resultType).toBe("success");
    expect(readFileSync(join(folder, "f.txt"), "utf8").match(/LINE/g)).toHaveLength(1_000);
  });
});
