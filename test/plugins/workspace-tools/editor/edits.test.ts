import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { commitChanges } from "../../../../plugins/workspace-tools/operations/commit-changes.ts";
import type { Place } from "../../../../plugins/workspace-tools/operations/places.ts";
import type { DecodedText } from "../../../../plugins/workspace-tools/operations/text-encoding.ts";
import { rounds } from "../../../rounds.ts";
import { tempFolder } from "../../../skills/kit.ts";
import { closeEditors, openEditor } from "../workspace-kit.ts";

afterAll(closeEditors);

const edited = (...paths: readonly string[]): string => `The following files were successfully edited:\n${paths.join("\n")}`;

describe("replace_string_in_file", () => {
  test.each<[what: string, before: string | Buffer, replace: [old: string, now: string], after: string | Buffer]>([
    ["one passage", "a\nb\nc\n", ["b", "B"], "a\nB\nc\n"],
    ["lines of a text with CRLF by what has LF", "a\r\nb\r\nc\r\n", ["a\nb\n", "a\nB\nB\n"], "a\r\nB\r\nB\r\nc\r\n"],
    ["with a byte order mark", "\uFEFFa\nb\n", ["a", "A"], "\uFEFFA\nb\n"],
    ["in UTF-16", Buffer.from("\uFEFFa\nb\n", "utf16le"), ["b", "ü"], Buffer.from("\uFEFFa\nü\n", "utf16le")],
    ["by what looks like a reference", "a\n", ["a", "$&$1"], "$&$1\n"],
    ["an end without a line break by one that has it", "a\nlast", ["last\n", "end\n"], "a\nend\n"],
    ["nothing, in a file that is empty", "", ["", "a\n"], "a\n"],
    ["a passage by nothing", "a\nb\n", ["a\n", ""], "b\n"],
  ])("replaces %s", async (_what, before, [oldString, newString], after) => {
    const { folder, text, changed } = await openEditor({ "f.txt": before });
    expect(await text("replace_string_in_file", { filePath: "f.txt", oldString, newString })).toBe(edited(join(folder, "f.txt")));
    expect(readFileSync(join(folder, "f.txt"))).toEqual(Buffer.from(after));
    expect(changed).toHaveLength(1);
  });

  test.each<[what: string, before: string | Buffer, replace: [old: string, now: string], says: RegExp]>([
    ["a passage that is not there", "a\n", ["x", "y"], /^Could not find oldString in .*f\.txt: .* Nothing was changed\. Read the file/],
    ["one that differs in white space", "a\n  b\nc\n", ["b\n  c", "y"], /The text at line 2 differs only in whitespace/],
    ["one that is there twice", "a\na\n", ["a", "y"], /it occurs 2 times\. Nothing was changed\. Include more lines/],
    ["one that overlaps itself", "aaa\n", ["aa", "y"], /it occurs 2 times/],
    ["what is not a change", "a\n", ["a", "a"], /^oldString and newString are identical/],
    ["no passage, in a file that is not empty", "a\n", ["", "y"], /^oldString is empty, and .* is not/],
    ["a binary file", Buffer.from([1, 0, 2]), ["x", "y"], /is binary and cannot be edited/],
    ["a file in another encoding", Buffer.from([0xe4, 0x0a]), ["x", "y"], /is not valid UTF-8/],
  ])("refuses %s, and changes nothing", async (_what, before, [oldString, newString], says) => {
    const { folder, call, changed } = await openEditor({ "f.txt": before });
    const result = await call("replace_string_in_file", { filePath: "f.txt", oldString, newString });
    expect(result).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringMatching(says) });
    expect(readFileSync(join(folder, "f.txt"))).toEqual(Buffer.from(before));
    expect(changed).toEqual([]);
  });

  test("refuses a path that is not a file", async () => {
    const { call } = await openEditor({ "sub/f.txt": "" });
    const replace = (filePath: string): Promise<object> => call("replace_string_in_file", { filePath, oldString: "a", newString: "b" });
    expect(await replace("none.txt")).toMatchObject({
      resultType: "failure",
      textResultForLlm: expect.stringMatching(/none\.txt does not exist/),
    });
    expect(await replace("sub")).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringMatching(/is a folder/) });
  });

  test("names the argument that is missing or wrong", async () => {
    const { call, asked } = await openEditor({ "f.txt": "a\n" });
    const result = await call("replace_string_in_file", { filePath: "f.txt", oldString: 1 });
    expect(result.resultType).toBe("failure");
    expect(result.textResultForLlm).toMatch(/newString/);
    expect(result.textResultForLlm).toMatch(/oldString/);
    expect(asked).toEqual([]);
  });

  test("refuses a file that is too large", async () => {
    const { call } = await openEditor({ "f.txt": Buffer.alloc(21 * 1024 * 1024, 97) });
    const result = await call("replace_string_in_file", { filePath: "f.txt", oldString: "b", newString: "c" });
    expect(result.textResultForLlm).toMatch(/is larger than the 20 MB that can be edited/);
  });

  test("makes concurrent edits of a file in order", async () => {
    const { folder, session } = await openEditor({ "f.txt": "1\n2\n3\n4\n5\n" });
    const calls = [1, 2, 3, 4, 5].map((number) => ({
      toolCallId: `call-${number}`,
      name: "replace_string_in_file",
      arguments: { filePath: "f.txt", oldString: String(number), newString: `${number}${number}` },
    }));
    await Promise.all(calls.map(({ name, arguments: args }) => session.callTool(name, args)));
    expect(readFileSync(join(folder, "f.txt"), "utf8")).toBe("11\n22\n33\n44\n55\n");
  });

  test("keeps the permissions of a file", async () => {
    const { folder, call } = await openEditor({ "run.sh": "echo a\n" });
    chmodSync(join(folder, "run.sh"), 0o755);
    await call("replace_string_in_file", { filePath: "run.sh", oldString: "a", newString: "b" });
    expect(statSync(join(folder, "run.sh")).mode & 0o777).toBe(0o755);
  });
});

