import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder that is removed after the test, after everything that the test opened later is closed. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-io-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
