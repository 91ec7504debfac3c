import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { getHeapCodeStatistics, writeHeapSnapshot } from "node:v8";

/** What a process holds now, after collection of garbage. Undefined where the system does not say. */
export function sample(startedAt) {
  for (let round = 0; round < 3; round++) globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  const { code_and_metadata_size: machineCode, bytecode_and_metadata_size: bytecode } = getHeapCodeStatistics();
  return {
    hours: (performance.now() - startedAt) / 3_600_000,
    "heap MB": heapUsed / 1024 / 1024,
    "compiled code in the heap MB": (machineCode + bytecode) / 1024 / 1024,
    "RSS MB": rss / 1024 / 1024,
    handles: process.getActiveResourcesInfo().length,
    "open files": countIn("/proc/self/fd"),
    threads: threads(),
  };
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
  const before = kindsIn(earlier);
  const rows = [...kindsIn(later)].map(([kind, { number, bytes }]) => {
    const { number: fewer = 0, bytes: less = 0 } = before.get(kind) ?? {};
    return { kind, number: number - fewer, bytes: bytes - less };
  });
  rows.sort((a, b) => b.bytes - a.bytes);
  const lines = rows
    .slice(0, 30)
    .map(({ kind, number, bytes }) => `  ${kind}: ${number.toLocaleString("en-US")}, ${(bytes / 1024).toFixed(1)} KB`);
  return lines.join("\n");
}

/** The objects of a snapshot by kind. `(code)` is what the engine compiled, which grows while functions become hot. */
function kindsIn(file) {
  const { snapshot, nodes, strings } = JSON.parse(readFileSync(file, "utf8"));
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const at = Object.fromEntries(fields.map((field, index) => [field, index]));
  const kinds = new Map();
  for (let start = 0; start < nodes.length; start += fields.length) {
    const type = types[at.type][nodes[start + at.type]];
    const isNamed = type === "object" || type === "closure";
    const kind = isNamed ? `${type} ${strings[nodes[start + at.name]].slice(0, 60)}` : `(${type})`;
    const { number, bytes } = kinds.get(kind) ?? { number: 0, bytes: 0 };
    kinds.set(kind, { number: number + 1, bytes: bytes + nodes[start + at.self_size] });
  }
  return kinds;
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
