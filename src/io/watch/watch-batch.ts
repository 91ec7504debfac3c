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
    const changes = this.#changes();
    this.#seen = new Map();
    return changes;
  }

  /** Takes the batch if it is the change of one file that existed before, and the caller accepts it. */
  takeOnly(accepts: (path: string) => boolean): readonly PathChange[] {
    const [only, ...others] = this.#changes();
    const isEdit = only?.kind === "changed" && !only.directory && others.length === 0;
    return isEdit && accepts(only.path) ? this.take() : [];
  }

  #changes(): PathChange[] {
    const changes: PathChange[] = [];
    for (const [path, { before, now, directory }] of this.#seen) {
      if (before || now) changes.push({ path, kind: !before ? "added" : now ? "changed" : "removed", directory });
    }
    return changes;
  }
}

interface SettlerOptions {
  /** Runs after `debounce` quiet milliseconds, at the latest `maxWait` after the first touch, with the number of touches. */
  readonly run: (touches: number) => void;
  readonly debounce: number;
  readonly maxWait: number;
  /** Runs once per burst, shortly after its first touch. */
  readonly runEarly?: ((touches: number) => void) | undefined;
}

// A save by an editor causes its events within a fraction of a millisecond.
const earlyMs = 2;

/** Waits for the end of a burst of changes. A file that is written continuously is still reported. */
export class Settler {
  readonly #options: SettlerOptions;
  #timer: NodeJS.Timeout | undefined;
  #early: NodeJS.Timeout | undefined;
  #touches = 0;
  #first = 0;
  #last = 0;

  constructor(options: SettlerOptions) {
    this.#options = options;
  }

  touch(): void {
    // One clock read per event and no timer traffic: a branch switch brings thousands.
    this.#last = performance.now();
    this.#touches++;
    if (this.#timer !== undefined) return;
    this.#first = this.#last;
    const { debounce, runEarly } = this.#options;
    this.#timer = setTimeout(() => this.#expire(), debounce);
    if (runEarly !== undefined && debounce > earlyMs) this.#early = setTimeout(() => runEarly(this.#touches), earlyMs);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#early);
    this.#timer = undefined;
  }

  #expire(): void {
    const { debounce, maxWait, run } = this.#options;
    const now = performance.now();
    const due = Math.min(this.#last + debounce, this.#first + Math.max(debounce, maxWait));
    if (due - now >= 1) {
      this.#timer = setTimeout(() => this.#expire(), due - now);
      return;
    }
    const touches = this.#touches;
    clearTimeout(this.#early);
    this.#timer = undefined;
    this.#touches = 0;
    run(touches);
  }
}
