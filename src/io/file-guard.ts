import type { Diagnostic } from "../base/diagnostic.ts";

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
