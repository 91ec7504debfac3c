import { isRecord, type Json } from "../../base/json.ts";
import { isSecretName } from "../../base/logger.ts";
import { BlobStore, redactSecrets } from "./blob-store.ts";
import type { FeedBlob } from "./feed-messages.ts";

/** Longer texts become blobs. In UTF-16 units. */
const longestText = 16 * 1024;
const maxItems = 2_000;
const maxDepth = 64;
/** The values of one message. Those after it are left out. */
const maxValues = 50_000;

/** Stands for a value that is secret. */
export const redacted = "[redacted]";

/**
 * Makes data of tools, models and servers fit for a message: secrets are replaced, long texts become blobs, and depth and number of values
 * are bounded. What JSON cannot express is left out.
 */
export function toFeedJson(value: unknown, blobs: BlobStore): unknown {
  return convert(value, { blobs, left: maxValues }, 0);
}

/** Like `toFeedJson`, for an object. */
export function toFeedRecord(value: unknown, blobs: BlobStore): Json {
  const converted = toFeedJson(value, blobs);
  return isRecord(converted) ? converted : {};
}

/** Like `toFeedJson`, for a text. */
export function toFeedText(text: string, blobs: BlobStore): string | { readonly $blob: FeedBlob } {
  return text.length > longestText ? { $blob: blobs.addText(text) } : redactSecrets(text);
}

/** Like `toFeedJson`, for a definition: its keys are names of parameters, not of values. */
export function toFeedDefinition<T>(definition: T, blobs: BlobStore): T {
  return convert(definition, { blobs, left: maxValues, isSchema: true }, 0) as T;
}

/** Like `toFeedRecord`, without blobs: for what must be complete without a host. */
export function toWholeRecord(value: unknown): Json {
  const converted = convert(value, { blobs: new BlobStore(), left: Number.POSITIVE_INFINITY, isWhole: true }, 0);
  return isRecord(converted) ? converted : {};
}

interface Conversion {
  readonly blobs: BlobStore;
  readonly isWhole?: boolean;
  readonly isSchema?: boolean;
  left: number;
}

function convert(value: unknown, state: Conversion, depth: number): unknown {
  if (typeof value === "string") return convertText(value, state);
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "boolean" || value === null) return value;
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object") return undefined;
  if (depth > maxDepth) return "[too deep]";
  if (--state.left < 0) return "[too many values]";
  if (value instanceof Error) return redactSecrets(`${value.name}: ${value.message}`);
  if (Array.isArray(value)) return convertItems(value, state, depth);
  return convertMembers(readable(value), state, depth);
}

function convertText(text: string, { blobs, isWhole }: Conversion): unknown {
  return isWhole === true ? redactSecrets(text) : toFeedText(text, blobs);
}

function convertItems(items: readonly unknown[], state: Conversion, depth: number): unknown {
  const { blobs, isWhole } = state;
  if (items.length > maxItems && isWhole !== true) return { $blob: blobs.addText(asText(items), "application/json") };
  return items.map((item) => convert(item, state, depth + 1) ?? null);
}

function convertMembers(value: Json, state: Conversion, depth: number): Json {
  const { data, mimeType } = value;
  const isMedia = typeof data === "string" && typeof mimeType === "string" && data.length > longestText && state.isWhole !== true;
  const members = Object.entries(value).flatMap(([key, member]) => {
    if (key === "data" && isMedia) return [[key, { $blob: state.blobs.addBytes(data, mimeType) }]];
    if (state.isSchema !== true && isSecretMember(key, member)) return [[key, redacted]];
    const converted = convert(member, state, depth + 1);
    return converted === undefined ? [] : [[key, converted]];
  });
  return Object.fromEntries(members);
}

/** Counts of tokens and the number of a progress are not secret; what an object holds is judged by its own keys. */
function isSecretMember(key: string, value: unknown): boolean {
  if (typeof value === "number") return isSecretName(key) && !/tokens?$|^progressToken$/i.test(key);
  return typeof value === "string" && value !== "" && key !== "progressToken" && isSecretName(key);
}

function readable(value: object): Json {
  try {
    const { toJSON } = value as { readonly toJSON?: unknown };
    const own: unknown = typeof toJSON === "function" ? (toJSON as () => unknown).call(value) : value;
    return isRecord(own) ? { ...own } : { value: String(own) };
  } catch {
    // A getter that throws.
    return { value: "[unreadable]" };
  }
}

function asText(items: readonly unknown[]): string {
  try {
    return JSON.stringify(items) ?? "[]";
  } catch {
    // A cycle, or a value that refuses.
    return '"[unreadable]"';
  }
}
