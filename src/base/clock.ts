import { onAbort } from "./wait-for.ts";

/** The source of time for waits: tests provide their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs once after this many milliseconds. */
  after(milliseconds: number, run: () => void): ClockTimer;
}

/** Disposing cancels. */
interface ClockTimer extends Disposable {
  /** Starts the wait again. */
  restart(): void;
}

// Longer delays overflow the runtime's timers, which then fire immediately.
const longestWait = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after: (milliseconds, run) => {
    const timer = setTimeout(run, Math.min(milliseconds, longestWait));
    return { restart: () => void timer.refresh(), [Symbol.dispose]: () => clearTimeout(timer) };
  },
};

/** Settles after this many milliseconds; rejects with the signal's reason if it is aborted before. */
export async function sleep(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = withResolvers();
  const timer = clock.after(milliseconds, resolve);
  const waiting = onAbort(signal, () => reject(signal.reason));
  try {
    await promise;
  } finally {
    timer[Symbol.dispose]();
    waiting[Symbol.dispose]();
  }
}

function withResolvers(): { promise: Promise<void>; resolve: () => void; reject: (reason: unknown) => void } {
  let resolve = (): void => {};
  let reject = (_reason: unknown): void => {};
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Whether the work settles within this many milliseconds. Rejects with the error of the work, or with the signal's reason. */
export async function endsWithin(work: Promise<unknown>, milliseconds: number, clock: Clock, signal?: AbortSignal): Promise<boolean> {
  signal?.throwIfAborted();
  let timer: Disposable | undefined;
  let waiting: Disposable | undefined;
  const over = new Promise<boolean>((resolve, reject) => {
    timer = clock.after(milliseconds, () => resolve(false));
    if (signal !== undefined) waiting = onAbort(signal, () => reject(signal.reason));
  });
  // Work that outlives the wait must not become an unhandled rejection.
  work.catch(() => {});
  try {
    return await Promise.race([work.then(() => true), over]);
  } finally {
    timer?.[Symbol.dispose]();
    waiting?.[Symbol.dispose]();
  }
}
