import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../skills/kit.ts";
import { openWorkspace } from "./workspace-kit.ts";

// The texts of the Copilot SDK's recorded conversations, word for word.

describe("view", () => {
  const files = {
    "lines.txt": "line1\nline2\nline3\nline4\nline5\n",
    "no-end.txt": "one\ntwo",
    "blank.txt": "a\n\nb",
    "empty.txt": "",
    "crlf.txt": "a\r\nb\r\n",
  };
  test.each<[name: string, args: object, expected: string]>([
    ["a file that ends with a line break", { path: "lines.txt" }, "1. line1\n2. line2\n3. line3\n4. line4\n5. line5\n6."],
    ["a file that does not", { path: "no-end.txt" }, "1. one\n2. two"],
    ["an empty line within", { path: "blank.txt" }, "1. a\n2. \n3. b"],
    ["an empty file", { path: "empty.txt" }, "1."],
    ["CRLF", { path: "crlf.txt" }, "1. a\n2. b\n3."],
    ["a range, with the file's own numbers", { path: "lines.txt", view_range: [2, 4] }, "2. line2\n3. line3\n4. line4"],
    ["a range to the end", { path: "lines.txt", view_range: [5, -1] }, "5. line5\n6."],
    ["a range that reaches further than the file", { path: "no-end.txt", view_range: [2, 90] }, "2. two"],
  ])("shows %s", async (_name, args, expected) => {
    const { text } = await openWorkspace(files);
    expect(await text("view", args)).toBe(expected);
  });

  test("shows the names in a folder one per line, and a missing path as in the recorded conversations", async () => {
    const { folder, text, call } = await openWorkspace({ "b.txt": "", "a/inner.txt": "", ".hidden": "" });
    expect(await text("view", { path: folder })).toBe(".hidden\na\nb.txt");
    const missing = await call("view", { path: join(folder, "does_not_exist.txt") });
    expect(missing).toMatchObject({
      resultType: "failure",
      textResultForLlm: `Path ${folder}/does_not_exist.txt does not exist. Please provide a valid path.`,
    });
  });

  test("shows an image", async () => {
    const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
    const { folder, call } = await openWorkspace({ "shot.png": png });
    expect(await call("view", { path: "shot.png" })).toMatchObject({
      resultType: "success",
      textResultForLlm: "Viewed image file successfully.",
      binaryResultsForLlm: [
        { data: png.toString("base64"), mimeType: "image/png", type: "image", description: `Image file at path ${folder}/shot.png` },
      ],
    });
  });

  test("shows a large file only in ranges unless forced", async () => {
    const { text } = await openWorkspace({ "big.txt": "0123456789abcde\n".repeat(2_000) }, { largeOutput: { enabled: false } });
    expect(await text("view", { path: "big.txt" })).toBe(
      "File too large to read at once (31.3 KB). Consider using the grep tool to search within the file, or view with view_range to read specific sections.",
    );
    expect((await text("view", { path: "big.txt", forceReadLargeFiles: true })).split("\n")).toHaveLength(2_001);
    expect(await text("view", { path: "big.txt", view_range: [1999, 2000] })).toBe("1999. 0123456789abcde\n2000. 0123456789abcde");
  });

  test("cuts a range that is too long, and says where to continue", async () => {
    const { text } = await openWorkspace({ "big.txt": `${"x".repeat(999)}\n`.repeat(100) }, { largeOutput: { enabled: false } });
    const lines = (await text("view", { path: "big.txt", view_range: [10, -1] })).split("\n");
    expect(lines).toHaveLength(51);
    expect(lines.at(-1)).toBe("[Output truncated. Use view_range=[60, ...] to continue reading.]");
    expect(lines.at(-2)).toMatch(/^59\. x/);
  });

  test.each<[why: string, args: object, expected: RegExp]>([
    ["a range that ends before it begins", { path: "lines.txt", view_range: [4, 2] }, /^Invalid view_range: \[4, 2\]/],
    ["a range from zero", { path: "lines.txt", view_range: [0, 2] }, /^Invalid view_range/],
    ["a range behind the end", { path: "no-end.txt", view_range: [3, 5] }, /^Invalid view_range: \[3, 5\]\. The file has 2 lines\.$/],
    ["no range at all", { path: "lines.txt", view_range: [1] }, /view_range/],
  ])("refuses %s", async (_why, args, expected) => {
    const { call } = await openWorkspace(files);
    expect(await call("view", args)).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringMatching(expected) });
  });

  test("reads byte order marks and UTF-16, and refuses what is binary", async () => {
    const { text } = await openWorkspace({
      "bom.txt": "\uFEFFmarked\n",
      "wide.txt": Buffer.from("\uFEFFwide ü\n", "utf16le"),
      "data.bin": Buffer.from([1, 2, 0, 3]),
    });
    expect(await text("view", { path: "bom.txt" })).toBe("1. marked\n2.");
    expect(await text("view", { path: "wide.txt" })).toBe("1. wide ü\n2.");
    expect(await text("view", { path: "data.bin" })).toMatch(/is binary and cannot be shown\.$/);
  });

  test("reads a line of a file that is too large to be read as a whole", async () => {
    const { text } = await openWorkspace({ "huge.log": Buffer.alloc(40 * 1024 * 1024, "0123456789abcde\n") });
    expect(await text("view", { path: "huge.log", view_range: [2_000_000, 2_000_000] })).toBe("2000000. 0123456789abcde");
  });
});

