import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createHostModules, makeTree } from "../../scripts/module-matrix.mjs";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { createScope } from "../../src/io/scope.ts";
import { isSoak, rounds } from "../rounds.ts";

const RELOADS = rounds(40, 300);
const first = rounds(20, 100);
const text = (n: number): string => `import { base } from "./h.ts"; interface A { a: number }
const padding = "${"x".repeat(1_000)}"; export default (a: A): number => a.a + base + ${n} + padding.length;`;

test(`${RELOADS} reloads free every generation but the last, and keep less than a kilobyte each`, async () => {
  const root = makeTree({ "package.json": '{"type":"module"}', "tool.ts": text(0), "h.ts": "export const base = 1;" });
  const loader = createModuleLoader({ hostModules: createHostModules() });
  const scope = createScope();
  let freed = 0;
  const registry = new FinalizationRegistry(() => freed++);

  const reload = async (n: number): Promise<void> => {
    writeFileSync(join(root, "tool.ts"), text(n));
    loader.invalidate([join(root, "tool.ts")]);
    const { exports } = await loader.load(join(root, "tool.ts"), scope);
    registry.register(exports["default"] as object, n);
  };
  // These loads fill the loader's own caches.
  for (let n = 0; n < first; n++) await reload(n);
  await collect(() => freed >= first - 1);
  freed = 0;
  const before = process.memoryUsage().heapUsed;
  for (let n = first; n < first + RELOADS; n++) await reload(n);
  await collect(() => freed >= RELOADS);
  const kept = (process.memoryUsage().heapUsed - before) / RELOADS;
  rmSync(root, { recursive: true });

  expect(freed).toBeGreaterThanOrEqual(RELOADS - 1);
  // With few rounds, unrelated garbage outweighs the memory that a reload keeps.
  if (isSoak) expect(kept).toBeLessThan(1024);
});

test("a failed load is freed", async () => {
  const root = makeTree({ "package.json": '{"type":"module"}', "tool.ts": "" });
  const loader = createModuleLoader({ hostModules: createHostModules() });
  let freed = 0;
  const registry = new FinalizationRegistry(() => freed++);
  Object.assign(globalThis, { watch: (value: object) => registry.register(value, 1) });
  for (let n = 0; n < 20; n++) {
    writeFileSync(
      join(root, "tool.ts"),
      `const own = () => ${n}; globalThis.watch(own); function f() { own(); throw new Error("${n}") } f();`,
    );
    loader.invalidate([join(root, "tool.ts")]);
    await loader.load(join(root, "tool.ts"), createScope()).catch((error: Error) => error.message);
  }
  await collect(() => freed >= 19);
  rmSync(root, { recursive: true });
  Reflect.deleteProperty(globalThis, "watch");
  expect(freed).toBeGreaterThanOrEqual(19);
});

async function collect(isEnough: () => boolean): Promise<void> {
  for (let round = 0; round < 40; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
    if (isEnough() && round > 5) return;
  }
}
