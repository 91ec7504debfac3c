import { execFile, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { sha256 } from "../../src/base/canonical-json.ts";
import { type CacheKey, cacheKey, DiskCache } from "../../src/io/disk-cache.ts";
import { createScope } from "../../src/io/scope.ts";
import { CheckedFolder } from "../../src/trust/checked-folder.ts";
import { digestFolder } from "../../src/trust/folder-digests.ts";
import { compileSources } from "../compiled-sources.ts";
import { createLoader, tree, write } from "./module-trees.ts";
import { emptyFolder } from "./temp-folder.ts";

const isWindows = process.platform === "win32";
const key = cacheKey("test", ["one"]);
const other = cacheKey("test", ["two"]);
const value = { code: "ünï\u{1f600}\ud800", list: [1, null] };

const pathOf = (folder: string, of: CacheKey): string => join(folder, of.slice(0, 1), of);

/** All files below a folder, by relative path. */
function filesIn(folder: string): readonly string[] {
  if (!existsSync(folder) || !statSync(folder).isDirectory()) return [];
  const found = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return found.filter((file) => statSync(join(folder, file)).isFile());
}

describe("a cache on disk", () => {
  test("gives other processes what was stored, in files that only this user can read", () => {
    const folder = join(emptyFolder(), "new", "cache");
    const cache = new DiskCache(folder);
    expect(cache.get(key)).toBeUndefined();
    expect(existsSync(folder)).toBe(false);
    cache.set(key, value);
    expect(cache.get(key)).toEqual(value);
    expect(new DiskCache(folder).get(key)).toEqual(value);
    expect(new DiskCache(folder).get(other)).toBeUndefined();
    expect(cache.state).toMatchObject({ folder, entries: 1 });
    if (isWindows) return;
    expect(statSync(pathOf(folder, key)).mode & 0o777).toBe(0o600);
    for (const made of [folder, dirname(pathOf(folder, key))]) expect(statSync(made).mode & 0o777).toBe(0o700);
  });

  test.each<[what: string, damage: (path: string, folder: string) => void]>([
    ["truncated", (path) => truncateSync(path, statSync(path).size - 1)],
    ["truncated to its digest", (path) => truncateSync(path, 64)],
    ["empty", (path) => truncateSync(path, 0)],
    ["zeros, as after a power cut", (path) => writeFileSync(path, Buffer.alloc(statSync(path).size))],
    ["changed in one character", (path) => writeFileSync(path, readFileSync(path, "utf8").replace("null", "1234"))],
    ["longer", (path) => writeFileSync(path, `${readFileSync(path, "utf8")} `)],
    ["JSON of another program", (path) => writeFileSync(path, '{"code":"planted"}')],
    ["not UTF-8", (path) => writeFileSync(path, Buffer.concat([readFileSync(path).subarray(0, 80), Buffer.from([0xff, 0xfe])]))],
    ["with a digest of its text alone", (path) => writeFileSync(path, `${sha256('"planted"')}"planted"`)],
    [
      "another entry under its name",
      (path, folder) => {
        new DiskCache(folder).set(other, "planted");
        renameSync(pathOf(folder, other), path);
      },
    ],
    ["huge", (path) => truncateSync(path, 2 ** 30)],
  ])("ignores and removes an entry that is %s, and stores it again", (_what, damage) => {
    const folder = emptyFolder();
    chmodSync(folder, 0o700);
    new DiskCache(folder).set(key, value);
    damage(pathOf(folder, key), folder);
    const cache = new DiskCache(folder);
    expect(cache.get(key)).toBeUndefined();
    expect(existsSync(pathOf(folder, key))).toBe(false);
    cache.set(key, value);
    expect(new DiskCache(folder).get(key)).toEqual(value);
  });

  test.skipIf(isWindows).each<[what: string, replace: (path: string) => void]>([
    ["a folder", (path) => mkdirSync(path)],
    ["a link to a file of the same content", (path) => symlinkSync(`${path}.real`, path)],
    ["a pipe", (path) => void spawnSync("mkfifo", [path])],
    [
      "a file that others can write",
      (path) => {
        renameSync(`${path}.real`, path);
        chmodSync(path, 0o666);
      },
    ],
  ])("does not read %s in the place of an entry, and does not fail", (_what, replace) => {
    const folder = emptyFolder();
    new DiskCache(folder).set(key, value);
    renameSync(pathOf(folder, key), `${pathOf(folder, key)}.real`);
    replace(pathOf(folder, key));
    const cache = new DiskCache(folder);
    expect(cache.get(key)).toBeUndefined();
    cache.set(key, value);
    expect([undefined, value]).toContainEqual(cache.get(key));
  });

  const unusable: readonly [what: string, change: (folder: string) => void, problem: RegExp | undefined][] = [
    ["that others can write to", (folder) => chmodSync(folder, 0o777), /other users can write/],
    ["of which others can write to a part", (folder) => chmodSync(dirname(pathOf(folder, key)), 0o770), undefined],
    [
      "that is a link",
      (folder) => {
        renameSync(folder, `${folder}-real`);
        symlinkSync(`${folder}-real`, folder);
      },
      /not a folder/,
    ],
    [
      "that is a file",
      (folder) => {
        rmSync(folder, { recursive: true });
        writeFileSync(folder, "");
      },
      /not a folder/,
    ],
    ["of another user", (folder) => chownSync(folder, 65_534, 65_534), /another user/],
  ];

  for (const [what, change, problem] of unusable) {
    // Only the superuser can give a folder away.
    const isPossible = !isWindows && (what !== "of another user" || process.getuid?.() === 0);
    test.skipIf(!isPossible)(`does not use a folder ${what}`, () => {
      const folder = join(emptyFolder(), "cache");
      new DiskCache(folder).set(key, value);
      change(folder);
      const before = filesIn(folder);
      const cache = new DiskCache(folder);
      expect(cache.get(key)).toBeUndefined();
      cache.set(key, "changed");
      cache.clear();
      expect(filesIn(folder)).toEqual(before);
      if (problem === undefined) expect(cache.state.problem).toBeUndefined();
      else expect(cache.state.problem).toMatch(problem);
    });
  }

  test("a folder below a file, or removed while it is used, costs the cache and nothing else", () => {
    const base = emptyFolder();
    writeFileSync(join(base, "file"), "");
    const below = new DiskCache(join(base, "file", "cache"));
    below.set(key, value);
    expect(below.get(key)).toBeUndefined();
    below.clear();
    expect(below.state.entries).toBe(0);
    const removed = new DiskCache(join(base, "cache"));
    removed.set(key, value);
    rmSync(join(base, "cache"), { recursive: true });
    expect(removed.get(key)).toBeUndefined();
    for (let n = 0; n < 9; n++) removed.set(key, value);
    expect(removed.get(key)).toBeUndefined();
  });

  test("a clock that jumps changes no result", () => {
    const folder = emptyFolder();
    const keys = Array.from({ length: 40 }, (_, n) => cacheKey("test", [`clock ${n}`]));
    const cache = new DiskCache(folder);
    for (const [n, each] of keys.entries()) {
      cache.set(each, n);
      const time = n % 2 === 0 ? 1 : 4e9;
      utimesSync(pathOf(folder, each), time, time);
    }
    expect(keys.map((each) => new DiskCache(folder).get(each))).toEqual(keys.map((_, n) => n));
    const used = statSync(pathOf(folder, keys[0]!)).mtimeMs;
    expect(used).toBeGreaterThan(1e9);
  });

  test.each([
    ["entries", { entries: 160, bytes: 1e9 }, 1],
    ["bytes", { entries: 1e6, bytes: 160_000 }, 900],
  ])("stays within a bound of %s, keeps what was used last, and what killed processes left goes", (_what, limits, size) => {
    const folder = emptyFolder();
    const cache = new DiskCache(folder, limits);
    const text = "x".repeat(size);
    const abandoned = digitsOf().map((digit) => join(folder, digit, `.${digit.repeat(64)}.${"0".repeat(12)}.tmp`));
    for (const path of abandoned) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(path, "half");
      utimesSync(path, 1, 1);
    }
    write(join(folder, "0", "notes.txt"), "mine");
    const keys = Array.from({ length: 4_000 }, (_, n) => cacheKey("test", [`${n}`]));
    for (const [n, each] of keys.entries()) {
      cache.set(each, text);
      if (existsSync(pathOf(folder, each))) utimesSync(pathOf(folder, each), 1e6 + n, 1e6 + n);
    }
    expect(cache.state.entries).toBeLessThan(1_600);
    expect(cache.state.entries).toBeGreaterThan(100);
    expect(abandoned.filter((path) => existsSync(path))).toEqual([]);
    expect(cache.get(keys.at(-1)!) ?? cache.get(keys.at(-2)!)).toBe(text);
    expect(keys.slice(0, 1_000).filter((each) => cache.get(each) !== undefined)).toEqual([]);
    cache.clear();
    expect(cache.state).toMatchObject({ entries: 0, bytes: 0 });
    expect(readFileSync(join(folder, "0", "notes.txt"), "utf8")).toBe("mine");
  });

  test("a value that would fill a part of the cache is not stored", () => {
    const folder = emptyFolder();
    new DiskCache(folder, { entries: 100, bytes: 16_000 }).set(key, "x".repeat(600));
    expect(filesIn(folder)).toEqual([]);
  });
});

