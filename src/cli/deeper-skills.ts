import type { Diagnostic } from "../base/diagnostic.ts";
import { counted } from "../base/text.ts";
import { discoverRoot, findDeeperSkills, fixedPart } from "../skills/store/skill-roots.ts";

import type { Output } from "./output.ts";

/** Finds roots without a skill that contain skills in deeper folders: a host must be given the parents of skills. */
export function deeperSkillsIn(roots: readonly string[], out: Output): readonly DeeperHint[] {
  return roots.flatMap((root) => {
    if (fixedPart(root) !== root || discoverRoot(root).folders.length > 0) return [];
    const { parents, count, isCut } = findDeeperSkills(root);
    if (count === 0) return [];
    const shown = parents.slice(0, 5).map(out.path).join(", ");
    const others = parents.length > 5 ? ` and ${parents.length - 5} other folders` : "";
    const found = `${isCut ? "At least " : ""}${counted(count, "skill")}`;
    const message = `${found} found deeper in ${out.path(root)} than skillhost searches: in ${shown}${others}. Pass those folders with --skills; patterns are allowed.`;
    return [{ severity: "info", code: "SKILLS_DEEPER", file: root, message, parents } as const];
  });
}

/** A root without skills where a host searches, with the deeper folders that contain some. */
interface DeeperHint extends Diagnostic {
  readonly parents: readonly string[];
}