describe("multi_replace_string", () => {
  test("makes replacements in order, each on the result of the previous one", async () => {
    const { folder, text, changed } = await openEditor({ "a.txt": "one\n", "b.txt": "two\n" });
    const replacements = [
      { filePath: "a.txt", oldString: "one", newString: "first" },
      { filePath: join(folder, "b.txt"), oldString: "two", newString: "second" },
      { filePath: "./a.txt", oldString: "first", newString: "last" },
    ];
    const paths = edited(join(folder, "a.txt"), join(folder, "b.txt"));
    expect(await text("multi_replace_string", { explanation: "x", replacements })).toBe(`Applied 3 replacements.\n${paths}`);
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("last\n");
    // Each file once, with its final content.
    expect(changed.map(({ content }) => content)).toEqual(["last\n", "second\n"]);
  });

  test.each<[what: string, last: object, says: RegExp]>([
    ["is not there", { filePath: "b.txt", oldString: "none", newString: "x" }, /^Replacement 2 of 2: Could not find oldString in .*b\.txt/],
    ["has no file", { filePath: "c.txt", oldString: "none", newString: "x" }, /^Replacement 2 of 2: .*c\.txt does not exist/],
  ])("makes none when one %s", async (_what, last, says) => {
    const { folder, call, changed } = await openEditor({ "a.txt": "one\n", "b.txt": "two\n" });
    const replacements = [{ filePath: "a.txt", oldString: "one", newString: "first" }, last];
    const result = await call("multi_replace_string", { replacements });
    expect(result).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringMatching(says) });
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("one\n");
    expect(changed).toEqual([]);
  });

  test.each([[[]], [undefined]])("needs at least one replacement: %j", async (replacements) => {
    const { call } = await openEditor();
    expect((await call("multi_replace_string", { replacements })).textResultForLlm).toMatch(/replacements/);
  });
});

describe("create_file", () => {
  test("creates missing folders, and reports the file", async () => {
    const { folder, text, changed } = await openEditor();
    const filePath = join(folder, "deep/er/f.txt");
    expect(await text("create_file", { filePath, content: "a\r\nb" })).toBe(`Created file ${filePath}`);
    expect(readFileSync(filePath, "utf8")).toBe("a\r\nb");
    expect(changed).toMatchObject([{ path: filePath, content: "a\r\nb" }]);
  });

  test("does not change an existing file or ask about it, but fills an empty one", async () => {
    const { folder, call, asked } = await openEditor({ "f.txt": "a", "empty.txt": "" });
    const refused = await call("create_file", { filePath: "f.txt", content: "b" });
    expect(refused.textResultForLlm).toBe(
      `File ${join(folder, "f.txt")} already exists. Nothing was changed. Use replace_string_in_file, or insert_edit_into_file, to change it.`,
    );
    expect([refused.resultType, asked.length]).toEqual(["failure", 0]);
    expect((await call("create_file", { filePath: "empty.txt", content: "b" })).resultType).toBe("success");
    expect(readFileSync(join(folder, "empty.txt"), "utf8")).toBe("b");
  });

  test("creates an empty file", async () => {
    const { folder, text } = await openEditor();
    expect(await text("create_file", { filePath: "f.txt", content: "" })).toBe(`Created file ${join(folder, "f.txt")}`);
    expect(existsSync(join(folder, "f.txt"))).toBe(true);
  });

  test("is refused below a file", async () => {
    const { call } = await openEditor({ "f.txt": "a" });
    const result = await call("create_file", { filePath: "f.txt/g.txt", content: "b" });
    expect(result).toMatchObject({
      resultType: "failure",
      textResultForLlm: expect.stringMatching(/cannot be written\. Nothing was changed\.$/),
    });
  });
});

