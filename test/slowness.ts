import { availableParallelism, loadavg } from "node:os";

const variable = "SKILLHOST_TEST_SLOWNESS";
const most = 10;

/**
 * How many times slower than when it is quiet this machine is, which is what deadlines of tests are multiplied by. Measured once for
 * a run, unless SKILLHOST_TEST_SLOWNESS says it.
 */
function slowness(): number {
  const known = Number(process.env[variable]);
  if (known >= 1) return known;
  const measured = Math.min(most, Math.max(1, contention(), (loadavg()[0] ?? 0) / availableParallelism()));
  // Workers are told by their environment.
  process.env[variable] = measured.toFixed(1);
  return measured;
}

/** A deadline on this machine. It is no bound that a test relies on: what is waited for comes sooner, or never. */
export function patience(ms: number): number {
  return Math.round(ms * slowness());
}

/** How much longer work takes than the processor works on it, because others have it meanwhile. */
function contention(): number {
  const [started, before] = [performance.now(), process.cpuUsage()];
  let sum = 0;
  for (let n = 0; n < 10_000_000; n++) sum = (sum + n) % 1_000_003;
  const { user, system } = process.cpuUsage(before);
  return sum < 0 ? 1 : ((performance.now() - started) * 1_000) / Math.max(user + system, 1);
}
