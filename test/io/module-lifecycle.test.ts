import { rmSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import { createScope } from "../../src/io/scope.ts";
import { createLoader, tree } from "./module-trees.ts";

describe("the end of a scope", () => {
  test("the end of a scope ends the wait for a module that never finishes, and the next load starts again", async () => {
    const at = tree({ "tool.ts": 'import "./h.ts"; export default 1;', "h.ts": "await new Promise(() => {});" });
    const loader = createLoader();
    const hung = createScope();
    const loading = loader.load(at("tool.ts"), hung);
    await hung.dispose();
    await expect(loading).rejects.toMatchObject({ name: "AbortError" });
    writeFileSync(at("h.ts"), "export {};");
    expect((await loader.load(at("tool.ts"), createScope())).exports["default"]).toBe(1);
  });

  test("the end of a scope does not affect others that wait for the module", async () => {
    const at = tree({ "tool.ts": "export default await globalThis.gate;" });
    const gate = openGate();
    const loader = createLoader();
    const impatient = createScope();
    const first = loader.load(at("tool.ts"), impatient);
    const second = loader.load(at("tool.ts"), createScope());
    await impatient.dispose();
    await expect(first).rejects.toMatchObject({ name: "AbortError" });
    gate.open(42);
    const { exports } = await second;
    expect(exports["default"]).toBe(42);
    expect((await loader.load(at("tool.ts"), createScope())).exports).toBe(exports);
  });

  test("the end of a scope keeps a helper that another entry waits for", async () => {
    const entry = 'import { n } from "./h.ts"; export default n;';
    const at = tree({ "a.ts": entry, "b.ts": entry, "h.ts": "export const n = await globalThis.gate;" });
    const gate = openGate();
    const loader = createLoader();
    const impatient = createScope();
    const first = loader.load(at("a.ts"), impatient);
    const second = loader.load(at("b.ts"), createScope());
    await impatient.dispose();
    await expect(first).rejects.toMatchObject({ name: "AbortError" });
    gate.open(42);
    expect((await second).exports["default"]).toBe(42);
    expect(loader.invalidate([at("h.ts")])).toEqual(new Set([at("h.ts"), at("b.ts")]));
  });

  test("an abandoned evaluation that resumes loads nothing more", async () => {
    const at = tree({
      "tool.ts": 'await globalThis.gate; await import("./late.ts"); export default 1;',
      "late.ts": "globalThis.late = true;",
    });
    const gate = openGate();
    const loader = createLoader();
    const scope = createScope();
    const loading = loader.load(at("tool.ts"), scope);
    await scope.dispose();
    await expect(loading).rejects.toMatchObject({ name: "AbortError" });
    gate.open(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect("late" in globalThis).toBe(false);
  });

  test("a load in an ended scope rejects at once", async () => {
    const at = tree({ "tool.ts": "globalThis.ran = true;" });
    const scope = createScope();
    await scope.dispose();
    await expect(createLoader().load(at("tool.ts"), scope)).rejects.toMatchObject({ name: "AbortError" });
    expect("ran" in globalThis).toBe(false);
  });
});

describe("a prepared module", () => {
  test("a prepared module runs only when it is evaluated, and then all callers share it", async () => {
    const at = tree({ "tool.ts": 'import { n } from "./h.ts"; globalThis.ran = n; export default n;', "h.ts": "export const n = 1;" });
    const loader = createLoader();
    const prepared = loader.prepare(at("tool.ts"));
    expect(prepared.files).toEqual(new Set([at("tool.ts"), at("h.ts")]));
    expect("ran" in globalThis).toBe(false);
    const loaded = await prepared.evaluate(createScope());
    expect((await loader.load(at("tool.ts"), createScope())).exports).toBe(loaded.exports);
    expect(await prepared.evaluate(createScope())).toBe(loaded);
    Reflect.deleteProperty(globalThis, "ran");
  });

  test.each(["graph", "jiti"] as const)("a prepared module runs its original sources, even if the files changed (%s)", async (engine) => {
    const at = tree({ "tool.ts": 'import { n } from "./h.ts"; export default `old ${n}`;', "h.ts": "export const n = 1;" });
    const loader = createLoader({ engine });
    const prepared = loader.prepare(at("tool.ts"));
    writeFileSync(at("tool.ts"), "this does not parse");
    writeFileSync(at("h.ts"), "export const n = 2;");
    loader.invalidate([at("tool.ts"), at("h.ts")]);
    expect((await prepared.evaluate(createScope())).exports["default"]).toBe("old 1");
    await expect(loader.load(at("tool.ts"), createScope())).rejects.toMatchObject({ code: "MODULE_SYNTAX" });
  });

  test("a prepared module runs even if its files were removed", async () => {
    const at = tree({ "tool.ts": 'import { n } from "./h.ts"; export default n;', "h.ts": "export const n = 1;" });
    const prepared = createLoader().prepare(at("tool.ts"));
    rmSync(at("tool.ts"));
    rmSync(at("h.ts"));
    expect((await prepared.evaluate(createScope())).exports["default"]).toBe(1);
  });

  test.each([
    ["does not parse", "const = 1;", "MODULE_SYNTAX"],
    ["imports a missing file", 'import "./gone.ts";', "MODULE_NOT_FOUND"],
  ])("preparing a module is refused if a helper %s", (_what, text, code) => {
    const at = tree({ "tool.ts": 'import "./h.ts";', "h.ts": text });
    const loader = createLoader();
    expect(() => loader.prepare(at("tool.ts"))).toThrow(expect.objectContaining({ code, files: expect.objectContaining({}) }));
  });

  test("a module is evaluated again after a failure", async () => {
    const at = tree({ "tool.ts": "if (globalThis.fails) throw new Error('not yet'); export default 1;" });
    Object.assign(globalThis, { fails: true });
    const prepared = createLoader().prepare(at("tool.ts"));
    await expect(prepared.evaluate(createScope())).rejects.toMatchObject({ code: "MODULE_THREW" });
    Reflect.deleteProperty(globalThis, "fails");
    expect((await prepared.evaluate(createScope())).exports["default"]).toBe(1);
  });
});

describe("effects of a module on the process", () => {
  test.each(["process.exit(3);", 'import { exit } from "node:process"; exit();', "process.abort();"])(
    "%s is an error under the exit guard",
    async (text) => {
      const at = tree({ "tool.ts": `import "./h.ts"; export default 1;`, "h.ts": text });
      const error = await createLoader({ guardExit: true })
        .load(at("tool.ts"), createScope())
        .catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: "MODULE_EXITED", file: at("h.ts") });
    },
  );

  test("the exit guard covers handlers, and ends with the loader", async () => {
    const at = tree({ "tool.ts": "export default async () => { await null; process.exit(1); };" });
    const { exit } = process;
    const loader = createLoader({ guardExit: true });
    const { exports } = await loader.load(at("tool.ts"), createScope());
    await expect((exports["default"] as () => Promise<void>)()).rejects.toMatchObject({ code: "MODULE_EXITED" });
    loader[Symbol.dispose]();
    expect(process.exit).toBe(exit);
  });

  test("an addition to a built-in prototype is reported once, with the module that loaded", async () => {
    const at = tree({
      "tool.ts": 'import "./h.ts"; export default 1;',
      "h.ts": "(Array.prototype as any).last = () => 1;",
      "fine.ts": "export {};",
    });
    const heard: Diagnostic[] = [];
    const loader = createLoader({ onDiagnostic: (diagnostic) => heard.push(diagnostic) });
    await loader.load(at("tool.ts"), createScope());
    await loader.load(at("fine.ts"), createScope());
    Reflect.deleteProperty(Array.prototype, "last");
    expect(heard).toMatchObject([{ severity: "warning", code: "MODULE_CHANGES_PROTOTYPE", file: at("tool.ts") }]);
    expect(heard[0]?.message).toContain("Array.prototype.last");
  });
});

