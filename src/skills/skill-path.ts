import type { Diagnostic } from "../base/diagnostic.ts";
import { confinePath } from "../io/confine-path.ts";

export type SkillPath = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly diagnostic: Diagnostic };

/** Where a path leads that must stay inside a skill's folder, or `PATH_OUTSIDE` in words for the author of `file`. */
export function pathInSkill(folder: string, path: string, file: string): SkillPath {
  const confined = confinePath(folder, path);
  if (confined.ok) return confined;
  return { ok: false, diagnostic: { severity: "error", code: "PATH_OUTSIDE", file, message: confined.message } };
}
