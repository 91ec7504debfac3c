import { toError } from "../base/errors.ts";

/** The life of one generation of code: what was opened through it ends with it. */
export interface Scope {
  /** Fires when the generation is being disposed of. */
  readonly signal: AbortSignal;
  /** Runs `end` when the generation ends; last registered, first run. After the end it runs at once. */
  onDispose(end: () => void | Promise<void>): void;
}

export interface OwnedScope extends Scope {
  /** Ends it once: aborts the signal, then runs what was registered, each in turn, whatever the others do. Returns what they threw. */
  dispose(): Promise<readonly Error[]>;
}

export function createScope(): OwnedScope {
  const controller = new AbortController();
  const ends: (() => void | Promise<void>)[] = [];
  let disposed: Promise<readonly Error[]> | undefined;

  const run = async (end: () => void | Promise<void>): Promise<Error | undefined> => {
    try {
      await end();
      return undefined;
    } catch (error) {
      return toError(error);
    }
  };
  const disposeAll = async (): Promise<readonly Error[]> => {
    const errors: Error[] = [];
    controller.abort();
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) {
      const error = await run(end);
      if (error) errors.push(error);
    }
    return errors;
  };
  return {
    signal: controller.signal,
    onDispose(end) {
      if (disposed) void run(end);
      else ends.push(end);
    },
    dispose() {
      disposed ??= disposeAll();
      return disposed;
    },
  };
}
