import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Resource } from "../../tools/resource.ts";
import type { Tool } from "../../tools/tool.ts";
import type { CheckedFolder } from "../../trust/checked-folder.ts";
import type { SkillOffers } from "../prompts/skill-prompts.ts";
import type { NamesChange, Skill, SkillChange } from "../skill.ts";
import type { SkillText } from "./read-skill.ts";
import type { ToolUnit } from "./stage-tool.ts";
import type { ToolEntries } from "./tool-entries.ts";

/** The outcome of an attempt to reload a skill. */
interface Attempt {
  readonly text: SkillText;
  readonly listed: ToolEntries;
  readonly units: readonly ToolUnit[];
  readonly tools: readonly Tool[];
  /** The names of existing tools that must not be offered. */
  readonly leftOut: ReadonlySet<string>;
  readonly offers: SkillOffers;
}

/** Whether an error would remove something that works now. What the author removed on purpose is not a loss. */
export function losesSomething(before: Generation, attempt: Attempt): boolean {
  return losesText(before, attempt.text) || before.units.some((unit) => losesOfUnit(before, unit, attempt));
}

function losesText({ text: before }: Generation, { lost }: SkillText): boolean {
  if (lost.manifest && !before.lost.manifest) return true;
  if (lost.document && before.document !== undefined && !before.lost.document) return true;
  return before.prompts.some((prompt) => lost.prompts.includes(prompt.path));
}

function losesOfUnit({ skill }: Generation, unit: ToolUnit, { listed, units, tools, leftOut, offers }: Attempt): boolean {
  const isGone =
    loses(unit.tools, skill.tools, tools, ({ definition }) => definition.name) ||
    loses(unit.prompts, skill.offeredPrompts, offers.prompts, ({ definition }) => definition.name) ||
    loses(listedBy(unit), skill.resources, offers.resources.resources, ({ definition }) => definition.uri) ||
    loses(unit.resourceTemplates, skill.resourceTemplates, offers.resourceTemplates, ({ definition }) => definition.uriTemplate);
  const isLeftOut = unit.tools.some(({ definition }) => leftOut.has(definition.name));
  return (
    isGone && (isLeftOut || isFaulty(unit, units) || listed.lost.some((path) => unit.path === path || unit.path?.startsWith(`${path}/`)))
  );
}

function listedBy({ resources, resourceLists }: ToolUnit): readonly Resource[] {
  return [...resources, ...resourceLists.flatMap((list) => list.resources)];
}

/** Whether something of the active unit has no successor of the same name. */
function loses<T>(own: readonly T[], serving: readonly T[], next: readonly T[], nameOf: (item: T) => string): boolean {
  return serving.some((item) => own.includes(item) && !next.some((other) => nameOf(other) === nameOf(item)));
}

/** Whether the successor of a unit has an error. Tools in the manifest have no path that identifies a successor. */
function isFaulty(unit: ToolUnit, units: readonly ToolUnit[]): boolean {
  return units.some((other) => {
    const isSuccessor = unit.path === undefined ? other.path === undefined : other.key === unit.key;
    return isSuccessor && other.diagnostics.some(isError);
  });
}

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}

/** The changes of a reload to what a skill offers; `before` or `after` may be absent. */
export function diffSkill(before: Skill | undefined, after: Skill | undefined, durationMs: number): SkillChange {
  const skill = (after ?? before) as Skill;
  const diff = <T>(itemsOf: (skill: Skill) => ReadonlyMap<string, T>, isSame: (a: T, b: T) => boolean): NamesChange => {
    // A first load has nothing to compare.
    if (before === undefined) return { added: after ? [...itemsOf(after).keys()] : [], updated: [], removed: [] };
    return diffNames(itemsOf(before), after ? itemsOf(after) : new Map(), isSame);
  };
  return {
    name: skill.name,
    folder: skill.folder,
    tools: diff(toolsOf, Object.is),
    prompts: diff(promptsOf, hasSameRevision),
    resources: diff(resourcesOf, hasSameRevision),
    durationMs,
  };
}

/** Whether a fresh load produced the same skill: the same units and the same text. */
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

/** A skill's texts are read again each time, so equal prompts may be two objects. */
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

/** A loaded skill with everything needed to replace or end it. */
export interface Generation {
  readonly skill: Skill;
  /** The identity of its source, to which approvals of its tools are bound. */
  readonly identity: string;
  readonly text: SkillText;
  readonly units: readonly ToolUnit[];
  /** The files of its text; the units hold those of its code. */
  readonly files: ReadonlySet<string>;
  readonly diagnostics: readonly Diagnostic[];
  /** The checked files it was built from, if its signature is required. */
  readonly tree?: CheckedFolder | undefined;
}
