import { renameSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { makeTree, packages } from "../../scripts/module-matrix.mjs";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import { createScope } from "../../src/io/scope.ts";
import { createLoader, failure, tree, write } from "./module-trees.ts";

const scope = createScope();

describe("invalidation of modules", () => {
  test("invalidating a file affects all its importers and no others", async () => {
    const at = tree({
      "a.ts": 'import "./mid.ts";',
      "b.ts": 'export const load = () => import("./mid.ts");',
      "c.ts": "export {};",
      "mid.ts": 'import "./low.ts";',
      "low.ts": "export {};",
    });
    const loader = createLoader();
    const b = await loader.load(at("b.ts"), scope);
    await Promise.all([loader.load(at("a.ts"), scope), loader.load(at("c.ts"), scope), (b.exports["load"] as () => Promise<unknown>)()]);
    const forgotten = loader.invalidate([at("low.ts")]);
    expect([...forgotten].sort()).toEqual([at("a.ts"), at("b.ts"), at("low.ts"), at("mid.ts")]);
    expect(loader.invalidate([at("low.ts")]).size).toBe(0);
  });

  test("a new file that takes precedence over the resolved one is found", async () => {
    const at = tree({ "tool.ts": 'import { n } from "./h"; export default n;', "h/index.ts": "export const n = 1;" });
    const loader = createLoader();
    expect((await loader.load(at("tool.ts"), scope)).exports["default"]).toBe(1);
    write(at("h.ts"), "export const n = 2;");
    expect(loader.invalidate([at("h.ts")])).toContain(at("tool.ts"));
    expect((await loader.load(at("tool.ts"), scope)).exports["default"]).toBe(2);
  });

  test("a folder that was renamed and restored is found", async () => {
    const at = tree({ "tool.ts": 'import { n } from "./lib/h.ts"; export default n;', "lib/h.ts": "export const n = 1;" });
    const loader = createLoader();
    await loader.load(at("tool.ts"), scope);
    renameSync(at("lib"), at("other"));
    expect(loader.invalidate([at("lib")])).toContain(at("tool.ts"));
    await failure(loader.load(at("tool.ts"), scope));
    renameSync(at("other"), at("lib"));
    expect(loader.invalidate([at("lib")])).toContain(at("tool.ts"));
    expect((await loader.load(at("tool.ts"), scope)).exports["default"]).toBe(1);
  });

  test.each([
    ["a tsconfig.json that appears", "tsconfig.json", '{"compilerOptions":{"paths":{"@n":["./two.ts"]}}}', 2],
    ["the base of a tsconfig.json", "base.json", '{"compilerOptions":{"paths":{"@n":["./two.ts"]}}}', 2],
    ["a package.json", "package.json", '{"type":"module","imports":{"#n":"./two.ts"}}', 2],
  ])("%s changes the resolution of imports", async (_what, file, text, wanted) => {
    const specifier = file === "package.json" ? "#n" : "@n";
    const before = {
      "tsconfig.json": {},
      "base.json": { "tsconfig.json": '{"extends":"./base.json"}', "base.json": "{}" },
      "package.json": {},
    }[file];
    const at = tree({ "tool.ts": `import { n } from "${specifier}"; export default n;`, "two.ts": "export const n = 2;", ...before });
    const loader = createLoader();
    await failure(loader.load(at("tool.ts"), scope));
    write(at(file), text);
    expect(loader.invalidate([at(file)])).toContain(at("tool.ts"));
    expect((await loader.load(at("tool.ts"), scope)).exports["default"]).toBe(wanted);
  });

  test("a package that was installed after a failed import is found", async () => {
    const at = tree({ "tool.ts": 'import { six } from "esm-only"; export default six;' });
    const loader = createLoader();
    await failure(loader.load(at("tool.ts"), scope));
    makeTree(packages, at(""));
    expect(loader.invalidate([at("node_modules/esm-only/package.json")])).toContain(at("tool.ts"));
    expect((await loader.load(at("tool.ts"), scope)).exports["default"]).toBe(6);
  });

  test("an invalid tsconfig.json is reported, and modules still load", async () => {
    const at = tree({ "tsconfig.json": '{"extends":"./nowhere.json"}', "tool.ts": "export default 1;" });
    const heard: Diagnostic[] = [];
    const { exports } = await createLoader({ onDiagnostic: (diagnostic) => heard.push(diagnostic) }).load(at("tool.ts"), scope);
    expect(exports["default"]).toBe(1);
    expect(heard).toMatchObject([{ severity: "warning", code: "TSCONFIG_INVALID", file: at("tsconfig.json") }]);
  });
});
