import type { Tool } from "../tools/tool.ts";
import type { Skill, SkillChange } from "./skill.ts";

/** What a reload changed in a skill's tools; before or after may be absent. */
export function diffSkill(before: Skill | undefined, after: Skill | undefined, durationMs: number): SkillChange {
  const skill = (after ?? before) as Skill;
  const [old, now] = [byName(before), byName(after)];
  return {
    name: skill.name,
    folder: skill.folder,
    tools: {
      added: [...now.keys()].filter((name) => !old.has(name)),
      updated: [...now].filter(([name, tool]) => old.has(name) && old.get(name) !== tool).map(([name]) => name),
      removed: [...old.keys()].filter((name) => !now.has(name)),
    },
    durationMs,
  };
}

/** Whether a fresh load came to the same: the same units behind the same text. */
export function isSameSkill(before: Skill, after: Skill): boolean {
  return (
    before.tools.length === after.tools.length &&
    before.tools.every((tool, index) => tool === after.tools[index]) &&
    before.signature === after.signature &&
    before.enabled === after.enabled &&
    before.promptMode === after.promptMode &&
    before.version === after.version &&
    before.displayName === after.displayName &&
    before.hiddenFromModel === after.hiddenFromModel &&
    before.userInvocable === after.userInvocable &&
    JSON.stringify([before.author, before.mcpServers, before.requires, before.engines]) ===
      JSON.stringify([after.author, after.mcpServers, after.requires, after.engines])
  );
}

function byName(skill: Skill | undefined): Map<string, Tool> {
  return new Map(skill?.tools.map((tool) => [tool.definition.name, tool]));
}
