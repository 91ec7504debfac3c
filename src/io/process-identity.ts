import { readFileSync } from "node:fs";
import { hostname } from "node:os";

/** A process, so that another can tell later whether it is still there. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  /**
   * When it started, in the system's own measure: process ids are used again. Only where the system tells; elsewhere a
   * new process with an old one's id is taken for it.
   */
  readonly start?: string;
}

export function thisProcess(): ProcessIdentity {
  own ??= identityOf(process.pid);
  return own;
}

/** Whether a process has ended. One on another machine counts as alive: nobody here can tell. */
export function isGone({ pid, host, start }: ProcessIdentity): boolean {
  if (host !== hostname()) return false;
  if (!isAlive(pid)) return true;
  const startNow = startOf(pid);
  return startNow === ended || (start !== undefined && startNow !== undefined && start !== startNow);
}

/** Undefined: nothing that identifies a process. */
export function readIdentity(value: unknown): ProcessIdentity | undefined {
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
