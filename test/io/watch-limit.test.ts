import { spawnSync } from "node:child_process";
import type { FSWatcher } from "node:fs";
import { chmodSync, existsSync, mkdirSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { compileSources } from "../compiled-sources.ts";
import { rounds } from "../rounds.ts";
import { patience } from "../slowness.ts";
import { put, record, tempFolder } from "./watch-recorder.ts";

// The number of watches that the system allows, and the open ones.
const system = vi.hoisted(() => ({ allowed: Number.POSITIVE_INFINITY, code: "ENOSPC", open: [] as FSWatcher[] }));

vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>();
  const watch = (path: string, listener: () => void): FSWatcher => {
    if (system.open.length >= system.allowed)
      throw Object.assign(new Error(`${system.code}: planted, watch '${path}'`), { code: system.code });
    const watcher = fs.watch(path, listener);
    system.open.push(watcher);
    watcher.on("close", () => void system.open.splice(system.open.indexOf(watcher), 1));
    return watcher;
  };
  return { ...fs, watch };
});

beforeEach(() => {
  system.allowed = Number.POSITIVE_INFINITY;
  system.code = "ENOSPC";
});

const skills = (count: number): string =>
  tempFolder(Object.fromEntries(Array.from({ length: count }, (_, i) => [`s${i}/tools/t.json`, "{}"])));

describe("an exhausted number of watches", () => {
  test.each(["ENOSPC", "EMFILE"])("%s: the watcher reports the limit once, and finds every change by polling", async (code) => {
    const root = skills(10);
    system.code = code;
    system.allowed = 8;
    const recorder = await record({ roots: [root], backend: "directory", pollInterval: 20 });
    expect(recorder.problems).toEqual([
      expect.objectContaining({ code: "WATCH_LIMIT", severity: "warning", message: expect.stringContaining(code) }),
    ]);
    expect(recorder.watcher.counts.polled).toBeGreaterThan(0);
    for (let i = 0; i < 10; i++) writeFileSync(join(root, `s${i}/tools/t.json`), `[${i}]`);
    for (let i = 0; i < 10; i++) await recorder.saw("changed", join(root, `s${i}/tools/t.json`));
    put(join(root, "s9/tools/new.json"), "{}");
    put(join(root, "s9/deep/er/new.json"), "{}");
    await recorder.saw("added", join(root, "s9/tools/new.json"));
    await recorder.saw("added", join(root, "s9/deep/er/new.json"));
    renameSync(join(root, "s8"), join(root, "renamed"));
    await recorder.saw("removed", join(root, "s8/tools/t.json"));
    await recorder.saw("added", join(root, "renamed/tools/t.json"));
    expect(recorder.problems).toHaveLength(1);
  });

  test("without any watch, a root that appears later is found, and its links are followed", async () => {
    const base = tempFolder({ "elsewhere/x.md": "1" });
    system.allowed = 0;
    const recorder = await record({ roots: [join(base, "a/skills")], backend: "directory", pollInterval: 20 });
    put(join(base, "a/skills/one/SKILL.md"), "1");
    await recorder.saw("added", join(base, "a/skills/one/SKILL.md"));
    recorder.clear();
    writeFileSync(join(base, "a/skills/one/SKILL.md"), "22");
    await recorder.saw("changed", join(base, "a/skills/one/SKILL.md"));
  });

  test("the watcher uses watches again when some are available", async () => {
    const root = skills(5);
    system.allowed = 3;
    const recorder = await record({ roots: [root], backend: "directory", pollInterval: 20 });
    system.allowed = 100;
    await vi.waitFor(() => expect(recorder.watcher.counts.polled).toBe(0), { timeout: patience(10_000) });
    writeFileSync(join(root, "s4/tools/t.json"), "[]");
    await recorder.saw("changed", join(root, "s4/tools/t.json"));
  });

  test("a watch that fails later is replaced, and its error does not propagate", async () => {
    const root = skills(3);
    const recorder = await record({ roots: [root], backend: "directory", pollInterval: 20 });
    for (const watcher of [...system.open]) watcher.emit("error", Object.assign(new Error("planted"), { code: "EPERM" }));
    writeFileSync(join(root, "s1/tools/t.json"), "[1,2]");
    await recorder.saw("changed", join(root, "s1/tools/t.json"));
    await vi.waitFor(() => expect(recorder.watcher.counts.polled).toBe(0), { timeout: patience(10_000) });
    recorder.clear();
    writeFileSync(join(root, "s1/tools/t.json"), "[]");
    await recorder.saw("changed", join(root, "s1/tools/t.json"));
  });

  test("the watcher releases every watch when it is disposed of", async () => {
    const recorder = await record({ roots: [skills(4), skills(4)], backend: "directory" });
    expect(system.open.length).toBeGreaterThanOrEqual(18);
    await recorder.watcher[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(system.open.length).toBe(0), { timeout: patience(10_000) });
  });
});