describe("the choice of the engine", () => {
  const legacy = '{"compilerOptions":{"experimentalDecorators":true}}';

  test.each([
    ["an ordinary module", {}, "tool.ts", "graph"],
    ["a package with legacy decorators", { "tsconfig.json": legacy }, "tool.ts", "jiti"],
    [
      "a package with legacy decorators through extends",
      { "tsconfig.json": '{"extends":"./base.json"}', "base.json": legacy },
      "tool.ts",
      "jiti",
    ],
    ["a CommonJS script of such a package", { "tsconfig.json": legacy }, "tool.cjs", "graph"],
    ["a top-level await in such a package", { "tsconfig.json": legacy, "tool.ts": "await 1; export {};" }, "tool.ts", "graph"],
  ])("%s", (_what, files, entry, engine) => {
    const at = tree({ "tool.ts": "export {};", "tool.cjs": "", ...files });
    const choice = createLoader().engineOf(at(entry));
    expect(choice.engine).toBe(engine);
    expect(choice.reason).not.toBe("");
  });

  test("an enclosing project's tsconfig.json does not affect an installed skill", () => {
    const at = tree({ "tsconfig.json": legacy, "node_modules/a-skill/package.json": "{}", "node_modules/a-skill/tool.ts": "export {};" });
    expect(createLoader().engineOf(at("node_modules/a-skill/tool.ts")).engine).toBe("graph");
  });
});

interface Gate {
  open(value: unknown): void;
}

function openGate(): Gate {
  let open: (value: unknown) => void = () => {};
  Object.assign(globalThis, { gate: new Promise((resolve) => (open = resolve)) });
  return { open };
}
