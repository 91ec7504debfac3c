import { dirname, resolve } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import type { CheckedTree } from "../file-guard.ts";
import { GraphLoads } from "./graph-loads.ts";
import { checkedFiles } from "./module-files.ts";
import { type GraphParts, ModuleGraph } from "./module-graph.ts";
import { PackageConfigs } from "./package-config.ts";
import { readSource } from "./read-source.ts";
import { ModuleResolver } from "./resolve-module.ts";

/**
 * A module graph for each checked folder: nothing in it was read or found outside of what was checked, and no module of another
 * origin can take a place in it. It lives as long as its tree.
 */
export class CheckedGraphs {
  readonly #parts: GraphParts;
  readonly #report: (diagnostic: Diagnostic) => void;
  readonly #graphs = new WeakMap<CheckedTree, GraphLoads>();
  /** The latest of each folder. */
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
    const { hosts, provided, transforms } = this.#parts;
    const configs = new PackageConfigs(this.#report, { files: checkedFiles(tree), top: tree.folder });
    const resolver = new ModuleResolver(provided, configs, tree);
    return { hosts, provided, transforms, configs, resolver, read: (file) => readSource(file, tree) };
  }
}
