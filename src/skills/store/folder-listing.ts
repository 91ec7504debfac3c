import { type Dir, lstatSync, opendirSync, readdirSync, type Stats } from "node:fs";
import { join, sep } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { Emitter } from "../../base/emitter.ts";

/** A file in a skill's folder. The same object as long as the file looks unchanged. */
export interface ListedFile {
  /** Relative to the folder, with forward slashes. */
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  /** Changes when the file is written. */
  readonly stamp: string;
}

export interface FolderListingOptions {
  /** Called when a folder contains more than is listed; undefined when it no longer does. */
  readonly onLimit?: (problem: Diagnostic | undefined) => void;
  readonly onError?: (error: Error) => void;
}

// The minimum that hosts support (MCP Skills extension, SEP-2640).
const maxFiles = 512;
const maxBytes = 16 * 1024 * 1024;
const maxEntries = 20_000;
const maxDepth = 32;

/**
 * The files of a skill's folder, listed on demand. Hidden files, `node_modules` and links are excluded. The owner of the watcher reports
 * changes.
 */
export class FolderListing {
  readonly folder: string;
  readonly #options: FolderListingOptions;
  /** Created for the first watched file: most skills have none. */
  #changed: Emitter<Record<string, undefined>> | undefined;
  #files: readonly ListedFile[] | undefined;
  #isStale = true;
  #watched: Map<string, number> | undefined;

  constructor(folder: string, options: FolderListingOptions = {}) {
    this.folder = folder;
    this.#options = options;
  }

  /** Sorted by path. The same array until a file changes. */
  get files(): readonly ListedFile[] {
    if (this.#files === undefined || this.#isStale) this.#files = this.#list(this.#files ?? []);
    return this.#files;
  }

  /** Records that a path in the folder, or everything below it, may have changed. True: the listing is in use. */
  note(path: string): boolean {
    this.#isStale = true;
    for (const watched of [...(this.#watched?.keys() ?? [])])
      if (watched === path || watched.startsWith(path + sep)) this.#changed?.emit(watched, undefined);
    return this.#files !== undefined || (this.#watched?.size ?? 0) > 0;
  }

  /** Watches one file. */
  watch(path: string, listener: () => void): Disposable {
    const file = join(this.folder, path);
    this.#changed ??= new Emitter((error) => this.#options.onError?.(error));
    const subscription = this.#changed.on(file, listener);
    this.#watched ??= new Map();
    const watched = this.#watched;
    watched.set(file, (watched.get(file) ?? 0) + 1);
    let isOver = false;
    return {
      [Symbol.dispose]: () => {
        if (isOver) return;
        isOver = true;
        subscription[Symbol.dispose]();
        const left = (watched.get(file) ?? 1) - 1;
        if (left > 0) watched.set(file, left);
        else watched.delete(file);
      },
    };
  }

  #list(before: readonly ListedFile[]): readonly ListedFile[] {
    this.#isStale = false;
    const known = new Map(before.map((file) => [file.path, file]));
    const walk = walkFolder(this.folder);
    const files: ListedFile[] = [];
    let bytes = 0;
    for (const path of walk.paths) {
      const stats = statOf(join(this.folder, path));
      if (!stats?.isFile()) continue;
      if (files.length >= maxFiles || bytes + stats.size > maxBytes) {
        walk.isCut = true;
        continue;
      }
      bytes += stats.size;
      const stamp = `${stats.size}-${stats.mtimeMs}-${stats.ctimeMs}-${stats.ino}`;
      const old = known.get(path);
      files.push(old?.stamp === stamp ? old : Object.freeze({ path, size: stats.size, stamp }));
    }
    this.#options.onLimit?.(walk.isCut ? tooMuch(this.folder) : undefined);
    const isSame = files.length === before.length && files.every((file, index) => file === before[index]);
    return isSame && this.#files !== undefined ? before : Object.freeze(files);
  }
}

interface Walk {
  /** Sorted; the skill's own document comes first, so that no limit can exclude it. */
  readonly paths: string[];
  isCut: boolean;
}

function walkFolder(folder: string): Walk {
  const found: string[] = [];
  const waiting: { readonly path: string; readonly depth: number }[] = [{ path: "", depth: 0 }];
  let entries = 0;
  let isCut = false;
  for (let next = waiting.pop(); next !== undefined && !isCut; next = waiting.pop()) {
    for (const entry of next.path === "" ? topEntriesOf(folder) : entriesOf(join(folder, next.path))) {
      if (++entries > maxEntries) isCut = true;
      if (isCut) break;
      if (entry.name.startsWith(".") || entry.name === "node_modules") continue;
      const path = next.path === "" ? entry.name : `${next.path}/${entry.name}`;
      if (entry.isFile()) found.push(path);
      else if (entry.isDirectory() && next.depth < maxDepth) waiting.push({ path, depth: next.depth + 1 });
    }
  }
  const order = (path: string): string => (path.toLowerCase() === "skill.md" ? "" : path);
  return { paths: found.sort((a, b) => (order(a) < order(b) ? -1 : 1)), isCut };
}

interface Entry {
  readonly name: string;
  isFile(): boolean;
  isDirectory(): boolean;
}

/** At once, as when the skill was loaded: that takes half the time. */
function topEntriesOf(folder: string): readonly Entry[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // Removed or unreadable.
    return [];
  }
}

/** Reads entries one by one: a folder may contain millions of files. */
function* entriesOf(directory: string): Generator<Entry> {
  let handle: Dir | undefined;
  try {
    handle = opendirSync(directory);
    for (let entry = handle.readSync(); entry !== null; entry = handle.readSync()) yield entry;
  } catch {
    // Removed or unreadable since its parent was listed: it contributes nothing.
  } finally {
    handle?.closeSync();
  }
}

function statOf(file: string): Stats | undefined {
  try {
    return lstatSync(file, { throwIfNoEntry: false });
  } catch {
    // The parent has become a file, or may not be searched.
    return undefined;
  }
}

function tooMuch(folder: string): Diagnostic {
  const message = `This skill has more than ${maxFiles} files or ${maxBytes / 1024 / 1024} MiB; the files beyond that are not available as resources. Keep large and generated files outside of it.`;
  return { severity: "warning", code: "SKILL_TOO_LARGE", file: folder, message };
}
