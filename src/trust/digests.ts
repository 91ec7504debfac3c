import { canonicalJson, sha256 } from "../base/canonical-json.ts";

/**
 * A digest of data as JSON: the order of keys does not change it, anything else does. It names its algorithm, so that
 * what was written down today is not mistaken when another one follows: `sha256:` and 64 hex digits.
 * @throws TypeError for what JSON would lose or change, so that different data could have one digest; for cycles, too.
 */
export function digestOf(data: unknown): string {
  assertJson(data, 0);
  return `sha256:${sha256(canonicalJson(data))}`;
}

/** Whether a text has the form of a digest. */
export function isDigest(text: unknown): text is string {
  return typeof text === "string" && /^sha256:[0-9a-f]{64}$/.test(text);
}

// As deep as JSON parsers agree to go; a cycle is deeper.
const maxDepth = 500;

function assertJson(value: unknown, depth: number): void {
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "number" && Number.isFinite(value)) return;
  if (typeof value !== "object" || depth === maxDepth) throw new TypeError("This has no JSON form of its own, so it has no digest.");
  if (!Array.isArray(value) && !isPlain(value)) throw new TypeError("Only plain objects and arrays have a digest.");
  // Undefined fields are left out by JSON, as if they were absent; in arrays they would turn into null.
  for (const item of Object.values(value)) if (item !== undefined || Array.isArray(value)) assertJson(item, depth + 1);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
