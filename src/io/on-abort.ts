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

/** Waits for work as long as the signal allows, and rejects with its reason. The work itself goes on; its late outcome is dropped. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  let waiting: Disposable | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    waiting = onAbort(signal, () => reject(signal.reason));
  });
  // Whoever loses the race must not become an unhandled rejection.
  work.catch(() => {});
  try {
    return await Promise.race([work, aborted]);
  } finally {
    waiting?.[Symbol.dispose]();
  }
}
