import type { Host, SkillInfo } from "../host.ts";

/** Where the calls of a tool are stored: in the folder of its skill. `fault`: there is no such place, and why. */
export type CallPlace = { readonly skill: SkillInfo } | { readonly fault: string };

export function findCallPlace(
  host: Pick<Host, "skills">,
  tool: { readonly name: string; readonly kind: string; readonly source: string },
): CallPlace {
  const { name, kind, source } = tool;
  const skill = kind === "skill" ? host.skills.find((each) => each.name === source && each.state === "active") : undefined;
  if (skill === undefined) return { fault: `Calls are stored with a skill, and tool "${name}" is of ${kind} "${source}".` };
  if (skill.package === undefined) return { skill };
  return { fault: `Skill "${skill.name}" is of package ${skill.package.name}, whose files are replaced with its next version.` };
}
