import { availableParallelism, loadavg } from "node:os";

const variable = "SKILLHOST_TEST_SLOWNESS";
const most = 10;

/**
 * The slowdown of this machine relative to an idle one. Test deadlines are multiplied by it. It is measured once per run unless
 * SKILLHOST_TEST_SLOWNESS sets it.
 */
function slowness(): number {
  const known = Number(process.env[variable]);
  if (known >= 1) return known;
  const measured = Math.min(most, Math.max(1, contention(), (loadavg()[0] ?? 0) / availableParallelism()));
  // Workers read the value from their environment.
  process.env[variable] = measured.toFixed(1);
  return measured;
}

/** A deadline on this machine. No test relies on its length: the awaited event comes earlier or never. */
export function patience(ms: number): number {
  return Math.round(ms * slowness());
}

/** Ratio of elapsed to processor time of a calculation; above 1 when other processes compete for the processor. */
function contention(): number {
  const [started, before] = [performance.now(), process.cpuUsage()];
  let sum = 0;
  for (let n = 0; n < 10_000_000; n++) sum = (sum + n) % 1_000_003;
  const { user, system } = process.cpuUsage(before);
  return sum < 0 ? 1 : ((performance.now() - started) * 1_000) / Math.max(user + system, 1);
}
