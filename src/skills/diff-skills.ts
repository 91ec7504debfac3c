import type { NamesChange, Skill, SkillChange } from "./skill.ts";

/** What a reload changed in what a skill offers; before or after may be absent. */
export function diffSkill(before: Skill | undefined, after: Skill | undefined, durationMs: number): SkillChange {
  const skill = (after ?? before) as Skill;
  const diff = <T>(itemsOf: (skill: Skill) => ReadonlyMap<string, T>, isSame: (a: T, b: T) => boolean): NamesChange =>
    diffNames(before ? itemsOf(before) : new Map(), after ? itemsOf(after) : new Map(), isSame);
  return {
    name: skill.name,
    folder: skill.folder,
    tools: diff(toolsOf, Object.is),
    prompts: diff(promptsOf, hasSameRevision),
    resources: diff(resourcesOf, hasSameRevision),
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
    isSameList(before.offeredPrompts, after.offeredPrompts) &&
    isSameList(before.resources, after.resources) &&
    isSameList(before.resourceTemplates, after.resourceTemplates) &&
    JSON.stringify([before.author, before.mcpServers, before.requires, before.engines]) ===
      JSON.stringify([after.author, after.mcpServers, after.requires, after.engines])
  );
}

interface Revised {
  readonly revision: string;
}

function isSameList(before: readonly Revised[], after: readonly Revised[]): boolean {
  return before.length === after.length && before.every((item, index) => hasSameRevision(item, after[index]!));
}

/** The texts of a skill are read anew each time, so that equal offers may be two objects. */
function hasSameRevision(a: Revised, b: Revised): boolean {
  return a === b || a.revision === b.revision;
}

function diffNames<T>(old: ReadonlyMap<string, T>, now: ReadonlyMap<string, T>, isSame: (a: T, b: T) => boolean): NamesChange {
  return {
    added: [...now.keys()].filter((name) => !old.has(name)),
    updated: [...now].filter(([name, item]) => old.has(name) && !isSame(old.get(name) as T, item)).map(([name]) => name),
    removed: [...old.keys()].filter((name) => !now.has(name)),
  };
}

function toolsOf({ tools }: Skill): ReadonlyMap<string, object> {
  return new Map(tools.map((tool) => [tool.definition.name, tool]));
}

function promptsOf({ offeredPrompts }: Skill): ReadonlyMap<string, Revised> {
  return new Map(offeredPrompts.map((prompt) => [prompt.definition.name, prompt]));
}

function resourcesOf({ resources, resourceTemplates }: Skill): ReadonlyMap<string, Revised> {
  const byAddress = new Map<string, Revised>(resources.map((resource) => [resource.definition.uri, resource]));
  for (const template of resourceTemplates) byAddress.set(template.definition.uriTemplate, template);
  return byAddress;
}
