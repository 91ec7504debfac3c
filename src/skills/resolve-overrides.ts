import { basename } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { renamePrompt } from "../tools/create/create-prompt.ts";
import { renameTool } from "../tools/create/create-tool.ts";
import { type Prompt, promptName } from "../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../tools/resource.ts";
import { nearestToolName, type Tool, type ToolOrigin } from "../tools/tool.ts";
import type { ResourceSet } from "../tools/tool-source.ts";
import { type ResolvedRequires, resolveRequires, type SkillRequirement } from "./load/skill-requirements.ts";
import type { LoadedFolder, Skill, SkillsSnapshot } from "./skill.ts";
import { rootMissingCode } from "./store/skill-roots.ts";

/** What happens when two skills, or tools of two skills, have the same name. */
export type ConflictPolicy = "override" | "keep-first" | "rename" | "error";

/** One policy for all clashes, or one per name with a default. */
export type ConflictRules =
  | ConflictPolicy
  | { readonly default?: ConflictPolicy; readonly names?: Readonly<Record<string, ConflictPolicy>> };

/** The skills that a session uses: its roots in order of precedence, lowest first, and what it disables. */
interface SkillsView {
  readonly roots: readonly string[];
  /** Roots that may be missing: the default ones. */
  readonly optionalRoots?: ReadonlySet<string>;
  readonly disabledSkills: ReadonlySet<string>;
  readonly conflicts: ConflictRules;
}

/** `refused`: a requirement is not met. `untrusted`: its folder is not trusted, so its code was not run. */
export type SkillState = "active" | "disabled" | "shadowed" | "refused" | "untrusted";

/** A skill in a view, with the rule that decided its state. */
interface SkillStatus {
  readonly skill: Skill;
  readonly state: SkillState;
  readonly rule: string;
  /** The folder of the skill that won, if this one lost. */
  readonly winner?: string;
  /** Its requirements, and whether they are met. */
  readonly requires?: readonly SkillRequirement[];
}

/** A tool that lost its name, with the rule that decided. If renamed, it is offered under `renamedTo`. */
interface ShadowedTool {
  readonly tool: Tool;
  readonly winner: Tool;
  readonly rule: string;
  readonly renamedTo?: string;
}

