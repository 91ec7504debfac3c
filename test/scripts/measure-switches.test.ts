import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { buildPackage } from "../built-package.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** What the script prints about the sources as they are now. Its copy of them lies in this file's temporary directory. */
async function measure(...args: string[]): Promise<string[]> {
  const { folder } = buildPackage();
  const script = join(root, "scripts/measure-switches.mjs");
  const env = { ...process.env, TMPDIR: tmpdir(), TEMP: tmpdir(), TMP: tmpdir() };
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--dist", join(folder, "dist"), ...args], { env });
  return stdout.trim().split("\n");
}

test("the files of a call are printed in the order in which it enters them", async () => {
  const files = await measure("--order", "call");
  expect(files[0]).toBe("src/session/session.ts");
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  expect(new Set(files).size).toBe(files.length);
  const [validated = -1, asked = -1] = ["src/tools/schema/", "src/session/permissions/"].map((folder) =>
    files.findIndex((file) => file.startsWith(folder)),
  );
  expect(validated).toBeGreaterThan(0);
  expect(asked).toBeGreaterThan(validated);
});

test("each flow is counted", async () => {
  const [, , ...rows] = await measure();
  const counts = rows.map((row) => row.split("|").slice(2, 5).map(Number));
  expect(counts).toHaveLength(3);
  for (const [files = 0, entries = 0, switches = 0] of counts) {
    expect(files).toBeGreaterThan(10);
    expect(switches).toBeGreaterThanOrEqual(files - 1);
    expect(entries).toBeGreaterThan(switches);
  }
});

test("a flow that does not exist is refused with those that do", async () => {
  await expect(measure("--order", "start")).rejects.toMatchObject({ code: 2, stderr: "--order must be one of: call, turn, save\n" });
});
