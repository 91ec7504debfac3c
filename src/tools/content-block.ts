import { copyJson } from "./json-copy.ts";
import type { ContentBlock } from "./prompt.ts";
import { isRecord } from "./schema/walk-schema.ts";
import { toBase64 } from "./tool-result-object.ts";

/** A block of content as an author may write it: as MCP has it, with bytes where MCP has base64. */
export interface ContentLike {
  readonly type: string;
  readonly data?: string | Uint8Array;
  readonly [field: string]: unknown;
}

/**
 * The block as MCP has it (specification 2025-11-25, ContentBlock), frozen; a text is a text block.
 * @throws TypeError saying what is wrong with it, to follow the place where it stands.
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
 * Bytes as base64, and base64 as it should be.
 * @throws TypeError when it is neither.
 */
export function toBlob(value: unknown, what: string): string {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  const base64 = typeof value === "string" ? toBase64(value) : null;
  if (base64 === null) throw new TypeError(`needs ${what}: bytes (a Uint8Array) or a base64 string`);
  return base64;
}

/** What a value is, for people who must mend it. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return value === undefined ? "undefined" : `${typeof value === "object" ? "an" : "a"} ${typeof value}`;
}

/** @throws TypeError when JSON cannot hold it. */
export function plain(value: unknown): unknown {
  const copy = copyJson(value);
  if (!copy.ok) throw new TypeError(`contains a value that JSON does not support: ${copy.path} ${copy.reason}`);
  return copy.value;
}

type Block = Readonly<Record<string, unknown>>;

/** What each type of block must have; gives what is to be written otherwise. */
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

/** The media type that the extension of a file's name or of an address stands for; undefined: an unknown one, or none. */
export function mediaTypeOf(path: string): string | undefined {
  const name = path.replace(/[?#].*$/s, "").replace(/^.*[\\/]/s, "");
  const extension = /[^.]\.([A-Za-z0-9]{1,10})$/.exec(name)?.[1]?.toLowerCase();
  return extension === undefined ? undefined : byExtension.get(extension);
}

const byExtension: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "text/markdown": "md markdown",
    "text/plain": "txt text log",
    "text/csv": "csv",
    "text/html": "html htm",
    "text/css": "css",
    "text/javascript": "js mjs cjs jsx",
    "text/typescript": "ts mts cts tsx",
    "text/x-python": "py",
    "application/x-sh": "sh bash",
    "application/json": "json",
    "application/jsonl": "jsonl",
    "application/yaml": "yaml yml",
    "application/toml": "toml",
    "application/xml": "xml xsd",
    "application/sql": "sql",
    "application/pdf": "pdf",
    "application/zip": "zip",
    "application/gzip": "gz",
    "application/wasm": "wasm",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpg jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "font/ttf": "ttf",
    "font/woff2": "woff2",
  }).flatMap(([type, extensions]) => extensions.split(" ").map((extension) => [extension, type] as const)),
);
