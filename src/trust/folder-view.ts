import type { Dirent } from "node:fs";
import { dirname, sep } from "node:path";

/**
 * The content of a folder at the time of its check. The load reads from here, so that each file is read once and later changes
 * have no effect.
 */
export class FolderView {
  readonly #prefix: string;
  readonly #lists = new Map<string, readonly Dirent[]>();
  readonly #entries = new Map<string, Dirent>();
  readonly #hashes = new Map<string, string>();

  constructor(folder: string) {
    this.#prefix = folder + sep;
  }

  /** Undefined, also for links: the caller reads the disk. */
  kindOf(path: string): "file" | "folder" | "nothing" | undefined {
    const entry = this.#entries.get(path);
    if (entry === undefined) return this.#lists.has(dirname(path)) && path.startsWith(this.#prefix) && isExact ? "nothing" : undefined;
    if (entry.isFile()) return "file";
    return entry.isDirectory() ? "folder" : undefined;
  }

  /** Undefined: the folder is missing or was not read. */
  entriesOf(folder: string): readonly Dirent[] | undefined {
    return this.#lists.get(folder);
  }

  /**
   * sha256 of a file's text as 64 hex digits; undefined also if the hashed bytes include a byte order mark, which is not part
   * of the text.
   */
  hashOf(file: string): string | undefined {
    return this.#hashes.get(file);
  }

  /** Forgets everything after the load: from now on the disk is read. */
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

// On other systems a file is also found by other spellings of its name.
const isExact = process.platform !== "darwin" && process.platform !== "win32";
