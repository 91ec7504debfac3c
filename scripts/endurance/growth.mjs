import { readdirSync, readFileSync } from "node:fs";

/** What a process holds now, after collection of garbage. Undefined where the system does not say. */
export function sample(startedAt) {
  for (let round = 0; round < 3; round++) globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  return {
    hours: (performance.now() - startedAt) / 3_600_000,
    "heap MB": heapUsed / 1024 / 1024,
    "RSS MB": rss / 1024 / 1024,
    handles: process.getActiveResourcesInfo().length,
    "open files": countIn("/proc/self/fd"),
    threads: threads(),
  };
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
