import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { assembleShellLines, linesAllowedForEcho, runInBash } from "./lines-run-by-bash.ts";

const hasBash = spawnSync("bash", ["--version"]).status === 0;

test.skipIf(!hasBash)("a line that may run because echo is allowed begins no other command in bash and writes no file", () => {
  const allowed = linesAllowedForEcho(assembleShellLines(3_000, 1));
  const { begun, foreign, files } = runInBash(allowed);
  expect({ foreign, files }).toEqual({ foreign: [], files: [] });
  // The generator must reach lines that are allowed, or nothing is tested.
  expect(begun).toBeGreaterThan(200);
});

test.skipIf(!hasBash)("the harness sees a command that is not echo, and a file that a line leaves", () => {
  const { foreign, files } = runInBash(["echo a; true", "echo $(true)", "echo b > left"]);
  expect(foreign).toHaveLength(2);
  expect(files).toEqual(["left"]);
});

test("a carriage return outside quotes is never allowed: bash runs a program that is named by it", () => {
  expect(linesAllowedForEcho(["echo a & \r", "\recho a", "echo 'a\rb'"])).toEqual(["echo 'a\rb'"]);
});
