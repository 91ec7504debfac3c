import { hash } from "node:crypto";
import { configure } from "safe-stable-stringify";

const stringify = configure({ bigint: false, circularValue: Error, deterministic: true });

/**
 * JSON with sorted keys and no white space: equal data gives equal text, whatever order its keys were written in.
 * @throws TypeError for cyclic data, and for what JSON cannot hold at the top level.
 */
export function canonicalJson(value: unknown): string {
  const text = stringify(value);
  if (text === undefined) throw new TypeError("This value has no JSON form.");
  return text;
}

/** sha256 over a text's UTF-8 bytes, 64 hex digits. */
export function sha256(text: string): string {
  return hash("sha256", text, "hex");
}