describe("create", () => {
  test("says how many characters it wrote, and reports the file", async () => {
    const { folder, text, changed } = await openWorkspace();
    const path = join(folder, "new_file.txt");
    expect(await text("create", { path, file_text: "Created by test" })).toBe(`Created file ${path} with 15 characters`);
    expect(readFileSync(path, "utf8")).toBe("Created by test");
    expect(changed).toEqual([{ path, content: "Created by test" }]);
  });

  test("creates missing folders", async () => {
    const { folder, text } = await openWorkspace();
    expect(await text("create", { path: "a/b/c.txt", file_text: "x\n" })).toBe("Created file a/b/c.txt with 2 characters");
    expect(readFileSync(join(folder, "a/b/c.txt"), "utf8")).toBe("x\n");
  });

  test("does not change an existing file or ask about it", async () => {
    const { folder, call, asked, changed } = await openWorkspace({ "there.txt": "old" });
    expect(await call("create", { path: "there.txt", file_text: "new" })).toMatchObject({
      resultType: "failure",
      textResultForLlm: `Path ${folder}/there.txt already exists. Use edit to change an existing file.`,
    });
    expect(readFileSync(join(folder, "there.txt"), "utf8")).toBe("old");
    expect([asked, changed]).toEqual([[], []]);
  });
});

describe("edit", () => {
  test("says that the file is updated, and reports the change", async () => {
    const { folder, text, changed } = await openWorkspace({ "edit_me.txt": "Hello World\nGoodbye World\n" });
    const path = join(folder, "edit_me.txt");
    expect(await text("edit", { path, old_str: "Hello World", new_str: "Hi Universe" })).toBe(`File ${path} updated with changes.`);
    expect(await text("view", { path })).toBe("1. Hi Universe\n2. Goodbye World\n3.");
    expect(changed).toEqual([{ path, content: "Hi Universe\nGoodbye World\n" }]);
  });

  test.each<[name: string, before: string, args: object, after: string]>([
    ["takes a passage away without new_str", "one\ntwo\n", { old_str: "one\n" }, "two\n"],
    ["fills an empty file", "", { old_str: "", new_str: "full" }, "full"],
    ["puts what looks like a reference as it is", "x", { old_str: "x", new_str: "$& $1 $$" }, "$& $1 $$"],
    ["keeps CRLF, whatever the model writes", "a\r\nb\r\nc\r\n", { old_str: "a\nb", new_str: "1\n2\n3" }, "1\r\n2\r\n3\r\nc\r\n"],
    ["keeps CRLF for a passage within a line", "a b\r\nc\r\n", { old_str: "b", new_str: "B\nB" }, "a B\r\nB\r\nc\r\n"],
    ["keeps the byte order mark", "\uFEFFold\n", { old_str: "old", new_str: "new" }, "\uFEFFnew\n"],
    ["keeps LF where only a few lines have CRLF", "a\r\nb\nc\nd\n", { old_str: "b\nc", new_str: "x\ny" }, "a\r\nx\ny\nd\n"],
  ])("%s", async (_name, before, args, after) => {
    const { folder, call } = await openWorkspace({ "f.txt": before });
    expect((await call("edit", { path: "f.txt", ...args })).resultType).toBe("success");
    expect(readFileSync(join(folder, "f.txt"), "utf8")).toBe(after);
  });

  test("keeps UTF-16 and the file's mode", async () => {
    const { folder, text } = await openWorkspace({ "wide.txt": Buffer.from("\uFEFFold ü\n", "utf16le"), "run.sh": "echo a\n" });
    chmodSync(join(folder, "run.sh"), 0o755);
    await text("edit", { path: "wide.txt", old_str: "old", new_str: "new" });
    await text("edit", { path: "run.sh", old_str: "a", new_str: "b" });
    expect(readFileSync(join(folder, "wide.txt")).equals(Buffer.from("\uFEFFnew ü\n", "utf16le"))).toBe(true);
    expect(statSync(join(folder, "run.sh")).mode & 0o777).toBe(0o755);
  });

  test.each<[why: string, content: string | Uint8Array, args: object, expected: RegExp]>([
    [
      "a passage that is not there",
      "abc",
      { old_str: "x", new_str: "y" },
      /^No match found in .*f\.txt: old_str must match the file exactly/,
    ],
    [
      "a passage that stands there twice",
      "ab ab",
      { old_str: "ab", new_str: "y" },
      /^Multiple matches found in .*: old_str occurs 2 times\./,
    ],
    ["passages that overlap", "aaa", { old_str: "aa", new_str: "y" }, /occurs 2 times/],
    ["no passage in a file that is not empty", "abc", { new_str: "y" }, /^old_str is needed/],
    ["a binary file", Buffer.from([97, 0, 98]), { old_str: "a", new_str: "y" }, /is binary and cannot be edited\.$/],
    ["a file in another encoding", Buffer.from([0x66, 0xfc, 0x72]), { old_str: "f", new_str: "y" }, /is not valid UTF-8/],
  ])("refuses %s, and changes nothing", async (_why, content, args, expected) => {
    const { folder, call, changed } = await openWorkspace({ "f.txt": content });
    expect(await call("edit", { path: "f.txt", ...args })).toMatchObject({
      resultType: "failure",
      textResultForLlm: expect.stringMatching(expected),
    });
    expect(readFileSync(join(folder, "f.txt")).equals(Buffer.from(content))).toBe(true);
    expect(changed).toEqual([]);
  });

  test("refuses a missing file with the message of view", async () => {
    const { folder, text } = await openWorkspace();
    expect(await text("edit", { path: "gone.txt", old_str: "a", new_str: "b" })).toBe(
      `Path ${folder}/gone.txt does not exist. Please provide a valid path.`,
    );
  });

  test("makes all concurrent edits of one file", async () => {
    const names = Array.from({ length: 20 }, (_, index) => `name${String(index).padStart(2, "0")}`);
    const { folder, call } = await openWorkspace({ "f.txt": names.join("\n") });
    await Promise.all(names.map((name) => call("edit", { path: "f.txt", old_str: name, new_str: name.toUpperCase() })));
    expect(readFileSync(join(folder, "f.txt"), "utf8")).toBe(names.join("\n").toUpperCase());
  });

  test("changes the target of a link within the folder, and keeps the link", async () => {
    const { folder, text } = await openWorkspace({ "real.txt": "old" });
    symlinkSync("real.txt", join(folder, "link.txt"));
    await text("edit", { path: "link.txt", old_str: "old", new_str: "new" });
    expect(readFileSync(join(folder, "real.txt"), "utf8")).toBe("new");
    expect(readFileSync(join(folder, "link.txt"), "utf8")).toBe("new");
  });
});

