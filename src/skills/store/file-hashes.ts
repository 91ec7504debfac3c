import { hash } from "node:crypto";
import { readFileSync, type Stats, statSync } from "node:fs";

const largest = 16 * 1024 * 1024;
// File systems store times in steps of up to ten milliseconds, rounded down.
const clockStep = 12;
/** The length of the end of a file that is compared. An edit near the end of a small file must not count as another end. */
const endLength = ({ length }: Uint8Array): number => Math.min(length, 64, Math.max(2, length >> 4));

/** Remembers the hashes of files when they were read, to distinguish an edit from a touch. */
export class FileHashes {
  readonly #known = new Map<string, string>();
  /** The last bytes of files that were edited. */
  readonly #ends = new Map<string, Buffer>();

  /** Returns the hash. `known`: the hash of these bytes if it is already computed. */
  record(file: string, bytes: Uint8Array, known?: string): string {
    const recorded = known ?? digest(bytes);
    this.#known.set(file, recorded);
    return recorded;
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
    const content = contentOf(file);
    const now = content && digest(content);
    if (content === undefined || now === undefined) {
      this.forget(file);
      return true;
    }
    this.#known.set(file, now);
    this.#ends.set(file, Buffer.from(content.subarray(content.length - endLength(content))));
    return before !== now;
  }

  /**
   * Whether an edited file is written completely, as far as can be known: it still ends as it did after the previous edit. A file that is
   * being written has its end last.
   */
  isComplete(file: string): boolean {
    const end = this.#ends.get(file);
    if (end === undefined || end.length === 0) return false;
    return contentOf(file)?.subarray(-end.length).equals(end) === true;
  }

  forget(file: string): void {
    this.#known.delete(file);
    this.#ends.delete(file);
  }
}

/** The states that files and folders had before they were read, to find out without reading whether they are still the same. */
export class ReadStates {
  readonly #states = new Map<string, PathState | undefined>();
  readonly #start: number;

  /** `start`: a time before the first read, in milliseconds of `Date.now()`. */
  constructor(start: number) {
    this.#start = start;
  }

  record(path: string, stats: Stats | undefined): void {
    this.#states.set(path, stats === undefined || mayChangeUnseen(stats, this.#start) ? undefined : new PathState(stats));
  }

  /** Whether all are certainly the same. */
  get areSame(): boolean {
    for (const [path, before] of this.#states) if (before?.isThatOf(path) !== true) return false;
    return true;
  }
}

/** Like `stateOf`, without a text for each comparison: a reload compares thousands. */
class PathState {
  readonly #dev: number;
  readonly #ino: number;
  readonly #size: number;
  readonly #mtimeMs: number;
  readonly #ctimeMs: number;

  constructor({ dev, ino, size, mtimeMs, ctimeMs }: Stats) {
    this.#dev = dev;
    this.#ino = ino;
    this.#size = size;
    this.#mtimeMs = mtimeMs;
    this.#ctimeMs = ctimeMs;
  }

  isThatOf(path: string): boolean {
    try {
      const now = statSync(path, { throwIfNoEntry: false });
      return (
        now !== undefined &&
        now.ctimeMs === this.#ctimeMs &&
        now.mtimeMs === this.#mtimeMs &&
        now.size === this.#size &&
        now.ino === this.#ino &&
        now.dev === this.#dev
      );
    } catch {
      // It cannot be reached.
      return false;
    }
  }
}

/** A write within one step of the file system's clock may leave the times as they are. Some file systems count whole seconds. */
function mayChangeUnseen({ mtimeMs, ctimeMs }: Stats, start: number): boolean {
  const step = ctimeMs % 1000 === 0 ? 2000 : clockStep;
  return Math.max(mtimeMs, ctimeMs) + step >= start;
}

/**
 * The state of a file or folder, which differs after each change. Undefined: it is so young that a change may leave it as it is. `start`:
 * a time before it was read, in milliseconds of `Date.now()`.
 */
export function settledState(stats: Stats, start: number): string | undefined {
  return mayChangeUnseen(stats, start) ? undefined : stateOf(stats);
}

export function stateOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;
}

function contentHash(file: string): string | undefined {
  const content = contentOf(file);
  return content && digest(content);
}

function contentOf(file: string): Buffer | undefined {
  try {
    const stat = statSync(file);
    return stat.isFile() && stat.size <= largest ? readFileSync(file) : undefined;
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
