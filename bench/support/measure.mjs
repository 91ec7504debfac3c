import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** The value that a share of the samples does not exceed. */
export function quantile(samples, share) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];
}

export function median(samples) {
  return quantile(samples, 0.5);
}

/** Milliseconds of wall time and of this process's CPU that something takes, with what it came to. */
export async function timed(work) {
  const cpu = process.cpuUsage();
  const begin = performance.now();
  const value = await work();
  const wall = performance.now() - begin;
  const { user, system } = process.cpuUsage(cpu);
  return { wall, cpu: (user + system) / 1000, value };
}

/** Bytes of heap in use once nothing more can be freed. Callbacks of finalization registries have run then, too. */
export async function settledHeap() {
  for (let round = 0; round < 6; round++) {
    globalThis.gc();
    await sleep(10);
  }
  return process.memoryUsage().heapUsed;
}

/** Runs a benchmark's file again in a process of its own, so that variants share neither memory nor compiled code. */
export function inChild(url, task) {
  const child = spawnSync(process.execPath, ["--expose-gc", fileURLToPath(url), JSON.stringify(task)], {
    encoding: "utf8",
    env: { ...process.env, SKILLHOST_BENCH_CHILD: "1" },
    maxBuffer: 64 * 1024 * 1024,
  });
  if (child.status !== 0) throw new Error(`${JSON.stringify(task)} failed: ${child.stderr}`);
  return JSON.parse(child.stdout.slice(child.stdout.lastIndexOf("\n", child.stdout.length - 2) + 1));
}

/** What such a process was asked to do; undefined in the benchmark's own. */
export function childTask() {
  return process.env.SKILLHOST_BENCH_CHILD === "1" ? JSON.parse(process.argv[2]) : undefined;
}

/** How many watches this process holds of the kernel; undefined where there is no way to know. */
export function inotifyWatches() {
  if (process.platform !== "linux") return undefined;
  let count = 0;
  for (const descriptor of readdirSync("/proc/self/fdinfo")) {
    try {
      count += readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8")
        .split("\n")
        .filter((line) => line.startsWith("inotify")).length;
    } catch {
      // The descriptor of the listing itself is closed by now.
    }
  }
  return count;
}