// A user namespace has its own limits, so a test can lower the real ones without an effect on other processes.
const lowered = (limit: string, value: number, backend: string): string[] => [
  "-Ur",
  "sh",
  "-c",
  `echo ${value} > /proc/sys/user/${limit} && exec "$0" "$@"`,
  process.execPath,
  compileSources("test/io/watch-limit-child.ts")("test/io/watch-limit-child.ts"),
  backend,
];
const canLower =
  process.platform === "linux" && spawnSync("unshare", ["-Ur", "sh", "-c", "echo 9 > /proc/sys/user/max_inotify_watches"]).status === 0;

describe.runIf(canLower)("the limits of the kernel", () => {
  test.each([
    ["directory", "max_inotify_watches", 20, "ENOSPC"],
    ["directory", "max_inotify_instances", 0, "EMFILE"],
    ["chokidar", "max_inotify_watches", 20, "ENOSPC"],
    ["chokidar", "max_inotify_instances", 0, "EMFILE"],
  ] as const)("the %s back end survives %s = %i and misses no change", (backend, limit, value, code) => {
    const child = spawnSync("unshare", lowered(limit, value, backend), { encoding: "utf8", timeout: patience(20_000) });
    expect(child.stderr).toBe("");
    expect(JSON.parse(child.stdout)).toEqual({ problems: [["WATCH_LIMIT", code]], missing: [] });
  });
});

test("the watcher reports every file when the kernel drops events beyond 16,384 pending ones", async () => {
  const root = tempFolder({ "other/x.md": "" });
  const noisy = Array.from({ length: 500 }, (_, i) => join(root, `noisy${i}.md`));
  const late = Array.from({ length: 50 }, (_, i) => join(root, `other/late${i}.md`));
  for (const path of [...noisy, ...late]) writeFileSync(path, "");
  const recorder = await record({ roots: [root], backend: "directory" });
  // The loop blocks the event loop, so the queue is full long before the last files are written.
  for (let round = 0; round < 36; round++) for (const path of noisy) chmodSync(path, round % 2 === 0 ? 0o600 : 0o644);
  for (const path of late) writeFileSync(path, "new");
  unlinkSync(join(root, "other/x.md"));
  mkdirSync(join(root, "other/made"));
  for (const path of late) await recorder.saw("changed", path);
  await recorder.saw("removed", join(root, "other/x.md"));
  await recorder.saw("added", join(root, "other/made"));
});

const files = rounds(1_000, 10_000);

test(`the watcher reports all ${files} new files`, async () => {
  const root = tempFolder({}, existsSync("/dev/shm") ? "/dev/shm" : tmpdir());
  const recorder = await record({ roots: [root], backend: "directory" });
  for (let d = 0; d < 50; d++) mkdirSync(join(root, `d${d}`));
  for (let i = 0; i < files; i++) writeFileSync(join(root, `d${i % 50}/f${i}.md`), "");
  const reported = (): number => new Set(recorder.all().flatMap((change) => (change.directory ? [] : [change.path]))).size;
  await recorder.until("all were reported", () => reported() === files);
});
