/**
 * Waits for `work`, but no longer than `milliseconds` and no longer than the signal allows. Rejects with what
 * `expired` makes, or with the signal's reason. The work itself goes on; its late outcome is dropped.
 */
export async function withinDeadline<T>(work: Promise<T>, milliseconds: number, signal: AbortSignal, expired: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let stop: (() => void) | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(expired()), milliseconds);
    stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
  // Whoever loses the race must not become an unhandled rejection.
  work.catch(() => {});
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
    if (stop) signal.removeEventListener("abort", stop);
  }
}
