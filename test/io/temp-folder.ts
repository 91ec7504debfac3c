import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

const folders: string[] = [];

// At the end of the file: what a test opens in its folder is closed when it has finished, which is after each `afterEach`.
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder that goes after the test. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-io-"));
  folders.push(folder);
  return folder;
}
