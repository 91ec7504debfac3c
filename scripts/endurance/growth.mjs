import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeHeapSnapshot } from "node:v8";

/**
 * What this process holds now, after collection of garbage. Undefined where the system does not say. Data and code are separated by a snapshot of
 * the heap: the engine compiles functions again and again while they become hot, which would hide what the program keeps, or pass for it.
 */
export function sample(startedAt) {
  for (let round = 0; round < 3; round++) globalThis.gc?.();
  const { heapUsed, rss, external } = process.memoryUsage();
  const file = writeHeap(tmpdir(), "sample");
  const { code, data } = readHeap(file);
  rmSync(file);
  return {
    hours: (performance.now() - startedAt) / 3_600_000,
    "heap MB": megabytes(heapUsed),
    "of it data MB": megabytes(data),
    "of it code and hidden classes MB": megabytes(code),
    "outside of the heap MB": megabytes(external),
    "RSS MB": megabytes(rss),
    handles: process.getActiveResourcesInfo().length,
    "open files": countIn("/proc/self/fd"),
    threads: threads(),
  };
}

const megabytes = (bytes) => bytes / 1024 / 1024;
const reader = fileURLToPath(new URL("heap-kinds.mjs", import.meta.url));

/** The sums of a snapshot: `code`, `data`, and by kind. */
function readHeap(file) {
  return JSON.parse(execFileSync(process.execPath, [reader, file], { encoding: "utf8", maxBuffer: 1e8 }));
}

/** Settles when the process held the same kinds of handles eight times in a row. False: it never did. */
export async function standsStill() {
  let before = "";
  let equal = 0;
  for (let look = 0; look < 200; look++) {
    const now = process.getActiveResourcesInfo().sort().join();
    equal = now === before ? equal + 1 : 0;
    if (equal === 8) return true;
    before = now;
    await new Promise((done) => setTimeout(done, 250));
  }
  return false;
}

/** Writes what the process holds, and returns the file. */
export function writeHeap(folder, name) {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${name}.heapsnapshot`);
  writeHeapSnapshot(file);
  return file;
}

/** By how much the later of two snapshots holds more than the earlier, by kind or constructor, the largest first. */
export function compareHeaps(earlier, later) {
  const { kinds: before } = readHeap(earlier);
  const rows = Object.entries(readHeap(later).kinds).map(([kind, { number, bytes }]) => {
    const { number: fewer = 0, bytes: less = 0 } = before[kind] ?? {};
    return { kind, number: number - fewer, bytes: bytes - less };
  });
  rows.sort((a, b) => b.bytes - a.bytes);
  const lines = rows
    .slice(0, 30)
    .map(({ kind, number, bytes }) => `  ${kind}: ${number.toLocaleString("en-US")}, ${(bytes / 1024).toFixed(1)} KB`);
  return lines.join("\n");
}

function countIn(folder) {
  try {
    return readdirSync(folder).length;
  } catch {
    return undefined;
  }
}

function threads() {
  try {
    return Number(/^Threads:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
  } catch {
    return undefined;
  }
}

/**
 * The growth of each quantity per hour: the slope of the line with the least squares through the samples after the warm-up, which is the
 * first third. Undefined with fewer than five samples.
 */
export function growthPerHour(samples) {
  const after = samples.slice(Math.ceil(samples.length / 3));
  if (after.length < 5) return undefined;
  const quantities = Object.keys(after[0]).filter((key) => key !== "hours" && after.every((each) => Number.isFinite(each[key])));
  return Object.fromEntries(
    quantities.map((key) => [
      key,
      slope(
        after.map(({ hours }) => hours),
        after.map((each) => each[key]),
      ),
    ]),
  );
}

function slope(xs, ys) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanX, meanY] = [mean(xs), mean(ys)];
  const over = xs.reduce((sum, x, at) => sum + (x - meanX) * (ys[at] - meanY), 0);
  const under = xs.reduce((sum, x) => sum + (x - meanX) ** 2, 0);
  return under === 0 ? 0 : over / under;
}