export interface ResolvedSkills {
  readonly standings: readonly SkillStatus[];
  /** The active skills in order of precedence. */
  readonly skills: readonly Skill[];
  /** Those that configure MCP servers. */
  readonly withServers: readonly Skill[];
  readonly tools: readonly Tool[];
  readonly shadowed: readonly ShadowedTool[];
  /** Their prompts and resources. */
  readonly offers: ResolvedOffers;
  /** Folders that could not be loaded at all. */
  readonly failed: readonly LoadedFolder[];
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Decides, for one view, which skills and tools are used. Equal input gives equal output, in the same order. `before`: the result for an
 * earlier snapshot. If only skills without rivals were edited since, they are replaced in it, which costs little beside thousands of others.
 */
export function resolveOverrides(loaded: SkillsSnapshot, view: SkillsView, before?: ResolvedSkills): ResolvedSkills {
  return (before && replaceEdited(loaded, view, before)) ?? resolveAll(loaded, view);
}

/** What a result was resolved from, for the next one. */
interface Basis {
  readonly loaded: SkillsSnapshot;
  readonly view: SkillsView;
  readonly folders: readonly LoadedFolder[];
  /** The position of each folder. */
  readonly places: ReadonlyMap<string, number>;
  /** The names that more than one skill uses: of skills, tools and prompts. */
  readonly contested: ReadonlySet<string>;
  /** The diagnostics that follow those of the folders. */
  readonly furtherDiagnostics: readonly Diagnostic[];
}

const bases = new WeakMap<ResolvedSkills, Basis>();

function resolveAll(loaded: SkillsSnapshot, view: SkillsView): ResolvedSkills {
  const folders = foldersOf(loaded, view.roots);
  const diagnostics: Diagnostic[] = [];
  const candidates = folders.flatMap((folder) => folder.skill ?? []);
  const standings = candidates.map((skill) => ({ skill, ...own(skill, view) }));
  const winners = chooseSkills(
    standings.filter((s) => s.state === "active").map((s) => s.skill),
    view.conflicts,
    diagnostics,
  );
  const chosen = standings.map((standing) => (standing.state === "active" ? settle(standing.skill, winners) : standing));
  const failed = folders.filter((folder) => folder.skill === undefined);
  const requires = resolveRequires(chosen, new Set(failed.map(nameOfFailed)));
  diagnostics.push(...requires.diagnostics);
  const settled = requires.requirements.size === 0 ? chosen : chosen.map((standing) => withRequires(standing, requires));
  const skills = settled.filter((s) => s.state === "active").map((s) => s.skill);
  const { tools, shadowed } = chooseTools(skills, view.conflicts, diagnostics);
  const offers = resolveOffers(skills, (name) => policyFor(view.conflicts, name));
  diagnostics.push(...offers.diagnostics);
  const names = new Set(candidates.map((skill) => skill.name));
  for (const name of view.disabledSkills) if (!names.has(name) && name !== "*") diagnostics.push(unknownName(name));
  const all = allDiagnostics(loaded, view, folders, diagnostics);
  const resolved = {
    standings: settled,
    skills,
    withServers: skills.filter(hasServers),
    tools,
    shadowed,
    offers,
    failed,
    diagnostics: all,
  };
  const places = new Map(folders.map(({ folder }, index) => [folder, index]));
  bases.set(resolved, { loaded, view, folders, places, contested: contestedNames(candidates), furtherDiagnostics: diagnostics });
  return resolved;
}

function hasServers({ mcpServers }: Skill): boolean {
  return Object.keys(mcpServers).length > 0;
}

function allDiagnostics(
  loaded: SkillsSnapshot,
  view: SkillsView,
  folders: readonly LoadedFolder[],
  further: readonly Diagnostic[],
): readonly Diagnostic[] {
  const diagnostics = view.roots.flatMap((root) => {
    const found = loaded.roots.get(root)?.diagnostics ?? [];
    return view.optionalRoots?.has(root) === true ? found.filter(({ code }) => code !== rootMissingCode) : found;
  });
  for (const folder of folders) for (const diagnostic of folder.diagnostics) diagnostics.push(diagnostic);
  for (const diagnostic of further) diagnostics.push(diagnostic);
  return diagnostics;
}

function contestedNames(skills: readonly Skill[]): ReadonlySet<string> {
  const [seen, contested] = [new Set<string>(), new Set<string>()];
  for (const skill of skills)
    for (const name of namesOf(skill)) {
      if (seen.has(name)) contested.add(name);
      else seen.add(name);
    }
  return contested;
}

/** The names of a skill, its tools and its prompts, in order. */
function namesOf({ name, tools, offeredPrompts }: Skill): readonly string[] {
  const ofTools = tools.map(({ definition }) => `tool ${definition.name}`);
  return [`skill ${name}`, ...ofTools, ...offeredPrompts.map(({ definition }) => `prompt ${definition.name}`)];
}

/** Undefined: more than that may have changed. */
function replaceEdited(loaded: SkillsSnapshot, view: SkillsView, before: ResolvedSkills): ResolvedSkills | undefined {
  const basis = bases.get(before);
  const { changed } = loaded;
  if (basis === undefined || changed?.before !== basis.loaded.folders || !isSameView(view, basis.view)) return undefined;
  if (view.roots.some((root) => loaded.roots.get(root) !== basis.loaded.roots.get(root))) return undefined;
  const folders = [...basis.folders];
  const [standings, skills, tools, prompts] = [[...before.standings], [...before.skills], [...before.tools], [...before.offers.prompts]];
  for (const path of changed.folders) {
    const place = basis.places.get(path);
    // It belongs to another view.
    if (place === undefined) continue;
    const old = folders[place]?.skill;
    const now = loaded.folders.get(path);
    if (old === undefined || now?.skill === undefined || !canReplace(old, now.skill, view, basis)) return undefined;
    const at = standings[place]?.skill === old ? place : standings.findIndex(({ skill }) => skill === old);
    const standing = standings[at];
    const isReplaced =
      standing?.state === "active" &&
      replaceRun(skills, [old], [now.skill]) &&
      replaceRun(tools, old.tools, now.skill.tools) &&
      replaceRun(prompts, old.offeredPrompts, now.skill.offeredPrompts);
    if (!isReplaced) return undefined;
    folders[place] = now;
    standings[at] = { ...standing, skill: now.skill };
  }
  const offers = {
    ...before.offers,
    prompts: Object.freeze(prompts),
    resources: joinResources(skills, (name) => policyFor(view.conflicts, name)),
  };
  const diagnostics = allDiagnostics(loaded, view, folders, basis.furtherDiagnostics);
  const resolved = { ...before, standings, skills, tools, offers, diagnostics };
  bases.set(resolved, { ...basis, loaded, view, folders });
  return resolved;
}

function isSameView(a: SkillsView, b: SkillsView): boolean {
  const parts = ({ roots, optionalRoots, disabledSkills }: SkillsView): string =>
    JSON.stringify([roots, [...(optionalRoots ?? [])].sort(), [...disabledSkills].sort()]);
  return a.conflicts === b.conflicts && parts(a) === parts(b);
}

/** Whether the edit concerns no other skill: both have the same names, which no other skill uses, and nothing that needs more comparison. */
function canReplace(old: Skill, now: Skill, view: SkillsView, { contested }: Basis): boolean {
  const names = namesOf(old);
  const hasOnlyTools = (skill: Skill): boolean =>
    Object.keys(skill.requires).length === 0 && skill.resources.length === 0 && skill.resourceTemplates.length === 0;
  return (
    old.version === now.version &&
    own(now, view).state === "active" &&
    !hasServers(old) &&
    !hasServers(now) &&
    hasOnlyTools(old) &&
    hasOnlyTools(now) &&
    names.join("\n") === namesOf(now).join("\n") &&
    names.every((name) => !contested.has(name))
  );
}

/** Replaces items that follow each other in a list. False: they do not. */
function replaceRun<T>(list: T[], old: readonly T[], now: readonly T[]): boolean {
  if (old.length === 0) return now.length === 0;
  const start = list.indexOf(old[0]!);
  if (start === -1 || old.length !== now.length || old.some((item, index) => list[start + index] !== item)) return false;
  for (const [index, item] of now.entries()) list[start + index] = item;
  return true;
}

/** The folders of the roots in order; a folder of several roots counts at its last position. */
function foldersOf(loaded: SkillsSnapshot, roots: readonly string[]): LoadedFolder[] {
  const order = new Set<string>();
  for (const root of roots) {
    for (const folder of loaded.roots.get(root)?.folders ?? []) {
      order.delete(folder);
      order.add(folder);
    }
  }
  return [...order].flatMap((folder) => loaded.folders.get(folder) ?? []);
}

function own(skill: Skill, view: SkillsView): { state: "active" | "disabled" | "untrusted"; rule: string } {
  if (view.disabledSkills.has("*")) return { state: "disabled", rule: "disabledSkills disables all skills" };
  if (view.disabledSkills.has(skill.name)) return { state: "disabled", rule: "its name is in disabledSkills" };
  if (!skill.enabled) return { state: "disabled", rule: 'its manifest says "enabled": false' };
  if (!skill.mayRun) return { state: "untrusted", rule: "its folder is not trusted: see FOLDER_UNTRUSTED" };
  return { state: "active", rule: "no other skill has the same name" };
}

interface Winner {
  readonly skill: Skill;
  readonly rule: string;
}

function chooseSkills(skills: readonly Skill[], rules: ConflictRules, diagnostics: Diagnostic[]): Map<string, Winner> {
  const winners = new Map<string, Winner>();
  for (const skill of skills) {
    const before = winners.get(skill.name);
    if (before === undefined) {
      winners.set(skill.name, { skill, rule: "no other skill has the same name" });
      continue;
    }
    const policy = policyFor(rules, skill.name);
    const keepsFirst = policy === "keep-first" || policy === "error";
    const rule = keepsFirst
      ? "of two skills with the same name, the first one is used"
      : "of two skills with the same name, the later one replaces the earlier";
    const winner = keepsFirst ? before.skill : skill;
    winners.set(skill.name, { skill: winner, rule });
    const loser = keepsFirst ? skill : before.skill;
    if (loser.signature !== winner.signature) diagnostics.push(skillClash(winner, loser, policy));
  }
  return winners;
}

type Chosen = SkillStatus & { readonly state: Exclude<SkillState, "refused"> };

function settle(skill: Skill, winners: ReadonlyMap<string, Winner>): Chosen {
  const winner = winners.get(skill.name) as Winner;
  if (winner.skill === skill) return { skill, state: "active", rule: winner.rule };
  return { skill, state: "shadowed", rule: winner.rule, winner: winner.skill.folder };
}

function withRequires(standing: Chosen, { requirements, refused }: ResolvedRequires): SkillStatus {
  const requires = requirements.get(standing.skill);
  if (requires === undefined) return standing;
  const rule = refused.get(standing.skill);
  return rule === undefined ? { ...standing, requires } : { ...standing, requires, state: "refused", rule };
}

/** The presumed name of the skill in a folder that failed to load. */
export function nameOfFailed({ folder, diagnostics }: LoadedFolder): string {
  return diagnostics.find(({ source }) => source !== undefined)?.source ?? basename(folder);
}

function chooseTools(
  skills: readonly Skill[],
  rules: ConflictRules,
  diagnostics: Diagnostic[],
): { tools: Tool[]; shadowed: ShadowedTool[] } {
  const byName = new Map<string, Tool>();
  const shadowed: ShadowedTool[] = [];
  const taken = new Set(skills.flatMap((skill) => skill.tools.map((tool) => tool.definition.name)));
  for (const tool of skills.flatMap((skill) => skill.tools)) {
    const { name } = tool.definition;
    const before = byName.get(name);
    if (before === undefined) {
      byName.set(name, tool);
      continue;
    }
    const policy = policyFor(rules, name);
    const keepsFirst = policy === "keep-first" || policy === "error";
    const [winner, loser] = keepsFirst ? [before, tool] : [tool, before];
    byName.set(name, winner);
    const renamed = policy === "rename" ? renamedTool(loser, taken) : undefined;
    if (renamed) byName.set(renamed.definition.name, renamed);
    shadowed.push({ tool: loser, winner, rule: toolRule(policy), ...(renamed ? { renamedTo: renamed.definition.name } : {}) });
    if (loser.signature !== winner.signature) diagnostics.push(toolClash(winner, loser, policy, renamed));
  }
  return { tools: [...byName.values()], shadowed };
}

function renamedTool(tool: Tool, taken: Set<string>): Tool {
  const base = nearestToolName(`${tool.origin.source}-${tool.definition.name}`);
  let name = base;
  for (let n = 2; taken.has(name); n++) name = `${base.slice(0, 61)}-${n}`;
  taken.add(name);
  return renameTool(tool, name);
}

function policyFor(rules: ConflictRules, name: string): ConflictPolicy {
  if (typeof rules === "string") return rules;
  const named = rules.names && Object.hasOwn(rules.names, name) ? rules.names[name] : undefined;
  return named ?? rules.default ?? "override";
}

function toolRule(policy: ConflictPolicy): string {
  if (policy === "rename") return "the later skill's tool keeps the name, and the earlier one is renamed";
  return policy === "override" ? "the later skill's tool replaces the earlier skill's" : "the first skill's tool keeps the name";
}

function unknownName(name: string): Diagnostic {
  return { severity: "info", code: "SKILL_UNKNOWN", message: `"${name}" is in disabledSkills, but no skill has that name.` };
}

function skillClash(winner: Skill, loser: Skill, policy: ConflictPolicy): Diagnostic {
  const message = `Two skills are named "${winner.name}": the one in ${winner.folder} is used, this one is not. Rename or disable one of them.`;
  return { severity: policy === "error" ? "error" : "warning", code: "SKILL_NAME_CLASH", file: loser.folder, source: loser.name, message };
}

function toolClash(winner: Tool, loser: Tool, policy: ConflictPolicy, renamed: Tool | undefined): Diagnostic {
  const fate = renamed ? `this one is available as "${renamed.definition.name}"` : "this one is not available";
  const message = `The skills "${winner.origin.source}" and "${loser.origin.source}" both have a tool "${winner.definition.name}": the one of "${winner.origin.source}" is used, ${fate}. Rename one of them.`;
  const file = loser.origin.file === undefined ? {} : { file: loser.origin.file };
  return { severity: policy === "error" ? "error" : "warning", code: "TOOL_NAME_CLASH", ...file, source: loser.origin.source, message };
}

/** The prompts and resources of several skills. */
interface ResolvedOffers {
  readonly prompts: readonly Prompt[];
  readonly resourceTemplates: readonly ResourceTemplate[];
  /** Includes the files of the skills, which are listed only when this is read. */
  readonly resources: ResourceSet;
  readonly diagnostics: readonly Diagnostic[];
}

/** Decides which of several skills gets a prompt's name or a resource's URI. Skills come lowest precedence first. */
function resolveOffers(skills: readonly Skill[], policyFor: (name: string) => ConflictPolicy): ResolvedOffers {
  const diagnostics: Diagnostic[] = [];
  const report: Report = (winner, loser, fate, name, policy) => void diagnostics.push(clash(winner, loser, fate, name, policy));
  const chosen = { policyFor, report };
  // Later lists report nothing here: the author saw the other diagnostics when the skill was loaded.
  choose(
    skills.flatMap((skill) => skill.resources),
    ({ definition }) => definition.uri,
    chosen,
  );
  return {
    prompts: choosePrompts(skills, chosen),
    resourceTemplates: choose(
      skills.flatMap((skill) => skill.resourceTemplates),
      ({ definition }) => definition.uriTemplate,
      chosen,
    ),
    resources: joinResources(skills, policyFor),
    diagnostics,
  };
}

type Report = (winner: Item, loser: Item, fate: string, name: string, policy: ConflictPolicy) => void;

interface Choosing {
  readonly policyFor: (name: string) => ConflictPolicy;
  readonly report?: Report;
}

interface Item {
  readonly origin: ToolOrigin;
  readonly revision: string;
}

function choosePrompts(skills: readonly Skill[], choosing: Choosing): readonly Prompt[] {
  const all = skills.flatMap((skill) => skill.offeredPrompts);
  const taken = new Set(all.map(({ definition }) => definition.name));
  return choose(
    all,
    ({ definition }) => definition.name,
    choosing,
    (loser) => {
      const base = `${loser.origin.source}-${loser.definition.name}`;
      let name = promptName(base);
      for (let n = 2; taken.has(name); n++) name = promptName(`${base}-${n}`);
      taken.add(name);
      return renamePrompt(loser, name);
    },
  );
}

function choose<T extends Item>(
  items: readonly T[],
  nameOf: (item: T) => string,
  { policyFor, report }: Choosing,
  rename?: (loser: T) => T,
): readonly T[] {
  const byName = new Map<string, T>();
  for (const item of items) {
    const name = nameOf(item);
    const before = byName.get(name);
    if (before === undefined) {
      byName.set(name, item);
      continue;
    }
    const policy = policyFor(name);
    const [winner, loser] = policy === "keep-first" || policy === "error" ? [before, item] : [item, before];
    byName.set(name, winner);
    const renamed = policy === "rename" ? rename?.(loser) : undefined;
    if (renamed) byName.set(nameOf(renamed), renamed);
    const fate = renamed ? `this one is available as "${nameOf(renamed)}"` : "this one is not available";
    if (loser.revision !== winner.revision) report?.(winner, loser, fate, name, policy);
  }
  return Object.freeze([...byName.values()]);
}

function joinResources(skills: readonly Skill[], policyFor: Choosing["policyFor"]): ResourceSet {
  let of: readonly (readonly Resource[])[] | undefined;
  let resources: readonly Resource[] = [];
  return {
    get resources() {
      const now = skills.flatMap((skill) => [skill.resources, skill.files.resources]);
      if (of !== undefined && now.every((list, index) => list === of?.[index])) return resources;
      of = now;
      resources = choose(now.flat(), ({ definition }) => definition.uri, { policyFor });
      return resources;
    },
  };
}

function clash(winner: Item, loser: Item, fate: string, name: string, policy: ConflictPolicy): Diagnostic {
  const [has, lost] = [winner.origin.source, loser.origin.source];
  const message = `The skills "${has}" and "${lost}" both have "${name}": the one of "${has}" is used, ${fate}. Rename one of them.`;
  const code = "definition" in winner && "get" in winner ? "PROMPT_NAME_CLASH" : "RESOURCE_CLASH";
  const file = loser.origin.file === undefined ? {} : { file: loser.origin.file };
  return { severity: policy === "error" ? "error" : "warning", code, ...file, source: lost, message };
}
