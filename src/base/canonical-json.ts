import { hash } from "node:crypto";
import { configure } from "safe-stable-stringify";
import { HostError } from "./errors.ts";
import { isNestedTooDeep, maxJsonDepth } from "./json-limits.ts";

const stringify = configure({ bigint: false, circularValue: Error, deterministic: true });

// The host puts what it got from outside into records of its own.
const maxDepth = 2 * maxJsonDepth;

/**
 * JSON with sorted keys and no white space: equal data gives equal text, whatever order its keys were written in.
 * @throws HostError `JSON_TOO_DEEP` for data that is nested beyond 256 levels, or contains itself; TypeError for what JSON
 * cannot hold at the top level.
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
