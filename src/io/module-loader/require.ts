import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath, URL } from "node:url";
import type { Namespace } from "./host-modules.ts";
import { ModuleError } from "./module-error.ts";
import type { ModuleGraph } from "./module-graph.ts";
import { fillFromCommonJs, type ModuleRecord } from "./module-record.ts";

/** The `require` of one local module: local files through the graph, everything else as Node.js does it. */
export function requireFor(graph: ModuleGraph, record: ModuleRecord, base: string): NodeJS.Require {
  const native = createRequire(base);
  const require = (specifier: string): unknown => requireFrom(graph, record, base, specifier, "exports");
  const resolveSpecifier = (specifier: string, options?: { paths?: string[] }): string => {
    if (options?.paths) return native.resolve(specifier, options);
    const found = graph.resolve(record, specifier, "require", base);
    return "file" in found ? found.file : found.id;
  };
  const resolver = Object.assign(resolveSpecifier, { paths: native.resolve.paths });
  return Object.assign(require, {
    resolve: resolver,
    cache: native.cache,
    main: undefined,
    extensions: native.extensions,
  }) as NodeJS.Require;
}

export type RequireView = "exports" | "namespace";

/** One synchronous load: what CommonJS sees (`exports`), or what an ES module evaluated by `require` sees (`namespace`). */
export function requireFrom(graph: ModuleGraph, record: ModuleRecord, base: string, specifier: string, as: RequireView): unknown {
  const target = graph.resolve(record, specifier, as === "exports" ? "require" : "import", base);
  if (target.kind === "local") return viewOf(graph.requireLocal(record, target.file), as);
  if (target.kind === "host") return graph.parts.hosts.get(target.id) ?? hostNotReady(target.id, record);
  if (target.kind === "url") throw new ModuleError("MODULE_NOT_FOUND", `require() cannot load ${specifier}.`, { file: record.file });
  const exports: unknown = createRequire(base)("file" in target ? target.file : target.id);
  if (/^(?:node:)?module$/.test(specifier)) return wrapNodeModule(exports as Namespace, graph, record)["default"];
  return as === "exports" ? exports : toNamespace(exports);
}

function viewOf({ commonjs, namespace, state }: ModuleRecord, as: RequireView): unknown {
  if (commonjs === undefined) return namespace;
  if (as === "exports") return commonjs.exports;
  return state === "done" ? namespace : toNamespace(commonjs.exports);
}

function toNamespace(exports: unknown): unknown {
  if (typeof exports === "object" && exports !== null && Object.prototype.toString.call(exports) === "[object Module]") return exports;
  const namespace: Record<string, unknown> = Object.create(null);
  fillFromCommonJs(namespace, exports);
  return namespace;
}

function hostNotReady(key: string, record: ModuleRecord): never {
  throw new ModuleError("MODULE_NOT_FOUND", `"${key}" is not loaded yet when ${record.file} requires it. Use import.`, {
    file: record.file,
  });
}

/**
 * `node:module` for local modules: a `require` that a module makes for itself must give the current helper, and Node.js
 * would give the one it saw first.
 */
export function wrapNodeModule(namespace: Namespace, graph: ModuleGraph, record: ModuleRecord): Namespace {
  const nodeModule = (namespace["default"] ?? namespace) as object;
  const createLocalRequire = (from: string | URL): NodeJS.Require => requireFor(graph, record, toFile(from));
  const wrapped = new Proxy(nodeModule, {
    get: (target, key) => (key === "createRequire" ? createLocalRequire : Reflect.get(target, key)),
  });
  return Object.freeze({ ...namespace, createRequire: createLocalRequire, default: wrapped, Module: wrapped });
}

function toFile(from: string | URL): string {
  const text = String(from);
  if (!text.startsWith("file:")) return resolve(text);
  return fileURLToPath(new URL(text));
}
