import { readFileSync, symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { sha256 } from "../../src/base/canonical-json.ts";
import { mapStack } from "../../src/io/module-loader/source-positions.ts";
import { createScope } from "../../src/io/scope.ts";
import { createLoader, failure, tree, write } from "./module-trees.ts";

const scope = createScope();

describe("loading modules", () => {
  test("a load returns the same namespace until a file changes, and lists every local file", async () => {
    const at = tree({ "tool.ts": 'import { n } from "./lib/h.js"; export default n;', "lib/h.ts": "export const n = 1;" });
    const loader = createLoader();
    const first = await loader.load(at("tool.ts"), scope);
    expect(first.files).toEqual(new Set([at("tool.ts"), at("lib/h.ts")]));
    expect((await loader.load(at("tool.ts"), scope)).exports).toBe(first.exports);
  });

  test("a helper is evaluated once for all entries, and concurrent first loads evaluate once", async () => {
    const at = tree({
      "a.ts": 'import { n } from "./h.ts"; export default n;',
      "b.ts": 'import { n } from "./h.ts"; export default n;',
      "h.ts": "export const n = globalThis.counted = (globalThis.counted ?? 0) + 1; await null;",
    });
    const loader = createLoader();
    const loaded = await Promise.all(["a.ts", "b.ts", "a.ts"].map((name) => loader.load(at(name), scope)));
    expect(loaded.map(({ exports }) => exports["default"])).toEqual([1, 1, 1]);
    Reflect.deleteProperty(globalThis, "counted");
  });

  test("two entries that import each other do not deadlock", async () => {
    const at = tree({
      "a.ts": 'import "./gap.ts"; import { b } from "./b.ts"; export const a = 1; export default () => b;',
      "b.ts": 'import "./gap.ts"; import { a } from "./a.ts"; export const b = 2; export default () => a;',
      "gap.ts": "await new Promise((resolve) => setImmediate(resolve));",
    });
    const loader = createLoader();
    const [a, b] = await Promise.all([loader.load(at("a.ts"), scope), loader.load(at("b.ts"), scope)]);
    expect([(a.exports["default"] as () => number)(), (b.exports["default"] as () => number)()]).toEqual([2, 1]);
  });

  test("a module behind a symbolic link is its target", async () => {
    const at = tree({ "real/tool.ts": "export default import.meta.filename;" });
    symlinkSync(at("real"), at("linked"));
    const { exports, files } = await createLoader().load(at("linked/tool.ts"), scope);
    expect(exports["default"]).toBe(at("real/tool.ts"));
    expect(files).toEqual(new Set([at("real/tool.ts")]));
  });

  test("a linked workspace package is local, and an edit of it takes effect", async () => {
    const at = tree({
      "skill/tool.ts": 'import { n } from "shared"; export default n;',
      "shared/package.json": '{"name":"shared","type":"module","exports":{".":"./src/index.ts"}}',
      "shared/src/index.ts": "export const n = 1;",
      "node_modules/.keep": "",
    });
    symlinkSync(at("shared"), at("node_modules/shared"));
    const loader = createLoader();
    expect((await loader.load(at("skill/tool.ts"), scope)).exports["default"]).toBe(1);
    write(at("shared/src/index.ts"), "export const n = 2;");
    expect(loader.invalidate([at("node_modules/shared/src/index.ts")])).toContain(at("skill/tool.ts"));
    expect((await loader.load(at("skill/tool.ts"), scope)).exports["default"]).toBe(2);
  });

  test("the default export of compiled CommonJS is its default export", async () => {
    const at = tree({ "tool.cjs": 'Object.defineProperty(exports, "__esModule", { value: true }); exports.default = 42; exports.x = 1;' });
    const { exports } = await createLoader().load(at("tool.cjs"), scope);
    expect({ ...exports }).toEqual({ default: 42, x: 1 });
  });

  test("exports named like object members are ordinary exports", async () => {
    const at = tree({ "tool.ts": 'const x = 1; export { x as "__proto__", x as constructor, x as __esModule };' });
    const { exports } = await createLoader().load(at("tool.ts"), scope);
    expect([Object.hasOwn(exports, "__proto__"), exports["constructor"], exports["__esModule"]]).toEqual([true, 1, 1]);
  });
});

describe("the sources of a module", () => {
  test.each(["graph", "jiti"] as const)("the content hash of a source is known until it is invalidated (%s)", async (engine) => {
    const at = tree({ "tool.ts": 'import "./h.ts"; export default 1;', "h.ts": "\uFEFFexport {};" });
    const loader = createLoader({ engine });
    expect(loader.contentHash(at("h.ts"))).toBeUndefined();
    await loader.load(at("tool.ts"), scope);
    write(at("h.ts"), "export const changed = 1;");
    expect(loader.contentHash(at("h.ts"))).toBe(sha256("export {};"));
    loader.invalidate([at("h.ts")]);
    expect(loader.contentHash(at("h.ts"))).toBeUndefined();
  });

  test("a package that contains only TypeScript runs like a local module", async () => {
    const at = tree({
      "tool.ts": 'import { n } from "typed"; export default n;',
      "node_modules/typed/package.json": '{"name":"typed","type":"module","exports":"./index.ts"}',
      "node_modules/typed/index.ts": 'import { n as m } from "./m.js"; export const n: number = m;',
      "node_modules/typed/m.js": "export const n = 42;",
    });
    expect((await createLoader().load(at("tool.ts"), scope)).exports["default"]).toBe(42);
  });
});

describe("modules that cannot be loaded", () => {
  test("a syntax error has a code, file, line and column, counted as editors do", async () => {
    const at = tree({ "tool.ts": 'const é = "日本語";\nlet 日 = ;' });
    const loader = createLoader();
    const error = await failure(loader.load(at("tool.ts"), scope));
    expect(error).toMatchObject({ code: "MODULE_SYNTAX", file: at("tool.ts"), position: { line: 2, column: 9 } });
    expect(loader.check(at("tool.ts"))).toEqual([error.toDiagnostic()]);
  });

  test.each([
    ["broken.json", '{"a":}', 1],
    ["broken.cjs", "exports.a = ;", 1],
    ["broken.js", "exports.a = 1;\nlet let = 2;", 2],
    ["broken.tsx", "export default <a>", 1],
  ])("check finds the error in %s", (name, text, line) => {
    const at = tree({ "package.json": "{}", [name]: text });
    const [fault, ...rest] = createLoader().check(at(name));
    expect(rest).toEqual([]);
    expect(fault).toMatchObject({ severity: "error", code: "MODULE_SYNTAX", file: at(name) });
    if (fault?.range) expect(fault.range.start.line).toBe(line);
  });

  test("check runs no code and reports nothing for a valid module", () => {
    const at = tree({ "tool.ts": 'globalThis.ran = true; import "./nowhere.ts"; export enum E { A }', "data.json": "[]" });
    const loader = createLoader();
    expect([...loader.check(at("tool.ts")), ...loader.check(at("data.json"))]).toEqual([]);
    expect("ran" in globalThis).toBe(false);
  });

  test.each([
    ["a missing file", "none.ts", "MODULE_NOT_FOUND"],
    ["a folder", "folder", "MODULE_UNREADABLE"],
    ["an invalid path", "a\0b.ts", "MODULE_NOT_FOUND"],
    ["a file of five megabytes", "large.ts", "MODULE_TOO_LARGE"],
  ])("%s is refused", async (_what, name, code) => {
    const at = tree({ "folder/x.ts": "", "large.ts": " ".repeat(5 * 1024 * 1024) });
    const loader = createLoader();
    expect(loader.check(at(name))).toMatchObject([{ code }]);
    expect((await failure(loader.load(at(name), scope))).code).toBe(code);
  });

  test.each([
    ["brackets", `export default ${"[".repeat(20_000)}${"]".repeat(20_000)};`],
    ["arrows", `export default ${"a => ".repeat(30_000)}1;`],
    ["loops", `${"for (;;)\n".repeat(70_000)};`],
  ])("%s nested so deeply that a parser would crash are refused", (_what, text) => {
    const at = tree({ "deep.ts": text });
    expect(createLoader().check(at("deep.ts"))).toMatchObject([{ code: "MODULE_SYNTAX" }]);
  });

  test("a large but flat module loads", () => {
    const at = tree({ "data.ts": `export default [${Array.from({ length: 20_000 }, (_, n) => `{ id: ${n}, of: [${n}] }`).join(",\n")}];` });
    expect(createLoader().check(at("data.ts"))).toEqual([]);
  });

  test("the error for a missing import names the specifier and the importer", async () => {
    const at = tree({ "tool.ts": 'import "./h.ts";', "h.ts": 'import "./gone.js"; import "no-such-package";' });
    const error = await failure(createLoader().load(at("tool.ts"), scope));
    expect(error.code).toBe("MODULE_NOT_FOUND");
    expect(error.message).toContain(`"./gone.js", imported by ${at("h.ts")}`);
    expect([...error.files]).toEqual(expect.arrayContaining([at("tool.ts"), at("h.ts"), at("gone.ts"), at("gone.js"), at("package.json")]));
  });

  test("a file with an unsupported extension is refused by name", async () => {
    const at = tree({ "tool.ts": 'import "./notes.txt";', "notes.txt": "const x = 1;" });
    const error = await failure(createLoader().load(at("tool.ts"), scope));
    expect(error).toMatchObject({ code: "MODULE_SYNTAX", file: at("notes.txt") });
    expect(error.message).toContain('".txt" is not a supported module type');
  });

  test("an import of a missing export is an error, as in JavaScript", async () => {
    const at = tree({ "tool.ts": 'import { b } from "./h.ts"; export default b;', "h.ts": "export const a = 1;" });
    const error = await failure(createLoader().load(at("tool.ts"), scope));
    expect(error.code).toBe("MODULE_EXPORT_MISSING");
    expect(error.message).toContain('no export "b"');
  });

  test.each(["graph", "jiti"] as const)("the error of a module is the cause, with its position in the source (%s)", async (engine) => {
    const at = tree({
      "tool.ts": 'import "./h.ts";',
      "h.ts":
        'interface Long {\n  a: string;\n  b: string;\n}\n\nfunction fail(x: Long): never {\n  throw new RangeError("bad " + x.a);\n}\nfail({ a: "a", b: "b" });',
    });
    const error = await failure(createLoader({ engine }).load(at("tool.ts"), scope));
    expect(error).toMatchObject({ code: "MODULE_THREW", file: at("h.ts"), position: { line: 7 } });
    expect(error.cause).toBeInstanceOf(RangeError);
    expect((error.cause as Error).stack).toContain(`${at("h.ts")}:9:`);
  });

  test.each(["throw null;", "throw { toString() { throw 1 } };", "throw Object.freeze(new Error('x'));"])(
    "the loader survives %s",
    async (text) => {
      const at = tree({ "tool.ts": text });
      expect((await failure(createLoader().load(at("tool.ts"), scope))).code).toBe("MODULE_THREW");
    },
  );

  test("an error has its position in the source, even through lowered syntax", async () => {
    const at = tree({
      "tool.ts": 'const id = (f: unknown) => f as never;\nclass A {\n  @id m() {\n    throw new Error("here");\n  }\n}\nnew A().m();',
    });
    expect(await failure(createLoader().load(at("tool.ts"), scope))).toMatchObject({ position: { line: 4 } });
  });

  test("a failed load is not cached, and the helpers that it loaded are", async () => {
    const at = tree({
      "tool.ts": 'import { n } from "./h.ts"; if (n) throw new Error("no"); export default n;',
      "h.ts": "export const n = Math.random();",
    });
    const loader = createLoader();
    await failure(loader.load(at("tool.ts"), scope));
    const kept = await loader.load(at("h.ts"), scope);
    write(at("tool.ts"), 'import { n } from "./h.ts"; export default n;');
    expect(loader.invalidate([at("tool.ts")])).toEqual(new Set([at("tool.ts")]));
    expect((await loader.load(at("tool.ts"), scope)).exports["default"]).toBe(kept.exports["n"]);
  });
});

describe("the sources of handlers", () => {
  test("a running generation keeps its helpers when they are replaced", async () => {
    const at = tree({ "tool.ts": 'import { n } from "./h.ts"; export default () => n;', "h.ts": "export const n = 1;" });
    const loader = createLoader();
    const old = (await loader.load(at("tool.ts"), scope)).exports["default"] as () => number;
    write(at("h.ts"), "export const n = 2;");
    loader.invalidate([at("h.ts")]);
    const current = (await loader.load(at("tool.ts"), scope)).exports["default"] as () => number;
    expect([old(), current()]).toEqual([1, 2]);
  });

  test("the stack of a handler's error has lines of the text that was loaded, even if the file changed", async () => {
    const at = tree({ "tool.ts": "interface A {\n  a: 1;\n}\n\nexport default (a: A) => {\n  throw new Error(String(a.a));\n};" });
    const loader = createLoader();
    const { exports } = await loader.load(at("tool.ts"), scope);
    const stack = stackOf(exports["default"] as (a: object) => void);
    expect(mapStack(stack)).toMatchObject({ place: { file: at("tool.ts"), line: 6 } });
    write(at("tool.ts"), `// moved\n${readFileSync(at("tool.ts"), "utf8")}`);
    loader.invalidate([at("tool.ts")]);
    const moved = (await loader.load(at("tool.ts"), scope)).exports;
    const stacks = [stack, stackOf(exports["default"] as (a: object) => void), stackOf(moved["default"] as (a: object) => void)];
    expect(stacks.map((each) => mapStack(each).place?.line)).toEqual([6, 6, 7]);
  });
});

function stackOf(handler: (a: object) => void): string {
  try {
    handler({ a: 1 });
  } catch (error) {
    return String((error as Error).stack);
  }
  throw new Error("The handler did not throw.");
}
