import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, extname, join, resolve, sep } from "node:path";
import { sha256 } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { waitFor } from "../../base/wait.ts";
import type { DiskCache } from "../disk-cache.ts";
import type { CheckedTree } from "../read-bounded.ts";
import type { Scope } from "../scope.ts";
import { CheckedGraphs, GraphLoads } from "./graph-loads.ts";
import { addedSince, guardExit, type PrototypeKeys, prototypeKeys } from "./guards.ts";
import { type HostModules, HostNamespaces } from "./host-modules.ts";
import { JitiRuns } from "./jiti.ts";
import { type Capture, captureModule, isCurrent, loadCaptured, pathsOf, toPreparedModule } from "./module-capture.ts";
import { ModuleError } from "./module-error.ts";
import { type GraphParts, ModuleGraph } from "./module-graph.ts";
import type { EngineChoice, LoadedModule, ModuleLoader, PreparedModule } from "./module-loader.ts";
import { PackageConfigs } from "./package-config.ts";
import { parseJson, readSource } from "./read-source.ts";
import { ModuleResolver } from "./resolve-module.ts";
import { TransformCache } from "./transform-source.ts";

export interface ModuleLoaderOptions {
  /** The host's own modules by specifier; they resolve to these namespaces from every importing file. */
  readonly hostModules: HostModules;
  /** Packages that resolve to the installation of this program when the importing file has no copy of its own. */
  readonly fallbackPackages?: readonly string[];
  /** Keeps transformed texts for later processes. Absent: they are kept in memory only. */
  readonly cache?: DiskCache | undefined;
  /** Runs all modules in one engine, for comparisons. Absent: the engine is chosen for each entry. */
  readonly engine?: EngineChoice["engine"];
  /** Keeps loaded modules from ending the process, from creation until disposal. */
  readonly guardExit?: boolean;
  /** Receives warnings: changed prototypes, a tsconfig.json that does not parse. */
  readonly onDiagnostic?: (diagnostic: Diagnostic) => void;
}

/** Disposing of it removes the exit guard and forgets all modules. */
export interface OwnedModuleLoader extends ModuleLoader, Disposable {}

/**
 * Creates the loader of local TypeScript and JavaScript modules. Files are read and evaluated when first loaded and
 * kept until `invalidate` names them; npm packages and Node.js modules are evaluated once, by Node.js.
 */
export function createModuleLoader(options: ModuleLoaderOptions): OwnedModuleLoader {
  return new LocalModuleLoader(options);
}

class LocalModuleLoader implements OwnedModuleLoader {
  readonly #options: ModuleLoaderOptions;
  readonly #configs: PackageConfigs;
  readonly #parts: GraphParts;
  readonly #loads: GraphLoads;
  readonly #jiti: JitiRuns;
  readonly #checked: CheckedGraphs;
  readonly #failed = new FailedLoads();
  readonly #guard: Disposable | undefined;
  #loading = 0;
  #latest: { readonly capture: Capture; readonly parts: GraphParts } | undefined;
  #prototypes: PrototypeKeys = [];

