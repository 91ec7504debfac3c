import { isUtf8 } from "node:buffer";
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, isOutOfFiles } from "../base/errors.ts";

type ReadFile =
  | {
      readonly ok: true;
      readonly bytes: Uint8Array;
      /** The whole text, including a byte order mark; invalid UTF-8 becomes U+FFFD. Decoded on each access. */
      readonly text: string;
      readonly isUtf8: boolean;
      /** The state of the file before it was read. Absent for a guarded file. */
      readonly stats?: Stats;
    }
  | { readonly ok: false; readonly diagnostic: Diagnostic };

type Refusal = Extract<ReadFile, { ok: false }>;

type ReadBytes = Refusal | { readonly ok: true; readonly bytes: Uint8Array; readonly stats?: Stats };

/**
 * Reads a regular file of limited size, synchronously, which is many times faster than a promise for small files. Pipes and
 * devices are refused without blocking. `FILE_MISSING`, `FILE_NOT_REGULAR`, `FILE_TOO_LARGE` or `FILE_UNREADABLE` are the other
 * failures. For a guarded file it returns the guard's answer. `scratch`, for callers that drop the bytes before they read again: memory
 * for a file that fits in it.
 */
export function readTextFile(path: string, maxBytes: number, guard?: FileGuard, scratch?: Buffer): ReadFile {
  const guarded = guard?.read(path);
  if (guarded?.ok === true && guarded.bytes.length > maxBytes) return tooLarge(path, maxBytes);
  const read: ReadBytes = guarded ?? readFileBytes(path, maxBytes, scratch);
  if (!read.ok) return read;
  return new ReadText(read.bytes, read.stats);
}

/** A class, because each object with an accessor of its own has a hidden class of its own. */
class ReadText {
  readonly ok = true;
  readonly bytes: Buffer;
  declare readonly stats?: Stats;

  constructor(bytes: Uint8Array, stats: Stats | undefined) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (stats !== undefined) this.stats = stats;
  }

  get text(): string {
    return this.bytes.toString("utf8");
  }

  get isUtf8(): boolean {
    return isUtf8(this.bytes);
  }
}

/** Like `readTextFile`, for binary files. */
export function readFileBytes(path: string, maxBytes: number, scratch?: Buffer): ReadBytes {
  try {
    // Without O_NONBLOCK, opening a pipe blocks until it has a writer.
    const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const stats = fstatSync(file);
      if (!stats.isFile())
        return refuse(path, "FILE_NOT_REGULAR", "This is not a regular file (a folder, pipe, socket or device). Use a file.");
      const bytes = stats.size > maxBytes ? undefined : readAll(file, stats.size, maxBytes, scratch);
      return bytes === undefined ? tooLarge(path, maxBytes) : { ok: true, bytes, stats };
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return refuse(path, ...explain(error));
  }
}

function tooLarge(path: string, maxBytes: number): Refusal {
  return refuse(path, "FILE_TOO_LARGE", `This file is larger than the limit of ${maxBytes} bytes. Split it, or make it smaller.`);
}

// The reported size is a hint: the file may grow during the read, and files in /proc report 0.
function readAll(file: number, expected: number, maxBytes: number, scratch?: Buffer): Buffer | undefined {
  let buffer = scratch !== undefined && expected < scratch.length ? scratch.subarray(0, expected + 1) : Buffer.allocUnsafe(expected + 1);
  let length = 0;
  for (;;) {
    const read = readSync(file, buffer, length, buffer.length - length, null);
    length += read;
    if (length > maxBytes) return undefined;
    // A regular file that ends where it ended when it was opened needs no second read to show that.
    if (read === 0 || (length === expected && length < buffer.length)) return buffer.subarray(0, length);
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(buffer.length * 2 + 4096, maxBytes + 1));
  }
}

function explain(error: unknown): [code: string, message: string] {
  const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
  if (code === "ENOENT" || code === "ENOTDIR") return ["FILE_MISSING", "This file does not exist."];
  // The error of opening a socket.
  if (code === "ENXIO" || code === "EISDIR")
    return ["FILE_NOT_REGULAR", "This is not a regular file (a folder, pipe, socket or device). Use a file."];
  if (isOutOfFiles(error)) return ["FILE_UNREADABLE", `This file cannot be read: ${errorMessage(error)}.`];
  return ["FILE_UNREADABLE", `This file cannot be read (${code}). Check its permissions.`];
}

function refuse(file: string, code: string, message: string): Refusal {
  return { ok: false, diagnostic: { severity: "error", code, message, file } };
}

/** The content of a guarded file, or the reason that it must not be used. */
export type GuardedRead = { readonly ok: true; readonly bytes: Uint8Array } | { readonly ok: false; readonly diagnostic: Diagnostic };

/** Answers reads of a folder that is being loaded from the checked bytes. */
export interface FileGuard {
  /** Undefined: the file is not guarded, and the caller reads it from disk. */
  read(file: string): GuardedRead | undefined;
}

/** One file of a checked folder. */
export interface CheckedFile {
  /** Size in bytes. */
  readonly size: number;
  /** `sha256:` and 64 hex digits, of the raw bytes. */
  readonly digest: string;
}

/**
 * The files of a folder that may be used because they were checked. A file is identified by the folder and its relative path;
 * the folder's path is never resolved again, so later changes of links on the path have no effect. Names are case-sensitive on
 * every system; composed and decomposed Unicode are equal.
 */
export interface CheckedTree extends FileGuard {
  /** The path of the folder at the time of the check. Paths of its files begin with it. */
  readonly folder: string;
  /** By relative path: forward slashes, Unicode NFC. */
  readonly files: ReadonlyMap<string, CheckedFile>;
  /** The relative path of a file, by its spelling alone. Undefined: it is the folder itself, or outside of it. */
  relative(file: string): string | undefined;
  /** The kind of the checked entry at a path. Undefined: no checked entry. */
  kindOf(path: string): "file" | "folder" | undefined;
  /** The checked bytes. Any other path is refused. */
  read(file: string): GuardedRead;
}
