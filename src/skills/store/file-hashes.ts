import { hash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";

const largest = 16 * 1024 * 1024;
// File systems keep times in steps of up to ten milliseconds, behind our clock.
const clockStep = 12;

/** Remembers what files contained when they were read, to tell an edit from a touch. */
export class FileHashes {
  readonly #known = new Map<string, string>();

  /** `known`: the hash of these bytes, where somebody has made it already. */
  record(file: string, bytes: Uint8Array, known?: string): void {
    this.#known.set(file, known ?? digest(bytes));
  }

  /**
   * For a file that a module loader read at some time since `start` (milliseconds of `Date.now()`): records the hash that
   * the loader knows. Without one, what the file holds now if it has held that since before; else it counts as changed.
   */
  recordRead(file: string, known: string | undefined, start: number): void {
    const now = known ?? contentHash(file);
    if (known !== undefined) this.#known.set(file, known);
    else if (now !== undefined && ctimeOf(file) + clockStep < start) this.#known.set(file, now);
    else this.#known.delete(file);
  }

  /** Whether a file differs from what was recorded of it; what was recorded is brought up to date. Unknown files differ. */
  changed(file: string): boolean {
    const before = this.#known.get(file);
    if (before === undefined) return true;
    const now = contentHash(file);
    if (now === undefined) this.#known.delete(file);
    else this.#known.set(file, now);
    return before !== now;
  }

  forget(file: string): void {
    this.#known.delete(file);
  }
}

function contentHash(file: string): string | undefined {
  try {
    const stat = statSync(file);
    return stat.isFile() && stat.size <= largest ? digest(readFileSync(file)) : undefined;
  } catch {
    // Not there any more.
    return undefined;
  }
}

function ctimeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.ctimeMs ?? Number.POSITIVE_INFINITY;
}

/** As module loaders do it: sha256 of the text, for which a byte order mark does not count. */
function digest(bytes: Uint8Array): string {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return hash("sha256", hasMark ? bytes.subarray(3) : bytes, "hex");
}
