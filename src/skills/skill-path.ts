import type { Diagnostic } from "../base/diagnostic.ts";
import { confinePath } from "../io/confine-path.ts";
import type { FolderView } from "../trust/folder-view.ts";

export type SkillPath = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly diagnostic: Diagnostic };

/** Where a path leads that must stay inside a skill's folder, or `PATH_OUTSIDE` in words for the author of `file`. */
export function pathInSkill(folder: string, path: string, file: string, view?: FolderView): SkillPath {
  const confined = confinePath(folder, path, view && ((target) => isPlain(target, view)));
  if (confined.ok) return confined;
  return { ok: false, diagnostic: { severity: "error", code: "PATH_OUTSIDE", file, message: confined.message } };
}

/** A view knows what was reached by folders alone. */
function isPlain(target: string, view: FolderView): boolean {
  const kind = view.kindOf(target);
  return kind === "file" || kind === "folder";
}
