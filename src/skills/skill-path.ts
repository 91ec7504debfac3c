import { lstatSync, realpathSync } from "node:fs";
import { basename, join, relative } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { confinePath } from "../io/confine-path.ts";
import type { CheckedTree } from "../io/read-bounded.ts";
import type { FolderView } from "../trust/folder-view.ts";
import { bundleOf } from "./plugin-root.ts";

export type SkillPath = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly diagnostic: Diagnostic };

/** Where a path leads that must stay inside a skill's folder, or `PATH_OUTSIDE` in words for the author of `file`. */
export function pathInSkill(folder: string, path: string, file: string, view?: PathKinds): SkillPath {
  const confined = confinePath(folder, path, view && ((target) => isPlain(target, view)));
  if (confined.ok) return confined;
  return { ok: false, diagnostic: { severity: "error", code: "PATH_OUTSIDE", file, message: confined.message } };
}

/**
 * The same for `SKILL.md` and `skill.json`, which stand in the folder itself: what they contain is given to models without
 * anybody being asked. Skills of one plugin may share such a file by a link to a file of the same name in the plugin.
 */
export function documentInSkill(folder: string, name: string, view?: FolderView): SkillPath {
  const file = join(folder, name);
  // Nearly always: then neither it nor its folder need be resolved.
  if (view?.kindOf(file) === "file" || isRegularFile(file)) return { ok: true, path: file };
  const within = pathInSkill(folder, name, file, view);
  return within.ok || !isSharedInBundle(folder, file) ? within : { ok: true, path: file };
}

function isRegularFile(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    // A folder that must not be searched: reading the file will tell.
    return false;
  }
}

function isSharedInBundle(folder: string, file: string): boolean {
  const bundle = bundleOf(folder);
  if (bundle === undefined || !confinePath(bundle, relative(bundle, file)).ok) return false;
  return basename(realpathSync.native(file)).toLowerCase() === basename(file).toLowerCase();
}

/** Knows what was reached by folders alone. */
type PathKinds = Pick<FolderView, "kindOf"> | Pick<CheckedTree, "kindOf">;

function isPlain(target: string, view: PathKinds): boolean {
  const kind = view.kindOf(target);
  return kind === "file" || kind === "folder";
}
