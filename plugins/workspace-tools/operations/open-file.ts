import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { openExactly } from "./folder-handle.ts";
import type { Place } from "./places.ts";
import { type DecodedText, decodeText } from "./text-encoding.ts";

/** Why something cannot be read as a file. */
export type FileFault = "missing" | "folder" | "special" | "unreadable";

export type Opened =
  | { readonly ok: true; readonly file: FileHandle; readonly size: number }
  | { readonly ok: false; readonly fault: FileFault };

/**
 * Opens a regular file for reading. A pipe or device is refused and cannot make us wait, and what has come to lie where the
 * place leads, or on the way there, is not read.
 */
export async function openFile({ real }: Pick<Place, "real">): Promise<Opened> {
  let file: FileHandle | undefined;
  try {
    file = await openExactly(real, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = await file.stat();
    if (stats.isFile()) return { ok: true, file, size: stats.size };
    await file.close();
    return { ok: false, fault: stats.isDirectory() ? "folder" : "special" };
  } catch (error) {
    await file?.close();
    return { ok: false, fault: faultOf(error) };
  }
}

function faultOf(error: unknown): FileFault {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ENOTDIR") return "missing";
  if (code === "EISDIR") return "folder";
  // What a socket answers to being opened.
  return code === "ENXIO" ? "special" : "unreadable";
}

/** The first bytes of a file, at most `max`. */
export async function readHead(file: FileHandle, max: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(max);
  let length = 0;
  while (length < max) {
    const { bytesRead } = await file.read(buffer, length, max - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

/** A file as a whole; undefined when it has more than `max` bytes, whatever it says of its size. */
export async function readWhole(file: FileHandle, size: number, max: number): Promise<Buffer | undefined> {
  if (size > max) return undefined;
  // One more than it says: then it is known whether it has grown. Files of the kernel's say 0.
  let buffer = await readHead(file, Math.min(max, Math.max(size, 4096)) + 1);
  if (buffer.length > Math.max(size, 4096)) buffer = await readHead(file, max + 1);
  return buffer.length > max ? undefined : buffer;
}

/** Larger files are not edited: a model has no business with all of them at once. */
export const maxEditedBytes: number = 20 * 1024 * 1024;

/** Why a file cannot be read as a text that could be written again. */
export type TextFault = FileFault | "too-large" | "binary" | "encoding";

export interface TextFile {
  readonly decoded: DecodedText;
  /** Its permissions. */
  readonly mode: number;
}

/** The text of a file that is to be edited, or why it cannot be. */
export async function readText(place: Place): Promise<TextFile | TextFault> {
  const opened = await openFile(place);
  if (!opened.ok) return opened.fault;
  try {
    const bytes = await readWhole(opened.file, opened.size, maxEditedBytes);
    if (bytes === undefined) return "too-large";
    const decoded = decodeText(bytes);
    if (decoded === undefined) return "binary";
    // Written again it would be another file, also where nobody touched it.
    return decoded.isExact ? { decoded, mode: (await opened.file.stat()).mode & 0o777 } : "encoding";
  } finally {
    await opened.file.close();
  }
}
