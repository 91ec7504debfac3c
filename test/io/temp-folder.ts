import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder that is removed after the test, when everything that the test opened after it is closed. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-io-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