test("the tools are built-in, have these names, and describe each argument", async () => {
  const { session } = await openWorkspace();
  const listed = session.listTools();
  expect(listed.map(({ name }) => name)).toEqual([
    "bash",
    "create",
    "edit",
    "glob",
    "grep",
    "list_bash",
    "read_bash",
    "stop_bash",
    "view",
    "web_fetch",
    "write_bash",
  ]);
  for (const { name, description, parameters } of session.tools) {
    expect(description, name).toMatch(/\.$/);
    const { properties } = parameters as { properties: Record<string, { description?: string }> };
    for (const [key, { description: about }] of Object.entries(properties)) expect(about, `${name} ${key}`).toBeTruthy();
  }
});

test("folders that a session adds are writable, and those of its long results and skills are read-only", async () => {
  const other = tempFolder({ "o.txt": "other\n" });
  const skills = tempFolder({
    "notes/SKILL.md": "---\nname: notes\ndescription: Notes for a test.\n---\nSee.\n",
    "notes/more.txt": "more\n",
  });
  const outputs = tempFolder();
  const { call, text } = await openWorkspace(
    { "long.txt": `${"0123456789".repeat(3)}\n`.repeat(400) },
    { additionalDirectories: [other], skillDirectories: [skills], largeOutput: { maxSizeBytes: 2_000, outputDir: outputs } },
  );
  expect(await text("view", { path: join(other, "o.txt") })).toBe("1. other\n2.");
  expect((await call("create", { path: join(other, "new/x.txt"), file_text: "x" })).resultType).toBe("success");
  expect(await text("view", { path: join(skills, "notes/more.txt") })).toBe("1. more\n2.");
  expect((await call("create", { path: join(skills, "notes/x.txt"), file_text: "x" })).resultType).toBe("failure");
  const long = await text("view", { path: "long.txt" });
  const [, file] = /The full output is in (\S+):/.exec(long) ?? [];
  expect(file).toContain(outputs);
  expect(await text("view", { path: file, view_range: [400, 400] })).toBe(`400. 400. ${"0123456789".repeat(3)}`);
  expect((await call("edit", { path: file, old_str: "400. 0", new_str: "" })).resultType).toBe("failure");
  mkdirSync(join(outputs, "deeper"));
  expect(existsSync(join(skills, "notes/x.txt"))).toBe(false);
});
