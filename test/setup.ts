import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";

// Sessions that no test gives a folder must not end up among the developer's own.
process.env["SKILLHOST_HOME"] ??= join(tmpdir(), "skillhost-test-home");

// A process warning (a leaked listener, a deprecated call, an unhandled rejection) is a fault: it fails the file that caused it.
const warnings: Error[] = [];
const onWarning = (warning: Error): void => {
  if (warning.name !== "ExperimentalWarning") warnings.push(warning);
};

beforeAll(() => {
  process.on("warning", onWarning);
});

afterAll(() => {
  process.off("warning", onWarning);
  if (warnings.length > 0) throw new AggregateError(warnings, `Process warnings: ${warnings.map((w) => w.message).join("; ")}`);
});