function digitsOf(): readonly string[] {
  return [..."0123456789abcdef"];
}

interface Loaded {
  readonly values: readonly unknown[];
  readonly compiles: boolean;
}

describe("modules that are loaded through a cache", () => {
  const compiled = compileSources("test/io/cache-child.ts");
  const child = compiled("test/io/cache-child.ts");
  const loadWith = async (program: string, folder: string, files: readonly string[]): Promise<Loaded> => {
    const { stdout } = await promisify(execFile)(process.execPath, [program, folder, ...files]);
    return JSON.parse(stdout);
  };
  const load = (folder: string, ...files: string[]): Promise<Loaded> => loadWith(child, folder, files);
  const lowered = "function twice(target: () => number, _: unknown) { return () => 2 * target(); } class A { @twice of() { return 21; } }";

  test("a second process compiles nothing, loads no compiler, and has the same values", async () => {
    const at = tree({
      "plain.ts": 'import { part } from "./part.ts"; export default `${part as string}!`;',
      "part.ts": 'export type T = string; export const part: T = "ü"; export * from "./all.ts";',
      "all.ts": "export enum Level { Low, High }",
      "script.cts": "export = { default: 7 as number };",
      "lower.ts": `${lowered} export default new A().of();`,
      "await.mts": "export default await Promise.resolve(5 as number);",
    });
    const folder = join(emptyFolder(), "cache");
    const files = ["plain.ts", "script.cts", "lower.ts", "await.mts"].map(at);
    const first = await load(folder, ...files);
    const entries = filesIn(folder);
    const second = await load(folder, ...files);
    expect(first).toEqual({ values: ["ü!", { default: 7 }, 42, 5], compiles: true });
    expect(second).toEqual({ values: first.values, compiles: false });
    expect(entries).toHaveLength(6);
    expect(filesIn(folder)).toEqual(entries);
  });

  test("another version of skillhost does not use the entries, and leaves them alone", async () => {
    const at = tree({ "tool.ts": "export default 1 as number;" });
    const [folder, copy] = [join(emptyFolder(), "cache"), join(emptyFolder(), "copy")];
    cpSync(dirname(compiled("package.json")), copy, { recursive: true, preserveTimestamps: true });
    symlinkSync(fileURLToPath(new URL("../../node_modules", import.meta.url)), join(dirname(copy), "node_modules"), "junction");
    const program = join(copy, relative(dirname(compiled("package.json")), child));
    const paths = [at("tool.ts")];
    expect(await load(folder, ...paths)).toEqual({ values: [1], compiles: true });
    expect(await loadWith(program, folder, paths)).toEqual({ values: [1], compiles: false });
    const manifest = JSON.parse(readFileSync(join(copy, "package.json"), "utf8"));
    writeFileSync(join(copy, "package.json"), JSON.stringify({ ...manifest, version: "0.0.1-other" }));
    expect(await loadWith(program, folder, paths)).toEqual({ values: [1], compiles: true });
    expect(filesIn(folder)).toHaveLength(2);
    expect(await load(folder, ...paths)).toEqual({ values: [1], compiles: false });
  });

  test("20 processes that start at once on one cache, and 10 that find half of it damaged, get the right values", async () => {
    const files = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`m${n}.ts`, `export default ${n} as number;`]));
    const at = tree(files);
    const folder = join(emptyFolder(), "cache");
    const paths = Object.keys(files).map(at);
    const run = () => Promise.all(Array.from({ length: 10 }, () => load(folder, ...paths)));
    const together = (await Promise.all([run(), run()])).flat();
    expect(together.map(({ values }) => values)).toEqual(Array.from({ length: 20 }, () => paths.map((_, n) => n)));
    expect(filesIn(folder)).toHaveLength(12);
    for (const file of filesIn(folder).slice(0, 6)) truncateSync(join(folder, file), 70);
    const again = await run();
    expect(again.map(({ values }) => values)).toEqual(Array.from({ length: 10 }, () => paths.map((_, n) => n)));
    expect(filesIn(folder)).toHaveLength(12);
  });

  const canMount = process.platform === "linux" && spawnSync("unshare", ["-Urm", "mount", "-t", "tmpfs", "none", "/mnt"]).status === 0;

  test.skipIf(!canMount).each([
    ["full", "size=12k"],
    ["without free inodes", "nr_inodes=4"],
    ["read-only", "ro"],
  ])("on a disk that is %s they load as without a cache", (_what, options) => {
    const files = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`m${n}.ts`, `export default ${n}; // ${"x".repeat(3_000)}`]));
    const at = tree(files);
    const mount = emptyFolder();
    const script = `mount -t tmpfs -o mode=700,${options} none "$2" && exec "$0" "$@"`;
    const argv = ["-Urm", "sh", "-c", script, process.execPath, child, mount, ...Object.keys(files).map(at)];
    const ran = spawnSync("unshare", argv, { encoding: "utf8" });
    expect({ stderr: ran.stderr, values: JSON.parse(ran.stdout || "{}").values }).toEqual({ stderr: "", values: [0, 1, 2, 3, 4, 5, 6, 7] });
  });

  test("an edited, touched, reverted or differently configured file never gets the code of another text", async () => {
    const at = tree({ "tool.ts": "export default class { value!: number }" });
    const folder = join(emptyFolder(), "cache");
    const hasField = async (): Promise<boolean> => {
      const { exports } = await createLoader({ cache: new DiskCache(folder) }).load(at("tool.ts"), createScope());
      return Object.hasOwn(new (exports["default"] as new () => object)(), "value");
    };
    expect(await hasField()).toBe(true);
    write(at("tsconfig.json"), '{"compilerOptions":{"useDefineForClassFields":false}}');
    const changed = await hasField();
    rmSync(at("tsconfig.json"));
    expect([changed, await hasField()]).toEqual([false, true]);
    write(at("tool.ts"), "export default class { other!: number }");
    expect(await hasField()).toBe(false);
    write(at("tool.ts"), "export default class { value!: number }");
    expect(await hasField()).toBe(true);
  });

  test("edits that a running loader loads are not stored, and a file that does not parse is reported each time", async () => {
    const at = tree({ "tool.ts": "export default 1;", "bad.ts": "export default (;" });
    const folder = join(emptyFolder(), "cache");
    const loader = createLoader({ cache: new DiskCache(folder) });
    await loader.load(at("tool.ts"), createScope());
    write(at("tool.ts"), "export default 2;");
    loader.invalidate([at("tool.ts")]);
    expect((await loader.load(at("tool.ts"), createScope())).exports["default"]).toBe(2);
    expect(filesIn(folder)).toHaveLength(1);
    for (let n = 0; n < 2; n++) {
      const fresh = createLoader({ cache: new DiskCache(folder) });
      await expect(fresh.load(at("bad.ts"), createScope())).rejects.toMatchObject({ code: "MODULE_SYNTAX", position: { line: 1 } });
    }
  });

  test.each<[engine: "graph" | "jiti", stored: unknown]>([
    ["graph", null],
    ["graph", []],
    ["graph", { kind: "esm", code: 5, imports: [], reexports: [], usesCommonJs: false }],
    ["graph", { kind: "wasm", code: "", imports: [], reexports: [], usesCommonJs: false }],
    ["graph", { kind: "esm", code: "", imports: [5], reexports: [], usesCommonJs: false }],
    ["jiti", { code: "planted" }],
  ])("an entry of %s with a valid digest and an unknown shape is not used: %j", async (engine, stored) => {
    const at = tree({ "tool.ts": "export default 3 as number;" });
    const folder = join(emptyFolder(), "cache");
    const run = async () =>
      (await createLoader({ engine, cache: new DiskCache(folder) }).load(at("tool.ts"), createScope())).exports["default"];
    expect(await run()).toBe(3);
    const [entry] = filesIn(folder);
    new DiskCache(folder).set(entry!.slice(2) as CacheKey, stored);
    expect(await run()).toBe(3);
  });

  test("code that a signature covers runs from the verified bytes, whatever the cache holds", async () => {
    const at = tree({ "tool.ts": "export default 3 as number;" });
    const folder = join(emptyFolder(), "cache");
    const checked = new CheckedFolder(at("."), { ...digestFolder(at(".")), now: Date.now });
    const run = async (verified?: CheckedFolder) =>
      (await createLoader({ cache: new DiskCache(folder) }).load(at("tool.ts"), createScope(), verified)).exports["default"];
    expect(await run(checked)).toBe(3);
    expect(filesIn(folder)).toEqual([]);
    expect(await run()).toBe(3);
    const [entry] = filesIn(folder);
    const name = entry!.slice(2) as CacheKey;
    const stored = new DiskCache(folder).get(name) as { readonly code: string };
    new DiskCache(folder).set(name, { ...stored, code: stored.code.replace("3", "4") });
    expect([await run(), await run(checked)]).toEqual([4, 3]);
  });

  test("jiti's results are cached, too", async () => {
    const legacy = '{"compilerOptions":{"experimentalDecorators":true}}';
    const at = tree({ "tsconfig.json": legacy, "tool.ts": "export default 1 as number;" });
    const folder = join(emptyFolder(), "cache");
    const run = async () => (await createLoader({ cache: new DiskCache(folder) }).load(at("tool.ts"), createScope())).exports["default"];
    expect([await run(), await run()]).toEqual([1, 1]);
    const stored = filesIn(folder).map((file) => [file.slice(2), JSON.parse(readFileSync(join(folder, file), "utf8").slice(64))] as const);
    const [[name, code]] = stored.filter(([, each]) => typeof each === "string") as [[string, string]];
    new DiskCache(folder).set(name as CacheKey, code.replaceAll("1", "2"));
    expect(await run()).toBe(2);
  });
});
