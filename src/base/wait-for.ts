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
  /** Makes the error of a wait whose time is over. */
  readonly expired?: () => Error;
}

/**
 * Waits for work, but no longer than the limits allow: rejects with the signal's reason, or with what `expired` makes. The
 * work itself goes on; its late outcome is dropped.
 */
export async function waitFor<T>(work: Promise<T>, { signal, milliseconds, expired = defaultError }: WaitLimits): Promise<T> {
  // Whoever loses the race must not become an unhandled rejection.
  work.catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  let waiting: Disposable | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    if (signal !== undefined) waiting = onAbort(signal, () => reject(signal.reason));
    if (milliseconds !== undefined) timer = setTimeout(() => reject(expired()), milliseconds);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
    waiting?.[Symbol.dispose]();
  }
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
  return new Error("The time for this is over.");
}
