import { isUtf8 } from "node:buffer";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, isOutOfFiles } from "../base/errors.ts";

type ReadFile =
  | {
      readonly ok: true;
      readonly bytes: Uint8Array;
      /** As it is, byte order mark included; what is not UTF-8 shows as U+FFFD. */
      readonly text: string;
      readonly isUtf8: boolean;
    }
  | { readonly ok: false; readonly diagnostic: Diagnostic };

type Refusal = Extract<ReadFile, { ok: false }>;

type ReadBytes = Refusal | { readonly ok: true; readonly bytes: Uint8Array };

/**
 * Reads a regular file of limited size, synchronously: for small files that is many times quicker than a promise. A
 * pipe or a device is refused and cannot make it wait. `FILE_MISSING`, `FILE_NOT_REGULAR`, `FILE_TOO_LARGE` or
 * `FILE_UNREADABLE` say what else was wrong. Of a file that is guarded it gives what the guard does.
 */
export function readTextFile(path: string, maxBytes: number, guard?: FileGuard): ReadFile {
  const guarded = guard?.read(path);
  if (guarded?.ok === true && guarded.bytes.length > maxBytes) return tooLarge(path, maxBytes);
  const read = guarded ?? readFileBytes(path, maxBytes);
  if (!read.ok) return read;
  const bytes = Buffer.from(read.bytes.buffer, read.bytes.byteOffset, read.bytes.byteLength);
  return { ok: true, bytes, text: bytes.toString("utf8"), isUtf8: isUtf8(bytes) };
}

/** The same, for files that need not be text. */
export function readFileBytes(path: string, maxBytes: number): ReadBytes {
  try {
    // Opening a pipe waits for somebody to write to it, unless it is told not to.
    const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      return readOpen(file, path, maxBytes);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return refuse(path, ...explain(error));
  }
}

function readOpen(file: number, path: string, maxBytes: number): ReadBytes {
  const stats = fstatSync(file);
  if (!stats.isFile())
    return refuse(path, "FILE_NOT_REGULAR", "This is not a regular file (a folder, pipe, socket or device). Use a file.");
  const bytes = stats.size > maxBytes ? undefined : readAll(file, stats.size, maxBytes);
  return bytes === undefined ? tooLarge(path, maxBytes) : { ok: true, bytes };
}

function tooLarge(path: string, maxBytes: number): Refusal {
  return refuse(path, "FILE_TOO_LARGE", `This file is larger than the limit of ${maxBytes} bytes. Split it, or make it smaller.`);
}

// The size is only what the file says of itself: it may grow meanwhile, and files of the kernel's say 0.
function readAll(file: number, expected: number, maxBytes: number): Buffer | undefined {
  let buffer = Buffer.allocUnsafe(expected + 1);
  let length = 0;
  for (;;) {
    const read = readSync(file, buffer, length, buffer.length - length, null);
    length += read;
    if (length > maxBytes) return undefined;
    if (read === 0) return buffer.subarray(0, length);
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(buffer.length * 2 + 4096, maxBytes + 1));
  }
}

function explain(error: unknown): [code: string, message: string] {
  const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
  if (code === "ENOENT" || code === "ENOTDIR") return ["FILE_MISSING", "This file does not exist."];
  // What a socket answers to being opened.
  if (code === "ENXIO" || code === "EISDIR")
    return ["FILE_NOT_REGULAR", "This is not a regular file (a folder, pipe, socket or device). Use a file."];
  if (isOutOfFiles(error)) return ["FILE_UNREADABLE", `This file cannot be read: ${errorMessage(error)}.`];
  return ["FILE_UNREADABLE", `This file cannot be read (${code}). Check its permissions.`];
}

function refuse(file: string, code: string, message: string): Refusal {
  return { ok: false, diagnostic: { severity: "error", code, message, file } };
}

/** What a guarded file holds, or why it may not be used. */
export type GuardedRead = { readonly ok: true; readonly bytes: Uint8Array } | { readonly ok: false; readonly diagnostic: Diagnostic };

/** Answers reads of a folder that is being loaded with the bytes that were checked. */
export interface FileGuard {
  /** Undefined: the guard does not decide about this file, and the caller reads it from the disk. */
  read(file: string): GuardedRead | undefined;
}

/** One file of a checked folder. */
export interface CheckedFile {
  /** In bytes. */
  readonly size: number;
  /** `sha256:` and 64 hex digits, of the bytes as they are. */
  readonly digest: string;
}

/**
 * The files of a folder that may be used because they were checked. A file is identified by the folder and its relative path;
 * the folder's path is never resolved again, so it does not matter what the path leads to after the check. Names are exact:
 * case counts on every system, and composed and decomposed Unicode are one spelling.
 */
export interface CheckedTree extends FileGuard {
  /** The path that the folder was checked under. Paths of its files begin with it. */
  readonly folder: string;
  /** By relative path: forward slashes, Unicode NFC. */
  readonly files: ReadonlyMap<string, CheckedFile>;
  /** The relative path of a file, by its spelling alone. Undefined: it is the folder itself, or outside of it. */
  relative(file: string): string | undefined;
  /** What the checked folder held at a path. Undefined: nothing that was checked. */
  kindOf(path: string): "file" | "folder" | undefined;
  /** The checked bytes. Whatever else the path leads to is refused. */
  read(file: string): GuardedRead;
}
