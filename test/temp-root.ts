import {
  accessSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

const variable = "SKILLHOST_TEST_ROOT";
const prefix = "sh-";
/** The file with the id of the process that removes the folder. */
const ownerFile = "owner";

/**
 * Creates one temporary folder per run, in which each test file gets its own (`setup.ts`), and removes it when the run ends, also
 * by a signal. The names are short because the path of a socket may have at most 107 characters.
 */
export default function setUpTempRoot({ name }: Pick<TestProject, "name">): () => void {
  // Vitest calls this function once per project of the run.
  if (process.env[variable] !== undefined) return () => {};
  // The runs of `npm test` and `npm run test:programs` have names. Soaks and tests of big programs write much, so they use the disk.
  const base = (name !== "" && memoryFolder()) || tmpdir();
  removeAbandoned(base);
  const root = realpathSync.native(mkdtempSync(join(base, prefix)));
  writeFileSync(join(root, ownerFile), String(process.pid));
  mkdirSync(join(root, "home"));
  process.env[variable] = root;
  // Sessions without an explicit folder must not be stored among the developer's own.
  process.env["SKILLHOST_HOME"] ??= join(root, "home");
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      removeRoot(root);
      process.kill(process.pid, signal);
    });
  }
  process.once("exit", () => removeRoot(root));
  return () => {
    // The folder of a file whose tests are all skipped stays, because its hooks do not run.
    const left = readdirSync(root).filter((name) => name !== ownerFile && name !== "home" && readdirSync(join(root, name)).length > 0);
    removeRoot(root);
    if (left.length > 0) throw new Error(`Something wrote to folders of test files after they had ended: ${left.join(", ")}`);
  };
}

const enoughBytes = 4e9;

/**
 * Linux's file system in memory. Tests create and remove hundreds of thousands of small files, and a disk makes them wait for its
 * journal. Undefined: there is none, it is small, programs cannot be started from it, or `TMPDIR` names another folder.
 */
function memoryFolder(): string | undefined {
  const folder = "/dev/shm";
  if (process.platform !== "linux" || process.env["TMPDIR"] !== undefined) return undefined;
  try {
    const options = new RegExp(`^\\S+ ${folder} tmpfs (\\S+)`, "m").exec(readFileSync("/proc/self/mounts", "utf8"))?.[1]?.split(",");
    const { bavail, bsize } = statfsSync(folder);
    accessSync(folder, constants.W_OK);
    return options !== undefined && !options.includes("noexec") && bavail * bsize > enoughBytes ? folder : undefined;
  } catch {
    // It does not exist or cannot be written.
    return undefined;
  }
}

/** Removes the owner file last: when a worker still writes, the next run removes the rest. */
function removeRoot(root: string): void {
  try {
    for (const name of readdirSync(root)) {
      if (name !== ownerFile) removeFolder(join(root, name));
    }
    removeFolder(root);
  } catch {
    // A worker wrote to the folder concurrently, or it is already removed.
  }
}

function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 3 });
}

/** Removes the folders of killed runs. */
function removeAbandoned(base: string): void {
  for (const name of readdirSync(base)) {
    if (!name.startsWith(prefix)) continue;
    const owner = ownerOf(join(base, name));
    if (owner !== undefined && !isRunning(owner)) removeFolder(join(base, name));
  }
}

function ownerOf(root: string): number | undefined {
  try {
    return Number(readFileSync(join(root, ownerFile), "utf8")) || undefined;
  } catch {
    // This is not a folder of a test run.
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

/** The files that a test file left in its folder. */
export function leftoversIn(folder: string): readonly string[] {
  return readdirSync(folder).filter((name) => !caches.has(name));
}

// Caches of Node and other tools.
const caches: ReadonlySet<string> = new Set(["node-compile-cache", "jiti", "node-jiti"]);

/** Running programs that a test file started, recognised by an inherited environment variable. Supported on Linux only. */
export function programsOf(folder: string): readonly string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((id) => {
    if (!/^\d+$/.test(id)) return [];
    try {
      if (!readFileSync(`/proc/${id}/environ`, "utf8").split("\0").includes(`TMPDIR=${folder}`)) return [];
      const command = readFileSync(`/proc/${id}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      return isKeptForOthers(command) ? [] : [command];
    } catch {
      // The process has ended or belongs to another user.
      return [];
    }
  });
}

/** esbuild keeps one process for later calls, which ends with the process that uses it. */
function isKeptForOthers(command: string): boolean {
  return /[\\/]esbuild --service=/.test(command);
}
