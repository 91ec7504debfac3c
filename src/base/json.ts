/** A JSON object from outside: its members are not checked yet. */
export type Json = Readonly<Record<string, unknown>>;

/** Whether a value is an object that is not an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
