import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Gives a run one temporary folder, below which each test file gets its own (`setup.ts`), and removes it at the end. The
 * names are short: the path of a socket may have 107 characters.
 */
export default function setUpTempRoot(): () => void {
  const root = realpathSync.native(mkdtempSync(join(tmpdir(), "sh-")));
  mkdirSync(join(root, "home"));
  process.env["SKILLHOST_TEST_ROOT"] = root;
  // Sessions that no test gives a folder must not end up among the developer's own.
  process.env["SKILLHOST_HOME"] ??= join(root, "home");
  return () => {
    rmSync(root, { recursive: true, force: true, maxRetries: 3 });
  };
}

/** What a test file has left behind in its folder. */
export function leftoversIn(folder: string): readonly string[] {
  return readdirSync(folder).filter((name) => !caches.has(name));
}

// What Node and tools keep there for whoever comes next.
const caches: ReadonlySet<string> = new Set(["node-compile-cache", "jiti", "node-jiti"]);
