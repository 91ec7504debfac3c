import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { openExactly } from "./held-folder.ts";
import type { Place } from "./places.ts";

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
