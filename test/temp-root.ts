import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const variable = "SKILLHOST_TEST_ROOT";
const prefix = "sh-";
/** Holds the id of the process that removes the folder. */
const ownerFile = "owner";

/**
 * Gives a run one temporary folder, below which each test file gets its own (`setup.ts`), and removes it when the run ends, also by
 * a signal. The names are short: the path of a socket may have 107 characters.
 */
export default function setUpTempRoot(): () => void {
  // Vitest calls this once for each project of the run.
  if (process.env[variable] !== undefined) return () => {};
  removeAbandoned();
  const root = realpathSync.native(mkdtempSync(join(tmpdir(), prefix)));
  writeFileSync(join(root, ownerFile), String(process.pid));
  mkdirSync(join(root, "home"));
  process.env[variable] = root;
  // Sessions that no test gives a folder must not end up among the developer's own.
  process.env["SKILLHOST_HOME"] ??= join(root, "home");
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      removeRoot(root);
      process.kill(process.pid, signal);
    });
  }
  process.once("exit", () => removeRoot(root));
  return () => {
    const left = readdirSync(root).filter((name) => name !== ownerFile && name !== "home");
    removeRoot(root);
    if (left.length > 0) throw new Error(`Something wrote to folders of test files after they had ended: ${left.join(", ")}`);
  };
}

/** Keeps the file that names the owner until all else is removed: whatever a worker still writes, the next run removes. */
function removeRoot(root: string): void {
  try {
    for (const name of readdirSync(root)) {
      if (name !== ownerFile) removeFolder(join(root, name));
    }
    removeFolder(root);
  } catch {
    // A worker wrote to it meanwhile, or it is removed already.
  }
}

function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 3 });
}

/** Removes the folders of runs that were killed before they could remove them. */
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(prefix)) continue;
    const owner = ownerOf(join(tmpdir(), name));
    if (owner !== undefined && !isRunning(owner)) removeFolder(join(tmpdir(), name));
  }
}

function ownerOf(root: string): number | undefined {
  try {
    return Number(readFileSync(join(root, ownerFile), "utf8")) || undefined;
  } catch {
    // Not a folder of a test run.
    return undefined;
  }
}

function isRunning(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** What a test file has left behind in its folder. */
export function leftoversIn(folder: string): readonly string[] {
  return readdirSync(folder).filter((name) => !caches.has(name));
}

// What Node and tools keep there for whoever comes next.
const caches: ReadonlySet<string> = new Set(["node-compile-cache", "jiti", "node-jiti"]);

/** Programs that a test file started, by what they inherited from it, and that still run. Known on Linux only. */
export function programsOf(folder: string): readonly string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((id) => {
    if (!/^\d+$/.test(id)) return [];
    try {
      if (!readFileSync(`/proc/${id}/environ`, "utf8").split("\0").includes(`TMPDIR=${folder}`)) return [];
      const command = readFileSync(`/proc/${id}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      return isKeptForOthers(command) ? [] : [command];
    } catch {
      // It ended meanwhile, or belongs to another user.
      return [];
    }
  });
}

/** esbuild keeps one process for all later calls; it ends with the process that uses it. */
function isKeptForOthers(command: string): boolean {
  return /[\\/]esbuild --service=/.test(command);
}
