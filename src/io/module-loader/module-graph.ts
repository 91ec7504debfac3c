import { createRequire } from "node:module";
import { dirname, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL, URL } from "node:url";
import { sha256 } from "../../base/canonical-json.ts";
import { importPlace } from "../place-in-file.ts";
import { decoratorHelpers } from "./decorators.ts";
import { type HostNamespaces, importNative, importUrl, type Namespace, withNames } from "./host-modules.ts";
import { ModuleError } from "./module-error.ts";
import { createMeta, createRecord, exportAll, fillFromCommonJs, type ModuleRecord, waitsFor, withImports } from "./module-record.ts";
import type { PackageConfigs } from "./package-config.ts";
import { parseJson } from "./read-source.ts";
import type { ImportKind, ModuleResolver, ProvidedModules, Resolved } from "./resolve-module.ts";
import { debugComment, keepReplaced, registerScript } from "./source-positions.ts";
import {
  compileAsync,
  compileCommonJs,
  compileSync,
  isTypeScript,
  type ModuleBindings,
  type ScriptName,
  type TransformCache,
  type TransformedSource,
} from "./transform-source.ts";

export interface GraphParts {
  readonly hosts: HostNamespaces;
  readonly provided: ProvidedModules;
  readonly configs: Pick<PackageConfigs, "of">;
  readonly resolver: Pick<ModuleResolver, "resolve">;
  readonly transforms: TransformCache;
  readonly read: (file: string) => string;
}

/** The local modules. Each is evaluated once per generation and shared by all its importers. Node.js loads packages and its own modules. */
export class ModuleGraph {
  readonly parts: GraphParts;
  readonly #records = new Map<string, ModuleRecord>();

  constructor(parts: GraphParts) {
    this.parts = parts;
  }

  get records(): ReadonlyMap<string, ModuleRecord> {
    return this.#records;
  }

  /** The current generation of a file; the first request starts its evaluation. */
  open(file: string): ModuleRecord {
    const record = this.#current(file);
    this.#start(record);
    return record;
  }

  /** An import by a module: static or dynamic. Within an import cycle the namespace may still be incomplete. */
  async import(
    importer: ModuleRecord,
    specifier: string,
    names: readonly string[] = [],
    reexports?: ReadonlySet<string>,
  ): Promise<Namespace> {
    if (importer.abandoned) throw abandoned(importer);
    const target = this.resolve(importer, specifier, "import");
    if (target.kind === "local") return this.#importLocal(importer, specifier, target.file, names, reexports);
    return withNames(await this.#importOutside(importer, target, names, reexports), names);
  }

  /** A local module for `require`: the module and all its imports are evaluated before this returns. */
  requireLocal(importer: ModuleRecord, file: string): ModuleRecord {
    if (importer.abandoned) throw abandoned(importer);
    const record = this.#current(file);
    link(importer, record);
    if (record.state === "new") this.#evaluateSync(importer, record);
    // A cycle returns the exports so far. The unfinished module of another load cannot be returned.
    const isReady = record.state === "done" || record.commonjs !== undefined || waitsFor(record, importer);
    if (isReady) return record;
    const message = `${importer.file} requires ${record.file}, which is still being evaluated. Use import() instead.`;
    throw new ModuleError("MODULE_THREW", message, { file: importer.file });
  }

  resolve(importer: ModuleRecord, specifier: string, kind: ImportKind, base: string = importer.file): Resolved {
    const missed = (path: string): unknown => importer.inputs.add(path);
    return this.parts.resolver.resolve({ specifier, importer: base, kind, missed });
  }

  /** Reads a file and transforms it by its package and compiler settings. */
  prepare(record: ModuleRecord): TransformedSource {
    const config = this.parts.configs.of(record.file);
    for (const input of config.inputs) record.inputs.add(input);
    const text = this.parts.read(record.file);
    record.hash = sha256(text);
    record.script = registerScript(record.url, { file: record.file, text, settings: config.settings });
    return this.parts.transforms.prepare(record.file, text, config.settings);
  }

  /** Forgets the modules that depend on these paths, and all their importers. */
  invalidate(paths: ReadonlySet<string>): ReadonlySet<string> {
    const stale = new Set<ModuleRecord>();
    for (const record of this.#records.values()) if (dependsOn(record, paths)) stale.add(record);
    for (const record of stale) for (const importer of record.importers) stale.add(importer);
    for (const record of stale) this.drop(record);
    return new Set([...stale].map((record) => record.file));
  }

  drop(record: ModuleRecord): void {
    record.dropped = true;
    if (record.script !== undefined) keepReplaced(record.script);
    if (this.#records.get(record.file) === record) this.#records.delete(record.file);
    for (const each of record.imports) each.importers.delete(record);
    record.importers.clear();
  }

  /** Abandons the evaluations that only `root` waits for, and none of `others`: they may never end. */
  abandon(root: ModuleRecord, others: Iterable<ModuleRecord>): void {
    const needed = new Set<ModuleRecord>();
    for (const other of others) for (const record of withImports(other)) needed.add(record);
    for (const record of withImports(root)) {
      if (record.state !== "evaluating" || needed.has(record)) continue;
      record.abandoned = true;
      this.drop(record);
    }
  }

  async #importLocal(
    importer: ModuleRecord,
    specifier: string,
    file: string,
    names: readonly string[],
    reexports: ReadonlySet<string> | undefined,
  ): Promise<Namespace> {
    const record = this.#current(file);
    link(importer, record);
    if (record.state !== "done" && !waitsFor(record, importer)) {
      // Set before the start, so that an import back to the importer is detected as a cycle.
      importer.awaiting.add(record);
      try {
        this.#start(record);
        await record.settled;
      } finally {
        importer.awaiting.delete(record);
      }
    }
    if (record.state === "done") checkNames(importer, specifier, record, names, reexports);
    return record.namespace;
  }

  async #importOutside(
    importer: ModuleRecord,
    target: Resolved,
    names: readonly string[],
    reexports: ReadonlySet<string> | undefined,
  ): Promise<Namespace> {
    if ("file" in target) return importNative(target.file);
    if (target.kind === "host") {
      const namespace = await this.parts.hosts.load(target.id);
      checkNames(importer, target.id, { namespace }, names, reexports);
      return namespace;
    }
    const namespace = await importUrl(target.id);
    return /^(?:node:)?module$/.test(target.id) ? wrapNodeModule(namespace, this, importer) : namespace;
  }

  #current(file: string): ModuleRecord {
    const known = this.#records.get(file);
    if (known) return known;
    const record = createRecord(file);
    this.#records.set(file, record);
    return record;
  }

