/** A time limit on one call, whose clock stands still while somebody is asked. */
export interface CallLimit {
  hasPassed(): boolean;
  /** Runs the call; the signal fires when its time is up. */
  run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  pausedWhile<T>(work: () => T | Promise<T>): Promise<T>;
}

/** Without milliseconds there is no limit. */
export function createCallLimit(milliseconds: number | undefined): CallLimit {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let left = milliseconds ?? 0;
  let since = 0;
  const start = (): void => {
    if (milliseconds === undefined) return;
    since = performance.now();
    timer = setTimeout(() => stop.abort(new Error(`Cancelled after ${milliseconds} ms.`)), Math.max(0, left));
  };
  const pause = (): void => {
    clearTimeout(timer);
    left -= performance.now() - since;
  };
  return {
    hasPassed: () => stop.signal.aborted,
    async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
      start();
      try {
        return await work(stop.signal);
      } finally {
        clearTimeout(timer);
      }
    },
    async pausedWhile<T>(work: () => T | Promise<T>): Promise<T> {
      pause();
      try {
        return await work();
      } finally {
        start();
      }
    },
  };
}
