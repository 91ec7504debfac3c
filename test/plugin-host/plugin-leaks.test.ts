import { join } from "node:path";
import { expect, test } from "vitest";
import { isSoak, rounds } from "../rounds.ts";
import { put, tempFolder } from "../skills/kit.ts";
import { patience } from "../slowness.ts";
import { hostWith } from "./plugin-kit.ts";

const collectGarbage = (globalThis as { gc?: () => void }).gc;
const reloads = rounds(24, 200);
const step = reloads / 8;
// A generous limit, because the engine frees some memory late: the ballast of one generation is twice as large.
const bytesPerReload = 8 * 1024;

const greedy = (n: number): string => `import { createServer } from "node:net";
import { definePlugin } from "skillhost";
const counts = (globalThis.pluginCounts ??= { timers: 0, sockets: 0, listeners: 0, aborted: 0 });
const ballast = new Array(2_000).fill(${n});
export default definePlugin({
  name: "greedy",
  async activate(api) {
    const timer = setInterval(() => {}, 1_000);
    counts.timers++;
    api.onDispose(() => { clearInterval(timer); counts.timers--; });
    const onSignal = () => {};
    process.on("SIGUSR2", onSignal);
    counts.listeners++;
    api.onDispose(() => { process.off("SIGUSR2", onSignal); counts.listeners--; });
    const server = createServer();
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    counts.sockets++;
    api.onDispose(() => new Promise((resolve) => server.close(() => { counts.sockets--; resolve(); })));
    api.signal.addEventListener("abort", () => counts.aborted++);
    api.onSessionClosed(() => {});
    api.addTools({ name: "greedy", description: "Holds things.", handler: () => String(ballast[7]) });
    api.addHooks({ onPreToolUse: () => undefined });
  },
});
`;

test(`${reloads} reloads of a plugin leave no timer, socket or listener behind, and hardly any memory`, {
  timeout: patience(60_000),
}, async () => {
  expect(collectGarbage).toBeTypeOf("function");
  const workingDirectory = tempFolder({ "greedy.ts": greedy(0) });
  const { host, call, session } = await hostWith(["./greedy.ts"], { workingDirectory });
  const counts = () => (globalThis as unknown as { pluginCounts: Record<string, number> }).pluginCounts;
  const freed: number[] = [];
  const watched = new FinalizationRegistry<number>((n) => freed.push(n));
  // The engine frees compiled code only after several collections without a use.
  const heap = async (): Promise<number> => {
    if (!isSoak) return 0;
    for (let round = 0; round < 8; round++) {
      collectGarbage?.();
      await new Promise(setImmediate);
    }
    return process.memoryUsage().heapUsed;
  };
  let before = 0;
  for (let n = 1; n <= reloads; n++) {
    put(join(workingDirectory, "greedy.ts"), greedy(n));
    await host.reload();
    if (n % step === 0) {
      expect((await call("greedy")).textResultForLlm).toBe(String(n));
      watched.register(session.catalog.executables.get("greedy") as object, n);
    }
    if (n === 2 * step) before = await heap();
  }
  await expect.poll(() => counts()).toEqual({ timers: 1, sockets: 1, listeners: 1, aborted: reloads });
  const growth = ((await heap()) - before) / (reloads - 2 * step);
  // With few rounds, unrelated garbage outweighs the memory that a reload keeps.
  if (isSoak) expect(growth).toBeLessThan(bytesPerReload);
  const freedByNow = (): number => {
    collectGarbage?.();
    return freed.length;
  };
  await expect.poll(freedByNow).toBeGreaterThanOrEqual(6);
  await host.close();
  expect(counts()).toEqual({ timers: 0, sockets: 0, listeners: 0, aborted: reloads + 1 });
});
