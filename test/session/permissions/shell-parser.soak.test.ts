import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { assembleShellLines, linesAllowedForEcho, runInBash } from "./lines-run-by-bash.ts";

const hasBash = spawnSync("bash", ["--version"]).status === 0;

test.skipIf(!hasBash)("of 130,000 generated lines, none that is allowed for echo runs another command in bash", () => {
  const found = Array.from({ length: 13 }, (_, round) => runInBash(linesAllowedForEcho(assembleShellLines(10_000, 100 + round))));
  expect(found.flatMap(({ foreign }) => foreign)).toEqual([]);
  expect(found.flatMap(({ files }) => files)).toEqual([]);
  expect(found.reduce((sum, { begun }) => sum + begun, 0)).toBeGreaterThan(10_000);
});
