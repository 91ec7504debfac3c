import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
});

/** A folder that goes after the test. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-io-"));
  folders.push(folder);
  return folder;
}
