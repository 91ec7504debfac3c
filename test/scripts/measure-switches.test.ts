import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { buildPackage } from "../built-package.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The script's output for the current sources. Its copy of them is in this file's temporary directory. */
async function measure(...args: string[]): Promise<string> {
  const { folder } = buildPackage();
  const script = join(root, "scripts/measure-switches.mjs");
  const env = { ...process.env, TMPDIR: tmpdir(), TEMP: tmpdir(), TMP: tmpdir() };
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--dist", join(folder, "dist"), ...args], { env });
  return stdout;
}

test("the script counts each flow and lists its files in the order in which the flow enters them", async () => {
  const flows: Record<string, { files: string[]; entries: number; switches: number }> = JSON.parse(await measure("--json"));
  expect(Object.keys(flows)).toEqual(["call", "turn", "save"]);
  for (const { files, entries, switches } of Object.values(flows)) {
    expect(files.length).toBeGreaterThan(10);
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
    expect(new Set(files).size).toBe(files.length);
    expect(switches).toBeGreaterThanOrEqual(files.length - 1);
    expect(entries).toBeGreaterThan(switches);
  }
  const { files } = flows["call"]!;
  expect(files[0]).toBe("src/session/session.ts");
  const [validated = -1, asked = -1] = ["src/tools/schema/", "src/session/permissions/"].map((folder) =>
    files.findIndex((file) => file.startsWith(folder)),
  );
  expect(validated).toBeGreaterThan(0);
  expect(asked).toBeGreaterThan(validated);
});

test("an unknown flow is refused with the list of known ones", async () => {
  await expect(measure("--order", "start")).rejects.toMatchObject({ code: 2, stderr: "--order must be one of: call, turn, save\n" });
});
