import { isUtf8 } from "node:buffer";
import { readdirSync, statSync } from "node:fs";
import { relative, resolve, sep } from "node:path";
import { errorMessage, HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { confinePath, isInside } from "../../io/confine-path.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { toBase64 } from "../../tools/define/content-block.ts";
import { unseenNote } from "../prompt/model-text.ts";
import { ideSelection, isReferenceType, type ReferenceAttachment, readReference } from "./attached-references.ts";

/** What goes with a message. */
export type UserAttachment =
  /** A file below the working directory, or below one of the `additionalDirectories`. */
  | { readonly type: "file"; readonly path: string; readonly displayName?: string; readonly lineRange?: LineRange }
  /** A folder in the same places. */
  | { readonly type: "directory"; readonly path: string; readonly displayName?: string }
  /** `data` is base64. */
  | { readonly type: "blob"; readonly data: string; readonly mimeType: string; readonly displayName?: string }
  /** A text that is selected in an editor. */
  | {
      readonly type: "selection";
      readonly filePath: string;
      readonly text: string;
      readonly displayName?: string;
      readonly selection?: object;
    }
  | ReferenceAttachment;

/** Lines of a file, counted from 1; `end` is included. */
interface LineRange {
  readonly start: number;
  readonly end: number;
}

/** One attachment as it was when the message was sent. */
interface ReadAttachment {
  /** For `user.message`: what was attached, images and documents with their data. */
  readonly described: object;
  /** What the model reads before the prompt. */
  readonly before?: string;
  /** What it reads right after the prompt when it has no tool that could show the file. */
  readonly inline?: string;
  /** The line that names the file to a model that has such a tool. */
  readonly tagged?: string;
  /** What it reads at the end of the message. */
  readonly reference?: string;
}

export type ReadAttachments = readonly ReadAttachment[];

/** What a message and the model get of the attachments. */
interface AttachmentTexts {
  readonly described: readonly object[];
  readonly before: string;
  readonly inline: string;
  readonly after: string;
}

export interface AttachmentPlace {
  readonly workingDirectory: string;
  readonly additionalDirectories: readonly string[];
}

const maxBytes = 10 * 1024 * 1024;
const maxTotalBytes = 32 * 1024 * 1024;
// Longer texts are better read a part at a time, by a tool.
const maxTextBytes = 256 * 1024;
const maxNames = 200;

/**
 * Reads what goes with a message, at once. Images and PDF documents keep their data; text is part of the message, or is
 * named there for a model that can view files; of anything else the model only reads that it is there.
 * @throws HostError `ATTACHMENT_INVALID`, `ATTACHMENT_OUTSIDE`, `ATTACHMENT_UNREADABLE`, `ATTACHMENT_TOO_LARGE`.
 */
export function readAttachments(list: unknown, place: AttachmentPlace): ReadAttachments {
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new HostError("ATTACHMENT_INVALID", "attachments must be an array.");
  let total = 0;
  return list.map((item: unknown, index) => {
    const { bytes, ...read } = readAttachment(item, `attachments[${index}]`, place);
    total += bytes;
    if (total > maxTotalBytes) throw tooLarge(`The attachments have more than ${maxTotalBytes} bytes in total`, maxTotalBytes);
    return read;
  });
}

/** The parts of a message that its attachments make. `canView`: the model has a tool that shows files. */
export function attachmentTexts(attachments: ReadAttachments, canView: boolean): AttachmentTexts {
  const isTagged = ({ tagged }: ReadAttachment): boolean => canView && tagged !== undefined;
  const textsOf = (key: "before" | "inline" | "reference", list: ReadAttachments): readonly string[] =>
    list.flatMap((attachment) => attachment[key] ?? []);
  const tagged = attachments.filter(isTagged);
  const lines = tagged.map((attachment) => attachment.tagged);
  const files = lines.length === 0 ? [] : [`<tagged_files>\n${lines.join("\n")}\n</tagged_files>`];
  return {
    described: attachments.map((attachment) =>
      isTagged(attachment) ? { ...attachment.described, taggedFilesEntry: attachment.tagged } : attachment.described,
    ),
    before: textsOf("before", attachments).join("\n\n"),
    inline: textsOf(
      "inline",
      attachments.filter((attachment) => !isTagged(attachment)),
    ).join("\n\n"),
    after: [...files, ...referencesOf(textsOf("reference", attachments))].join("\n\n"),
  };
}

/** Lines about GitHub share one block; what an extension adds is a block of its own. */
function referencesOf(references: readonly string[]): readonly string[] {
  const lines = references.filter((text) => !text.startsWith("<"));
  const block = lines.length === 0 ? [] : [`<github_references>\n${lines.join("\n")}\n</github_references>`];
  return [...block, ...references.filter((text) => text.startsWith("<"))];
}

type Counted = ReadAttachment & { readonly bytes: number };

type Fields = Readonly<Record<string, unknown>>;

function readAttachment(item: unknown, field: string, place: AttachmentPlace): Counted {
  const given = isRecord(item) ? item : {};
  const type = given["type"];
  if (type === "file") return readFile(given, field, place);
  if (type === "directory") return readDirectory(given, field, place);
  if (type === "blob") return readBlob(given, field);
  if (type === "selection") return readSelection(given, field, place);
  if (isReferenceType(type)) return { ...readReference(given, field), bytes: 0 };
  const forms = '{ type: "file", path }, { type: "blob", data, mimeType } or another form that the documentation lists';
  throw new HostError("ATTACHMENT_INVALID", `${field} must be ${forms}.`);
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

function readFile(given: Fields, field: string, place: AttachmentPlace): Counted {
  const path = pathOf(given, field);
  const lineRange = readLineRange(given["lineRange"], `${field}.lineRange`);
  const full = locate(path, field, place);
  const read = readTextFile(full, maxBytes);
  if (!read.ok) {
    const code = read.diagnostic.code === "FILE_TOO_LARGE" ? "ATTACHMENT_TOO_LARGE" : "ATTACHMENT_UNREADABLE";
    throw new HostError(code, `${field} (${path}): ${read.diagnostic.message}`);
  }
  const bytes = Buffer.from(read.bytes.buffer, read.bytes.byteOffset, read.bytes.byteLength);
  const name = nameOf(full, path, place);
  const facts = { type: "file", path, displayName: displayNameOf(given) ?? name, ...(lineRange && { lineRange }) };
  const loaded = sort({ facts, name, bytes, mimeType: sniff(bytes) }, lineRange);
  const isNative = loaded.inline === undefined;
  return isNative || !isText(bytes, undefined) ? loaded : { ...loaded, tagged: `* ${full} (${linesOf(bytes, lineRange)})` };
}

/** How many lines a file has, and which of them are meant. */
function linesOf(bytes: Buffer, range: LineRange | undefined): string {
  let count = bytes.length > 0 && bytes[bytes.length - 1] !== lineFeed ? 1 : 0;
  for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) count++;
  if (range === undefined) return `${count} lines`;
  return range.start === range.end ? `line ${range.start} of ${count} lines` : `lines ${range.start}-${range.end} of ${count} lines`;
}

const lineFeed = 10;

function readLineRange(value: unknown, field: string): LineRange | undefined {
  if (value === undefined || value === null) return undefined;
  const { start, end } = isRecord(value) ? value : {};
  const isRange = Number.isSafeInteger(start) && Number.isSafeInteger(end) && Number(start) >= 1 && Number(end) >= Number(start);
  if (!isRange)
    throw new HostError("ATTACHMENT_INVALID", `${field} must be { start, end } with line numbers from 1, and end not before start.`);
  return { start: Number(start), end: Number(end) };
}

function readDirectory(given: Fields, field: string, place: AttachmentPlace): Counted {
  const path = pathOf(given, field);
  const full = locate(path, field, place);
  const name = nameOf(full, path, place);
  const names = namesIn(full, `${field} (${path})`);
  const shown = names.slice(0, maxNames).join("\n");
  const more = names.length > maxNames ? `\n[There are ${names.length - maxNames} more.]` : "";
  return {
    described: { type: "directory", path, displayName: displayNameOf(given) ?? name },
    inline: `<attachment name="${attribute(name)}" type="directory">\n${shown}${more}\n</attachment>`,
    tagged: `* ${full} (${names.length} items)`,
    bytes: 0,
  };
}

function namesIn(path: string, what: string): readonly string[] {
  try {
    if (statSync(path).isDirectory()) return readdirSync(path).sort();
  } catch (error) {
    throw new HostError("ATTACHMENT_UNREADABLE", `${what}: ${errorMessage(error)}`);
  }
  throw new HostError("ATTACHMENT_UNREADABLE", `${what}: This is not a folder. Attach it as a file.`);
}

function pathOf(given: Fields, field: string): string {
  const { path } = given;
  if (typeof path !== "string" || path === "") throw new HostError("ATTACHMENT_INVALID", `${field}.path must be a path.`);
  return path;
}

function nameOf(full: string, path: string, { workingDirectory }: AttachmentPlace): string {
  return isInside(workingDirectory, full) ? relative(workingDirectory, full).split(sep).join("/") || "." : path;
}

function displayNameOf({ displayName }: Fields): string | undefined {
  return typeof displayName === "string" ? displayName : undefined;
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

function readBlob(given: Fields, field: string): Counted {
  const { data, mimeType } = given;
  if (typeof mimeType !== "string" || !/^[\w.+-]+\/[\w.+-]+(?:\s*;.*)?$/.test(mimeType)) {
    throw new HostError("ATTACHMENT_INVALID", `${field}.mimeType must be a MIME type such as "image/png".`);
  }
  // Before anything is made of it: even white space in it would be copied. Line breaks of MIME add two in 76 characters.
  if (typeof data === "string" && data.length > maxEncodedLength) throw tooLarge(field, maxBytes);
  const base64 = typeof data === "string" ? toBase64(data) : null;
  if (base64 === null) throw new HostError("ATTACHMENT_INVALID", `${field}.data must be base64.`);
  if (base64.length * 0.75 > maxBytes + 3) throw tooLarge(field, maxBytes);
  const displayName = displayNameOf(given);
  const facts = { type: "blob", mimeType, ...(displayName !== undefined && { displayName }) };
  return sort({ facts, name: displayName ?? "attachment", bytes: Buffer.from(base64, "base64"), mimeType }, undefined);
}

const maxEncodedLength = Math.ceil(((maxBytes * 4) / 3) * 1.05);

function readSelection(given: Fields, field: string, place: AttachmentPlace): Counted {
  const { text, filePath } = given;
  if (typeof text !== "string") throw new HostError("ATTACHMENT_INVALID", `${field}.text must be the selected text.`);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxTextBytes) throw tooLarge(field, maxTextBytes);
  const path = typeof filePath === "string" ? filePath : "";
  const name = displayNameOf(given) ?? (path === "" ? "selection" : nameOf(resolve(place.workingDirectory, path), path, place));
  const { selection = nowhere } = given;
  return {
    described: { ...given, filePath: path, displayName: name, selection },
    before: ideSelection(name, text, given["selection"]),
    bytes,
  };
}

// For readers of events that insist on a position.
const nowhere = { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } };

