import { onAbort } from "../../base/wait-for.ts";

/** What waits go by, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs once when so many milliseconds have passed; disposing cancels. */
  after(milliseconds: number, run: () => void): Disposable;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after: (milliseconds, run) => {
    const timer = setTimeout(run, milliseconds);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};

/** Whether the work ended before so many milliseconds had passed. Rejects as the work does, or with the signal's reason. */
export async function endsWithin(work: Promise<unknown>, milliseconds: number, clock: Clock, signal?: AbortSignal): Promise<boolean> {
  signal?.throwIfAborted();
  let timer: Disposable | undefined;
  let waiting: Disposable | undefined;
  const over = new Promise<boolean>((resolve, reject) => {
    timer = clock.after(milliseconds, () => resolve(false));
    if (signal !== undefined) waiting = onAbort(signal, () => reject(signal.reason));
  });
  // Whoever loses must not become an unhandled rejection.
  work.catch(() => {});
  try {
    return await Promise.race([work.then(() => true), over]);
  } finally {
    timer?.[Symbol.dispose]();
    waiting?.[Symbol.dispose]();
  }
}
