import { sep } from "node:path";
import { sha256 } from "../../base/canonical-json.ts";
import { abandoned, checkNames, stillEvaluating } from "./graph-faults.ts";
import type { HostNamespaces, Namespace } from "./host-modules.ts";
import { createRecord, type ModuleRecord, waitsFor, withImports } from "./module-record.ts";
import { keepReplaced, registerScript } from "./module-scripts.ts";
import { importNative, importUrl, withNames } from "./native-modules.ts";
import type { PackageConfigs } from "./package-config.ts";
import { wrapNodeModule } from "./require.ts";
import type { ImportKind, ModuleResolver, ProvidedModules, Resolved } from "./resolve-module.ts";
import { runAsync, runSync } from "./run-module.ts";
import type { TransformCache } from "./transform-cache.ts";
import type { Prepared } from "./transform-source.ts";

export interface GraphParts {
  readonly hosts: HostNamespaces;
  readonly provided: ProvidedModules;
  readonly configs: Pick<PackageConfigs, "of">;
  readonly resolver: Pick<ModuleResolver, "resolve">;
  readonly transforms: TransformCache;
  readonly read: (file: string) => string;
}

/**
 * The local modules, each evaluated once per generation and shared by all that import it. Packages and Node.js modules
 * are left to Node.js.
 */
export class ModuleGraph {
  readonly parts: GraphParts;
  readonly #records = new Map<string, ModuleRecord>();

  constructor(parts: GraphParts) {
    this.parts = parts;
  }

  get records(): ReadonlyMap<string, ModuleRecord> {
    return this.#records;
  }

  /** The current generation of a file; its evaluation starts here if this is the first to ask. */
  open(file: string): ModuleRecord {
    const record = this.#current(file);
    this.#start(record);
    return record;
  }

  /** An import by a module: static or dynamic. Within a cycle it is the namespace as far as it has got. */
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

  /** A local module for `require`: it and everything below it is evaluated before this returns. */
  requireLocal(importer: ModuleRecord, file: string): ModuleRecord {
    if (importer.abandoned) throw abandoned(importer);
    const record = this.#current(file);
    link(importer, record);
    if (record.state === "new") this.#evaluateSync(importer, record);
    // A cycle gives what is there so far; another load's unfinished module gives nothing.
    const isReady = record.state === "done" || record.commonjs !== undefined || waitsFor(record, importer);
    if (!isReady) throw stillEvaluating(record, importer);
    return record;
  }

  resolve(importer: ModuleRecord, specifier: string, kind: ImportKind, base: string = importer.file): Resolved {
    const missed = (path: string): unknown => importer.inputs.add(path);
    return this.parts.resolver.resolve({ specifier, importer: base, kind, missed });
  }

  /** Reads and transforms a file as its package and compiler settings say. */
  prepare(record: ModuleRecord): Prepared {
    const config = this.parts.configs.of(record.file);
    for (const input of config.inputs) record.inputs.add(input);
    const text = this.parts.read(record.file);
    record.hash = sha256(text);
    record.script = registerScript(record.url, { file: record.file, text, settings: config.settings });
    return this.parts.transforms.prepare(record.file, text, config.settings);
  }

  /** Forgets the generations that these paths are part of, and everything that imports them. */
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

  /** Gives up what is still being evaluated for `root` and for none of `others`: it may never end. */
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
    if (record.state !== "done" && !waitsFor(record, importer)) await this.#finish(importer, record);
    if (record.state === "done") checkNames(importer, specifier, record, names, reexports);
    return record.namespace;
  }

  async #finish(importer: ModuleRecord, record: ModuleRecord): Promise<void> {
    // Before it starts: what it imports must see that a way back to the importer is a cycle.
    importer.awaiting.add(record);
    try {
      this.#start(record);
      await record.settled;
    } finally {
      importer.awaiting.delete(record);
    }
  }

  async #importHost(
    importer: ModuleRecord,
    id: string,
    names: readonly string[],
    reexports: ReadonlySet<string> | undefined,
  ): Promise<Namespace> {
    const namespace = await this.parts.hosts.load(id);
    checkNames(importer, id, { namespace }, names, reexports);
    return namespace;
  }

  async #importOutside(
    importer: ModuleRecord,
    target: Resolved,
    names: readonly string[],
    reexports: ReadonlySet<string> | undefined,
  ): Promise<Namespace> {
    if ("file" in target) return importNative(target.file);
    if (target.kind === "host") return this.#importHost(importer, target.id, names, reexports);
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
    // Whoever awaits it hears of a failure; if nobody does any more, it is not an unhandled rejection.
    record.settled.catch(() => {});
  }

  async #evaluate(record: ModuleRecord): Promise<void> {
    try {
      const prepared = this.prepare(record);
      if (prepared.usesCommonJs && !this.parts.hosts.isComplete) await this.parts.hosts.loadAll();
      if (prepared.kind === "esm") await runAsync(this, record, prepared);
      else runSync(this, record, prepared);
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
