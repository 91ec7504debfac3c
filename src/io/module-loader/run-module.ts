import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { compileAsync, compileCommonJs, compileSync, type ModuleBindings, type ScriptName } from "./compile-module.ts";
import { debugComment } from "./debug-map.ts";
import { parseJson } from "./json-text.ts";
import { decoratorHelpers } from "./legacy-decorators.ts";
import { ModuleError } from "./module-error.ts";
import type { ModuleGraph } from "./module-graph.ts";
import { createMeta, exportAll, fillFromCommonJs, type ModuleRecord } from "./module-record.ts";
import { requireFor, requireFrom } from "./require.ts";
import type { Prepared } from "./transform-source.ts";

/** Evaluates an ES module; static imports first, in order, each to its end. */
export async function runAsync(graph: ModuleGraph, record: ModuleRecord, prepared: Prepared): Promise<void> {
  const run = compileAsync(prepared.code, nameOf(record), prepared.usesCommonJs);
  const importModule: ModuleBindings["importModule"] = (specifier, metadata) =>
    graph.import(record, specifier, metadata?.importedNames, prepared.reexports);
  await run({ ...commonBindings(graph, record, prepared), importModule });
}

/** Evaluates JSON, CommonJS, or an ES module without top-level await, before it returns. */
export function runSync(graph: ModuleGraph, record: ModuleRecord, prepared: Prepared): void {
  if (prepared.kind === "json") runJson(record, prepared.code);
  else if (prepared.kind === "commonjs") runCommonJs(graph, record, prepared.code);
  else runEsmSync(graph, record, prepared);
}

function runJson(record: ModuleRecord, text: string): void {
  record.commonjs = { exports: parseJson(record.file, text) };
  fillFromCommonJs(record.namespace, record.commonjs.exports);
}

function runCommonJs(graph: ModuleGraph, record: ModuleRecord, code: string): void {
  const { file } = record;
  const require = requireFor(graph, record, file);
  const module = {
    id: file,
    path: dirname(file),
    filename: file,
    exports: {} as unknown,
    loaded: false,
    parent: null,
    children: [],
    paths: [],
    require,
  };
  // Visible before it runs, so that modules requiring each other see what is there already.
  record.commonjs = module;
  const run = compileCommonJs(code, nameOf(record));
  Reflect.apply(run, module.exports, [
    module.exports,
    require,
    module,
    file,
    dirname(file),
    dynamicImport(graph, record),
    decoratorHelpers,
  ]);
  module.loaded = true;
  fillFromCommonJs(record.namespace, module.exports);
}

function runEsmSync(graph: ModuleGraph, record: ModuleRecord, prepared: Prepared): void {
  const run = compileForRequire(record, prepared);
  const importModule = (specifier: string): unknown => requireFrom(graph, record, record.file, specifier, "namespace");
  run({ ...commonBindings(graph, record, prepared), importModule });
}

function compileForRequire(record: ModuleRecord, { code, usesCommonJs }: Prepared): ReturnType<typeof compileSync> {
  try {
    return compileSync(code, nameOf(record), usesCommonJs);
  } catch (error) {
    const message = `${record.file} has a top-level await and cannot be loaded by require(). Use import() there.`;
    throw new ModuleError("MODULE_SYNTAX", message, { file: record.file, cause: error });
  }
}

/** How what is compiled is called in stacks, and how debuggers find its source. */
function nameOf({ script, url }: ModuleRecord): ScriptName {
  return { address: script?.address ?? url, commentFor: (code, head) => (script === undefined ? "" : debugComment(code, head, script)) };
}

function commonBindings(graph: ModuleGraph, record: ModuleRecord, prepared: Prepared): Omit<ModuleBindings, "importModule"> {
  const { namespace, file } = record;
  return {
    exports: namespace,
    importDynamic: dynamicImport(graph, record),
    meta: createMeta(record, (specifier) => resolveToUrl(graph, record, specifier)),
    exportAll: (source) => exportAll(namespace, source),
    commonJs: prepared.usesCommonJs ? [requireFor(graph, record, file), file, dirname(file)] : [],
  };
}

function dynamicImport(graph: ModuleGraph, record: ModuleRecord): (specifier: unknown) => Promise<unknown> {
  return async (specifier) => graph.import(record, String(specifier));
}

function resolveToUrl(graph: ModuleGraph, record: ModuleRecord, specifier: string): string {
  const resolved = graph.resolve(record, specifier, "import");
  if ("file" in resolved) return pathToFileURL(resolved.file).href;
  return resolved.kind === "builtin" && !resolved.id.startsWith("node:") ? `node:${resolved.id}` : resolved.id;
}
