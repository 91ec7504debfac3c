import type { Dirent } from "node:fs";
import { join, relative, sep } from "node:path";
import { append } from "./append.ts";
import { FolderHandle } from "./folder-handle.ts";
import { type IgnoreRules, isIgnored, parseIgnoreFile } from "./ignore-rules.ts";
import { openFile, readWhole } from "./open-file.ts";

export interface WalkOptions {
  readonly signal: AbortSignal;
  /** Files that are not reached within the step limit are omitted. */
  readonly steps: SearchSteps;
  /** The folder itself or one above it. Ignore files below this folder apply. */
  readonly top: string;
  /** Whether to include names that begin with a dot. */
  readonly hidden?: boolean;
  /** Whether rules forbid reading a path; for a folder, also everything in it. */
  readonly isKeptBack?: ((path: string) => boolean) | undefined;
}

/** A file below the walked folder. */
export interface FoundFile {
  /** Absolute. */
  readonly path: string;
  /** Relative to the folder. */
  readonly names: readonly string[];
}

/** How a walk ended. `isPart`: the step limit ended it early. */
export interface WalkEnd {
  readonly isPart: boolean;
}

interface Level {
  readonly path: string;
  /** Relative to `top`. */
  readonly names: readonly string[];
  /** The rules that apply here, outermost first, each with the depth of its folder below `top`. */
  readonly rules: readonly { readonly depth: number; readonly rules: IgnoreRules }[];
}

const ignoreFiles = [".gitignore", ".ignore", ".rgignore"];
const maxIgnoreBytes = 1024 * 1024;
const maxDepth = 256;

/**
 * The regular files below a folder, in order, selected like ripgrep does: without hidden and ignored ones, and without
 * following links, which could lead anywhere.
 */
export async function* walkFiles(folder: string, options: WalkOptions): AsyncGenerator<FoundFile, WalkEnd> {
  const start = await startAt(folder, options.top);
  const open: Level[] = [start];
  for (let level = open.pop(); level !== undefined; level = open.pop()) {
    options.signal.throwIfAborted();
    if (options.steps.areSpent) return { isPart: true };
    const entries = await readFolder(level.path);
    const here = await withOwnRules(level, entries);
    const folders: Level[] = [];
    for (const entry of entries) {
      options.steps.takeName();
      const names = [...level.names, entry.name];
      if (isHidden(entry.name, options.hidden) || isLeftOut(here, names, entry.isDirectory())) continue;
      const path = join(level.path, entry.name);
      if (options.isKeptBack?.(path)) continue;
      if (entry.isFile()) yield { path, names: names.slice(start.names.length) };
      else if (entry.isDirectory() && names.length < maxDepth) folders.push({ path, names, rules: here.rules });
    }
    append(open, folders.reverse());
  }
  return { isPart: false };
}

function isHidden(name: string, hidden = false): boolean {
  return name.startsWith(".") && (!hidden || name === ".git");
}

/** The start of a walk, with the rules of the folders above it. */
async function startAt(folder: string, top: string): Promise<Level> {
  const names = relative(top, folder)
    .split(sep)
    .filter((name) => name !== "");
  let level: Level = { path: top, names: [], rules: [] };
  for (const name of names) {
    level = await withOwnRules(level, await readFolder(level.path));
    level = { path: join(level.path, name), names: [...level.names, name], rules: level.rules };
  }
  return level;
}

async function readFolder(path: string): Promise<readonly Dirent[]> {
  try {
    await using folder = await FolderHandle.open(path);
    const entries = await folder.entries();
    return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    // Missing or not accessible; the rest is searched anyway.
    return [];
  }
}

async function withOwnRules(level: Level, entries: readonly Dirent[]): Promise<Level> {
  const found = ignoreFiles.filter((name) => entries.some((entry) => entry.name === name && entry.isFile()));
  if (found.length === 0) return level;
  const rules = await Promise.all(found.map((name) => readRules(join(level.path, name))));
  return { ...level, rules: [...level.rules, { depth: level.names.length, rules: rules.flat() }] };
}

async function readRules(path: string): Promise<IgnoreRules> {
  const opened = await openFile({ real: path });
  if (!opened.ok) return [];
  try {
    const bytes = await readWhole(opened.file, opened.size, maxIgnoreBytes);
    return bytes === undefined ? [] : parseIgnoreFile(bytes.toString("utf8"));
  } finally {
    await opened.file.close();
  }
}

/** The innermost ignore file with a matching rule decides. */
function isLeftOut({ rules }: Level, names: readonly string[], isFolder: boolean): boolean {
  for (let at = rules.length - 1; at >= 0; at--) {
    const { depth, rules: own } = rules[at]!;
    const verdict = isIgnored(own, names.slice(depth), isFolder);
    if (verdict !== undefined) return verdict;
  }
  return false;
}

/**
 * Limits a search in names and kilobytes of files. Not in time: the result must not depend on the load of the machine.
 */
export class SearchSteps {
  #left: number;

  constructor(steps: number = maxSteps) {
    this.#left = steps;
  }

  get areSpent(): boolean {
    return this.#left <= 0;
  }

  takeName(): void {
    this.#left--;
  }

  takeFile(bytes: number): void {
    this.#left -= Math.ceil(bytes / 1024);
  }
}

/** About 20 seconds on an idle machine. */
const maxSteps = 500_000;
