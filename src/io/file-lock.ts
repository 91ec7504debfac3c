import { randomUUID } from "node:crypto";
import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";

/** Who holds a lock, as its file says. */
export interface LockHolder extends ProcessIdentity {
  /** Another for every time that a lock is taken. */
  readonly token: string;
  /** ISO 8601. */
  readonly since: string;
}

type FileLockResult =
  | { readonly kind: "held"; readonly lock: FileLock }
  /** Somebody else has it: who, or undefined when the file does not say. */
  | { readonly kind: "taken"; readonly holder: LockHolder | undefined };

export interface FileLock {
  /** Gives it up. It is given up by itself when the process exits, and can be taken over when the process was killed. */
  release(): void;
}

/**
 * Takes a lock that no two processes of a machine hold at a time, and no two owners in one process. What a process left
 * that is gone is taken over, by one of those who try. A holder on another machine counts as alive, since nobody can tell.
 * @throws the system's error when the file cannot be made.
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

/** Who holds a lock now; undefined when nobody does. */
export function lockHolder(path: string): LockHolder | "unknown" | undefined {
  const found = look(path);
  return found.kind === "held" ? (found.holder ?? "unknown") : undefined;
}

const maxAttempts = 20;
/** A file without a holder in it is one that is being made, unless it has been so for longer than this. */
const unfinishedMs = 5_000;

type Found =
  | { readonly kind: "held"; readonly holder: LockHolder | undefined }
  | { readonly kind: "stale"; readonly token: string }
  | { readonly kind: "gone" };

/** Makes the file with its holder in it. False: it exists. */
function create(path: string, own: LockHolder): boolean {
  const draft = `${path}.${own.token}.new`;
  try {
    writeNew(draft, own);
    // Unlike a file made and then written, a link appears complete: nobody ever sees an empty one.
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

// What file systems without hard links answer.
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
 * Puts this holder in the place of one that is gone. Of all who try, only the one that holds the lock *on the succession
 * of this very token* may: so nobody removes a lock that somebody else has just taken.
 */
async function takeOver(path: string, own: LockHolder, token: string): Promise<boolean> {
  const succession = await takeFileLock(`${path}.${token}`);
  if (succession.kind === "taken") return false;
  try {
    // Somebody may have succeeded, and be done, since we looked.
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
        // Only what is ours: somebody may have removed the file by hand, and another taken the lock.
        if (readHolder(readFileSync(path, "utf8"))?.token === own.token) rmSync(path, { force: true });
      } catch {
        // The file or its folder is gone, and the lock with it; or it stays, and is taken over when this process is gone.
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
    // Half written, or not ours.
    return undefined;
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}

/** A process, so that another can tell later whether it is still there. */
interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  /**
   * When it started, in the system's own measure: process ids are used again. Only where the system tells; elsewhere a
   * new process with an old one's id is taken for it.
   */
  readonly start?: string;
}

function thisProcess(): ProcessIdentity {
  own ??= identityOf(process.pid);
  return own;
}

/** Whether a process has ended. One on another machine counts as alive: nobody here can tell. */
function isGone({ pid, host, start }: ProcessIdentity): boolean {
  if (host !== hostname()) return false;
  if (!isAlive(pid)) return true;
  const startNow = startOf(pid);
  return startNow === ended || (start !== undefined && startNow !== undefined && start !== startNow);
}

/** Undefined: nothing that identifies a process. */
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
    // EPERM: it is there, and somebody else's.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** A killed process keeps its id until its parent has asked how it ended. */
const ended = "ended";

/** On Linux: the boot, and the clock ticks between it and the start of the process. */
function startOf(pid: number): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the program's name in parentheses, and may hold anything.
    const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? ended : `${boot}/${rest[18]}`;
  } catch {
    // No /proc, as in some sandboxes: the id alone has to do.
    return undefined;
  }
}
