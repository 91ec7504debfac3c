import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { win32 } from "node:path";

const running = new Set<ChildProcess>();
const endSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Kills the child and its process group if this process ends first. */
export function killAtExit(child: ChildProcess): void {
  if (running.size === 0) {
    process.on("exit", killAll);
    for (const signal of endSignals) process.on(signal, onSignal);
  }
  running.add(child);
}

/** The child has ended: it is not killed at exit any longer. */
export function untrack(child: ChildProcess): void {
  if (!running.delete(child) || running.size > 0) return;
  process.off("exit", killAll);
  for (const signal of endSignals) process.off(signal, onSignal);
}

/** Signals the child's process group. Windows has no signals for process trees: every signal kills the whole tree there. */
export function signalTree(child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): void {
  // The id of a child that has ended may belong to another process.
  if (!running.has(child) || child.pid === undefined) return;
  if (process.platform === "win32") {
    if (child.exitCode === null) spawn(...taskkill(child.pid)).on("error", () => child.kill());
    return;
  }
  try {
    process.kill(-child.pid, signal);
  } catch {
    // ESRCH: the group is empty.
  }
}

/** Whether the child's process group still has members. */
export function hasLivingGroup(child: ChildProcess): boolean {
  if (process.platform === "win32" || child.pid === undefined) return false;
  try {
    return process.kill(-child.pid, 0);
  } catch (error) {
    // EPERM: a process of another user is left.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function killAll(): void {
  for (const child of running) {
    if (process.platform === "win32" && child.pid !== undefined) spawnSync(...taskkill(child.pid));
    else signalTree(child, "SIGKILL");
  }
}

// Without a listener a signal ends this process before "exit" is emitted, and detached children keep running.
function onSignal(signal: NodeJS.Signals): void {
  // Another listener handles the signal, and "exit" kills the children if the process ends.
  if (process.listenerCount(signal) > 1) return;
  killAll();
  process.off(signal, onSignal);
  process.kill(process.pid, signal);
}

function taskkill(pid: number): [string, string[], { stdio: "ignore"; windowsHide: true }] {
  const file = win32.join(process.env["SystemRoot"] ?? "C:\\Windows", "System32", "taskkill.exe");
  return [file, ["/PID", String(pid), "/T", "/F"], { stdio: "ignore", windowsHide: true }];
}
