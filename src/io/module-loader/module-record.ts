import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Namespace } from "./host-modules.ts";
import type { ModuleScript } from "./source-positions.ts";

/** One generation of one local file. */
export interface ModuleRecord {
  readonly file: string;
  readonly url: string;
  /** What ES modules see of it; filled while it is evaluated. */
  readonly namespace: Record<string, unknown>;
  /** What `require` gives, for CommonJS and JSON. */
  commonjs: { exports: unknown } | undefined;
  /** sha256 of the text it was made from; undefined until that is read. */
  hash: string | undefined;
  /** That text, as stacks and debuggers know it. */
  script: ModuleScript | undefined;
  state: "new" | "evaluating" | "done" | "failed";
  settled: Promise<void>;
  readonly imports: Set<ModuleRecord>;
  /** Only current generations: a replaced module is not kept alive by what it imported. */
  readonly importers: Set<ModuleRecord>;
  /** What it waits for right now. A chain of these that leads back is an import cycle. */
  readonly awaiting: Set<ModuleRecord>;
  /** Paths other than local modules that it depends on: configuration, and what was looked for and not found. */
  readonly inputs: Set<string>;
  /** No longer what an import of this file gives; its handlers may still run. */
  dropped: boolean;
  /** Nobody waits for its evaluation any more: whatever it does next fails. */
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
  // As Node.js marks what require() of an ES module gives, so that compiled CommonJS finds the default export.
  Object.defineProperty(namespace, "__esModule", { value: true, configurable: true });
  Object.defineProperty(namespace, Symbol.toStringTag, { value: "Module", configurable: true });
  return namespace;
}

/** Live names for what a CommonJS module exports: its `module.exports` as the default, and each key of it. */
export function fillFromCommonJs(namespace: Record<string, unknown>, exports: unknown): void {
  defineGetter(namespace, "default", () => exports);
  if ((typeof exports !== "object" && typeof exports !== "function") || exports === null) return;
  for (const key of Object.keys(exports)) {
    if (key !== "default" && key !== "__esModule") defineGetter(namespace, key, () => (exports as Namespace)[key]);
  }
}

/** `export *`: all but the default, and nothing that is there by a name of its own. */
export function exportAll(namespace: Record<string, unknown>, source: object): void {
  for (const key of Object.keys(source)) {
    if (key !== "default" && !Object.hasOwn(namespace, key)) defineGetter(namespace, key, () => (source as Namespace)[key]);
  }
}

function defineGetter(namespace: object, key: string, get: () => unknown): void {
  Object.defineProperty(namespace, key, { enumerable: true, configurable: true, get });
}

/** What `import.meta` is in a module. */
export function createMeta(record: ModuleRecord, resolve: (specifier: string) => string): object {
  return Object.assign(Object.create(null), { url: record.url, filename: record.file, dirname: dirname(record.file), resolve });
}
