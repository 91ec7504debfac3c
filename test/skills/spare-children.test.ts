import { renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { SkillPermissions } from "../../src/formats/skills/skill-permissions.ts";
import { identityOf, liesAt } from "../../src/io/process/mount-identity.ts";
import { createScope } from "../../src/io/scope.ts";
import {
  type ChildListener,
  type ChildPlace,
  type ChildTransport,
  type OpenChild,
  openProcess,
  openWorker,
} from "../../src/skills/isolation/child-transport.ts";
import { createIsolatedRunner } from "../../src/skills/isolation/isolated-runner.ts";
import { SkillChannel } from "../../src/skills/isolation/skill-channel.ts";
import { limitsOf } from "../../src/skills/isolation/skill-limits.ts";
import { SpareChildren } from "../../src/skills/isolation/spare-children.ts";
import { buildPackage } from "../built-package.ts";
import { patience } from "../slowness.ts";
import { hasSystemSandbox, openIsolated } from "./isolation-kit.ts";
import { put, putAll, skillMd, tempFolder } from "./kit.ts";

buildPackage();

interface Started {
  readonly place: ChildPlace;
  readonly listener: ChildListener;
  readonly child: ChildTransport;
  isKilled: boolean;
  readonly sent: string[];
}

/** Children that only record what is done with them. */
function recorder({ suits = () => true }: { readonly suits?: () => boolean } = {}) {
  const started: Started[] = [];
  const start: OpenChild = async (place, listener) => {
    const sent: string[] = [];
    const child = {
      send: (text: string) => void sent.push(text),
      kill: async () => {
        each.isKilled = true;
      },
      suits,
    };
    const each: Started = { place, listener, child, isKilled: false, sent };
    started.push(each);
    return child;
  };
  return { started, start };
}

const silent: ChildListener = { received: () => {}, ended: () => {} };
const at = (folder: string): ChildPlace => ({ folder, environment: [] });
const files: ReadonlySet<string> = new Set(["/s/tools/a.ts"]);

describe("spare children", () => {
  async function withSpare(given: Parameters<typeof recorder>[0] = {}) {
    const { started, start } = recorder(given);
    const spares = new SpareChildren(start, { areLikely: true });
    spares.enter("/s");
    const first = await spares.open(at("/s"), silent);
    spares.want(at("/s"), files);
    await vi.waitFor(() => expect(started[1]?.sent).toEqual([JSON.stringify({ kind: "prepare", files: [...files] })]));
    return { started, spares, first };
  }

  test("are taken by the next child of their skill, which gets what they say from then on", async () => {
    const { started, spares, first } = await withSpare();
    const received: string[] = [];
    started[1]!.listener.received("before");
    const next = await spares.open(at("/s"), { received: (text) => void received.push(text), ended: () => {} });
    started[1]!.listener.received("after");
    expect([next === started[1]!.child, next === first, received]).toEqual([true, false, ["after"]]);
    // Before it is asked to load anything, and while this process looks at its limits.
    expect(started[1]!.sent.map((text) => JSON.parse(text))).toEqual([
      { kind: "prepare", files: [...files] },
      { kind: "compile", files: [...files] },
    ]);
    expect((await spares.open(at("/s"), silent)) === started[2]!.child).toBe(true);
    expect(started).toHaveLength(3);
  });

  test("are not taken when a child that starts now would get something else, or when they have ended", async () => {
    const unsuitable = await withSpare({ suits: () => false });
    expect(await unsuitable.spares.open(at("/s"), silent)).toBe(unsuitable.started[2]!.child);
    expect(unsuitable.started.map(({ isKilled }) => isKilled)).toEqual([false, true, false]);
    const ended = await withSpare();
    ended.started[1]!.listener.ended("it exited");
    expect(await ended.spares.open(at("/s"), silent)).toBe(ended.started[2]!.child);
  });

  test("end when the limits of their skill are no longer valid, and the reason is reported", async () => {
    const { started, spares } = await withSpare({
      suits: () => {
        throw new Error("leads through a link");
      },
    });
    await expect(spares.open(at("/s"), silent)).rejects.toThrow("leads through a link");
    await vi.waitFor(() => expect(started[1]!.isKilled).toBe(true));
  });

  test("end with the last generation of their skill, also when they were only asked for", async () => {
    const { started, spares } = await withSpare();
    spares.enter("/s");
    await spares.leave("/s");
    expect(started[1]!.isKilled).toBe(false);
    await spares.leave("/s");
    expect(started[1]!.isKilled).toBe(true);
    spares.enter("/s");
    await spares.open(at("/s"), silent);
    spares.want(at("/s"), files);
    await spares.leave("/s");
    await new Promise((done) => setTimeout(done, 300));
    expect(started).toHaveLength(3);
  });

  test("are at most four, of the skills that were loaded last", async () => {
    const { started, start } = recorder();
    const spares = new SpareChildren(start, { areLikely: true });
    const folders = Array.from({ length: 6 }, (_, index) => `/s${index}`);
    for (const folder of folders) {
      spares.enter(folder);
      await spares.open(at(folder), silent);
      spares.want(at(folder), files);
    }
    const living = () => started.slice(6).flatMap(({ isKilled, place }) => (isKilled ? [] : [place.folder]));
    await vi.waitFor(() => expect(living()).toEqual(["/s2", "/s3", "/s4", "/s5"]));
    spares.want(at("/s0"), files);
    await vi.waitFor(() => expect(living()).toEqual(["/s3", "/s4", "/s5", "/s0"]));
  });

  test("are for skills that were loaded again, unless reloads of all are likely", async () => {
    const { started, start } = recorder();
    const spares = new SpareChildren(start, { areLikely: false });
    spares.enter("/s");
    await spares.open(at("/s"), silent);
    spares.want(at("/s"), files);
    await new Promise((done) => setTimeout(done, 300));
    expect(started).toHaveLength(1);
    await spares.open(at("/s"), silent);
    spares.want(at("/s"), files);
    await vi.waitFor(() => expect(started).toHaveLength(3));
  });
});

const tool = `import { defineTool } from "skillhost";
import { readFileSync } from "node:fs";
export default defineTool("reads", { description: "Reads.", parameters: { type: "object" }, handler: ({ path }: any) => [readFileSync(path, "utf8"), process.env.SPARE_VALUE].join(" ").trim() });
`;

/** A skill with a child and a spare that run, and functions to ask the next child. */
async function running(start: OpenChild, permissions: SkillPermissions = { env: [] }) {
  const root = tempFolder({
    "skills/s/SKILL.md": skillMd("s"),
    "skills/s/data/own.txt": "own",
    "skills/s/tools/reads.ts": tool,
  });
  const folder = join(root, "skills/s");
  const limits = () => limitsOf(permissions, { folder, workingDirectory: root });
  const place: ChildPlace = { folder, environment: permissions.env ?? [], limits };
  let starts = 0;
  const spares = new SpareChildren(
    async (given, listener) => {
      const child = await start(given, listener);
      starts++;
      return child;
    },
    { areLikely: true },
  );
  spares.enter(folder);
  onTestFinished(() => spares.leave(folder));
  const file = join(folder, "tools/reads.ts");
  /** The next child, and what it reads at a path. */
  const read = async (path: string): Promise<string> => {
    const channel = await SkillChannel.open(spares.open, place);
    onTestFinished(() => channel.kill("the test has ended"));
    await channel.request("load", { key: "k", file, target: { skill: { name: "s", folder }, generation: 1 } });
    spares.want(place, new Set([file]));
    return ((await channel.request("call", { key: "k", index: 0, args: { path }, invocation: {} })) as { textResultForLlm: string })
      .textResultForLlm;
  };
  const hasStarted = (count: number) => vi.waitFor(() => expect(starts).toBe(count), { timeout: patience(20_000) });
  return { root, folder, read, hasStarted, starts: () => starts };
}

function replace(path: string, other: string): void {
  renameSync(path, `${other}-before`);
  renameSync(other, path);
}

const own = (folder: string): string => join(folder, "data/own.txt");

describe.each([
  ["worker", openWorker],
  ["process", openProcess],
])("the spare of a skill in a %s", (_tier, start) => {
  test("runs the next generation", { timeout: patience(60_000) }, async () => {
    const { folder, read, hasStarted, starts } = await running(start);
    expect(await read(own(folder))).toBe("own");
    await hasStarted(2);
    put(own(folder), "changed");
    expect(await read(own(folder))).toBe("changed");
    expect(starts()).toBe(2);
    await hasStarted(3);
  });
});

describe.skipIf(!hasSystemSandbox)("a spare that the system encloses", () => {
  const changes: readonly (readonly [string, (place: { root: string; folder: string }) => void, string])[] = [
    ["a folder took the place of another one", ({ root, folder }) => replace(join(folder, "data"), join(root, "other")), "other first"],
    ["another folder took the place of the skill", ({ root, folder }) => replace(folder, join(root, "copy")), "copy first"],
    ["settings appeared above the skill", ({ root }) => put(join(root, "package.json"), "{}"), "own first"],
    ["a declared variable has another value", () => vi.stubEnv("SPARE_VALUE", "second"), "own second"],
  ];
  test.each(changes)("is not used when %s", { timeout: patience(60_000) }, async (_name, change, expected) => {
    vi.stubEnv("SPARE_VALUE", "first");
    onTestFinished(() => void vi.unstubAllEnvs());
    const place = await running(openProcess, { read: ["./data"], env: ["SPARE_VALUE"] });
    const { root, folder, read, hasStarted, starts } = place;
    putAll(root, { "other/own.txt": "other", "copy/data/own.txt": "copy", "copy/tools/reads.ts": tool });
    expect(await read(own(folder))).toBe("own first");
    await hasStarted(2);
    change(place);
    expect(await read(own(folder))).toBe(expected);
    expect(starts()).toBe(3);
  });

  test("is not used when a path of its limits has become a link", { timeout: patience(60_000) }, async () => {
    const { root, folder, read, hasStarted, starts } = await running(openProcess, { env: [], read: ["./data"] });
    put(join(root, "outside/own.txt"), "SECRET");
    expect(await read(own(folder))).toBe("own");
    await hasStarted(2);
    renameSync(join(folder, "data"), join(root, "moved"));
    symlinkSync(join(root, "outside"), join(folder, "data"));
    await expect(read(own(folder))).rejects.toMatchObject({ code: "ISOLATION_PATH" });
    expect(starts()).toBe(2);
  });
});

test.skipIf(!hasSystemSandbox)(
  "a link that is exchanged while a child starts does not open its target",
  { timeout: patience(60_000) },
  async () => {
    const root = tempFolder({ "data/own.txt": "own", "outside/own.txt": "SECRET", "s/tools/reads.ts": tool });
    const folder = join(root, "s");
    let checks = 0;
    const limits = () => {
      checks++;
      // The check of the first start sees the folder, its mount the link, and the check after it the folder again.
      if (checks === 2) {
        rmSync(join(root, "data"));
        renameSync(join(root, "moved"), join(root, "data"));
      }
      const found = limitsOf({ env: [], read: ["{workingDirectory}/data"] }, { folder, workingDirectory: root });
      if (checks === 1) {
        renameSync(join(root, "data"), join(root, "moved"));
        symlinkSync(join(root, "outside"), join(root, "data"));
      }
      return found;
    };
    const channel = await SkillChannel.open(openProcess, { folder, environment: [], limits });
    onTestFinished(() => channel.kill("the test has ended"));
    await channel.request("load", {
      key: "k",
      file: join(folder, "tools/reads.ts"),
      target: { skill: { name: "s", folder }, generation: 1 },
    });
    const reads = (path: string) => channel.request("call", { key: "k", index: 0, args: { path }, invocation: {} });
    await expect(reads(join(root, "outside/own.txt"))).rejects.toThrow("ENOENT");
    expect(await reads(join(root, "data/own.txt"))).toMatchObject({ textResultForLlm: "own" });
    expect(checks).toBeGreaterThan(2);
  },
);

describe.skipIf(process.platform !== "linux")("whether a file lies at a path", () => {
  test("is false for another file, a link, and a path that leads through one", () => {
    const root = tempFolder({ "a/file.txt": "a", "b/file.txt": "b" });
    symlinkSync(join(root, "a"), join(root, "to-a"));
    symlinkSync(join(root, "a/file.txt"), join(root, "b/link.txt"));
    const identity = identityOf(join(root, "a/file.txt"))!;
    const paths = ["a/file.txt", "b/file.txt", "to-a/file.txt", "b/link.txt", "missing.txt"];
    expect(paths.map((path) => liesAt(join(root, path), identity))).toEqual([true, false, false, false, false]);
  });
});

test("generations that run in spares do not keep the generations before them", async () => {
  const collectGarbage = (globalThis as { gc?: () => void }).gc;
  expect(collectGarbage).toBeTypeOf("function");
  let [started, freed] = [0, 0];
  const registry = new FinalizationRegistry(() => freed++);
  // Like a real child, it keeps its place and its listener as long as it is reachable.
  const start: OpenChild = async (place, listener) => {
    started++;
    const send = (text: string): void => {
      const { kind, id } = JSON.parse(text) as { kind: string; id?: number };
      const value = kind === "call" ? "answer" : {};
      if (id !== undefined) setImmediate(() => listener.received(JSON.stringify({ kind: "result", id, value })));
    };
    const child = { send, kill: async () => listener.ended("it was ended"), suits: () => place.limits !== undefined };
    registry.register(child, undefined);
    return child;
  };
  const runner = createIsolatedRunner("process", { workingDirectory: "/", isWatched: true, start });
  let before = createScope();
  const generations = 8;
  for (let generation = 1; generation <= generations; generation++) {
    const scope = createScope();
    const handler = runner.handler!("/s/tools/a.ts", { tool: "a" }, { skill: { name: "s", folder: "/s" }, generation }, scope)!;
    expect(await handler({}, { services: {} } as never, {} as never)).toBe("answer");
    await before.dispose();
    before = scope;
    // The child of this generation was the spare of the one before, and has a spare.
    await vi.waitFor(() => expect(started).toBe(generation + 1), { timeout: patience(5_000), interval: 5 });
  }
  await vi.waitFor(
    () => {
      collectGarbage?.();
      expect(freed).toBeGreaterThanOrEqual(generations - 2);
    },
    { timeout: patience(5_000), interval: 20 },
  );
  await before.dispose();
});

test("saves that follow each other run in children of their own, whether a spare was ready or not", {
  timeout: patience(60_000),
}, async () => {
  const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/t.ts": pidTool(1) });
  const { host, text } = await openIsolated(root, { isolation: "process" });
  const pids: string[] = [await text("t")];
  for (const version of [2, 3, 4]) {
    put(join(root, "s/tools/t.ts"), pidTool(version));
    await host.reload();
    const answer = await text("t");
    expect(answer).toMatch(new RegExp(`^${version} `));
    pids.push(answer);
  }
  expect(new Set(pids).size).toBe(4);
});

const pidTool = (version: number): string =>
  `import { defineTool } from "skillhost";
export default defineTool("t", { description: "Answers.", skipPermission: true, parameters: { type: "object" }, handler: () => "${version} " + performance.timeOrigin });`;
