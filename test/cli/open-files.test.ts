import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { buildPackage } from "../built-package.ts";
import { skillDocument, toolModule, workplace } from "./run-cli.ts";

const { bin } = buildPackage();

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command line in a process with this limit on open files. */
function runWithin(openFiles: number, cwd: string, argv: readonly string[]): Ended {
  const script = `ulimit -n ${openFiles} && exec "$0" "$@"`;
  const { status, stdout, stderr } = spawnSync("sh", ["-c", script, process.execPath, bin, ...argv], {
    cwd,
    encoding: "utf8",
    env: { ...process.env, LANG: "C.UTF-8", SKILLHOST_TRUST: "1" },
  });
  return { code: status, stdout, stderr };
}

// Windows has neither such a limit nor sh.
const isWindows = process.platform === "win32";
// Node.js itself opens a number of files that depends on its version. With one more it can read one of our files at a time.
const own = isWindows ? 0 : Number(spawnSync(process.execPath, ["-p", 'fs.openSync("/dev/null")'], { encoding: "utf8" }).stdout);
// `check` is a command that loads several files at once; `list` loads hardly more than a start.
// From version 22, Node.js reads modules one after the other, so a command loads with one free file.
const readsAtOnce = Number(process.versions.node.split(".")[0]) < 22;

const limits: readonly (readonly [when: string, openFiles: number, begin: string, isPossible: boolean])[] = [
  ["before the command line is loaded", own + 1, "skillhost cannot be started: EMFILE: ", true],
  ["while a command is loaded", own + 4, "EMFILE: ", readsAtOnce],
];

for (const [when, openFiles, begin, isPossible] of limits) {
  test.skipIf(isWindows || !isPossible)(`the limit on open files, reached ${when}, ends it with one line that names the remedy`, () => {
    using place = workplace({ "skills/greeter/SKILL.md": skillDocument("greeter") });
    const { code, stdout, stderr } = runWithin(openFiles, place.path, ["check"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^[^\n]*too many open files, open '[^\n]*'[^\n]*"ulimit -n 4096"[^\n]*\n$/);
    expect(stderr.startsWith(`error: ${begin}`)).toBe(true);
  });
}

test.skipIf(isWindows || !readsAtOnce)("with --json, the answer has the same message", () => {
  using place = workplace({ "skills/greeter/SKILL.md": skillDocument("greeter") });
  const { code, stdout } = runWithin(own + 4, place.path, ["check", "--json"]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: { code: "EMFILE", message: expect.stringContaining("ulimit -n 4096") } });
});

test.skipIf(process.platform === "win32")("all skills are loaded even if they have more files than the limit on open files", () => {
  using place = workplace();
  for (let i = 0; i < 170; i++) {
    place.write(`skills/s${i}/SKILL.md`, skillDocument(`s${i}`));
    place.write(`skills/s${i}/tools/t${i}.ts`, toolModule(`t${i}`, "Hello"));
  }
  const { code, stdout, stderr } = runWithin(160, place.path, ["list"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("170 skills, ");
});
