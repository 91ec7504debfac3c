import { toError } from "../base/errors.ts";

/** The lifetime of one generation of code: it closes the resources that were registered with it. */
export interface Scope {
  /** Aborted when the generation is being disposed of. */
  readonly signal: AbortSignal;
  /** Runs `end` when the generation ends; in reverse order of registration. After the end it runs immediately. */
  onDispose(end: () => void | Promise<void>): void;
}

export interface OwnedScope extends Scope {
  /** Ends the scope once: aborts the signal, then runs all registered functions in sequence, even if some throw. Returns their errors. */
  dispose(): Promise<readonly Error[]>;
}

export function createScope(): OwnedScope {
  // Created on first read: most generations register nothing, and a signal is costly where there are thousands of them.
  let controller: AbortController | undefined;
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
    controller?.abort();
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) {
      const error = await run(end);
      if (error) errors.push(error);
    }
    return errors;
  };
  return {
    get signal() {
      if (controller === undefined) {
        controller = new AbortController();
        if (disposed) controller.abort();
      }
      return controller.signal;
    },
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
