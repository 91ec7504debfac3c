import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Namespace } from "./host-modules.ts";
import type { ModuleScript } from "./source-positions.ts";

/** One generation of one local file. */
export interface ModuleRecord {
  readonly file: string;
  readonly url: string;
  /** The namespace for ES modules; filled during evaluation. */
  readonly namespace: Record<string, unknown>;
  /** The result of `require`, for CommonJS and JSON. */
  commonjs: { exports: unknown } | undefined;
  /** sha256 of its text; undefined until the text is read. */
  hash: string | undefined;
  /** The compiled text, as stacks and debuggers identify it. */
  script: ModuleScript | undefined;
  state: "new" | "evaluating" | "done" | "failed";
  settled: Promise<void>;
  readonly imports: Set<ModuleRecord>;
  /** Only current generations: the imports of a replaced module must not keep it alive. */
  readonly importers: Set<ModuleRecord>;
  /** The modules it waits for now. A chain of these that leads back to it is an import cycle. */
  readonly awaiting: Set<ModuleRecord>;
  /** Paths other than local modules that it depends on: configuration files, and candidate paths that did not exist. */
  readonly inputs: Set<string>;
  /** Replaced: imports of this file return a newer generation. Its handlers may still run. */
  dropped: boolean;
  /** No caller waits for its evaluation any longer: its next import fails. */
  abandoned: boolean;
}

export function createRecord(file: string): ModuleRecord {
  return {
    file,
    url: pathToFileURL(file).href,
    namespace: createNamespace(),
    commonjs: undefined,
    hash: undefined,
    script: undefined,
    state: "new",
    settled: Promise.resolve(),
    imports: new Set(),
    importers: new Set(),
    awaiting: new Set(),
    inputs: new Set(),
    dropped: false,
    abandoned: false,
  };
}

/** The record and all local modules below it. */
export function withImports(root: ModuleRecord): Set<ModuleRecord> {
  const seen = new Set([root]);
  for (const record of seen) for (const each of record.imports) seen.add(each);
  return seen;
}

/** Whether `from` waits for `target`, directly or through others. */
export function waitsFor(from: ModuleRecord, target: ModuleRecord): boolean {
  const seen = new Set([from]);
  for (const record of seen) {
    if (record === target) return true;
    for (const each of record.awaiting) seen.add(each);
  }
  return false;
}

export function createNamespace(): Record<string, unknown> {
  const namespace: Record<string, unknown> = Object.create(null);
  // The mark that Node.js sets in require() of an ES module, so that compiled CommonJS finds the default export.
  Object.defineProperty(namespace, "__esModule", { value: true, configurable: true });
  Object.defineProperty(namespace, Symbol.toStringTag, { value: "Module", configurable: true });
  return namespace;
}

/** Live bindings to a CommonJS module: `module.exports` as the default, and each of its keys. */
export function fillFromCommonJs(namespace: Record<string, unknown>, exports: unknown): void {
  defineGetter(namespace, "default", () => exports);
  if ((typeof exports !== "object" && typeof exports !== "function") || exports === null) return;
  for (const key of Object.keys(exports)) {
    if (key !== "default" && key !== "__esModule") defineGetter(namespace, key, () => (exports as Namespace)[key]);
  }
}

/** `export *`: all names except the default and those that the module exports itself. */
export function exportAll(namespace: Record<string, unknown>, source: object): void {
  for (const key of Object.keys(source)) {
    if (key !== "default" && !Object.hasOwn(namespace, key)) defineGetter(namespace, key, () => (source as Namespace)[key]);
  }
}

function defineGetter(namespace: object, key: string, get: () => unknown): void {
  Object.defineProperty(namespace, key, { enumerable: true, configurable: true, get });
}

/** The `import.meta` of a module. */
export function createMeta(record: ModuleRecord, resolve: (specifier: string) => string): object {
  return Object.assign(Object.create(null), { url: record.url, filename: record.file, dirname: dirname(record.file), resolve });
}
