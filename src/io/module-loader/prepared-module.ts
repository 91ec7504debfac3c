import type { LoadedModule, PreparedModule } from "../module-loader.ts";
import type { Scope } from "../scope.ts";
import { GraphLoads } from "./graph-loads.ts";
import { type Capture, edgeKey, isCurrent } from "./module-capture.ts";
import { type GraphParts, ModuleGraph } from "./module-graph.ts";

export interface PreparedLoads {
  readonly read: GraphParts["read"];
  /** Loads what is on disk, shared with everybody else. */
  readonly loadCurrent: (scope: Scope) => Promise<LoadedModule>;
  /** Loads what was captured, for this module alone. */
  readonly loadCaptured: (capture: Capture, scope: Scope) => Promise<LoadedModule>;
}

/** A captured module that runs once, when asked: with the current modules as long as nothing changed, else on its own. */
export function toPreparedModule(capture: Capture, loads: PreparedLoads): PreparedModule {
  const files = new Set(capture.texts.keys());
  let held: Capture | undefined = capture;
  let running: Promise<LoadedModule> | undefined;

  const run = async (scope: Scope): Promise<LoadedModule> => {
    try {
      const loaded = await (held === undefined || isCurrent(held, loads.read) ? loads.loadCurrent(scope) : loads.loadCaptured(held, scope));
      // It will not run again, so the texts are of no more use.
      held = undefined;
      return loaded;
    } catch (error) {
      running = undefined;
      throw error;
    }
  };
  return {
    files,
    evaluate(scope) {
      running ??= run(scope);
      return running;
    },
  };
}

/** A graph of its own over captured texts: what is not among them comes from disk. */
export function loadCaptured(capture: Capture, parts: GraphParts, { signal }: Scope): Promise<LoadedModule> {
  const island: GraphParts = {
    ...parts,
    read: (file) => capture.texts.get(file) ?? parts.read(file),
    configs: { of: (file) => capture.configs.get(file) ?? parts.configs.of(file) },
    resolver: {
      resolve: (request) =>
        capture.edges.get(edgeKey(request.kind, request.importer, request.specifier)) ?? parts.resolver.resolve(request),
    },
  };
  return new GraphLoads(new ModuleGraph(island)).load(capture.entry, signal);
}