  constructor(options: ModuleLoaderOptions) {
    this.#options = options;
    this.#configs = new PackageConfigs((diagnostic) => options.onDiagnostic?.(diagnostic));
    const configs = this.#configs;
    const hosts = new HostNamespaces(options.hostModules);
    const provided = { hosts: hosts.keys, fallbacks: options.fallbackPackages ?? [] };
    const resolver = new ModuleResolver(provided, configs);
    this.#parts = { hosts, provided, configs, resolver, transforms: new TransformCache(options.cache), read: readSource };
    this.#loads = new GraphLoads(new ModuleGraph(this.#parts));
    this.#checked = new CheckedGraphs(this.#parts, (diagnostic) => options.onDiagnostic?.(diagnostic));
    this.#jiti = new JitiRuns(this.#parts, options.cache);
    this.#guard = options.guardExit
      ? guardExit((file) => this.#graphOf(file).records.has(file) || this.#jiti.textOf(file) !== undefined)
      : undefined;
  }

  check(file: string): readonly Diagnostic[] {
    try {
      const path = realPath(file);
      const { kind, code } = this.#parts.transforms.prepare(path, this.#parts.read(path), this.#parts.configs.of(path).settings);
      if (kind === "json") parseJson(path, code);
      return [];
    } catch (error) {
      if (error instanceof ModuleError) return [error.toDiagnostic()];
      throw error;
    }
  }

  engineOf(file: string): EngineChoice {
    return this.#checked.find(file) === undefined ? this.#choose(realPath(file)) : checkedEngine;
  }

  async load(file: string, { signal }: Scope, tree?: CheckedTree): Promise<LoadedModule> {
    signal.throwIfAborted();
    const entry = tree === undefined ? realPath(file) : entryIn(tree, file);
    if (this.#loading++ === 0) this.#prototypes = prototypeKeys();
    try {
      const engine = tree === undefined ? this.#engineFor(entry) : this.#checked.of(tree);
      const loaded = await engine.load(entry, signal);
      this.#failed.forget(entry);
      return loaded;
    } catch (error) {
      if (error instanceof ModuleError) this.#failed.remember(entry, error.files);
      throw error;
    } finally {
      this.#loading--;
      this.#reportPollution(entry);
    }
  }

  prepare(file: string, tree?: CheckedTree): PreparedModule {
    const entry = tree === undefined ? realPath(file) : entryIn(tree, file);
    const parts = tree === undefined ? this.#parts : this.#checked.of(tree).graph.parts;
    const capture = this.#capture(entry, parts);
    if (capture.missing) throw capture.missing.withFiles(pathsOf(capture));
    const isJiti = tree === undefined && this.#choose(entry).engine === "jiti";
    return toPreparedModule(capture, {
      read: parts.read,
      loadCurrent: (scope) => this.load(entry, scope, tree),
      loadCaptured: (held, scope) => (isJiti ? waitFor(this.#jiti.run(held), { signal: scope.signal }) : loadCaptured(held, parts, scope)),
    });
  }

  contentHash(file: string): string | undefined {
    const checked = this.#checked.find(file)?.graph.records.get(resolve(file));
    if (checked !== undefined) return checked.hash;
    const path = realPath(file);
    const text = this.#jiti.textOf(path);
    return this.#loads.graph.records.get(path)?.hash ?? (text === undefined ? undefined : sha256(text));
  }

  invalidate(files: readonly string[]): ReadonlySet<string> {
    const paths = new Set(files.flatMap((file) => [resolve(file), realPath(file)]));
    this.#latest = undefined;
    this.#configs.invalidate(paths);
    for (const path of paths) if (!existsSync(path)) this.#forget(path);
    const forgotten = [this.#loads.graph, ...this.#checked.graphs(), this.#jiti, this.#failed].flatMap((each) => [
      ...each.invalidate(paths),
    ]);
    return new Set(forgotten);
  }

  [Symbol.dispose](): void {
    this.#guard?.[Symbol.dispose]();
    for (const graph of [this.#loads.graph, ...this.#checked.graphs()]) {
      for (const record of [...graph.records.values()]) graph.drop(record);
    }
    for (const each of [this.#jiti, this.#failed, this.#parts.transforms, this.#configs]) each.clear();
  }

  /** What is known of a removed file, and of its folder if that is gone too: others with new names may follow without end. */
  #forget(path: string): void {
    this.#parts.transforms.forget(path);
    if (!existsSync(dirname(path))) this.#configs.forget(dirname(path));
  }

  /** Tools of a skill often share a module, so its capture is shared too. */
  #capture(entry: string, parts: GraphParts): Capture {
    const latest = this.#latest?.parts === parts ? this.#latest.capture : undefined;
    if (latest?.entry === entry && isCurrent(latest, parts.read)) return latest;
    const capture = captureModule(entry, parts);
    if (capture.missing === undefined) this.#latest = { capture, parts };
    return capture;
  }

  #graphOf(file: string): ModuleGraph {
    return (this.#checked.find(file) ?? this.#loads).graph;
  }

  #choose(entry: string): EngineChoice {
    const { engine } = this.#options;
    if (engine !== undefined) return { engine, reason: "the loader was created for this engine only" };
    // Decides from files alone which engine runs a module. Packages with TypeScript's older decorators are written for
    // CommonJS: their metadata names classes across import cycles, which only CommonJS tolerates, and jiti evaluates all
    // modules as CommonJS. A top-level await shows that a module is not written for CommonJS after all.
    const parts = this.#parts;
    const { tsconfig, compilerOptions } = parts.configs.of(entry);
    if (compilerOptions.experimentalDecorators !== true) return { engine: "graph", reason: "nothing in it requires another engine" };
    const extension = extname(entry);
    if (extension === ".cjs" || extension === ".json") return { engine: "graph", reason: `${extension} files contain no TypeScript` };
    if (hasTopLevelAwait(entry, parts)) return { engine: "graph", reason: "it has a top-level await, which CommonJS does not support" };
    return { engine: "jiti", reason: `${tsconfig} sets experimentalDecorators` };
  }

  #engineFor(entry: string): JitiRuns | GraphLoads {
    // The engine of an entry that jiti runs already is known: deciding again would read its files again.
    if (this.#jiti.has(entry)) return this.#jiti;
    return this.#choose(entry).engine === "jiti" ? this.#jiti : this.#loads;
  }

  #reportPollution(entry: string): void {
    const added = addedSince(this.#prototypes);
    if (added.length === 0) return;
    this.#prototypes = prototypeKeys();
    const message = `Loading ${entry} changed the global scope: ${added.join(", ")}. Every other module sees this. Use a module-level variable or function instead.`;
    this.#options.onDiagnostic?.({ severity: "warning", code: "MODULE_CHANGES_PROTOTYPE", message, file: entry });
  }
}

// jiti hands some kinds of files to Node.js, which reads them again.
const checkedEngine: EngineChoice = {
  engine: "graph",
  reason: "its signature is required, and only this engine runs exactly the verified bytes",
};

/** Files of a checked folder are identified by their relative names, which are never resolved on disk. */
function entryIn(tree: CheckedTree, file: string): string {
  if (tree.kindOf(file) === "file") return resolve(file);
  const message = `${file} is not one of the verified files of ${tree.folder}, so it does not run.`;
  throw new ModuleError("MODULE_UNTRUSTED", message, { file, files: [file] });
}

/** The real path; for a missing file, that of its folder plus its name. */
function realPath(file: string): string {
  return tryRealPath(file) ?? join(tryRealPath(dirname(file)) ?? dirname(resolve(file)), basename(file));
}

function tryRealPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    // Missing, or not a valid path.
    return undefined;
  }
}

function hasTopLevelAwait(file: string, parts: GraphParts): boolean {
  try {
    return captureModule(file, parts).hasTopLevelAwait;
  } catch (error) {
    // Loading fails in either engine, and reports the reason.
    if (error instanceof ModuleError) return false;
    throw error;
  }
}

/** The paths whose change may fix a failed entry, so that the entry is loaded again after such a change. */
class FailedLoads {
  readonly #paths = new Map<string, ReadonlySet<string>>();

  remember(entry: string, paths: ReadonlySet<string>): void {
    this.#paths.set(entry, paths);
  }

  forget(entry: string): void {
    this.#paths.delete(entry);
  }

  /** The entries affected by these changes; each is returned once. */
  invalidate(changed: ReadonlySet<string>): ReadonlySet<string> {
    const affected = new Set<string>();
    for (const [entry, paths] of this.#paths) {
      // A folder that is created, such as a restored helpers folder, may contain a missing file.
      const isAffected = [...changed].some(
        (path) => path === entry || paths.has(path) || [...paths].some((each) => each.startsWith(path + sep)),
      );
      if (!isAffected) continue;
      affected.add(entry);
      this.#paths.delete(entry);
    }
    return affected;
  }

  clear(): void {
    this.#paths.clear();
  }
}
