import { isUtf8 } from "node:buffer";
import { relative, resolve, sep } from "node:path";
import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { confinePath, isInside } from "../../io/confine-path.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { toBase64 } from "../../tools/define/content-block.ts";
import { unseenNote } from "../prompt/model-text.ts";

/** What goes with a message. */
export type UserAttachment =
  /** A file below the working directory, or below one of the `additionalDirectories`. */
  | { readonly type: "file"; readonly path: string; readonly displayName?: string }
  /** `data` is base64. */
  | { readonly type: "blob"; readonly data: string; readonly mimeType: string; readonly displayName?: string };

/** Attachments as they were when the message was sent. */
export interface ReadAttachments {
  /** For `user.message`: what was attached, images with their data. */
  readonly described: readonly object[];
  /** What the model reads of them, after the prompt. Empty: nothing. */
  readonly text: string;
}

export interface AttachmentPlace {
  readonly workingDirectory: string;
  readonly additionalDirectories: readonly string[];
}

const maxBytes = 10 * 1024 * 1024;
const maxTotalBytes = 32 * 1024 * 1024;
// Longer texts are better read a part at a time, by a tool.
const maxTextBytes = 256 * 1024;

const none: ReadAttachments = Object.freeze({ described: [], text: "" });

/**
 * Reads what goes with a message, at once. Text becomes part of the message, images stay images, and of anything else
 * the model only reads that it is there.
 * @throws HostError `ATTACHMENT_INVALID`, `ATTACHMENT_OUTSIDE`, `ATTACHMENT_UNREADABLE`, `ATTACHMENT_TOO_LARGE`.
 */
export function readAttachments(list: unknown, place: AttachmentPlace): ReadAttachments {
  if (list === undefined) return none;
  if (!Array.isArray(list)) throw new HostError("ATTACHMENT_INVALID", "attachments must be an array.");
  const read = list.map((item: unknown, index) => readAttachment(item, `attachments[${index}]`, place));
  const total = read.reduce((sum, { bytes }) => sum + bytes.length, 0);
  if (total > maxTotalBytes) throw tooLarge(`The attachments have ${total} bytes in total`, maxTotalBytes);
  const sorted = read.map(sort);
  return { described: sorted.map(({ described }) => described), text: sorted.flatMap(({ text }) => text ?? []).join("\n\n") };
}

/** An attachment with its content. */
interface Loaded {
  /** As it was given, without its content. */
  readonly facts: { readonly type: string; readonly [field: string]: unknown };
  /** What the model may call it. */
  readonly name: string;
  readonly bytes: Buffer;
  readonly mimeType: string | undefined;
}

function readAttachment(item: unknown, field: string, place: AttachmentPlace): Loaded {
  const type = isRecord(item) ? item["type"] : undefined;
  if (!isRecord(item) || (type !== "file" && type !== "blob")) {
    throw new HostError("ATTACHMENT_INVALID", `${field} must be { type: "file", path } or { type: "blob", data, mimeType }.`);
  }
  const displayName = typeof item["displayName"] === "string" ? item["displayName"] : undefined;
  return type === "file" ? readFile(item["path"], displayName, field, place) : readBlob(item, displayName, field);
}

function readFile(path: unknown, displayName: string | undefined, field: string, place: AttachmentPlace): Loaded {
  if (typeof path !== "string" || path === "") throw new HostError("ATTACHMENT_INVALID", `${field}.path must be a path.`);
  const full = locate(path, field, place);
  const read = readTextFile(full, maxBytes);
  if (!read.ok) {
    const code = read.diagnostic.code === "FILE_TOO_LARGE" ? "ATTACHMENT_TOO_LARGE" : "ATTACHMENT_UNREADABLE";
    throw new HostError(code, `${field} (${path}): ${read.diagnostic.message}`);
  }
  const bytes = Buffer.from(read.bytes.buffer, read.bytes.byteOffset, read.bytes.byteLength);
  const name = isInside(place.workingDirectory, full) ? relative(place.workingDirectory, full).split(sep).join("/") : path;
  return { facts: { type: "file", path, displayName: displayName ?? name }, name, bytes, mimeType: sniffImage(bytes) };
}

/** Where a path leads, which must stay in one of the folders that files may be attached from. */
function locate(path: string, field: string, { workingDirectory, additionalDirectories }: AttachmentPlace): string {
  const full = resolve(workingDirectory, path);
  const roots = [workingDirectory, ...additionalDirectories.map((directory) => resolve(workingDirectory, directory))];
  let why = `${JSON.stringify(path)} is not below the working directory.`;
  for (const root of roots) {
    if (!isInside(root, full)) continue;
    const confined = confinePath(root, relative(root, full) || ".");
    if (confined.ok) return confined.path;
    why = confined.message;
  }
  throw new HostError("ATTACHMENT_OUTSIDE", `${field}: ${why} Name its folder in additionalDirectories, or attach the content as a blob.`);
}

function readBlob(item: Readonly<Record<string, unknown>>, displayName: string | undefined, field: string): Loaded {
  const { data, mimeType } = item;
  if (typeof mimeType !== "string" || !/^[\w.+-]+\/[\w.+-]+(?:\s*;.*)?$/.test(mimeType)) {
    throw new HostError("ATTACHMENT_INVALID", `${field}.mimeType must be a MIME type such as "image/png".`);
  }
  const base64 = typeof data === "string" ? toBase64(data) : null;
  if (base64 === null) throw new HostError("ATTACHMENT_INVALID", `${field}.data must be base64.`);
  if (base64.length * 0.75 > maxBytes + 3) throw tooLarge(field, maxBytes);
  const name = displayName ?? "attachment";
  return { facts: { type: "blob", mimeType, displayName: name }, name, bytes: Buffer.from(base64, "base64"), mimeType };
}

function sort({ facts, name, bytes, mimeType }: Loaded): { readonly described: object; readonly text?: string } {
  if (mimeType?.startsWith("image/")) return { described: { ...facts, mimeType, data: bytes.toString("base64") } };
  const text = isText(bytes, mimeType) ? bytes.toString("utf8") : undefined;
  if (text === undefined) {
    const note = unseenNote({ mimeType: mimeType ?? "application/octet-stream", description: name, bytes: bytes.length });
    return { described: facts, text: note };
  }
  if (bytes.length <= maxTextBytes) return { described: facts, text: `<attachment name="${attribute(name)}">\n${text}\n</attachment>` };
  const note = `<attachment name="${attribute(name)}">\n[${bytes.length} bytes, too long to show. Read it in parts.]\n</attachment>`;
  return { described: facts, text: note };
}

function isText(bytes: Buffer, mimeType: string | undefined): boolean {
  if (mimeType !== undefined && !/^text\/|[/+](?:json|xml|yaml|javascript|typescript)\b/i.test(mimeType)) return false;
  return isUtf8(bytes) && !bytes.includes(0);
}

/** The image formats that chat models take, by their first bytes. */
function sniffImage(bytes: Buffer): string | undefined {
  const head = bytes.toString("latin1", 0, 12);
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(head)) return "image/gif";
  return head.startsWith("RIFF") && head.endsWith("WEBP") ? "image/webp" : undefined;
}

function attribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

function tooLarge(what: string, limit: number): HostError {
  return new HostError("ATTACHMENT_TOO_LARGE", `${what}: the limit is ${limit} bytes. Have a tool read the file instead.`);
}
