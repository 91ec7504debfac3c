import { dirname, resolve } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { waitFor } from "../../base/wait.ts";
import type { CheckedTree } from "../read-bounded.ts";
import { toModuleError } from "./module-error.ts";
import { type GraphParts, ModuleGraph } from "./module-graph.ts";
import type { LoadedModule } from "./module-loader.ts";
import { createNamespace, fillFromCommonJs, type ModuleRecord, withImports } from "./module-record.ts";
import { PackageConfigs } from "./package-config.ts";
import { checkedFiles, readSource } from "./read-source.ts";
import { ModuleResolver } from "./resolve-module.ts";
import { mapStack } from "./source-positions.ts";
import { TransformCache } from "./transform-source.ts";

/** Loads entries in the graph and counts waiting callers, so that an evaluation without one is abandoned. */
export class GraphLoads {
  readonly graph: ModuleGraph;
  readonly #waiting = new Map<ModuleRecord, number>();

  constructor(graph: ModuleGraph) {
    this.graph = graph;
  }

  async load(entry: string, signal: AbortSignal): Promise<LoadedModule> {
    const record = this.graph.open(entry);
    this.#waiting.set(record, (this.#waiting.get(record) ?? 0) + 1);
    try {
      await waitFor(record.settled, { signal });
      return { exports: entryExports(record), files: new Set([...withImports(record)].map(({ file }) => file)) };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const records = [...withImports(record)];
      const paths = records.flatMap(({ file, inputs }) => [file, ...inputs]);
      throw toModuleError(error, record.file, paths, mapStack);
    } finally {
      const others = (this.#waiting.get(record) ?? 1) - 1;
      if (others > 0) this.#waiting.set(record, others);
      else this.#waiting.delete(record);
      if (others === 0 && record.state === "evaluating") this.graph.abandon(record, this.#waiting.keys());
    }
  }
}

// CommonJS that was compiled from an ES module has its default export as `exports.default`.
function entryExports({ commonjs, namespace }: ModuleRecord): Readonly<Record<string, unknown>> {
  const exports = commonjs?.exports as Record<string, unknown> | null | undefined;
  if (typeof exports !== "object" || exports === null || exports["__esModule"] !== true || !Object.hasOwn(exports, "default"))
    return namespace;
  const view = createNamespace();
  fillFromCommonJs(view, exports);
  Object.defineProperty(view, "default", { enumerable: true, get: () => exports["default"] });
  return view;
}

/**
 * One module graph per checked folder. It reads and resolves only checked files, so that no module of another origin can
 * replace one of them. It lives as long as its tree.
 */
export class CheckedGraphs {
  readonly #parts: GraphParts;
  readonly #report: (diagnostic: Diagnostic) => void;
  // What runs depends on the verified bytes alone, so not on files that other programs of this user can change.
  readonly #transforms = new TransformCache();
  readonly #graphs = new WeakMap<CheckedTree, GraphLoads>();
  /** The latest graph of each folder. */
  readonly #byFolder = new Map<string, WeakRef<GraphLoads>>();

  constructor(parts: GraphParts, report: (diagnostic: Diagnostic) => void) {
    this.#parts = parts;
    this.#report = report;
  }

  of(tree: CheckedTree): GraphLoads {
    const known = this.#graphs.get(tree);
    if (known !== undefined) return known;
    const loads = new GraphLoads(new ModuleGraph(this.#partsOf(tree)));
    this.#graphs.set(tree, loads);
    this.#byFolder.set(tree.folder, new WeakRef(loads));
    return loads;
  }

  /** The graph of the checked folder that a path lies in, by its spelling. */
  find(file: string): GraphLoads | undefined {
    if (this.#byFolder.size === 0) return undefined;
    for (let folder = dirname(resolve(file)); ; folder = dirname(folder)) {
      const loads = this.#byFolder.get(folder)?.deref();
      if (loads !== undefined || dirname(folder) === folder) return loads;
    }
  }

  *graphs(): Iterable<ModuleGraph> {
    for (const [folder, reference] of this.#byFolder) {
      const loads = reference.deref();
      if (loads === undefined) this.#byFolder.delete(folder);
      else yield loads.graph;
    }
  }

  #partsOf(tree: CheckedTree): GraphParts {
    const { hosts, provided } = this.#parts;
    const transforms = this.#transforms;
    const configs = new PackageConfigs(this.#report, { files: checkedFiles(tree), top: tree.folder });
    const resolver = new ModuleResolver(provided, configs, tree);
    return { hosts, provided, transforms, configs, resolver, read: (file) => readSource(file, tree) };
  }
}
