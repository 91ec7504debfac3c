import { realpathSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import type { PathChange } from "../io/watch-tree.ts";
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
  const edited = changes.flatMap((change) => spellingsOf(change)).filter(({ path }) => parts.hashes.changed(path));
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
function spellingsOf(change: PathChange): PathChange[] {
  const real = realPathOf(change.path);
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

/** Where a path really lies. What is gone is looked up by its folder. */
function realPathOf(path: string): string | undefined {
  for (const lookUp of [() => realpathSync.native(path), () => join(realpathSync.native(dirname(path)), basename(path))]) {
    try {
      return lookUp();
    } catch {
      // Gone: the next look-up, or none.
    }
  }
  return undefined;
}
