import { isRecord } from "../../base/json.ts";
import { copyJson } from "../json-copy.ts";
import type { ContentBlock } from "../prompt.ts";

/** A content block as an author may write it: as in MCP, with bytes allowed in place of base64. */
export interface ContentLike {
  readonly type: string;
  readonly data?: string | Uint8Array;
  readonly [field: string]: unknown;
}

/**
 * Converts to a frozen MCP content block (specification 2025-11-25, ContentBlock); a string becomes a text block.
 * @throws TypeError whose message follows the name of the field.
 */
export function toContentBlock(value: unknown): ContentBlock {
  if (typeof value === "string") return Object.freeze({ type: "text", text: value });
  if (!isRecord(value)) throw new TypeError(`must be a string or a content block with a type, not ${kindOf(value)}`);
  const { type } = value;
  const check = typeof type === "string" && Object.hasOwn(blocks, type) ? blocks[type as keyof typeof blocks] : undefined;
  if (check === undefined) throw new TypeError(`has the type ${JSON.stringify(type)}. Use one of ${Object.keys(blocks).join(", ")}`);
  return plain({ ...value, ...check(value) }) as ContentBlock;
}

/**
 * Converts bytes to base64, and normalizes base64.
 * @throws TypeError when it is neither.
 */
export function toBlob(value: unknown, what: string): string {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  const base64 = typeof value === "string" ? toBase64(value) : null;
  if (base64 === null) throw new TypeError(`needs ${what}: bytes (a Uint8Array) or a base64 string`);
  return base64;
}

/** Describes the type of a value for an error message: "an array", "a string". */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return value === undefined ? "undefined" : `${typeof value === "object" ? "an" : "a"} ${typeof value}`;
}

/**
 * A frozen JSON copy.
 * @throws TypeError when JSON cannot represent the value.
 */
export function plain(value: unknown): unknown {
  const copy = copyJson(value);
  if (!copy.ok) throw new TypeError(`contains a value that JSON does not support: ${copy.path} ${copy.reason}`);
  return copy.value;
}

type Block = Readonly<Record<string, unknown>>;

/** Checks the required fields of each block type; returns the fields to replace. */
const blocks: Readonly<Record<"text" | "image" | "audio" | "resource_link" | "resource", (block: Block) => object>> = {
  text: ({ text }) => ({ text: textField(text, "text") }),
  image: ({ data, mimeType }) => ({ data: toBlob(data, "data"), mimeType: textField(mimeType, "mimeType") }),
  audio: ({ data, mimeType }) => ({ data: toBlob(data, "data"), mimeType: textField(mimeType, "mimeType") }),
  resource_link: ({ uri, name }) => ({ uri: textField(uri, "uri"), name: textField(name, "name") }),
  resource: ({ resource }) => ({ resource: embedded(resource) }),
};

function embedded(resource: unknown): object {
  if (!isRecord(resource)) throw new TypeError("needs a resource: { uri, text } or { uri, blob }");
  const uri = textField(resource["uri"], "uri");
  if (typeof resource["text"] === "string") return { ...resource, uri };
  return { ...resource, uri, blob: toBlob(resource["blob"], "text, or a blob") };
}

function textField(value: unknown, name: string): string {
  if (typeof value !== "string") throw new TypeError(`needs the field ${name} as a string`);
  return value;
}

/** Returns standard base64 unchanged, and removes line breaks, converts the URL alphabet and adds missing padding. Null: not base64. */
export function toBase64(data: string): string | null {
  const bare = withoutPadding(data);
  if (data.length % 4 === 0 && isBase64(bare)) return data;
  const repaired = withoutPadding(data.replace(/\s+/g, "")).replaceAll("-", "+").replaceAll("_", "/");
  if (repaired.length % 4 === 1 || !isBase64(repaired)) return null;
  return repaired.padEnd(Math.ceil(repaired.length / 4) * 4, "=");
}

/** Searches for an illegal character: matching the whole text would need a stack as long as the data. */
function isBase64(bare: string): boolean {
  return !/[^A-Za-z0-9+/]/.test(bare);
}

function withoutPadding(data: string): string {
  if (data.endsWith("==")) return data.slice(0, -2);
  return data.endsWith("=") ? data.slice(0, -1) : data;
}
