import { setMaxListeners } from "node:events";

/**
 * Runs once when the signal fires, or now if it has. Any number of waits may hang on one signal (a session's calls run
 * in parallel), so the runtime's warning about many listeners is off for it; disposing takes ours away.
 */
export function onAbort(signal: AbortSignal, run: () => void): Disposable {
  if (signal.aborted) run();
  else {
    setMaxListeners(0, signal);
    signal.addEventListener("abort", run, { once: true });
  }
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", run) };
}

/** What ends a wait before the work does. */
export interface WaitLimits {
  readonly signal?: AbortSignal | undefined;
  readonly milliseconds?: number | undefined;
  /** Whether only the time counts that this process spends waiting, so that work that is slow is not taken for work that hangs. */
  readonly countsWaiting?: boolean | undefined;
  /** Makes the error of a wait whose time is over. */
  readonly expired?: () => Error;
}

/**
 * Waits for work, but no longer than the limits allow: rejects with the signal's reason, or with what `expired` makes. The
 * work itself continues; its late outcome is dropped.
 */
export async function waitFor<T>(work: Promise<T>, limits: WaitLimits): Promise<T> {
  const { signal, milliseconds, countsWaiting = false, expired = defaultError } = limits;
  // If the race is lost, a later rejection must not be unhandled.
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
 * Runs once after so many milliseconds that this process spent waiting: of a turn of the event loop that takes long, because of
 * work in this process or because other processes run, one tick counts. Disposing cancels.
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

/** Whether the work settled within so many milliseconds, however it did. */
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

/** Settles when the signal fires. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}

function defaultError(): Error {
  return new Error("The time limit was reached.");
}
