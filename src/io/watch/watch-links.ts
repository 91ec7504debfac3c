import { readlinkSync } from "node:fs";
import { basename, dirname, isAbsolute, join, parse, sep } from "node:path";
import type { ChangeBatch } from "./watch-batch.ts";
import {
  type HintListener,
  type Identity,
  identityOf,
  type Opened,
  openDirectoryWatch,
  sameIdentity,
  stampOf,
  tryLstat,
  tryStat,
} from "./watch-native.ts";

/** Watches the target of a path until it is disposed of. */
export interface Resolution extends Disposable {
  /** Determines again which links and directories the path goes through. To be called after each hint. */
  refresh(): void;
}

interface Step {
  readonly directory: string;
  readonly name: string;
}

interface Interest {
  readonly hit: (certain: boolean) => void;
}

interface Holder {
  readonly names: Map<string, Set<Interest>>;
  identity: Identity | undefined;
  watch: { close(): void } | undefined;
}

const maxLinks = 40;

/**
 * Watches paths instead of directories: the folder of each link on the way, and the folder of the final target, or its nearest
 * existing ancestor. This detects a link that is changed, a target that is replaced, and a path that is created later. Paths
 * share the watched folders.
 */
export class PathResolutions {
  readonly #holders = new Map<string, Holder>();
  readonly #onLimit: (code: string, path: string) => void;
  readonly #polled = new Set<string>();

  constructor(onLimit: (code: string, path: string) => void) {
    this.#onLimit = onLimit;
  }

  get size(): number {
    return this.#holders.size;
  }

  get polled(): number {
    return this.#polled.size;
  }

  follow(path: string, onHint: () => void): Resolution {
    let steps: readonly Step[] = [];
    let stamp = stampAt(path);
    const interest: Interest = {
      hit: (certain) => {
        const previous = stamp;
        stamp = stampAt(path);
        if (certain || stamp !== previous) onHint();
      },
    };
    const move = (next: readonly Step[]): void => {
      for (const step of next) {
        let holder = this.#holders.get(step.directory);
        if (holder === undefined) {
          holder = { names: new Map(), identity: undefined, watch: undefined };
          this.#holders.set(step.directory, holder);
        }
        const interests = holder.names.get(step.name) ?? new Set();
        holder.names.set(step.name, interests.add(interest));
        this.#open(step.directory, holder);
      }
      const kept = new Set(next.map(keyOf));
      for (const step of steps) if (!kept.has(keyOf(step))) this.#release(step, interest);
      steps = next;
    };
    const refresh = (): void => {
      // The steps may change between reading and watching them: finished when a second reading returns the same ones.
      for (let round = 0; round < 8; round++) {
        const before = steps.map(keyOf).join("\n");
        move(stepsOf(path));
        if (steps.map(keyOf).join("\n") === before) return;
      }
    };
    refresh();
    return { refresh, [Symbol.dispose]: () => move([]) };
  }

  /** For folders without a watch: checks whether the target of each path has changed. */
  poll(): void {
    for (const directory of [...this.#polled]) {
      const holder = this.#holders.get(directory);
      if (holder === undefined) continue;
      this.#open(directory, holder);
      for (const interest of allOf(holder)) interest.hit(false);
    }
  }

  #release(step: Step, interest: Interest): void {
    const holder = this.#holders.get(step.directory);
    const interests = holder?.names.get(step.name);
    if (holder === undefined || interests === undefined) return;
    interests.delete(interest);
    if (interests.size === 0) holder.names.delete(step.name);
    if (holder.names.size > 0) return;
    holder.watch?.close();
    this.#polled.delete(step.directory);
    this.#holders.delete(step.directory);
  }

  // A watch belongs to a directory, not to its path: after the directory was replaced, the old watch receives no events.
  #open(directory: string, holder: Holder): void {
    const stats = tryStat(directory);
    if (stats === "missing" || stats === "unsure") return;
    const identity = identityOf(stats);
    if (holder.watch !== undefined && holder.identity !== undefined && sameIdentity(identity, holder.identity)) return;
    holder.watch?.close();
    holder.identity = identity;
    const opened = openDirectoryWatch(directory, {
      hint: (name) => {
        // The removal of the directory itself is reported under its own name.
        const isWholeDirectory = name === undefined || name === basename(directory);
        for (const interest of isWholeDirectory ? allOf(holder) : [...(holder.names.get(name) ?? [])]) interest.hit(true);
      },
      lost: () => this.#lose(directory, holder),
    });
    holder.watch = opened.kind === "open" ? opened.watch : undefined;
    if (opened.kind === "open") this.#polled.delete(directory);
    else this.#polled.add(directory);
    if (opened.kind === "limit") this.#onLimit(opened.code, directory);
  }

  #lose(directory: string, holder: Holder): void {
    holder.watch = undefined;
    this.#polled.add(directory);
    for (const interest of allOf(holder)) interest.hit(true);
  }
}

function allOf(holder: Holder): Interest[] {
  return [...holder.names.values()].flatMap((interests) => [...interests]);
}

function keyOf(step: Step): string {
  return join(step.directory, step.name);
}

function stampAt(path: string): string {
  const stats = tryStat(path);
  return typeof stats === "string" ? stats : stampOf(stats);
}

function stepsOf(path: string): readonly Step[] {
  const steps: Step[] = [];
  let at = parse(path).root;
  let links = 0;
  const rest = segmentsOf(path);
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const next = join(at, name);
    const stats = name === ".." ? "missing" : tryLstat(next);
    if (name === "..") at = dirname(at);
    else if (typeof stats === "string") return [...steps, { directory: at, name }];
    else if (!stats.isSymbolicLink()) at = next;
    else {
      // Links directly under the file system's root belong to the system (/tmp, /var), and watching "/" is expensive.
      if (at !== parse(at).root) steps.push({ directory: at, name });
      const target = linkTarget(next);
      if (target === undefined || ++links > maxLinks) return steps;
      if (isAbsolute(target)) at = parse(target).root;
      rest.unshift(...segmentsOf(target));
    }
  }
  return at === dirname(at) ? steps : [...steps, { directory: dirname(at), name: basename(at) }];
}

function segmentsOf(path: string): string[] {
  return path
    .slice(parse(path).root.length)
    .split(sep === "\\" ? /[\\/]+/ : /\/+/)
    .filter((name) => name !== "" && name !== ".");
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // It was replaced in between; the watch on its folder reports that.
    return undefined;
  }
}

export type WatchProblem = "limit" | "unreadable" | "too-many" | "too-deep";

/** State shared by the trees of one watcher. */
export interface TreeContext {
  readonly batch: ChangeBatch;
  readonly resolutions: PathResolutions;
  readonly budget: { directories: number; readonly maxDirectories: number };
  /** The path is a function, because the name alone decides most cases. */
  ignore(name: string, path: () => string): boolean;
  /** Schedules a `settle` after a hint. */
  touch(): void;
  problem(kind: WatchProblem, path: string, code: string): void;
}

/** The source of hints about one root, while the root exists. */
export interface HintFeed extends Disposable {
  /** Starts hints about one directory. A directory that cannot be watched, or not yet, is polled, and `open` is called again. */
  open(path: string, listener: HintListener): Opened;
}

export type CreateFeed = (path: string, onHint: (segments: readonly string[]) => void) => HintFeed;

/** One native watch per directory. */
export const nativeFeed: HintFeed = {
  open: openDirectoryWatch,
  [Symbol.dispose]: () => {},
};
