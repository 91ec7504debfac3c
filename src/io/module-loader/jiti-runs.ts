import { sep } from "node:path";
import { waitFor } from "../../base/wait-for.ts";
import type { LoadedModule } from "../module-loader.ts";
import { placeIn } from "./error-position.ts";
import { runWithJiti } from "./jiti-engine.ts";
import { toModuleError } from "./load-failure.ts";
import { type Capture, captureModule, pathsOf } from "./module-capture.ts";
import type { GraphParts } from "./module-graph.ts";

interface Run {
  readonly capture: Capture;
  readonly result: Promise<LoadedModule>;
  waiting: number;
  isSettled: boolean;
}

/** Entries that jiti runs. Each entry has its own copy of its helpers: an edit of a helper concerns whole entries. */
export class JitiRuns {
  readonly #parts: GraphParts;
  readonly #cacheDirectory: string | undefined;
  readonly #runs = new Map<string, Run>();

  constructor(parts: GraphParts, cacheDirectory: string | undefined) {
    this.#parts = parts;
    this.#cacheDirectory = cacheDirectory;
  }

  /** Concurrent first loads share one run; a failed one is forgotten, and so is one that nobody waits for any more. */
  async load(entry: string, signal: AbortSignal): Promise<LoadedModule> {
    const run = this.#runs.get(entry) ?? this.#start(entry);
    run.waiting++;
    try {
      return await waitFor(run.result, { signal });
    } finally {
      run.waiting--;
      if (run.waiting === 0 && !run.isSettled) this.#forget(entry, run);
    }
  }

  has(entry: string): boolean {
    return this.#runs.has(entry);
  }

  /** The text of a file that is part of what was run. */
  textOf(file: string): string | undefined {
    for (const { capture } of this.#runs.values()) if (capture.texts.has(file)) return capture.texts.get(file);
    return undefined;
  }

  invalidate(paths: ReadonlySet<string>): ReadonlySet<string> {
    const forgotten = new Set<string>();
    for (const [entry, { capture }] of this.#runs) {
      const changed = [...paths].flatMap((path) => affected(capture, path));
      if (changed.length === 0) continue;
      this.#runs.delete(entry);
      for (const file of [entry, ...changed]) if (capture.texts.has(file)) forgotten.add(file);
    }
    return forgotten;
  }

  clear(): void {
    this.#runs.clear();
  }

  /** Runs a capture on its own, whatever is on disk by now. */
  async run(capture: Capture): Promise<LoadedModule> {
    const files = new Set(capture.texts.keys());
    try {
      return { exports: await runWithJiti(capture, this.#parts, this.#cacheDirectory), files };
    } catch (error) {
      throw toModuleError(error, capture.entry, pathsOf(capture), (stack) => ({ stack, place: placeIn(stack, files) }));
    }
  }

  #start(entry: string): Run {
    const capture = captureModule(entry, this.#parts);
    const run: Run = { capture, result: this.run(capture), waiting: 0, isSettled: false };
    this.#runs.set(entry, run);
    const settle = (): void => {
      run.isSettled = true;
    };
    run.result.then(settle, () => {
      settle();
      this.#forget(entry, run);
    });
    return run;
  }

  #forget(entry: string, run: Run): void {
    if (this.#runs.get(entry) === run) this.#runs.delete(entry);
  }
}

function affected({ texts, inputs }: Capture, path: string): string[] {
  const below = [...texts.keys()].filter((file) => file === path || file.startsWith(path + sep));
  return below.length > 0 || !inputs.has(path) ? below : [path];
}