  #start(record: ModuleRecord): void {
    if (record.state !== "new") return;
    record.state = "evaluating";
    record.settled = this.#evaluate(record);
    // Awaiting callers see the failure; without one it must not become an unhandled rejection.
    record.settled.catch(() => {});
  }

  async #evaluate(record: ModuleRecord): Promise<void> {
    try {
      const prepared = this.prepare(record);
      if (prepared.usesCommonJs && !this.parts.hosts.isComplete) await this.parts.hosts.loadAll();
      if (prepared.kind === "esm") {
        // Static imports are evaluated first, in order, each completely.
        const run = compileAsync(prepared.code, nameOf(record), prepared.usesCommonJs);
        const importModule: ModuleBindings["importModule"] = (specifier, metadata) =>
          this.import(record, specifier, metadata?.importedNames, prepared.reexports);
        await run({ ...commonBindings(this, record, prepared), importModule });
      } else runSync(this, record, prepared);
      record.state = "done";
    } catch (error) {
      this.#fail(record);
      throw error;
    }
  }

  #evaluateSync(importer: ModuleRecord, record: ModuleRecord): void {
    record.state = "evaluating";
    importer.awaiting.add(record);
    try {
      runSync(this, record, this.prepare(record));
      record.state = "done";
    } catch (error) {
      this.#fail(record);
      throw error;
    } finally {
      importer.awaiting.delete(record);
    }
  }

  #fail(record: ModuleRecord): void {
    record.state = "failed";
    this.drop(record);
  }
}

function link(importer: ModuleRecord, record: ModuleRecord): void {
  if (importer === record) return;
  importer.imports.add(record);
  if (!importer.dropped) record.importers.add(importer);
}

function dependsOn(record: ModuleRecord, paths: ReadonlySet<string>): boolean {
  for (const path of paths) {
    if (record.file === path || record.inputs.has(path) || record.file.startsWith(path + sep)) return true;
  }
  return false;
}

