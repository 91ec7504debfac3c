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
