import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { buildPackage } from "../built-package.ts";
import { patience } from "../slowness.ts";

const built = join(buildPackage().bin, "../../..");
const program = fileURLToPath(new URL("../../scripts/endurance.mjs", import.meta.url));

test("a short endurance run makes every kind of step, and finds nothing wrong", { timeout: patience(120_000) }, () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, "--minutes", "0.2", "--seed", "3", "--package", built], {
    encoding: "utf8",
  });
  expect(stdout + stderr).not.toMatch(/^(?:WRONG|LOST)/m);
  expect(stdout).toContain("0 wrong results, 0 lost records");
  for (const kind of ["saves", "broken saves", "calls by host", "calls by isolated"])
    expect(stdout).toMatch(new RegExp(`^ {2}${kind}: [1-9]`, "m"));
  expect(status).toBe(0);
});

test("options that are not valid are refused", () => {
  const { status, stderr } = spawnSync(process.execPath, [program, "--minutes", "no"], { encoding: "utf8" });
  expect([status, stderr]).toEqual([2, expect.stringContaining("--minutes 30")]);
});
