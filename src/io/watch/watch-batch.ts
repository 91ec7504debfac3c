/** One change. `path` begins with the root as the caller spelled it. */
export interface PathChange {
  readonly path: string;
  /** A "changed" directory has been replaced by another with the same name. */
  readonly kind: "added" | "changed" | "removed";
  readonly directory: boolean;
}

interface Seen {
  readonly before: boolean;
  now: boolean;
  directory: boolean;
}

/**
 * The changes since the last `take`, one entry per path. Editors replace files by rename, and version control by unlink and
 * create: both become one "changed". A path that appeared and disappeared in between is not reported.
 */
export class ChangeBatch {
  #seen = new Map<string, Seen>();

  report(kind: PathChange["kind"], path: string, directory: boolean): void {
    const now = kind !== "removed";
    const seen = this.#seen.get(path);
    if (seen === undefined) {
      this.#seen.set(path, { before: kind !== "added", now, directory });
      return;
    }
    seen.now = now;
    // A folder that was replaced by a file is reported as a file.
    if (now) seen.directory = directory;
  }

  take(): readonly PathChange[] {
    const changes: PathChange[] = [];
    for (const [path, { before, now, directory }] of this.#seen) {
      if (before || now) changes.push({ path, kind: !before ? "added" : now ? "changed" : "removed", directory });
    }
    this.#seen = new Map();
    return changes;
  }
}

/**
 * Runs after `debounce` quiet milliseconds, at the latest `maxWait` after the first touch, so that a file that is written
 * continuously is still reported.
 */
export class Settler {
  readonly #run: (touches: number) => void;
  readonly #debounce: number;
  readonly #maxWait: number;
  #timer: NodeJS.Timeout | undefined;
  #touches = 0;
  #first = 0;
  #last = 0;

  constructor(run: (touches: number) => void, debounce: number, maxWait: number) {
    this.#run = run;
    this.#debounce = debounce;
    this.#maxWait = Math.max(debounce, maxWait);
  }

  touch(): void {
    // One clock read per event and no timer traffic: a branch switch brings thousands.
    this.#last = performance.now();
    this.#touches++;
    if (this.#timer !== undefined) return;
    this.#first = this.#last;
    this.#timer = setTimeout(() => this.#expire(), this.#debounce);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #expire(): void {
    const now = performance.now();
    const due = Math.min(this.#last + this.#debounce, this.#first + this.#maxWait);
    if (due - now >= 1) {
      this.#timer = setTimeout(() => this.#expire(), due - now);
      return;
    }
    const touches = this.#touches;
    this.#timer = undefined;
    this.#touches = 0;
    this.#run(touches);
  }
}
