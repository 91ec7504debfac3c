import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import type { PathChange } from "../io/watch/watch-tree.ts";
import type { FolderParts, SkillFolder } from "./skill-folder.ts";
import type { SkillWatch } from "./skill-watch.ts";

export interface ChangedFoldersPlace {
  readonly folders: ReadonlyMap<string, SkillFolder>;
  readonly watch: SkillWatch;
  readonly parts: FolderParts;
}

/**
 * Which skill folders these changes concern, and by which files. Touches are no changes. The module loader forgets what
 * was edited; what it had made of it counts as changed, too.
 */
export function findChangedFolders(changes: readonly PathChange[], place: ChangedFoldersPlace): ReadonlyMap<string, ReadonlySet<string>> {
  const { folders, watch, parts } = place;
  const realFolders = new Map<string, string | undefined>();
  const edited = changes.flatMap((change) => spellingsOf(change, realFolders)).filter(({ path }) => parts.hashes.changed(path));
  const paths = edited.map(({ path }) => path);
  parts.onEdited?.(paths);
  const forgotten = parts.loader.invalidate(paths);
  const found = new Map<string, Set<string>>();
  const note = (folder: string, path: string): void => void found.set(folder, (found.get(folder) ?? new Set()).add(path));
  for (const path of [...edited.filter((change) => matters(change, place)).map((change) => change.path), ...forgotten]) {
    const folder = folderOf(path, folders);
    if (folder !== undefined) note(folder.path, path);
    for (const owner of watch.foldersOf(path)) note(owner, path);
  }
  return found;
}

/** A change under the name it was seen by, and under the real one of what it happened to. */
function spellingsOf(change: PathChange, realFolders: Map<string, string | undefined>): PathChange[] {
  const real = realPathOf(change.path, realFolders);
  return real === undefined || real === change.path ? [change] : [change, { ...change, path: real }];
}

/** What a skill is not made of may become part of it when it appears or goes, but not when it changes, as logs do all the time. */
function matters({ path, kind, directory }: PathChange, { folders, watch, parts }: ChangedFoldersPlace): boolean {
  if (kind !== "changed" || directory || watch.foldersOf(path).size > 0 || isCode(path, parts)) return true;
  return folderOf(path, folders)?.files.has(path) ?? false;
}

/** Code may be part of a module that never got as far as telling what it imports. */
function isCode(path: string, { runners }: FolderParts): boolean {
  const extension = extname(path);
  return extension === ".json" || runners.some((runner) => runner.extensions.includes(extension));
}

/** The skill folder that a path lies in. */
export function folderOf(path: string, folders: ReadonlyMap<string, SkillFolder>): SkillFolder | undefined {
  for (let at = path; ; at = dirname(at)) {
    const folder = folders.get(at);
    if (folder !== undefined || dirname(at) === at) return folder;
  }
}

/** Where a path really lies. What is gone is looked up by its folder; each folder once for all that changed in it. */
function realPathOf(path: string, realFolders: Map<string, string | undefined>): string | undefined {
  const target = isLink(path) ? realOf(path) : undefined;
  if (target !== undefined) return target;
  const folder = dirname(path);
  if (!realFolders.has(folder)) realFolders.set(folder, realOf(folder));
  const real = realFolders.get(folder);
  return real === undefined ? undefined : join(real, basename(path));
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  } catch {
    // In a folder that became a file: it is gone.
    return false;
  }
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    // Gone.
    return undefined;
  }
}
