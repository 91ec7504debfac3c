import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ToolResult } from "skillhost";
import { createTestHost } from "skillhost/testing";
import { afterEach, beforeEach, expect, test } from "vitest";

const skill = fileURLToPath(new URL("../../skills/line-counts/", import.meta.url));
let folder: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "line-counts-")));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

async function count(args: object = {}): Promise<ToolResult> {
  await using server = await createTestHost({ skillDirectories: [skill], workingDirectory: folder, watch: false });
  return await server.call("count_lines", args);
}

test("count_lines counts files, lines and blank lines by extension, largest first", async () => {
  write("src/a.ts", "one\n\n  \t\r\nfour");
  write("src/b.ts", "one\n");
  write("README.md", "\n");
  write("LICENSE", "");
  write("node_modules/x/index.ts", "not counted\n");
  write(".git/config", "not counted\n");
  write("image.ts", "text\0binary\n");
  symlinkSync(join(folder, "src"), join(folder, "link"));
  const { textResultForLlm, resultType } = await count();
  expect(resultType).toBe("success");
  expect(
    textResultForLlm
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/\s{2,}/)),
  ).toEqual([
    ["kind", "files", "lines", "blank"],
    [".ts", "2", "5", "2"],
    [".md", "1", "1", "1"],
    ["(no extension)", "1", "0", "0"],
    ["total", "4", "6", "3"],
  ]);
});

test("count_lines counts a given path, and the working directory by default", async () => {
  write("src/a.ts", "1\n2\n");
  write("b.ts", "1\n");
  expect((await count({ path: "src" })).textResultForLlm).toContain("total  ");
  expect((await count({ path: "src" })).textResultForLlm).toMatch(/total\s+1\s+2\s+0/);
  expect((await count({ path: "b.ts" })).textResultForLlm).toMatch(/total\s+1\s+1\s+0/);
  expect((await count()).textResultForLlm).toMatch(/total\s+2\s+3\s+0/);
});

test.each(["..", "/", "missing", "--help", "out", "$(touch owned)", "; touch owned"])(
  "%s cannot be counted: the call fails and says why",
  async (path) => {
    symlinkSync(tmpdir(), join(folder, "out"));
    const result = await count({ path });
    expect(result.resultType).toBe("failure");
    expect(result.textResultForLlm).toContain(`"${path}"`);
    expect(result.textResultForLlm).not.toContain(folder);
    expect((await count()).textResultForLlm).toMatch(/total\s+0/);
  },
);

test("count_lines reads a path that looks like an option as a path", async () => {
  write("--version", "1\n");
  expect((await count({ path: "--version" })).textResultForLlm).toMatch(/total\s+1\s+1/);
});
