import { hash } from "node:crypto";
import { readFileSync, type Stats, statSync } from "node:fs";

const largest = 16 * 1024 * 1024;
// File systems store times in steps of up to ten milliseconds, rounded down.
const clockStep = 12;

/** Remembers the hashes of files when they were read, to distinguish an edit from a touch. */
export class FileHashes {
  readonly #known = new Map<string, string>();

  /** `known`: the hash of these bytes if it is already computed. */
  record(file: string, bytes: Uint8Array, known?: string): void {
    this.#known.set(file, known ?? digest(bytes));
  }

  /**
   * For a file that a module loader read after `start` (milliseconds of `Date.now()`): records the hash that the loader knows. Without
   * one, records the current content if it is older than `start`; otherwise the file counts as changed.
   */
  recordRead(file: string, known: string | undefined, start: number): void {
    const now = known ?? contentHash(file);
    if (known !== undefined) this.#known.set(file, known);
    else if (now !== undefined && ctimeOf(file) + clockStep < start) this.#known.set(file, now);
    else this.#known.delete(file);
  }

  /** Whether a file differs from its recorded hash, which is updated. Unknown files count as changed. */
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

/** The states that files and folders had before they were read, to find out without reading whether they are still the same. */
export class ReadStates {
  readonly #states = new Map<string, string | undefined>();
  readonly #start: number;

  /** `start`: a time before the first read, in milliseconds of `Date.now()`. */
  constructor(start: number) {
    this.#start = start;
  }

  record(path: string, stats: Stats | undefined): void {
    this.#states.set(path, stats === undefined || mayChangeUnseen(stats, this.#start) ? undefined : stateOf(stats));
  }

  /** Whether all are certainly the same. */
  get areSame(): boolean {
    for (const [path, before] of this.#states) if (before === undefined || before !== currentState(path)) return false;
    return true;
  }
}

/** A write within one step of the file system's clock may leave the times as they are. Some file systems count whole seconds. */
function mayChangeUnseen({ mtimeMs, ctimeMs }: Stats, start: number): boolean {
  const step = ctimeMs % 1000 === 0 ? 2000 : clockStep;
  return Math.max(mtimeMs, ctimeMs) + step >= start;
}

function stateOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;
}

function currentState(path: string): string | undefined {
  try {
    return stateOf(statSync(path));
  } catch {
    // It no longer exists, or cannot be reached.
    return undefined;
  }
}

function contentHash(file: string): string | undefined {
  try {
    const stat = statSync(file);
    return stat.isFile() && stat.size <= largest ? digest(readFileSync(file)) : undefined;
  } catch {
    // The file no longer exists.
    return undefined;
  }
}

function ctimeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.ctimeMs ?? Number.POSITIVE_INFINITY;
}

/** As module loaders compute it: sha256 of the text without a byte order mark. */
function digest(bytes: Uint8Array): string {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return hash("sha256", hasMark ? bytes.subarray(3) : bytes, "hex");
}
