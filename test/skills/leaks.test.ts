import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isSoak, rounds } from "../rounds.ts";
import { patience } from "../slowness.ts";
import { openKit, poll, put, skillMd, tempFolder, toolSource } from "./kit.ts";

const collectGarbage = (globalThis as { gc?: () => void }).gc;
const reloads = rounds(50, 1_000);
const step = reloads / 10;
// Generous, because the engine frees some memory late; leaked modules would need ten times as much.
const bytesPerReload = 4 * 1024;

/** Counts on the global object what its module has opened and not closed, across generations. */
const greedy = (n: number): string => `import { createServer } from "node:net";
import { defineTool } from "skillhost";
const counts = (globalThis.testCounts ??= { timers: 0, sockets: 0, listeners: 0, ended: 0 });
const ballast = new Array(2_000).fill(${n});
export default async (host) => {
  const timer = setInterval(() => {}, 1_000);
  counts.timers++;
  host.onDispose(() => { clearInterval(timer); counts.timers--; });
  const onUncaught = () => {};
  process.on("SIGUSR2", onUncaught);
  counts.listeners++;
  host.onDispose(() => { process.off("SIGUSR2", onUncaught); counts.listeners--; });
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  counts.sockets++;
  host.onDispose(() => new Promise((resolve) => server.close(() => { counts.sockets--; resolve(); })));
  host.signal.addEventListener("abort", () => counts.ended++);
  return defineTool("greedy", { description: "Holds things.", handler: () => String(ballast[${n} % 2_000]) });
};
`;

interface Counts {
  readonly timers: number;
  readonly sockets: number;
  readonly listeners: number;
  readonly ended: number;
}

test(`${reloads} reloads leave no timer, socket or listener open and hardly any memory`, {
  timeout: patience(60_000 * rounds(1, 5)),
}, async () => {
  expect(collectGarbage).toBeTypeOf("function");
  const root = tempFolder({
    "s/SKILL.md": skillMd("s"),
    "s/tools/greedy.js": greedy(0),
    "s/tools/calm.json": JSON.stringify({ name: "calm", description: "Calm." }),
  });
  const kit = await openKit([root], { watch: false });
  const counts = (): Counts => (globalThis as unknown as { testCounts: Counts }).testCounts;
  const freed: number[] = [];
  const watched = new FinalizationRegistry<number>((n) => freed.push(n));
  const open = (): string[] => process.getActiveResourcesInfo().filter((kind) => kind !== "Immediate" && kind !== "FSReqCallback");
  // The engine frees compiled code only after several collections without use.
  const heap = async (): Promise<number> => {
    if (!isSoak) return 0;
    for (let round = 0; round < 10; round++) {
      collectGarbage?.();
      await new Promise(setImmediate);
    }
    return process.memoryUsage().heapUsed;
  };
  let before = 0;
  let resources = 0;
  for (let n = 1; n <= reloads; n++) {
    put(join(root, "s/tools/greedy.js"), greedy(n));
    await kit.host.reload();
    if (n % step === 0) {
      expect(await kit.says("greedy")).toBe(String(n));
      watched.register(kit.session.catalog.executables.get("greedy") as object, n);
    }
    if (n === 2 * step) {
      before = await heap();
      resources = open().length;
    }
  }
  await poll("all but the last generation have ended", () => counts().ended === reloads && counts().sockets === 1);
  expect(counts()).toEqual({ timers: 1, sockets: 1, listeners: 1, ended: reloads });
  const growth = ((await heap()) - before) / (reloads - 2 * step);
  // With few rounds, other garbage outweighs what a reload keeps.
  if (isSoak) expect(growth).toBeLessThan(bytesPerReload);
  expect(open().length).toBeLessThanOrEqual(resources + 2);
  await poll("old handlers are freed", () => {
    collectGarbage?.();
    return freed.length >= 8;
  });
  expect(freed).not.toContain(reloads);
  await kit.close();
  expect(counts()).toMatchObject({ timers: 0, sockets: 0, listeners: 0 });
});

test("modules that failed to load leave nothing open", async () => {
  const faulty = (n: number): string => `const counts = (globalThis.testFaulty ??= { timers: 0 });
export default (host) => {
  const timer = setInterval(() => {}, 1_000);
  counts.timers++;
  host.onDispose(() => { clearInterval(timer); counts.timers--; });
  throw new Error("after all, no (${n})");
};
`;
  const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/say.js": toolSource("say", '"hello"') });
  const kit = await openKit([root], { watch: false });
  for (let n = 0; n < 20; n++) {
    put(join(root, "s/tools/say.js"), faulty(n));
    await kit.host.reload();
    expect(await kit.says("say")).toBe("hello");
  }
  expect((globalThis as unknown as { testFaulty: object }).testFaulty).toEqual({ timers: 0 });
});

test("external files that a skill no longer imports are no longer watched", async () => {
  const place = tempFolder({ "shared/word.ts": 'export const word = "shared";\n' });
  const root = join(place, "skills");
  put(join(root, "s/SKILL.md"), skillMd("s"));
  put(join(root, "s/tools/say.ts"), toolSource("say", "word", 'import { word } from "../../../shared/word.ts";'));
  const kit = await openKit([root]);
  await kit.saved(() => put(join(place, "shared/word.ts"), 'export const word = "again";\n'));
  expect(await kit.says("say")).toBe("again");
  await kit.saved(() => put(join(root, "s/tools/say.ts"), toolSource("say", '"alone"')));
  expect(await kit.unnoticed(() => appendFileSync(join(place, "shared/word.ts"), "// no longer imported\n"))).toEqual([]);
  expect(readFileSync(join(place, "shared/word.ts"), "utf8")).toContain("no longer imported");
});
