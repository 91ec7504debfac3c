import { hash } from "node:crypto";
import { configure } from "safe-stable-stringify";
import { HostError } from "./errors.ts";
import { isNestedTooDeep, maxJsonDepth } from "./json.ts";

const stringify = configure({ bigint: false, circularValue: Error, deterministic: true });

// The host nests foreign data in its own records.
const maxDepth = 2 * maxJsonDepth;

/**
 * JSON with sorted keys and no white space: equal data gives equal text, independent of the order of keys.
 * @throws HostError `JSON_TOO_DEEP` for cyclic data and more than 256 levels; TypeError for a top-level value without a JSON
 * form.
 */
export function canonicalJson(value: unknown): string {
  if (isNestedTooDeep(value, maxDepth)) throw new HostError("JSON_TOO_DEEP", `The data is nested more than ${maxDepth} levels deep.`);
  const text = stringify(value);
  if (text === undefined) throw new TypeError("This value cannot be represented in JSON.");
  return text;
}

/** sha256 over a text's UTF-8 bytes, 64 hex digits. */
export function sha256(text: string): string {
  return hash("sha256", text, "hex");
}
