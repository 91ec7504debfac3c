import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { isInside } from "../../io/confine-path.ts";
import type { TreeWatcher } from "../../io/watch/watch-tree.ts";

/**
 * The watched folders: the roots, and folders elsewhere with files that skills use, such as a shared helper. Knows which skill folders
 * use such a file.
 */
export class SkillWatch {
  readonly #watcher: TreeWatcher | undefined;
  readonly #bases = new Set<string>();
  readonly #outsideOf = new Map<string, Outside>();
  readonly #foldersOf = new Map<string, Set<string>>();
  /** The number of skill folders that need each directory. */
  readonly #needs = new Map<string, number>();
  /** The needed directories that no root covers. */
  readonly #extra = new Set<string>();

  /** The directories that only root listings need; true: with everything below. */
  #listed: ReadonlyMap<string, boolean> = new Map();

  constructor(watcher: TreeWatcher | undefined) {
    this.#watcher = watcher;
  }

  get isWatching(): boolean {
    return this.#watcher !== undefined;
  }

  addRoot(base: string): void {
    this.#bases.add(base);
    // A folder that is watched without its descendants would keep the root from being watched recursively.
    for (const directory of this.#extra) if (isInside(base, directory)) this.#drop(directory);
    this.#watcher?.add(base);
  }

  removeRoot(base: string): void {
    this.#bases.delete(base);
    this.#watcher?.remove(base);
    for (const directory of this.#needs.keys()) this.#cover(directory);
  }

  /** Replaces the further watched folders: true with everything below, false with only their own entries. */
  setListed(wanted: ReadonlyMap<string, boolean>): void {
    const isRoot = (path: string): boolean => this.#bases.has(path);
    for (const [path, isWhole] of this.#listed) if (wanted.get(path) !== isWhole && !isRoot(path)) this.#watcher?.remove(path);
    for (const [path, isWhole] of wanted) {
      if (this.#listed.get(path) !== isWhole && !isRoot(path)) this.#watcher?.add(path, isWhole ? {} : { depth: 0 });
    }
    this.#listed = wanted;
  }

  /** Replaces the set of files that a skill folder uses. */
  setFiles(folder: string, files: Iterable<string>): void {
    const now = outsideOf(folder, files);
    const before = this.#outsideOf.get(folder) ?? nothing;
    if (now.files.size > 0) this.#outsideOf.set(folder, now);
    else this.#outsideOf.delete(folder);
    for (const file of before.files)
      if (!now.files.has(file)) {
        const folders = this.#foldersOf.get(file);
        folders?.delete(folder);
        if (folders?.size === 0) this.#foldersOf.delete(file);
      }
    for (const file of now.files) this.#foldersOf.set(file, (this.#foldersOf.get(file) ?? new Set()).add(folder));
    for (const directory of now.directories)
      if (!before.directories.has(directory)) {
        this.#needs.set(directory, (this.#needs.get(directory) ?? 0) + 1);
        this.#cover(directory);
      }
    for (const directory of before.directories)
      if (!now.directories.has(directory)) {
        const left = (this.#needs.get(directory) ?? 1) - 1;
        if (left > 0) this.#needs.set(directory, left);
        else this.#needs.delete(directory);
        if (left <= 0 && this.#extra.has(directory)) this.#drop(directory);
      }
  }

  /** The skill folders that use a file outside of themselves. */
  foldersOf(file: string): ReadonlySet<string> {
    return this.#foldersOf.get(file) ?? new Set();
  }

  #cover(directory: string): void {
    if (this.#extra.has(directory) || [...this.#bases].some((base) => isInside(base, directory))) return;
    this.#extra.add(directory);
    this.#watcher?.add(directory, { depth: 0 });
  }

  #drop(directory: string): void {
    this.#extra.delete(directory);
    this.#watcher?.remove(directory);
  }
}

/** The files of a skill outside of its folder, and the directories to watch for them. */
interface Outside {
  readonly files: ReadonlySet<string>;
  readonly directories: ReadonlySet<string>;
}

const nothing: Outside = { files: new Set(), directories: new Set() };

/** A linked folder is watched through the link; installed packages are not watched. */
function outsideOf(folder: string, all: Iterable<string>): Outside {
  const files = new Set([...all].filter((file) => !isInside(folder, file)));
  if (files.size === 0) return nothing;
  const real = realPathOf(folder);
  const directories = [...files].map((file) => dirname(file));
  return { files, directories: new Set(directories.filter((directory) => !isInside(real, directory) && !isInstalled(directory))) };
}

function isInstalled(directory: string): boolean {
  return /[\\/]node_modules(?:[\\/]|$)/.test(directory);
}

function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // The path no longer exists.
    return path;
  }
}