function sort({ facts, name, bytes, mimeType }: Loaded, range: LineRange | undefined): Counted {
  const size = { bytes: bytes.length };
  if (mimeType?.startsWith("image/") === true || mimeType === pdfType)
    return { described: { ...facts, mimeType, data: bytes.toString("base64") }, ...size };
  const text = isText(bytes, mimeType) ? linesIn(bytes.toString("utf8"), range) : undefined;
  if (text === undefined) {
    const inline = unseenNote({ mimeType: mimeType ?? "application/octet-stream", description: name, bytes: bytes.length });
    return { described: facts, inline, ...size };
  }
  const lines = range === undefined ? "" : ` lines="${range.start}-${range.end}"`;
  const isShown = text.length <= maxTextBytes && bytes.length <= maxTextBytes;
  const content = isShown ? text : `[${bytes.length} bytes, too long to show. Read it in parts.]`;
  return { described: facts, inline: `<attachment name="${attribute(name)}"${lines}>\n${content}\n</attachment>`, ...size };
}

function linesIn(text: string, range: LineRange | undefined): string {
  return range === undefined
    ? text
    : text
        .split("\n")
        .slice(range.start - 1, range.end)
        .join("\n");
}

function isText(bytes: Buffer, mimeType: string | undefined): boolean {
  if (mimeType !== undefined && !/^text\/|[/+](?:json|xml|yaml|javascript|typescript)\b/i.test(mimeType)) return false;
  return isUtf8(bytes) && !bytes.includes(0);
}

const pdfType = "application/pdf";

/** The image formats that chat models take, and PDF, by their first bytes. */
function sniff(bytes: Buffer): string | undefined {
  const head = bytes.toString("latin1", 0, 12);
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(head)) return "image/gif";
  if (head.startsWith("%PDF-")) return pdfType;
  return head.startsWith("RIFF") && head.endsWith("WEBP") ? "image/webp" : undefined;
}

function attribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

function tooLarge(what: string, limit: number): HostError {
  return new HostError("ATTACHMENT_TOO_LARGE", `${what}: the limit is ${limit} bytes. Have a tool read the file instead.`);
}
