import { isThenable } from "../base/thenable.ts";

/** Counts the calls that run on one generation of code, so that it is not taken from under them. */
export interface CallsInFlight {
  /** Runs `execute` and counts it until what it returned has settled. Throws and rejects just as it does. */
  track<A extends readonly unknown[]>(execute: (...args: A) => unknown): (...args: A) => unknown;
  /** Counts a call that will run, until the hold is disposed of. */
  hold(): Disposable;
  /** Settles when no call runs or will. */
  ended(): Promise<void>;
}

export function countCalls(): CallsInFlight {
  let running = 0;
  let waiting: (() => void)[] = [];
  const leave = (): void => {
    running--;
    if (running > 0) return;
    for (const wake of waiting) wake();
    waiting = [];
  };
  return {
    track:
      (execute) =>
      (...args) => {
        running++;
        let outcome: unknown;
        try {
          outcome = execute(...args);
        } catch (error) {
          leave();
          throw error;
        }
        if (!isThenable(outcome)) {
          leave();
          return outcome;
        }
        return Promise.resolve(outcome).finally(leave);
      },
    hold: () => {
      running++;
      let isHeld = true;
      return {
        [Symbol.dispose]: () => {
          if (isHeld) leave();
          isHeld = false;
        },
      };
    },
    ended: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}
