import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { type PathChange, type WatchOptions, watchTree } from "../../src/io/watch/watch-tree.ts";
import { patience } from "../slowness.ts";
import { put, type Recorder, record, tempFolder } from "./watch-recorder.ts";

const skill = (name: string): Record<string, string> => ({
  [`skills/${name}/SKILL.md`]: `# ${name}`,
  [`skills/${name}/tools/tool.json`]: "{}",
  [`skills/${name}/prompts/system.md`]: "be brief",
});

// Changes in one folder are reported in order: after the mark, all earlier changes have been reported.
async function mark(recorder: Recorder, folder: string): Promise<void> {
  const path = join(folder, `mark-${performance.now()}`);
  writeFileSync(path, "");
  await recorder.saw("added", path);
}

describe.each(["directory", "chokidar"] as const)("the %s back end", (backend) => {
  const watch = (root: string, more: Partial<Parameters<typeof record>[0]> = {}): Promise<Recorder> =>
    record({ backend, roots: [root], pollInterval: 100, ...more });

  test("the watcher reports its back end and the number of its watches", async () => {
    const root = join(tempFolder({ ...skill("a"), ...skill("b") }), "skills");
    const { watcher } = await watch(root);
    expect(watcher.counts).toMatchObject({ backend, roots: 1, directories: 7, polled: 0 });
  });

  test("the watcher reports a written, a new and a deleted file once each, and nothing at the start", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    const recorder = await watch(root);
    const file = join(root, "a/SKILL.md");
    // One system call each: a file that is opened and then written may be seen in between.
    appendFileSync(file, "# new");
    await recorder.saw("changed", file);
    const written = join(dirname(root), "notes.md");
    writeFileSync(written, "x");
    renameSync(written, join(root, "a/notes.md"));
    await recorder.saw("added", join(root, "a/notes.md"));
    unlinkSync(join(root, "a/tools/tool.json"));
    await recorder.saw("removed", join(root, "a/tools/tool.json"));
    await mark(recorder, join(root, "a"));
    expect(recorder.all().map((change) => [change.kind, relative(root, change.path), change.directory])).toEqual([
      ["changed", "a/SKILL.md", false],
      ["added", "a/notes.md", false],
      ["removed", "a/tools/tool.json", false],
      ["added", expect.stringContaining("mark-"), false],
    ]);
  });

  test("the watcher reports each save by rename as one change", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    const recorder = await watch(root, { ignore: (path) => path.endsWith(".tmp") });
    const file = join(root, "a/SKILL.md");
    for (let round = 0; round < 5; round++) {
      recorder.clear();
      writeFileSync(`${file}.tmp`, `round ${round}`);
      renameSync(`${file}.tmp`, file);
      await recorder.saw("changed", file);
      await mark(recorder, join(root, "a"));
      expect(new Set(recorder.of(file).map((change) => change.kind))).toEqual(new Set(["changed"]));
    }
    recorder.clear();
    writeFileSync(file, "in place, after the renames");
    await recorder.saw("changed", file);
  });

  test("the watcher reports delete and re-create in one step as one change", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    const recorder = await watch(root);
    const file = join(root, "a/SKILL.md");
    unlinkSync(file);
    writeFileSync(file, "again");
    await recorder.saw("changed", file);
    await mark(recorder, join(root, "a"));
    expect(recorder.of(file).map((change) => change.kind)).not.toContain("removed");
  });

  test("the watcher reports truncate and write", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    const recorder = await watch(root);
    const file = join(root, "a/SKILL.md");
    truncateSync(file);
    writeFileSync(file, "# b", { flag: "r+" });
    await recorder.saw("changed", file);
  });

  test("the watcher reports a second save during the handling of the first", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    const file = join(root, "a/SKILL.md");
    const read: string[] = [];
    let saves = 0;
    const recorder = await watch(root, {
      onChange(changes) {
        if (!changes.some((change) => change.path === file)) return;
        read.push(readFileSync(file, "utf8"));
        if (++saves < 6) writeFileSync(file, `save ${saves}`);
      },
    });
    writeFileSync(file, "save 0");
    await recorder.until("the last save was read", () => read.includes("save 5"));
  });

  describe("reports early", () => {
    const early = async (root: string, options: Partial<WatchOptions> = {}): Promise<{ recorder: Recorder; early: boolean[] }> => {
      const seen: boolean[] = [];
      const onChange = (_changes: readonly PathChange[], isEarly: boolean): void => void seen.push(isEarly);
      return { recorder: await watch(root, { isComplete: () => true, onChange, ...options }), early: seen };
    };
    // A burst that something else joins, such as the late events of an earlier one, is not reported early.
    const saveUntil = async (recorder: Recorder, file: string, isEnough: () => boolean, byRename = false): Promise<void> => {
      for (let save = 0; !isEnough() && save < 200; save++) {
        recorder.clear();
        writeFileSync(byRename ? `${file}~` : file, `edited ${save}`);
        if (byRename) renameSync(`${file}~`, file);
        await recorder.saw("changed", file);
      }
    };

    test("the edit of one complete file, in place or by rename, without waiting for quiet", async () => {
      for (const byRename of [false, true]) {
        const root = join(tempFolder(skill("a")), "skills");
        const file = join(root, "a/SKILL.md");
        const { recorder, early: seen } = await early(root, { debounce: 300, maxWait: 600 });
        await saveUntil(recorder, file, () => seen.includes(true), byRename);
        expect(seen).toContain(true);
        expect(recorder.batches[0]).toEqual([{ path: file, kind: "changed", directory: false }]);
      }
    });

    test("nothing of an incomplete file, a new file or two files: these wait for quiet", async () => {
      const edits: Readonly<Record<string, (folder: string) => void>> = {
        "SKILL.md": (folder) => writeFileSync(join(folder, "SKILL.md"), "incomplete"),
        "new.md": (folder) => writeFileSync(join(folder, "new.md"), "complete"),
        "b.md": (folder) => ["SKILL.md", "b.md"].forEach((name) => void writeFileSync(join(folder, name), "complete")),
      };
      for (const [last, edit] of Object.entries(edits)) {
        const root = join(tempFolder({ ...skill("a"), "skills/a/b.md": "b" }), "skills");
        const isComplete = (path: string): boolean => readFileSync(path, "utf8") === "complete";
        const { recorder, early: seen } = await early(root, { isComplete });
        edit(join(root, "a"));
        await recorder.saw(last === "new.md" ? "added" : "changed", join(root, "a", last));
        expect(seen).not.toContain(true);
      }
    });

    test("and reports the end of the burst, after whatever else it brought", async () => {
      const root = join(tempFolder({ ...skill("a"), "skills/a/b.md": "b" }), "skills");
      const [file, other] = [join(root, "a/SKILL.md"), join(root, "a/b.md")];
      const order: string[] = [];
      const recorder = await watch(root, {
        isComplete: (path) => path === file,
        onChange(changes, isEarly) {
          order.push(`${isEarly ? "early" : "late"} ${changes.map(({ path }) => path.slice(root.length + 3)).join(" ")}`);
          if (isEarly) writeFileSync(other, "too");
        },
        onQuiet: () => order.push("quiet"),
      });
      await saveUntil(recorder, file, () => order.includes("early SKILL.md"));
      await vi.waitUntil(() => order.includes("quiet") && order.some((line) => /^late .*b\.md/.test(line)), patience(15_000));
      expect(order.indexOf("quiet")).toBeGreaterThan(order.indexOf("early SKILL.md"));
    });
  });

  test("the watcher reports a file that changes continuously", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    const recorder = await watch(root, { debounce: 40, maxWait: 120 });
    const file = join(root, "a/SKILL.md");
    let count = 0;
    const busy = setInterval(() => writeFileSync(file, `${count++}`), 5);
    await recorder.saw("changed", file).finally(() => clearInterval(busy));
  });

  test("the watcher reports all 500 files of a branch switch", async () => {
    const files = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`s${i % 50}/tools/t${i}.ts`, `old ${i}`]));
    const root = tempFolder(files);
    const recorder = await watch(root);
    for (const path of Object.keys(files)) {
      unlinkSync(join(root, path));
      writeFileSync(join(root, path), `new ${path}`);
    }
    const seen = (): number => new Set(recorder.all().map((change) => change.path)).size;
    await recorder.until("all 500 were reported", () => seen() === 500);
    expect(recorder.all().every((change) => change.kind !== "added" || recorder.of(change.path).length > 1)).toBe(true);
  });

  test("the watcher reports edits in a renamed folder under its new name", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    const recorder = await watch(root);
    renameSync(join(root, "a"), join(root, "b"));
    await recorder.saw("removed", join(root, "a/tools/tool.json"));
    await recorder.saw("added", join(root, "b/tools/tool.json"));
    expect(recorder.of(join(root, "b"))).toEqual([{ path: join(root, "b"), kind: "added", directory: true }]);
    recorder.clear();
    writeFileSync(join(root, "b/tools/tool.json"), "[]");
    await recorder.saw("changed", join(root, "b/tools/tool.json"));
    expect(recorder.all().filter((change) => change.path.startsWith(join(root, "a")))).toEqual([]);
  });

  test("the watcher follows a folder that is moved away and another that takes its name", async () => {
    const root = join(tempFolder({ ...skill("a"), "other/SKILL.md": "other", "other/deep/x.md": "x" }), "skills");
    const recorder = await watch(root);
    renameSync(join(root, "a"), join(root, "../away"));
    renameSync(join(root, "../other"), join(root, "a"));
    await recorder.saw("added", join(root, "a/deep/x.md"));
    await recorder.saw("removed", join(root, "a/tools/tool.json"));
    recorder.clear();
    writeFileSync(join(root, "a/deep/x.md"), "xx");
    await recorder.saw("changed", join(root, "a/deep/x.md"));
  });

  test.each(["at once", "after the deletion was reported"])(
    "the watcher watches a folder that is deleted and created again %s",
    async (when) => {
      const root = join(tempFolder(skill("a")), "skills");
      const recorder = await watch(root);
      const file = join(root, "a/tools/tool.json");
      for (let round = 0; round < 3; round++) {
        recorder.clear();
        rmSync(join(root, "a"), { recursive: true });
        if (when !== "at once") await recorder.saw("removed", file);
        put(file, "{}");
        await recorder.until("it is back", () => ["added", "changed"].includes(recorder.of(file).at(-1)?.kind ?? ""));
        // On a busy machine the first report may still be pending: only a later edit proves that the folder is watched.
        await mark(recorder, join(root, "a/tools"));
        recorder.clear();
        writeFileSync(file, `round ${round}`);
        await recorder.saw("changed", file);
      }
    },
  );

  test("the watcher finds files in nested folders that are created quickly", async () => {
    const root = tempFolder();
    const recorder = await watch(root);
    for (let i = 0; i < 5; i++) put(join(root, `s${i}/a/b/c/d/file.md`), "x");
    for (let i = 0; i < 5; i++) await recorder.saw("added", join(root, `s${i}/a/b/c/d/file.md`));
    recorder.clear();
    writeFileSync(join(root, "s4/a/b/c/d/file.md"), "y");
    await recorder.saw("changed", join(root, "s4/a/b/c/d/file.md"));
  });

  test("the watcher reports changes in a linked folder under the link", async () => {
    const base = tempFolder({ ...skill("a"), "elsewhere/lint/SKILL.md": "# lint", "elsewhere/lint/tools/t.json": "{}" });
    const root = join(base, "skills");
    symlinkSync(join(base, "elsewhere/lint"), join(root, "lint"));
    const recorder = await watch(root);
    writeFileSync(join(base, "elsewhere/lint/tools/t.json"), "[]");
    await recorder.saw("changed", join(root, "lint/tools/t.json"));
    put(join(base, "elsewhere/lint/new/deep.md"), "x");
    await recorder.saw("added", join(root, "lint/new/deep.md"));
  });

  test("the watcher reports a change under each of two links to the same folder", async () => {
    const base = tempFolder({ "elsewhere/SKILL.md": "# lint", "skills/x.md": "" });
    const root = join(base, "skills");
    symlinkSync("../elsewhere", join(root, "one"));
    symlinkSync("../elsewhere", join(root, "two"));
    const recorder = await watch(root);
    writeFileSync(join(base, "elsewhere/SKILL.md"), "# new");
    await recorder.saw("changed", join(root, "one/SKILL.md"));
    await recorder.saw("changed", join(root, "two/SKILL.md"));
  });

  test("the watcher reports a link that is redirected to another folder, and edits there", async () => {
    const base = tempFolder({ "v1/SKILL.md": "1", "v2/SKILL.md": "2", "v2/more.md": "2", "skills/x.md": "" });
    const root = join(base, "skills");
    symlinkSync("../v1", join(root, "current"));
    const recorder = await watch(root);
    symlinkSync("../v2", join(base, "next"));
    renameSync(join(base, "next"), join(root, "current"));
    await recorder.saw("added", join(root, "current/more.md"));
    await recorder.saw("changed", join(root, "current/SKILL.md"));
    await mark(recorder, join(root, "current"));
    recorder.clear();
    writeFileSync(join(base, "v2/SKILL.md"), "2b");
    await recorder.saw("changed", join(root, "current/SKILL.md"));
  });

  test("the watcher follows a linked file: write, replacement, removal and return of its target", async () => {
    const base = tempFolder({ "shared/tool.ts": "1", "skills/a/SKILL.md": "# a" });
    const root = join(base, "skills");
    const target = join(base, "shared/tool.ts");
    const link = join(root, "a/tool.ts");
    symlinkSync("../../shared/tool.ts", link);
    const recorder = await watch(root);
    writeFileSync(target, "2");
    await recorder.saw("changed", link);
    recorder.clear();
    writeFileSync(`${target}.tmp`, "3");
    renameSync(`${target}.tmp`, target);
    await recorder.saw("changed", link);
    unlinkSync(target);
    await recorder.saw("removed", link);
    recorder.clear();
    rmSync(join(base, "shared"), { recursive: true });
    put(target, "4");
    await recorder.saw("added", link);
    recorder.clear();
    writeFileSync(target, "5");
    await recorder.saw("changed", link);
  });

  test("the watcher follows a root that is a link, and its new target", async () => {
    const base = tempFolder({ "v1/a/SKILL.md": "1", "v2/a/SKILL.md": "2", "v2/b/SKILL.md": "2" });
    const root = join(base, "current");
    symlinkSync("v1", root);
    const recorder = await watch(root);
    writeFileSync(join(base, "v1/a/SKILL.md"), "1b");
    await recorder.saw("changed", join(root, "a/SKILL.md"));
    recorder.clear();
    symlinkSync("v2", join(base, "next"));
    renameSync(join(base, "next"), root);
    await recorder.saw("added", join(root, "b/SKILL.md"));
    await recorder.saw("changed", join(root, "a/SKILL.md"));
    await recorder.watcher.ready;
    recorder.clear();
    writeFileSync(join(base, "v2/b/SKILL.md"), "2b");
    await recorder.saw("changed", join(root, "b/SKILL.md"));
  });

  test("the watcher waits for a root whose parents do not exist either", async () => {
    const base = tempFolder();
    const root = join(base, "not/yet/skills");
    const recorder = await watch(root);
    put(join(root, "a/SKILL.md"), "# a");
    await recorder.saw("added", join(root, "a/SKILL.md"));
    await recorder.saw("added", root);
    await recorder.watcher.ready;
    recorder.clear();
    writeFileSync(join(root, "a/SKILL.md"), "# b");
    await recorder.saw("changed", join(root, "a/SKILL.md"));
  });

  test("the watcher finds a root again that was repeatedly deleted with its parents", async () => {
    const base = tempFolder({ "project/skills/a/SKILL.md": "# a" });
    const root = join(base, "project/skills");
    const file = join(root, "a/SKILL.md");
    const recorder = await watch(root);
    for (let round = 0; round < 3; round++) {
      recorder.clear();
      rmSync(join(base, "project"), { recursive: true });
      await recorder.saw("removed", root);
      expect(recorder.watcher.counts.directories).toBe(0);
      put(file, "# back");
      await recorder.saw("added", file);
      await recorder.watcher.ready;
      recorder.clear();
      writeFileSync(file, `round ${round}`);
      await recorder.saw("changed", file);
    }
  });

  test("the watcher ends the search in cyclic links, and watches their siblings", async () => {
    const base = tempFolder({ ...skill("a"), ...skill("b") });
    const root = join(base, "skills");
    symlinkSync("..", join(root, "a/up"));
    symlinkSync(".", join(root, "a/self"));
    symlinkSync("../b", join(root, "a/sister"));
    symlinkSync("../a", join(root, "b/brother"));
    symlinkSync("loop", join(root, "loop"));
    const recorder = await watch(root);
    expect(recorder.watcher.counts.directories).toBeLessThan(60);
    writeFileSync(join(root, "a/SKILL.md"), "# new");
    await recorder.saw("changed", join(root, "a/SKILL.md"));
    await recorder.saw("changed", join(root, "b/brother/SKILL.md"));
  });

  test("the watcher excludes version control and installed packages, or what the options exclude", async () => {
    const root = tempFolder({ "a/.git/HEAD": "x", "a/node_modules/p/index.js": "x", "a/SKILL.md": "x", "a/build/out.md": "x" });
    const usual = await watch(root);
    const excluding = await watch(root, { ignore: (path) => path.endsWith("build") });
    expect(usual.watcher.counts.directories).toBe(3);
    for (const path of ["a/.git/HEAD", "a/node_modules/p/index.js", "a/build/out.md", "a/SKILL.md"]) writeFileSync(join(root, path), "y");
    for (const recorder of [usual, excluding]) await recorder.saw("changed", join(root, "a/SKILL.md"));
    await usual.saw("changed", join(root, "a/build/out.md"));
    await excluding.saw("changed", join(root, "a/.git/HEAD"));
    await mark(usual, join(root, "a"));
    expect(usual.all().filter((change) => /\.git|node_modules/.test(change.path))).toEqual([]);
    expect(excluding.all().filter((change) => change.path.includes("build"))).toEqual([]);
  });

  test("the watcher reports paths in the spelling of the root", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    const spelled = relative(process.cwd(), root);
    const recorder = await watch(`${spelled}//`);
    writeFileSync(join(root, "a/SKILL.md"), "# new");
    await recorder.saw("changed", join(spelled, "a/SKILL.md"));
  });

  test("the watcher enters as many levels as the options allow", async () => {
    const root = tempFolder({ "top.md": "x", "a/one.md": "x", "a/b/two.md": "x" });
    const recorder = await record({ backend, roots: [] });
    recorder.watcher.add(root, { depth: 1 });
    await recorder.watcher.ready;
    expect(recorder.watcher.counts.directories).toBe(2);
    writeFileSync(join(root, "a/b/two.md"), "y");
    writeFileSync(join(root, "a/one.md"), "y");
    mkdirSync(join(root, "a/c"));
    await recorder.saw("changed", join(root, "a/one.md"));
    await recorder.saw("added", join(root, "a/c"));
    expect(recorder.of(join(root, "a/b/two.md"))).toEqual([]);
  });

  test("the watcher watches a root that is a file", async () => {
    const root = tempFolder({ "skillhost.json": "{}", "other.json": "{}" });
    const file = join(root, "skillhost.json");
    const recorder = await watch(file);
    writeFileSync(join(root, "other.json"), "[]");
    writeFileSync(file, "[]");
    await recorder.saw("changed", file);
    unlinkSync(file);
    await recorder.saw("removed", file);
    writeFileSync(file, "{}");
    await recorder.saw("added", file);
    expect(new Set(recorder.all().map((change) => change.path))).toEqual(new Set([file]));
  });

  test("the watcher adds and removes roots while it runs", async () => {
    const base = tempFolder({ "one/a.md": "x", "two/b.md": "x" });
    const recorder = await watch(join(base, "one"));
    recorder.watcher.add(join(base, "two"));
    recorder.watcher.add(join(base, "two/"));
    await recorder.watcher.ready;
    expect(recorder.watcher.counts.roots).toBe(2);
    recorder.watcher.remove(join(base, "one"));
    writeFileSync(join(base, "one/a.md"), "y");
    writeFileSync(join(base, "two/b.md"), "y");
    await recorder.saw("changed", join(base, "two/b.md"));
    await mark(recorder, join(base, "two"));
    expect(recorder.of(join(base, "one/a.md"))).toEqual([]);
    expect(recorder.watcher.counts).toMatchObject({ roots: 1, directories: 1 });
  });

  test("the watcher reports a file that replaces a folder, and a folder that replaces a file", async () => {
    const root = join(tempFolder({ ...skill("a"), "skills/b": "a file" }), "skills");
    const recorder = await watch(root);
    rmSync(join(root, "a"), { recursive: true });
    writeFileSync(join(root, "a"), "a file now");
    unlinkSync(join(root, "b"));
    put(join(root, "b/SKILL.md"), "# b");
    await recorder.saw("removed", join(root, "a/SKILL.md"));
    await recorder.saw("added", join(root, "b/SKILL.md"));
    await recorder.until("a is a file", () => recorder.of(join(root, "a")).at(-1)?.directory === false);
    expect(recorder.of(join(root, "b")).at(-1)?.directory).toBe(true);
  });

  test("mode and time changes cause one report at most, and never reports of a folder's contents", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    const recorder = await watch(root);
    chmodSync(join(root, "a"), 0o700);
    utimesSync(join(root, "a/tools"), 1, 1);
    await mark(recorder, join(root, "a"));
    expect(recorder.all().filter((change) => change.directory || !change.path.includes("mark-"))).toEqual([]);
  });

  test("names with spaces, dots, Unicode and line breaks are ordinary names", async () => {
    const root = tempFolder({ "x.md": "" });
    const recorder = await watch(root);
    for (const name of ["a b.md", "..c", "größe.md", "line\nbreak.md", "'$(x)'.md", "-rf"]) {
      put(join(root, "dir ü", name), "x");
      await recorder.saw("added", join(root, "dir ü", name));
    }
  });

  test("a listener that throws causes a diagnostic and does not end the watcher", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    let isFirst = true;
    const recorder = await watch(root, {
      onChange() {
        if (!isFirst) return;
        isFirst = false;
        throw new Error("planted");
      },
    });
    writeFileSync(join(root, "a/SKILL.md"), "1");
    await recorder.until("the error was reported", () => recorder.problems.length > 0);
    expect(recorder.problems[0]).toMatchObject({ code: "WATCH_LISTENER_FAILED", severity: "error" });
    recorder.clear();
    writeFileSync(join(root, "a/tools/tool.json"), "2");
    await recorder.saw("changed", join(root, "a/tools/tool.json"));
  });

  test("a disposed watcher reports nothing and takes no roots", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    const recorder = await watch(root);
    writeFileSync(join(root, "a/SKILL.md"), "1");
    await recorder.watcher[Symbol.asyncDispose]();
    expect(recorder.watcher.counts).toMatchObject({ roots: 0, directories: 0, holders: 0 });
    expect(() => recorder.watcher.add(root)).toThrowError(expect.objectContaining({ code: "WATCHER_CLOSED" }));
    expect(recorder.all()).toEqual([]);
  });

  test("a watcher can be disposed of while it starts", async () => {
    const root = join(tempFolder(skill("a")), "skills");
    const watcher = watchTree({ roots: [root], backend, onChange: () => {}, onProblem: () => {} });
    await watcher[Symbol.asyncDispose]();
    expect(watcher.counts.directories).toBe(0);
  });

  test("the watcher watches no more folders than the limit, and reports that once", async () => {
    const root = tempFolder(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`d${i}/x.md`, "x"])));
    const recorder = await watch(root, { maxDirectories: 10 });
    expect(recorder.watcher.counts.directories).toBe(10);
    expect(recorder.problems.map((problem) => problem.code)).toEqual(["WATCH_TOO_MANY"]);
  });
});

test("the environment selects the back end if the options do not, and an unknown one is reported", async () => {
  const root = tempFolder({ "x.md": "" });
  const before = process.env["SKILLHOST_WATCHER"];
  try {
    process.env["SKILLHOST_WATCHER"] = "chokidar";
    expect((await record({ roots: [root] })).watcher.counts.backend).toBe("chokidar");
    expect((await record({ roots: [root], backend: "directory" })).watcher.counts.backend).toBe("directory");
    process.env["SKILLHOST_WATCHER"] = "magic";
    expect((await record({ roots: [root] })).problems[0]).toMatchObject({ code: "WATCH_BACKEND_UNKNOWN" });
  } finally {
    if (before === undefined) delete process.env["SKILLHOST_WATCHER"];
    else process.env["SKILLHOST_WATCHER"] = before;
  }
});
