import type { Diagnostic } from "../base/diagnostic.ts";
import { counted } from "../base/text.ts";
import { discoverRoot, findDeeperSkills, fixedPart } from "../skills/store/skill-roots.ts";

import type { Output } from "./output.ts";

/** Of folders without a skill, those that have some deeper down: a host must be given the folders that hold them. */
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

/** A folder that holds no skill where a host looks for them, with the folders below it that do. */
interface DeeperHint extends Diagnostic {
  readonly parents: readonly string[];
}