describe("create_directory", () => {
  test("creates a folder and its parents, and says if it exists", async () => {
    const { folder, text } = await openEditor();
    expect(await text("create_directory", { dirPath: "a/b" })).toBe(`Created folder ${join(folder, "a/b")}`);
    expect(await text("create_directory", { dirPath: "a/b" })).toBe(`Folder ${join(folder, "a/b")} already exists.`);
    expect(statSync(join(folder, "a/b")).isDirectory()).toBe(true);
  });

  test("is refused if there is a file with its name", async () => {
    const { folder, call } = await openEditor({ "f.txt": "" });
    expect((await call("create_directory", { dirPath: "f.txt" })).textResultForLlm).toBe(
      `${join(folder, "f.txt")} already exists, and is a file.`,
    );
    expect((await call("create_directory", { dirPath: "f.txt/g" })).textResultForLlm).toBe(
      `Folder ${join(folder, "f.txt/g")} cannot be created.`,
    );
  });
});

test("if a file is deleted while the user is asked, the edit fails and changes nothing", async () => {
  let vanish = (): void => {};
  const { folder, call } = await openEditor({ "a.txt": "one\n", "b.txt": "two\n" }, {}, () => {
    vanish();
    return { kind: "approve-once" };
  });
  vanish = () => rmSync(join(folder, "b.txt"));
  const replacements = ["a", "b"].map((name) => ({ filePath: `${name}.txt`, oldString: name === "a" ? "one" : "two", newString: "x" }));
  expect((await call("multi_replace_string", { replacements })).textResultForLlm).toMatch(/b\.txt does not exist/);
  expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("one\n");
});

test("an edit that matches only after another one of the same message is requested and made", async () => {
  const { folder, session, asked } = await openEditor({ "a.txt": "one\n" });
  const edit = (oldString: string, newString: string, number: number) => ({
    id: `call-${number}`,
    name: "replace_string_in_file",
    arguments: { filePath: "a.txt", oldString, newString },
  });
  const prepared = await session.prepare([edit("one", "two", 1), edit("two", "three", 2)]);
  for (const call of prepared) await session.run(call);
  expect(asked.map((request) => String(request["diff"])).toSorted()).toEqual([
    `--- a/${folder}/a.txt\n+++ b/${folder}/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two`,
    "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-two\n+three",
  ]);
  expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("three\n");
});

describe("changes of several files", () => {
  const decoded = (text: string): DecodedText => ({ text, encoding: "utf-8", hasMark: false, isExact: true });
  const machine = { writeFile: (path: string, data: string | Uint8Array): Promise<void> => writeFile(path, data) };

  test("are undone if one of them fails", async () => {
    const folder = tempFolder({ "a.txt": "a\n", "gone.txt": "gone\n" });
    const place = (name: string): Place => ({ path: join(folder, name), real: join(folder, name), root: folder });
    // It was a file when it was read.
    mkdirSync(join(folder, "b.txt"));
    const changes = [
      { place: place("a.txt"), before: decoded("a\n"), after: "A\n", mode: undefined },
      { place: place("gone.txt"), before: decoded("gone\n"), after: undefined, mode: undefined },
      { place: place("new/er/c.txt"), before: undefined, after: "c\n", mode: undefined },
      { place: place("b.txt"), before: decoded("b\n"), after: "B\n", mode: undefined },
    ];
    expect(await commitChanges(changes, machine)).toMatchObject({ place: { path: join(folder, "b.txt") }, cause: { code: "EISDIR" } });
    expect(readdirSync(folder)).toEqual(["a.txt", "b.txt", "gone.txt"]);
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("a\n");
  });

  test("do not overwrite a file that was created meanwhile", async () => {
    const folder = tempFolder({ "a.txt": "theirs\n" });
    const place = { path: join(folder, "a.txt"), real: join(folder, "a.txt"), root: folder };
    expect(await commitChanges([{ place, before: undefined, after: "ours\n", mode: undefined }], machine)).toMatchObject({
      cause: { code: "EEXIST" },
    });
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("theirs\n");
  });
});

test("a file with very many lines can be edited", async () => {
  const lines = Array.from({ length: rounds(210_000, 300_000) }, (_, at) => `line ${at}\n`).join("");
  const { folder, call } = await openEditor({ "many.txt": lines });
  const patch = "*** Begin Patch\n*** Update File: many.txt\n@@\n-line 150000\n+changed\n*** End Patch";
  expect((await call("apply_patch", { input: patch })).resultType).toBe("success");
  const insert = { filePath: "many.txt", code: "// ...existing code...\nline 200000\nadded\nline 200001\n// ...existing code...\n" };
  expect((await call("insert_edit_into_file", insert)).resultType).toBe("success");
  expect((await call("insert_edit_into_file", { filePath: "many.txt", code: lines.replaceAll("line", "row") })).resultType).toBe("success");
  expect(readFileSync(join(folder, "many.txt"), "utf8")).toBe(lines.replaceAll("line", "row"));
});
