import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll } from "vitest";
import { seed } from "./rounds.ts";
import { patience } from "./slowness.ts";
import { leftoversIn, programsOf } from "./temp-root.ts";

// A test file that leaves files in the temporary folder fails: on a developer's machine they would stay forever.
const folder = mkdtempSync(join(process.env["SKILLHOST_TEST_ROOT"] ?? tmpdir(), "f"));
for (const name of ["TMPDIR", "TMP", "TEMP"]) process.env[name] = folder;

// Tests neither use nor fill the caches of the user.
process.env["SKILLHOST_CACHE"] ??= "off";

fc.configureGlobal({ seed });

// A process warning (a leaked listener, a deprecated call, an unhandled rejection) fails the test file that caused it.
const warnings: Error[] = [];
const onWarning = (warning: Error): void => {
  if (warning.name !== "ExperimentalWarning") warnings.push(warning);
};

// Hosts without a logger log to stderr. Log lines of expected failures are noise, so only the lines of a failed test are
// shown.
const write = process.stderr.write;
// The Copilot SDK forwards the output of its runtime with a prefix.
const isLogged = /^(?:\{"time":".*\}|\[CLI subprocess\] .*)\n$/s;
const logged: string[] = [];

// Without this, a worker whose run was killed would finish its file.
const onRunEnded = (): never => process.exit(1);

beforeAll(() => {
  process.on("warning", onWarning);
  process.on("disconnect", onRunEnded);
  process.stderr.write = function (this: NodeJS.WriteStream, chunk: string | Uint8Array, ...rest: never[]): boolean {
    if (typeof chunk !== "string" || !isLogged.test(chunk)) return write.call(process.stderr, chunk, ...rest);
    if (logged.length < 100) logged.push(chunk);
    return true;
  } as typeof write;
});

afterEach(({ task }) => {
  if (task.result?.state === "fail") for (const line of logged) write.call(process.stderr, line);
  logged.length = 0;
});

afterAll(async () => {
  process.off("warning", onWarning);
  process.off("disconnect", onRunEnded);
  process.stderr.write = write;
  const running = await programsLeft();
  const left = leftoversIn(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  if (warnings.length > 0) throw new AggregateError(warnings, `Process warnings: ${warnings.map((w) => w.message).join("; ")}`);
  if (running.length > 0) throw new Error(`This file left ${running.length} programs running: ${running.join("; ")}`);
  if (left.length > 0) throw new Error(`This file left ${left.length} entries in the temporary folder: ${left.slice(0, 10).join(", ")}`);
});

/** The programs that still run after the tests that started them. */
async function programsLeft(): Promise<readonly string[]> {
  const deadline = Date.now() + patience(10_000);
  for (;;) {
    const running = programsOf(folder);
    if (running.length === 0 || Date.now() > deadline) return running;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
