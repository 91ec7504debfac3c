import { randomUUID } from "node:crypto";
import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";

/** The holder of a lock, as recorded in the lock file. */
export interface LockHolder extends ProcessIdentity {
  /** Unique for each acquisition. */
  readonly token: string;
  /** ISO 8601. */
  readonly since: string;
}

type FileLockResult =
  | { readonly kind: "held"; readonly lock: FileLock }
  /** Another owner holds it; `holder` is undefined when the file does not name it. */
  | { readonly kind: "taken"; readonly holder: LockHolder | undefined };

export interface FileLock {
  /** Releases the lock. This also happens when the process exits; the lock of a killed process can be taken over. */
  release(): void;
}

/**
 * Takes a lock that excludes all other processes of this machine and all other owners in this process. The lock of a process
 * that has ended is taken over by exactly one contender. A holder on another machine counts as alive, because its process
 * cannot be checked.
 * @throws the system's error when the file cannot be created.
 */
export async function takeFileLock(path: string): Promise<FileLockResult> {
  for (let attempt = 0; ; attempt++) {
    const own: LockHolder = { ...thisProcess(), token: randomUUID(), since: new Date().toISOString() };
    if (create(path, own)) return { kind: "held", lock: hold(path, own) };
    const found = look(path);
    if (found.kind === "held") return { kind: "taken", holder: found.holder };
    if (found.kind === "stale" && (await takeOver(path, own, found.token))) return { kind: "held", lock: hold(path, own) };
    if (attempt === maxAttempts) return { kind: "taken", holder: undefined };
    await delay(attempt);
  }
}

/** The current holder of a lock; undefined when the lock is free. */
export function lockHolder(path: string): LockHolder | "unknown" | undefined {
  const found = look(path);
  return found.kind === "held" ? (found.holder ?? "unknown") : undefined;
}

const maxAttempts = 20;
/** A lock file without a holder counts as being written until it is older than this. */
const unfinishedMs = 5_000;

type Found =
  | { readonly kind: "held"; readonly holder: LockHolder | undefined }
  | { readonly kind: "stale"; readonly token: string }
  | { readonly kind: "gone" };

/** Creates the file with its holder in it. Returns false when it exists already. */
function create(path: string, own: LockHolder): boolean {
  const draft = `${path}.${own.token}.new`;
  try {
    writeNew(draft, own);
    // A hard link appears with its content complete; a file that is created and then written is empty for a moment.
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    if (!withoutLinks.has(codeOf(error))) throw error;
    return createUnlinked(path, own);
  } finally {
    rmSync(draft, { force: true });
  }
}

// The error codes of file systems without hard links.
const withoutLinks: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EINVAL", "EMLINK", "UNKNOWN"]);

function createUnlinked(path: string, own: LockHolder): boolean {
  try {
    writeNew(path, own);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

function writeNew(path: string, own: LockHolder): void {
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, JSON.stringify(own));
  } finally {
    closeSync(file);
  }
}

function look(path: string): Found {
  try {
    const holder = readHolder(readFileSync(path, "utf8"));
    if (holder !== undefined) return isGone(holder) ? { kind: "stale", token: holder.token } : { kind: "held", holder };
    const age = Date.now() - statSync(path).mtimeMs;
    return age < unfinishedMs ? { kind: "held", holder: undefined } : { kind: "stale", token: "unfinished" };
  } catch (error) {
    if (codeOf(error) === "ENOENT") return { kind: "gone" };
    throw error;
  }
}

/**
 * Replaces a holder that has ended by this one. The replacement is itself guarded by a lock, named after the token of the old
 * holder, so that no contender removes a lock that another has just taken.
 */
async function takeOver(path: string, own: LockHolder, token: string): Promise<boolean> {
  const succession = await takeFileLock(`${path}.${token}`);
  if (succession.kind === "taken") return false;
  try {
    // Another contender may have completed the takeover since `look`.
    const now = look(path);
    if (now.kind !== "stale" || now.token !== token) return false;
    const draft = `${path}.${own.token}.new`;
    writeNew(draft, own);
    renameSync(draft, path);
    return true;
  } finally {
    succession.lock.release();
  }
}

function hold(path: string, own: LockHolder): FileLock {
  const lock = {
    release() {
      if (!held.delete(lock)) return;
      try {
        // The file may have been removed by hand and another owner may have taken the lock since.
        if (readHolder(readFileSync(path, "utf8"))?.token === own.token) rmSync(path, { force: true });
      } catch {
        // Either the file is gone, or it stays and is taken over after this process has ended.
      }
    },
  };
  held.add(lock);
  releaseAtExit();
  return lock;
}

const held = new Set<FileLock>();
let isWatchingExit = false;

function releaseAtExit(): void {
  if (isWatchingExit) return;
  isWatchingExit = true;
  process.once("exit", () => {
    for (const lock of held) lock.release();
  });
}

function readHolder(text: string): LockHolder | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const identity = readIdentity(value);
    const { token, since } = value as { token?: unknown; since?: unknown };
    if (identity === undefined || typeof token !== "string" || !/^[\w-]{1,64}$/.test(token) || typeof since !== "string") return undefined;
    return { ...identity, token, since };
  } catch {
    // Incomplete, or not written by skillhost.
    return undefined;
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}

/** Identifies a process, so that another process can check later whether it still runs. */
interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  /**
   * Start time in units of the system, because process ids are reused. Absent where the system does not report it: a new
   * process with the same id counts as the old one there.
   */
  readonly start?: string;
}

function thisProcess(): ProcessIdentity {
  own ??= identityOf(process.pid);
  return own;
}

/** Whether a process has ended. A process on another machine cannot be checked, so it counts as alive. */
function isGone({ pid, host, start }: ProcessIdentity): boolean {
  if (host !== hostname()) return false;
  if (!isAlive(pid)) return true;
  const startNow = startOf(pid);
  return startNow === ended || (start !== undefined && startNow !== undefined && start !== startNow);
}

/** Undefined when the value does not identify a process. */
function readIdentity(value: unknown): ProcessIdentity | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { pid, host, start } = value as Record<string, unknown>;
  // 0 and negative ids mean groups of processes.
  if (typeof pid !== "number" || !Number.isSafeInteger(pid) || pid <= 0 || typeof host !== "string") return undefined;
  return typeof start === "string" ? { pid, host, start } : { pid, host };
}

let own: ProcessIdentity | undefined;

function identityOf(pid: number): ProcessIdentity {
  const start = startOf(pid);
  return start === undefined ? { pid, host: hostname() } : { pid, host: hostname(), start };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** A killed process keeps its id until its parent has collected the exit status (a zombie). */
const ended = "ended";

/** On Linux: the boot id, and the clock ticks from boot to the start of the process. */
function startOf(pid: number): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the program's name in parentheses, and may hold anything.
    const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? ended : `${boot}/${rest[18]}`;
  } catch {
    // /proc is not available, as in some sandboxes: only the id is compared.
    return undefined;
  }
}
