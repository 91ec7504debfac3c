import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { openExactly } from "./folder-handle.ts";
import type { Place } from "./places.ts";
import { type DecodedText, decodeText } from "./text-encoding.ts";

/** Why a path cannot be read as a file. */
export type FileFault = "missing" | "folder" | "special" | "unreadable";

export type Opened =
  | { readonly ok: true; readonly file: FileHandle; readonly size: number }
  | { readonly ok: false; readonly fault: FileFault };

/**
 * Opens a regular file for reading. Refuses a pipe or device without waiting for it, and a file that has replaced the one
 * at the place or a folder on its path.
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
  // Opening a socket fails with this code.
  return code === "ENXIO" ? "special" : "unreadable";
}

/** Reads at most `max` bytes from the beginning of a file. */
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

/** Reads a whole file. Undefined: it has more than `max` bytes, whatever size it reports. */
export async function readWhole(file: FileHandle, size: number, max: number): Promise<Buffer | undefined> {
  if (size > max) return undefined;
  // One byte more than its size shows whether it has grown. Kernel files report size 0.
  let buffer = await readHead(file, Math.min(max, Math.max(size, 4096)) + 1);
  if (buffer.length > Math.max(size, 4096)) buffer = await readHead(file, max + 1);
  return buffer.length > max ? undefined : buffer;
}

/** Larger files are not edited. */
export const maxEditedBytes: number = 20 * 1024 * 1024;

/** Why a file cannot be read as text that can be written back. */
export type TextFault = FileFault | "too-large" | "binary" | "encoding";

export interface TextFile {
  readonly decoded: DecodedText;
  /** Its permission bits. */
  readonly mode: number;
}

/** Reads a file for editing, or returns the reason why it cannot be edited. */
export async function readText(place: Place): Promise<TextFile | TextFault> {
  const opened = await openFile(place);
  if (!opened.ok) return opened.fault;
  try {
    const bytes = await readWhole(opened.file, opened.size, maxEditedBytes);
    if (bytes === undefined) return "too-large";
    const decoded = decodeText(bytes);
    if (decoded === undefined) return "binary";
    // Writing it back would change bytes that the edit does not touch.
    return decoded.isExact ? { decoded, mode: (await opened.file.stat()).mode & 0o777 } : "encoding";
  } finally {
    await opened.file.close();
  }
}