/** Evaluates JSON, CommonJS, or an ES module without top-level await, before it returns. */
function runSync(graph: ModuleGraph, record: ModuleRecord, prepared: TransformedSource): void {
  if (prepared.kind === "json") {
    record.commonjs = { exports: parseJson(record.file, prepared.code) };
    fillFromCommonJs(record.namespace, record.commonjs.exports);
  } else if (prepared.kind === "commonjs") runCommonJs(graph, record, prepared.code);
  else {
    const run = compileForRequire(record, prepared);
    const importModule = (specifier: string): unknown => requireFrom(graph, record, record.file, specifier, "namespace");
    run({ ...commonBindings(graph, record, prepared), importModule });
  }
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
  // Assigned before the module runs, so that modules requiring each other see the exports so far.
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

function compileForRequire(record: ModuleRecord, { code, usesCommonJs }: TransformedSource): ReturnType<typeof compileSync> {
  try {
    return compileSync(code, nameOf(record), usesCommonJs);
  } catch (error) {
    const message = `${record.file} has a top-level await, so require() cannot load it. Use import() instead.`;
    throw new ModuleError("MODULE_SYNTAX", message, { file: record.file, cause: error });
  }
}

/** The name of compiled code in stacks, and the source map comment for debuggers. */
function nameOf({ script, url }: ModuleRecord): ScriptName {
  return { address: script?.address ?? url, commentFor: (code, head) => (script === undefined ? "" : debugComment(code, head, script)) };
}

function commonBindings(graph: ModuleGraph, record: ModuleRecord, prepared: TransformedSource): Omit<ModuleBindings, "importModule"> {
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

/** The `require` of one local module: local files load through the graph, all others through Node.js. */
function requireFor(graph: ModuleGraph, record: ModuleRecord, base: string): NodeJS.Require {
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

type RequireView = "exports" | "namespace";

/** One synchronous load: what CommonJS sees (`exports`), or what an ES module evaluated by `require` sees (`namespace`). */
function requireFrom(graph: ModuleGraph, record: ModuleRecord, base: string, specifier: string, as: RequireView): unknown {
  const target = graph.resolve(record, specifier, as === "exports" ? "require" : "import", base);
  if (target.kind === "local") {
    const { commonjs, namespace, state } = graph.requireLocal(record, target.file);
    if (commonjs === undefined) return namespace;
    if (as === "exports") return commonjs.exports;
    return state === "done" ? namespace : toNamespace(commonjs.exports);
  }
  if (target.kind === "host") {
    const loaded = graph.parts.hosts.get(target.id);
    if (loaded !== undefined) return loaded;
    const message = `"${target.id}" is not loaded yet when ${record.file} requires it. Use import.`;
    throw new ModuleError("MODULE_NOT_FOUND", message, { file: record.file });
  }
  if (target.kind === "url") throw new ModuleError("MODULE_NOT_FOUND", `require() cannot load ${specifier}.`, { file: record.file });
  const exports: unknown = createRequire(base)("file" in target ? target.file : target.id);
  if (/^(?:node:)?module$/.test(specifier)) return wrapNodeModule(exports as Namespace, graph, record)["default"];
  return as === "exports" ? exports : toNamespace(exports);
}

function toNamespace(exports: unknown): unknown {
  if (typeof exports === "object" && exports !== null && Object.prototype.toString.call(exports) === "[object Module]") return exports;
  const namespace: Record<string, unknown> = Object.create(null);
  fillFromCommonJs(namespace, exports);
  return namespace;
}

/**
 * `node:module` for local modules: `createRequire` in a module must return the current version of a helper, and Node.js would
 * return the first one it loaded.
 */
function wrapNodeModule(namespace: Namespace, graph: ModuleGraph, record: ModuleRecord): Namespace {
  const nodeModule = (namespace["default"] ?? namespace) as object;
  const createLocalRequire = (from: string | URL): NodeJS.Require => {
    const text = String(from);
    return requireFor(graph, record, text.startsWith("file:") ? fileURLToPath(new URL(text)) : resolve(text));
  };
  const wrapped = new Proxy(nodeModule, {
    get: (target, key) => (key === "createRequire" ? createLocalRequire : Reflect.get(target, key)),
  });
  return Object.freeze({ ...namespace, createRequire: createLocalRequire, default: wrapped, Module: wrapped });
}

/**
 * JavaScript fails to link when an imported name is missing. A re-exported name may have been a type in TypeScript.
 * @throws ModuleError `MODULE_EXPORT_MISSING`
 */
function checkNames(
  importer: ModuleRecord,
  specifier: string,
  { namespace }: Pick<ModuleRecord, "namespace">,
  names: readonly string[],
  reexports: ReadonlySet<string> | undefined,
): void {
  const missing = names.find((name) => !(name in namespace) && !(isTypeScript(importer.file) && reexports?.has(name)));
  if (missing === undefined) return;
  const known = Object.keys(namespace).sort();
  const shown = known.slice(0, 60).join(", ") + (known.length > 60 ? " and more" : "");
  const message = `"${specifier}" has no export "${missing}", but ${importer.file} imports it. It exports ${shown || "nothing"}.`;
  const position = importPlace(importer.file, specifier, missing);
  throw new ModuleError("MODULE_EXPORT_MISSING", message, { file: importer.file, position });
}

function abandoned(record: ModuleRecord): ModuleError {
  return new ModuleError("MODULE_ABANDONED", `${record.file} was abandoned while it was being evaluated.`, { file: record.file });
}
