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
