import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ToolResult } from "skillhost";
import { createTestHost, type TestHost } from "skillhost/testing";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { execute } from "../../skills/memory/tools/memory.ts";

const skill = fileURLToPath(new URL("../../skills/memory/", import.meta.url));
let root: string;
let folder: string;
let server: TestHost;

beforeEach(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "memory-")));
  folder = join(root, "memories");
  vi.stubEnv("SKILLHOST_MEMORY_DIR", folder);
  server = await createTestHost({ skillDirectories: [skill], workingDirectory: root, watch: false });
});

afterEach(async () => {
  await server.close();
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true, force: true });
});

const call = (args: object): Promise<ToolResult> => server.call("memory", args);
const textOf = async (args: object): Promise<string> => (await call(args)).textResultForLlm;

test("the memory skill saves, lists, reads and deletes", async () => {
  expect(await textOf({ command: "list" })).toBe("No memories saved yet.");
  expect(await call({ command: "save", path: "b.md", content: "two\n" })).toMatchObject({
    resultType: "success",
    textResultForLlm: "Saved memory 'b.md'.",
  });
  await call({ command: "save", path: "a.md", content: "one" });
  expect(await textOf({ command: "list" })).toBe("a.md\nb.md");
  expect(await textOf({ command: "read", path: "b.md" })).toBe("two\n");
  expect(await textOf({ command: "delete", path: "b.md" })).toBe("Deleted memory 'b.md'.");
  expect(await textOf({ command: "list" })).toBe("a.md");
});

test("reading and deleting a missing memory fail with the same message", async () => {
  for (const command of ["read", "delete"])
    expect(await call({ command, path: "x" })).toMatchObject({ resultType: "failure", textResultForLlm: "Memory 'x' not found." });
});

test("memories are kept across sessions", async () => {
  await call({ command: "save", path: "kept.md", content: "still here" });
  await server.close();
  server = await createTestHost({ skillDirectories: [skill], workingDirectory: root, watch: false });
  expect(await textOf({ command: "read", path: "kept.md" })).toBe("still here");
});

test("saving again replaces the memory and leaves no temporary files", async () => {
  await call({ command: "save", path: "a.md", content: "a long first text" });
  await call({ command: "save", path: "a.md", content: "" });
  expect(await textOf({ command: "read", path: "a.md" })).toBe("");
  expect(readdirSync(folder)).toEqual(["a.md"]);
});

test("only the owner can read a memory", async () => {
  await call({ command: "save", path: "a.md", content: "x" });
  if (process.platform !== "win32")
    expect([statSync(folder).mode & 0o777, statSync(join(folder, "a.md")).mode & 0o777]).toEqual([0o700, 0o600]);
});

test("the memory skill announces the file that it wrote", async () => {
  const written: [string, string][] = [];
  await execute({ command: "save", path: "a.md", content: "x" }, { fileChanged: (path, content) => void written.push([path, content]) });
  expect(written).toEqual([[join(folder, "a.md"), "x"]]);
});

test("parallel saves of a memory leave one complete text", async () => {
  const texts = Array.from({ length: 20 }, (_, i) => String(i).repeat(10_000));
  await Promise.all(texts.map((content) => call({ command: "save", path: "a.md", content })));
  expect(texts).toContain(readFileSync(join(folder, "a.md"), "utf8"));
  expect(readdirSync(folder)).toEqual(["a.md"]);
});

describe("the name of a memory", () => {
  test.each(["../../x", "/etc/x", "..\\..\\x", "a/b/x", "C:\\x"])("%s is the memory x inside the folder", async (path) => {
    expect(await textOf({ command: "save", path, content: "inside" })).toBe("Saved memory 'x'.");
    expect(readdirSync(root)).toEqual(["memories"]);
    expect(readdirSync(folder)).toEqual(["x"]);
  });

  test.each([
    "..",
    ".",
    "a/..",
    "a/",
    ".hidden",
    "NUL",
    "nul.txt",
    "COM1",
    "lpt9.md",
    "a:b",
    "a\0b",
    "a\nb",
    "what?",
    "ends.",
    "   ",
    "x".repeat(201),
  ])("%j is rejected without writing a file", async (path) => {
    const result = await call({ command: "save", path, content: "x" });
    expect(result.resultType).toBe("failure");
    expect(result.textResultForLlm).toContain("cannot name a memory");
    expect(existsSync(folder)).toBe(false);
  });

  test("treats composed and decomposed Unicode characters as equal", async () => {
    await call({ command: "save", path: "caf\u00e9", content: "x" });
    expect(await textOf({ command: "read", path: "cafe\u0301" })).toBe("x");
  });

  test.each([undefined, ""])("save, read and delete require a path (given: %j)", async (path) => {
    for (const command of ["save", "read", "delete"])
      expect(await call({ command, content: "x", ...(path === undefined ? {} : { path }) })).toMatchObject({
        resultType: "failure",
        textResultForLlm: "Error: 'path' is required for save/read/delete.",
      });
  });
});

test("the memory tool rejects an unknown command and lists the valid ones", async () => {
  const result = await call({ command: "append", path: "x" });
  expect(result.resultType).toBe("failure");
  expect(result.textResultForLlm).toMatch(/command.*save.*read.*list.*delete/s);
});

test("saving a memory requires content, which may be empty", async () => {
  expect(await textOf({ command: "save", path: "x" })).toBe("Error: 'content' is required for save.");
  expect(await textOf({ command: "save", path: "x", content: "" })).toBe("Saved memory 'x'.");
});

test("the size of a memory is limited in bytes", async () => {
  const result = await call({ command: "save", path: "x", content: "é".repeat(131_073) });
  expect(result).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringContaining("262144 bytes; this one has 262146") });
  expect(await textOf({ command: "save", path: "x", content: "é".repeat(131_072) })).toBe("Saved memory 'x'.");
});

describe("other entries in the memory folder", () => {
  beforeEach(() => {
    mkdirSync(join(folder, "subfolder"), { recursive: true });
    writeFileSync(join(root, "outside.txt"), "secret");
    symlinkSync(join(root, "outside.txt"), join(folder, "link"));
    writeFileSync(join(folder, ".draft.tmp"), "half");
  });

  test("folders, links and hidden files are not listed as memories", async () => {
    expect(await textOf({ command: "list" })).toBe("No memories saved yet.");
  });

  test("reading, deleting and replacing do not follow links", async () => {
    for (const command of ["read", "delete"]) expect(await textOf({ command, path: "link" })).toBe("Memory 'link' not found.");
    expect(await textOf({ command: "save", path: "link", content: "new" })).toBe("Saved memory 'link'.");
    expect(readFileSync(join(root, "outside.txt"), "utf8")).toBe("secret");
  });

  test("a file that exceeds the limit is read in part", async () => {
    writeFileSync(join(folder, "large"), "x".repeat(300_000));
    const text = await textOf({ command: "read", path: "large" });
    expect(text.length).toBeLessThan(300_000);
  });
});

test("disk errors are logged, and the model sees no paths", async () => {
  writeFileSync(folder, "a file where the folder should be");
  const result = await call({ command: "save", path: "x", content: "y" });
  expect(result.resultType).toBe("failure");
  expect(result.textResultForLlm).not.toContain(root);
  expect(result.error).toMatch(/EEXIST|ENOTDIR/);
});
