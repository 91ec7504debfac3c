import type { Dirent } from "node:fs";
import { dirname, sep } from "node:path";

/**
 * What a folder held when it was checked. Whoever loads it looks here: nothing is looked up twice, and what came to lie
 * there since makes no difference.
 */
export class FolderView {
  readonly #prefix: string;
  readonly #lists = new Map<string, readonly Dirent[]>();
  readonly #entries = new Map<string, Dirent>();
  readonly #hashes = new Map<string, string>();

  constructor(folder: string) {
    this.#prefix = folder + sep;
  }

  /** Undefined, as for links: whoever wants to know looks at the disk. */
  kindOf(path: string): "file" | "folder" | "nothing" | undefined {
    const entry = this.#entries.get(path);
    if (entry === undefined) return this.#lists.has(dirname(path)) && path.startsWith(this.#prefix) && isExact ? "nothing" : undefined;
    if (entry.isFile()) return "file";
    return entry.isDirectory() ? "folder" : undefined;
  }

  /** Undefined: there is no such folder, or it was not looked into. */
  entriesOf(folder: string): readonly Dirent[] | undefined {
    return this.#lists.get(folder);
  }

  /** sha256 of a file's text as 64 hex digits; undefined also where a byte order mark, which is none of the text, was hashed as well. */
  hashOf(file: string): string | undefined {
    return this.#hashes.get(file);
  }

  /** Forgets it all: the folder is loaded, and from now on it is looked up on the disk. */
  release(): void {
    for (const map of [this.#lists, this.#entries, this.#hashes]) map.clear();
  }

  noteList(folder: string, entries: readonly Dirent[]): void {
    this.#lists.set(folder, entries);
    for (const entry of entries) this.#entries.set(folder + sep + entry.name, entry);
  }

  noteRead(file: string, bytes: Uint8Array, digest: string): void {
    if (bytes[0] !== 0xef || bytes[1] !== 0xbb || bytes[2] !== 0xbf) this.#hashes.set(file, digest.slice("sha256:".length));
  }
}

// Elsewhere a file is also found by another spelling of its name.
const isExact = process.platform !== "darwin" && process.platform !== "win32";
