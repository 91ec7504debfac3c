import { expect, test } from "vitest";
import type { TreeWatcher } from "../../src/io/watch/watch-tree.ts";
import { SkillWatch } from "../../src/skills/store/watched-paths.ts";

/** A watcher that only records what it should watch, and how deep. */
function rememberingWatcher(): { watched: Map<string, number | undefined>; watcher: TreeWatcher } {
  const watched = new Map<string, number | undefined>();
  const watcher: TreeWatcher = {
    ready: Promise.resolve(),
    counts: { backend: "directory", roots: 0, directories: 0, polled: 0, holders: 0 },
    add: (root, options) => void (watched.has(root) || watched.set(root, options?.depth)),
    remove: (root) => void watched.delete(root),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return { watched, watcher };
}

test("the folder of an external file is watched alone as long as a skill depends on the file", () => {
  const { watched, watcher } = rememberingWatcher();
  const watch = new SkillWatch(watcher);
  watch.addRoot("/skills");
  watch.setFiles("/skills/a", ["/skills/a/SKILL.md", "/shared/x.ts"]);
  watch.setFiles("/skills/b", ["/shared/x.ts", "/shared/y.ts"]);
  expect([...watched]).toEqual([
    ["/skills", undefined],
    ["/shared", 0],
  ]);
  expect([[...watch.foldersOf("/shared/x.ts")], [...watch.foldersOf("/shared/y.ts")], [...watch.foldersOf("/skills/a/SKILL.md")]]).toEqual([
    ["/skills/a", "/skills/b"],
    ["/skills/b"],
    [],
  ]);
  watch.setFiles("/skills/b", []);
  expect(watched.has("/shared")).toBe(true);
  watch.setFiles("/skills/a", ["/skills/a/SKILL.md"]);
  expect([...watched.keys()]).toEqual(["/skills"]);
  expect([...watch.foldersOf("/shared/x.ts")]).toEqual([]);
});

test("a folder inside a root needs no watch of its own until the root is removed", () => {
  const { watched, watcher } = rememberingWatcher();
  const watch = new SkillWatch(watcher);
  watch.addRoot("/one");
  watch.addRoot("/two");
  watch.setFiles("/one/a", ["/two/lib/x.ts", "/two/node_modules/p/index.js"]);
  expect([...watched.keys()]).toEqual(["/one", "/two"]);
  watch.removeRoot("/two");
  expect([...watched]).toEqual([
    ["/one", undefined],
    ["/two/lib", 0],
  ]);
});

test("a folder that becomes a root is watched with all folders below it", () => {
  const { watched, watcher } = rememberingWatcher();
  const watch = new SkillWatch(watcher);
  watch.addRoot("/one");
  watch.setFiles("/one/a", ["/shared/x.ts"]);
  expect(watched.get("/shared")).toBe(0);
  watch.addRoot("/shared");
  expect([watched.has("/shared"), watched.get("/shared")]).toEqual([true, undefined]);
  watch.setFiles("/one/a", []);
  expect(watched.has("/shared")).toBe(true);
});

test("without a watcher, files still have known owners", () => {
  const watch = new SkillWatch(undefined);
  watch.addRoot("/one");
  watch.setFiles("/one/a", ["/shared/x.ts"]);
  expect([...watch.foldersOf("/shared/x.ts")]).toEqual(["/one/a"]);
  watch.removeRoot("/one");
});
