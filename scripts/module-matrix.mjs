// What the module loader can load and reload, as data: every case is a folder of files and what its entry must come to.
// Tests run the same cases. On its own (after `npm run build`) it prints one table per engine for this Node.js:
//   node --expose-gc scripts/module-matrix.mjs [graph|jiti|default ...]
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { features, packages } from "./module-matrix/features.mjs";

export { features, packages };

export const helperTypes = [".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".json"];
export const entryTypes = [".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs"];
export const operations = [
  "edit helper",
  "edit entry",
  "add",
  "delete",
  "rename",
  "top-level await",
  "dependency once",
  "host identity",
  "freed",
];

/** Every way in which an entry, a helper, a package type and a place come together. */
export function reloadCases() {
  const cases = [];
  for (const packageType of ["module", "commonjs"])
    for (const place of ["inside", "outside"])
      for (const entry of entryTypes) for (const helper of helperTypes) cases.push({ packageType, place, entry, helper });
  return cases;
}

/** Makes a folder of files; the real path, as macOS links its temporary folder. */
export function makeTree(files, root = realpathSync(mkdtempSync(join(tmpdir(), "skillhost-case-")))) {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

export function createHostModules() {
  class ToolError extends Error {}
  globalThis.hostToolError = ToolError;
  globalThis.evaluations = {};
  return { skillhost: { ToolError }, "skillhost/testing": async () => ({ kit: "kit" }) };
}

/** Loads one feature's entry; undefined if it is right, else what is wrong. */
export async function runFeature(feature, loader, scope) {
  const root = makeTree(packages);
  try {
    const folder = makeTree(feature.files, join(root, "case"));
    const { exports } = await loader.load(join(folder, feature.entry ?? "tool.ts"), scope);
    const value = typeof exports.default === "function" ? await exports.default() : exports.default;
    const [got, wanted] = [JSON.stringify(value), JSON.stringify(feature.expect)];
    return got === wanted ? undefined : `gives ${got} and not ${wanted}`;
  } catch (error) {
    return `${error.code ?? error.name}: ${String(error.message).split("\n")[0]}`;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Runs all operations on one combination; gives the faults by operation. `sampleFreed` needs --expose-gc. */
export async function runReload(reload, loader, scope, { sampleFreed = false } = {}) {
  const faults = {};
  const root = makeTree(reload.place === "inside" ? { ...packages, "package.json": '{"name":"project"}' } : {});
  const folder = join(root, "skills", "one");
  const session = createSession(reload, folder, loader, scope);
  makeTree({ "package.json": `{"name":"one","type":"${reload.packageType}"}`, ...(reload.place === "outside" ? packages : {}) }, folder);
  const attempt = async (name, run) => {
    try {
      const fault = await run();
      if (fault) faults[name] = fault;
    } catch (error) {
      faults[name] = `${error.code ?? error.name}: ${String(error.message).split("\n")[0]}`;
    }
  };
  globalThis.evaluations = {};
  session.write(1, 1);
  const first = await session.loadWeakly(attempt);
  await attempt("edit helper", () => session.expectAfter(() => session.writeHelper(2), "1:2"));
  await attempt("edit entry", () => session.expectAfter(() => session.writeEntry(2), "2:2"));
  await attempt("delete", () => session.expectMissing());
  await attempt("add", () => session.expectAfter(() => session.writeHelper(3), "2:3"));
  await attempt("rename", () => session.expectAfter(() => session.rename(), "3:3"));
  if (session.mayAwait) {
    await attempt("top-level await", () => session.expectAfter(() => session.writeEntry(4, "await null;"), "4:3"));
    await attempt("top-level await", () => session.expectAfter(() => session.writeHelper(4), "4:4"));
  }
  await attempt("dependency once", () => session.expectOneEvaluation());
  if (sampleFreed) await attempt("freed", () => (first === undefined ? "never loaded" : untilFreed(first)));
  rmSync(root, { recursive: true, force: true });
  return faults;
}

function createSession({ entry, helper, packageType }, folder, loader, scope) {
  const isCommonJs = (extension) => extension === ".cjs" || (extension === ".js" && packageType === "commonjs");
  let name = "helper";
  const entryFile = join(folder, `tool${entry}`);
  const helperFile = () => join(folder, `${name}${helper}`);
  const load = async () => {
    const { exports } = await loader.load(entryFile, scope);
    return exports.default;
  };
  const session = {
    mayAwait: entry !== ".cts" && !isCommonJs(entry),
    writeHelper: (n) => writeFileSync(helperFile(), helperText(helper, n, isCommonJs(helper))) ?? helperFile(),
    writeEntry: (n, first = "") =>
      writeFileSync(entryFile, first + entryText(entry, n, `./${name}${helper}`, isCommonJs(entry), helper)) ?? entryFile,
    write: (n, m) => [session.writeEntry(n), session.writeHelper(m)],
    rename() {
      const before = helperFile();
      name = "renamed";
      renameSync(before, helperFile());
      session.writeEntry(3);
      return [before, helperFile(), entryFile];
    },
    async loadWeakly(attempt) {
      let weak;
      await attempt("host identity", async () => {
        const handler = await load();
        weak = new WeakRef(handler);
        if (handler() !== "1:1") return `gives ${handler()} at first`;
        return handler.error() instanceof globalThis.hostToolError ? undefined : "another class of the same name";
      });
      return weak;
    },
    async expectAfter(change, wanted) {
      const forgotten = loader.invalidate([change()].flat());
      if (!forgotten.has(entryFile)) return "the entry is not named as changed";
      const got = (await load())();
      return got === wanted ? undefined : `gives ${got} and not ${wanted}`;
    },
    async expectMissing() {
      rmSync(helperFile());
      loader.invalidate([helperFile()]);
      const error = await load().then(
        () => undefined,
        (reason) => reason,
      );
      if (error === undefined) return "loads without its helper";
      return error.message.includes(`${name}`) && error.files?.has(entryFile) ? undefined : `says ${error.message}`;
    },
    expectOneEvaluation() {
      const wrong = Object.entries(globalThis.evaluations).filter(([, times]) => times > 1);
      return wrong.length === 0 ? undefined : wrong.map(([dep, times]) => `${dep} ${times} times`).join(", ");
    },
  };
  return session;
}

function helperText(extension, n, isCommonJs) {
  if (extension === ".json") return `{"value":${n}}`;
  if (isCommonJs) return `require("cjs-dep"); exports.value = ${n};`;
  const type = /ts/.test(extension) ? ": number" : "";
  const dependency = extension === ".cts" ? 'import dep from "cjs-dep"; void dep;' : 'import { six } from "esm-only"; void six;';
  return `${dependency} export const value${type} = ${n};`;
}

function entryText(extension, n, helper, isCommonJs, helperType) {
  const body = `const tool = () => "${n}:" + value; tool.error = () => new ToolError();`;
  if (isCommonJs)
    return `const { ToolError } = require("skillhost"); const { value } = require("${helper}"); ${body} module.exports = tool;`;
  if (extension === ".cts")
    return `import { ToolError } from "skillhost"; import h = require("${helper}"); const { value }: any = h; ${body} export default tool;`;
  const load =
    helperType === ".json"
      ? `import json from "${helper}" with { type: "json" }; const { value } = json;`
      : `import { value } from "${helper}";`;
  return `import { ToolError } from "skillhost"; ${load} ${body.replace("tool =", /ts/.test(extension) ? "tool: any =" : "tool =")} export default tool;`;
}

async function untilFreed(weak) {
  for (let round = 0; round < 50; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc();
    if (weak.deref() === undefined) return undefined;
  }
  return "the first generation is still alive";
}

async function main(engines) {
  const { createModuleLoader } = await import("../build/dist/io/module-loader/create-module-loader.js");
  const { createScope } = await import("../build/dist/io/scope.js");
  console.log(`# Node.js ${process.version}`);
  for (const name of engines) {
    const options = name === "default" ? {} : { engine: name };
    const create = () => createModuleLoader({ hostModules: createHostModules(), ...options });
    console.log(`\n## engine: ${name}\n\n| feature | ${name} |\n|---|---|`);
    for (const feature of features) console.log(`| ${feature.name} | ${(await runFeature(feature, create(), createScope())) ?? "ok"} |`);
    console.log(`\n| entry, helper | package | place | fails |\n|---|---|---|---|`);
    let right = 0;
    for (const [index, reload] of reloadCases().entries()) {
      const faults = Object.entries(
        await runReload(reload, create(), createScope(), { sampleFreed: globalThis.gc !== undefined && index % 9 === 0 }),
      );
      if (faults.length === 0) right++;
      else
        console.log(
          `| ${reload.entry}, ${reload.helper} | ${reload.packageType} | ${reload.place} | ${faults.map((f) => f.join(": ")).join("; ")} |`,
        );
    }
    console.log(`\n${right} of ${reloadCases().length} combinations right in all operations.`);
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  await main(process.argv.length > 2 ? process.argv.slice(2) : ["default", "graph", "jiti"]);
}
