import { waitFor } from "../../base/wait-for.ts";
import type { LoadedModule } from "../module-loader.ts";
import { mapStack } from "./error-position.ts";
import { toModuleError } from "./load-failure.ts";
import type { ModuleGraph } from "./module-graph.ts";
import { createNamespace, fillFromCommonJs, type ModuleRecord, withImports } from "./module-record.ts";

/** Loads entries in the graph and knows who still waits, so that an evaluation nobody waits for is given up. */
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
      throw this.#failure(record, error);
    } finally {
      this.#leave(record);
    }
  }

  #failure(record: ModuleRecord, error: unknown): Error {
    const records = [...withImports(record)];
    const paths = records.flatMap(({ file, inputs }) => [file, ...inputs]);
    return toModuleError(error, record.file, paths, mapStack);
  }

  #leave(record: ModuleRecord): void {
    const others = (this.#waiting.get(record) ?? 1) - 1;
    if (others > 0) this.#waiting.set(record, others);
    else this.#waiting.delete(record);
    if (others === 0 && record.state === "evaluating") this.graph.abandon(record, this.#waiting.keys());
  }
}

// CommonJS that a compiler made from an ES module has its default export under that name.
function entryExports({ commonjs, namespace }: ModuleRecord): Readonly<Record<string, unknown>> {
  const exports = commonjs?.exports as Record<string, unknown> | null | undefined;
  if (typeof exports !== "object" || exports === null || exports["__esModule"] !== true || !Object.hasOwn(exports, "default"))
    return namespace;
  const view = createNamespace();
  fillFromCommonJs(view, exports);
  Object.defineProperty(view, "default", { enumerable: true, get: () => exports["default"] });
  return view;
}
