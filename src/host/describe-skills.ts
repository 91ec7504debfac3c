import { basename } from "node:path";
import type { ResolvedSkills } from "../skills/resolve-overrides.ts";
import type { SkillsSnapshot } from "../skills/skill.ts";
import type { SkillInfo } from "./host.ts";

/** Lists the skills of a view for people and programs, in order of precedence; folders that could not be loaded come last. */
export function describeSkills(resolved: ResolvedSkills, { folders }: SkillsSnapshot): SkillInfo[] {
  const known = resolved.standings.map(({ skill, state, rule }): SkillInfo => {
    const { name, displayName, description, version, folder, generation, promptMode, prompts } = skill;
    const loaded = folders.get(folder);
    return {
      name,
      ...(displayName === undefined ? {} : { displayName }),
      description,
      ...(version === undefined ? {} : { version }),
      folder,
      state,
      rule,
      stale: loaded?.stale ?? false,
      generation,
      promptMode,
      prompts,
      tools: skill.tools.map((tool) => tool.definition.name),
      diagnostics: loaded?.diagnostics ?? [],
    };
  });
  const failed = resolved.failed.map(({ folder, diagnostics }): SkillInfo => {
    const nothing = { description: "", stale: false, generation: 0, promptMode: "on-demand", prompts: [], tools: [] } as const;
    return { name: basename(folder), folder, state: "failed", rule: "it could not be loaded", ...nothing, diagnostics };
  });
  return [...known, ...failed];
}
