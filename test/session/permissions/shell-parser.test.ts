import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { assembleShellLines, linesAllowedForEcho, runInBash } from "./lines-run-by-bash.ts";

const hasBash = spawnSync("bash", ["--version"]).status === 0;

test.skipIf(!hasBash)("a line that is allowed for echo runs no other command in bash and writes no file", () => {
  const allowed = linesAllowedForEcho(assembleShellLines(3_000, 1));
  const { begun, foreign, files } = runInBash(allowed);
  expect({ foreign, files }).toEqual({ foreign: [], files: [] });
  // The generator must produce allowed lines, or the test proves nothing.
  expect(begun).toBeGreaterThan(200);
});

test.skipIf(!hasBash)("the harness detects a command other than echo and a file that a line creates", () => {
  const { foreign, files } = runInBash(["echo a; true", "echo $(true)", "echo b > left"]);
  expect(foreign).toHaveLength(2);
  expect(files).toEqual(["left"]);
});

test("a carriage return outside quotes is never allowed, because bash takes it as part of a program's name", () => {
  expect(linesAllowedForEcho(["echo a & \r", "\recho a", "echo 'a\rb'"])).toEqual(["echo 'a\rb'"]);
});
