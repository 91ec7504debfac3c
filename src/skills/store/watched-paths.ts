import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { isInside } from "../../io/confine-path.ts";
import type { TreeWatcher } from "../../io/watch/watch-tree.ts";

/**
 * What is watched for the skills: their roots, and the folders of files that they are made of and that lie elsewhere,
 * such as a helper that several skills import. Knows which skill folders such a file belongs to.
 */
export class SkillWatch {
  readonly #watcher: TreeWatcher | undefined;
  readonly #bases = new Set<string>();
  readonly #outsideOf = new Map<string, Outside>();
  readonly #foldersOf = new Map<string, Set<string>>();
  /** How many skill folders need a directory. */
  readonly #needs = new Map<string, number>();
  /** Those of them that no root covers. */
  readonly #extra = new Set<string>();

  /** Those that only the listings of roots need, and whether they are watched with all that is below. */
  #listed: ReadonlyMap<string, boolean> = new Map();

  constructor(watcher: TreeWatcher | undefined) {
    this.#watcher = watcher;
  }

  get isWatching(): boolean {
    return this.#watcher !== undefined;
  }

  addRoot(base: string): void {
    this.#bases.add(base);
    // A folder that was watched without what is below it would keep the root from being watched as a whole.
    for (const directory of this.#extra) if (isInside(base, directory)) this.#drop(directory);
    this.#watcher?.add(base);
  }

  removeRoot(base: string): void {
    this.#bases.delete(base);
    this.#watcher?.remove(base);
    for (const directory of this.#needs.keys()) this.#cover(directory);
  }

  /** Replaces what is watched beside the roots: folders, with all that is below or only their own entries. */
  setListed(wanted: ReadonlyMap<string, boolean>): void {
    const isRoot = (path: string): boolean => this.#bases.has(path);
    for (const [path, isWhole] of this.#listed) if (wanted.get(path) !== isWhole && !isRoot(path)) this.#watcher?.remove(path);
    for (const [path, isWhole] of wanted) {
      if (this.#listed.get(path) !== isWhole && !isRoot(path)) this.#watcher?.add(path, isWhole ? {} : { depth: 0 });
    }
    this.#listed = wanted;
  }

  /** Replaces what is known of a skill folder: all files that it is made of. */
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

  /** The skill folders that are made of a file which does not lie in them. */
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

/** The files of a skill that do not lie in its folder, and the directories that must be watched for them. */
interface Outside {
  readonly files: ReadonlySet<string>;
  readonly directories: ReadonlySet<string>;
}

const nothing: Outside = { files: new Set(), directories: new Set() };

/** A folder that is a link is watched through the link; installed packages are not watched. */
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
    // Gone by now.
    return path;
  }
}
