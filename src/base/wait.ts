import { setMaxListeners } from "node:events";

/**
 * Runs once when the signal is aborted, or immediately if it was. Many waits may use one signal (a session's calls run in
 * parallel), so the runtime's warning about many listeners is disabled for it. Disposing removes the listener.
 */
export function onAbort(signal: AbortSignal, run: () => void): Disposable {
  if (signal.aborted) run();
  else {
    setMaxListeners(0, signal);
    signal.addEventListener("abort", run, { once: true });
  }
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", run) };
}

/** The limits of a wait. */
interface WaitLimits {
  readonly signal?: AbortSignal | undefined;
  readonly milliseconds?: number | undefined;
  /** Whether only idle time of this process counts, so that slow work is not mistaken for hanging work. */
  readonly countsWaiting?: boolean | undefined;
  /** Creates the error of an expired wait. */
  readonly expired?: () => Error;
}

/**
 * Waits for work within limits: rejects with the signal's reason, or with the error of `expired`. The work itself continues;
 * its late outcome is ignored.
 */
export async function waitFor<T>(work: Promise<T>, limits: WaitLimits): Promise<T> {
  const { signal, milliseconds, countsWaiting = false, expired = defaultError } = limits;
  // A rejection after the race must not be unhandled.
  work.catch(() => {});
  let timer: Disposable | undefined;
  let waiting: Disposable | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    if (signal !== undefined) waiting = onAbort(signal, () => reject(signal.reason));
    if (milliseconds !== undefined) timer = (countsWaiting ? afterWaiting : after)(milliseconds, () => reject(expired()));
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    timer?.[Symbol.dispose]();
    waiting?.[Symbol.dispose]();
  }
}

function after(milliseconds: number, run: () => void): Disposable {
  const timer = setTimeout(run, milliseconds);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

const tick = 5;
/** The step of timers on Windows. */
const coarseTick = 16;

/**
 * Runs once after this many milliseconds of idle time of this process. A long turn of the event loop, caused by work of this or
 * other processes, counts as one tick. Disposing cancels.
 */
export function afterWaiting(milliseconds: number, run: () => void): Disposable {
  let [left, last, longest] = [milliseconds, performance.now(), coarseTick];
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.min(longest, Math.max(now - last, tick));
    left -= Math.min(now - last, longest);
    last = now;
    if (left > 0) return;
    clearInterval(timer);
    run();
  }, tick);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Whether the work settles within this many milliseconds, fulfilled or rejected. */
export async function settlesWithin(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  const settled = work.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Settles when the signal is aborted. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}

function defaultError(): Error {
  return new Error("The time limit was reached.");
}

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

/** Whether a value must be awaited. A value whose `then` getter throws is not a thenable. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  try {
    return typeof (value as { then?: unknown }).then === "function";
  } catch {
    // The getter throws: the next read of it reports the error.
    return false;
  }
}

/** Lets the event loop run between slices of long synchronous work: after a number of units, independent of the clock. */
export class WorkSlices {
  readonly #size: number;
  #left: number;

  constructor(size: number) {
    this.#size = size;
    this.#left = size;
  }

  /** Counts completed work. Await the result if it is a promise, so that other work can run. */
  spend(units: number): Promise<void> | undefined {
    this.#left -= units;
    if (this.#left > 0) return undefined;
    this.#left = this.#size;
    return new Promise((resolve) => setImmediate(resolve));
  }
}
