import { extname } from "node:path";
import type { EngineChoice } from "../module-loader.ts";
import { captureModule } from "./module-capture.ts";
import { ModuleError } from "./module-error.ts";
import type { GraphParts } from "./module-graph.ts";

/**
 * Decides from files alone which engine runs a module. Packages with TypeScript's older decorators are written for
 * CommonJS: their metadata names classes across import cycles, which only CommonJS tolerates, and jiti evaluates all
 * modules as CommonJS. A top-level await shows that a module is not written for CommonJS after all.
 */
export function chooseEngine(file: string, parts: GraphParts): EngineChoice {
  const { tsconfig, compilerOptions } = parts.configs.of(file);
  if (compilerOptions.experimentalDecorators !== true) return { engine: "graph", reason: "nothing in it needs another engine" };
  const extension = extname(file);
  if (extension === ".cjs" || extension === ".json") return { engine: "graph", reason: `${extension} files hold no TypeScript` };
  if (hasTopLevelAwait(file, parts)) return { engine: "graph", reason: "it has a top-level await, which CommonJS has not" };
  return { engine: "jiti", reason: `${tsconfig} sets experimentalDecorators` };
}

function hasTopLevelAwait(file: string, parts: GraphParts): boolean {
  try {
    return captureModule(file, parts).hasTopLevelAwait;
  } catch (error) {
    // It will fail to load in either engine, and say why.
    if (error instanceof ModuleError) return false;
    throw error;
  }
}
