import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { win32 } from "node:path";

const running = new Set<ChildProcess>();
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Has the child killed, with all it started, if our process ends first. */
export function keepUntilExit(child: ChildProcess): void {
  if (running.size === 0) {
    process.on("exit", killAll);
    for (const signal of SIGNALS) process.on(signal, onSignal);
  }
  running.add(child);
}

export function forget(child: ChildProcess): void {
  if (!running.delete(child) || running.size > 0) return;
  process.off("exit", killAll);
  for (const signal of SIGNALS) process.off(signal, onSignal);
}

/** Signals the child and what it started in its process group. Windows knows no groups: there it is the end of all. */
export function signalTree(child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): void {
  // The number of a child that is gone may belong to somebody else.
  if (!running.has(child) || child.pid === undefined) return;
  if (process.platform === "win32") {
    if (child.exitCode === null) spawn(...taskkill(child.pid)).on("error", () => child.kill());
    return;
  }
  try {
    process.kill(-child.pid, signal);
  } catch {
    // ESRCH: nobody is left in the group.
  }
}

/** Whether anything is left of the child's process group. */
export function hasGroup(child: ChildProcess): boolean {
  if (process.platform === "win32" || child.pid === undefined) return false;
  try {
    return process.kill(-child.pid, 0);
  } catch (error) {
    // EPERM: somebody is left, with rights that we do not have.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function killAll(): void {
  for (const child of running) {
    if (process.platform === "win32" && child.pid !== undefined) spawnSync(...taskkill(child.pid));
    else signalTree(child, "SIGKILL");
  }
}

// Without a listener a signal ends our process before "exit" is emitted, and children in groups of their own live on.
function onSignal(signal: NodeJS.Signals): void {
  // Another listener decides what the signal means, and "exit" does the rest.
  if (process.listenerCount(signal) > 1) return;
  killAll();
  process.off(signal, onSignal);
  process.kill(process.pid, signal);
}

function taskkill(pid: number): [string, string[], { stdio: "ignore"; windowsHide: true }] {
  const file = win32.join(process.env["SystemRoot"] ?? "C:\\Windows", "System32", "taskkill.exe");
  return [file, ["/PID", String(pid), "/T", "/F"], { stdio: "ignore", windowsHide: true }];
}
