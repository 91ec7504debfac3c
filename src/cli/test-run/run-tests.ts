import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { packageRoot } from "../../base/package-root.ts";
import { onAbort } from "../../base/wait.ts";
import { spawnProcess } from "../../io/process/child-process.ts";
import { CliError } from "../cli-error.ts";
import type { CliIo } from "../process-io.ts";
import type { TestReporter, TestRun } from "./test-report.ts";

/** What the process that runs tests is given, as its only argument. */
export interface TestPlan {
  readonly files: readonly string[];
  /** Absent: nothing is printed, and only the outcome is wanted. */
  readonly reporter?: Exclude<TestReporter, "json">;
}

/** One line of what that process writes: a piece of the report, or the outcome at the end. */
export type TestMessage = { readonly text: string } | { readonly run: TestRun };

export interface TestRunOptions extends TestPlan {
  readonly io: Pick<CliIo, "cwd" | "env" | "signal">;
  /** Added to the environment of the tests; undefined removes a variable. */
  readonly env: Readonly<Record<string, string | undefined>>;
  onText(text: string): void;
}

/** Runs test files in a process of their own, which starts one for each file. @throws CliError `TESTS_ENDED` when it ends without an outcome. */
export async function runTests({ files, reporter, io, env, onText }: TestRunOptions): Promise<TestRun> {
  const folder = join(packageRoot, "dist/cli/test-run");
  const program = join(folder, "run-test-files.js");
  if (!existsSync(program)) throw new CliError("TESTS_UNBUILT", `${program} does not exist. Build or install skillhost again.`, 1);
  const hooks = pathToFileURL(join(folder, "register-test-hooks.js")).href;
  const plan: TestPlan = { files, ...(reporter && { reporter }) };
  const { NODE_TEST_CONTEXT: _context, ...inherited } = io.env;
  const spawned = await spawnProcess({
    command: process.execPath,
    // The processes of the files get the same arguments of Node.js.
    args: ["--enable-source-maps", "--import", hooks, program, JSON.stringify(plan)],
    cwd: io.cwd,
    // As a test runner that is started in the same terminal. Within a test of Node.js a further run would do nothing.
    environment: definedOnly({ ...inherited, ...env }),
  });
  if (spawned.kind !== "spawned") throw new CliError("TESTS_ENDED", `The tests were not started: ${spawned.message}`, 1);
  await using child = spawned.process;
  child.stdin.end();
  const said = text(child.stderr);
  using _stopping = onAbort(io.signal, () => void child.stop());
  let run: TestRun | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    const message = parseMessage(line);
    if (message === undefined) onText(`${line}\n`);
    else if ("text" in message) onText(message.text);
    else run = message.run;
  }
  const { code } = await child.ended;
  io.signal.throwIfAborted();
  if (run === undefined) throw new CliError("TESTS_ENDED", `The tests ended with exit code ${code}, without an outcome.\n${await said}`, 1);
  return run;
}

/** Undefined: the process has printed something else. */
function parseMessage(line: string): TestMessage | undefined {
  try {
    const value = JSON.parse(line) as TestMessage;
    return typeof value === "object" && value !== null && ("text" in value || "run" in value) ? value : undefined;
  } catch {
    // Not JSON: a module that NODE_OPTIONS loads first has printed it.
    return undefined;
  }
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
