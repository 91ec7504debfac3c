/** Whether a value must be awaited. A `then` that throws when it is read makes it an ordinary value. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  try {
    return typeof (value as { then?: unknown }).then === "function";
  } catch {
    // The getter throws: the next read of it reports the error.
    return false;
  }
}
