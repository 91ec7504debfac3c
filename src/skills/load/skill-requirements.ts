import { join } from "node:path";
import { orderByRequirements } from "../../base/dependency-order.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { explainRange } from "../../base/version-range.ts";
import type { Skill } from "../skill.ts";

/** A requirement of a skill, and whether it is met. */
export interface SkillRequirement {
  readonly name: string;
  readonly range: string;
  readonly isMet: boolean;
  /** The version of the skill with this name. */
  readonly version?: string;
  readonly folder?: string;
  /** Why it is not met, as a continuation of the requirement's text. */
  readonly problem?: string;
}

/** A skill of a view, before its requirements are checked. */
interface Standing {
  readonly skill: Skill;
  readonly state: "active" | "disabled" | "shadowed" | "untrusted";
  readonly rule: string;
}

export interface ResolvedRequires {
  /** The requirements of the skills that have some and would be active. */
  readonly requirements: ReadonlyMap<Skill, readonly SkillRequirement[]>;
  /** Skills with unmet requirements, and the rule that refuses them. */
  readonly refused: ReadonlyMap<Skill, string>;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Decides which skills have their requirements met. Only active skills count, and a refused skill is not available to others: the outcome
 * does not depend on the order. Skills that require each other are available to each other. `failed`: names of folders that could not be
 * loaded at all.
 */
export function resolveRequires(standings: readonly Standing[], failed: ReadonlySet<string>): ResolvedRequires {
  const active = new Map(standings.flatMap(({ skill, state }) => (state === "active" ? [[skill.name, skill] as const] : [])));
  const needy = [...active.values()].filter(({ requires }) => Object.keys(requires).length > 0);
  if (needy.length === 0) return nothing;
  const place: Place = { active, failed, ...sortOut(standings) };
  const own = new Map(needy.map((skill) => [skill, requirementsOf(skill, place)]));
  const refused = spread(needy, own);
  const requirements = new Map(needy.map((skill) => [skill, (own.get(skill) ?? []).map((item) => withRefusal(item, place, refused))]));
  const rules = new Map(
    [...refused].map(([skill, { item, problem }]) => [skill, `it requires "${item.name}" ${item.range}, but ${problem}`]),
  );
  const diagnostics = [...refused].map(([skill, { item }]) => unmet(skill, item, rules.get(skill)!, place));
  return { requirements, refused: rules, diagnostics: [...diagnostics, ...circles(needy, refused)] };
}

const nothing: ResolvedRequires = { requirements: new Map(), refused: new Map(), diagnostics: [] };

interface Place {
  readonly active: ReadonlyMap<string, Skill>;
  /** The rule that disables each name. */
  readonly disabled: ReadonlyMap<string, string>;
  readonly shadowed: ReadonlyMap<string, readonly Standing[]>;
  readonly failed: ReadonlySet<string>;
}

function sortOut(standings: readonly Standing[]): Pick<Place, "disabled" | "shadowed"> {
  const disabled = new Map<string, string>();
  const shadowed = new Map<string, Standing[]>();
  for (const standing of standings) {
    const { skill, state, rule } = standing;
    if (state === "disabled") disabled.set(skill.name, rule);
    else if (state === "shadowed") shadowed.set(skill.name, [...(shadowed.get(skill.name) ?? []), standing]);
  }
  return { disabled, shadowed };
}

/** Checks each requirement alone: whether the skill of that name matches, even if it is refused later. */
function requirementsOf({ requires }: Skill, place: Place): readonly SkillRequirement[] {
  return Object.entries(requires).map(([name, range]) => {
    const found = place.active.get(name);
    const problem = found === undefined ? absence(name, place) : mismatch(range, found, place);
    return {
      name,
      range,
      isMet: problem === undefined,
      ...(found?.version !== undefined && { version: found.version }),
      ...(found !== undefined && { folder: found.folder }),
      ...(problem !== undefined && { problem }),
    };
  });
}

function absence(name: string, { disabled, failed }: Place): string {
  const rule = disabled.get(name);
  if (rule !== undefined) return `that skill is disabled: ${rule}`;
  return failed.has(name) ? "that skill could not be loaded" : "no skill has that name";
}

function mismatch(range: string, found: Skill, { shadowed }: Place): string | undefined {
  const problem = explainRange(range, found.version);
  if (problem === undefined) return undefined;
  const other = shadowed.get(found.name)?.find(({ skill }) => explainRange(range, skill.version) === undefined);
  if (other === undefined) return `${problem}, in ${found.folder}`;
  return `${problem}, in ${found.folder}; version ${other.skill.version} in ${other.skill.folder} would match, but is not used because ${other.rule}`;
}

/** An unmet requirement, and its root cause. */
interface Lack {
  readonly item: SkillRequirement;
  readonly problem: string;
  readonly root: string;
}

/**
 * Finds refused skills and the reasons: first those with unmet requirements of their own, then those that require these, and so on.
 * Sorted by name within a round, so that the reason does not depend on the order.
 */
function spread(needy: readonly Skill[], own: ReadonlyMap<Skill, readonly SkillRequirement[]>): ReadonlyMap<Skill, Lack> {
  const users = new Map<string, { readonly user: Skill; readonly item: SkillRequirement }[]>();
  const refused = new Map<Skill, Lack>();
  for (const user of needy) {
    for (const item of own.get(user) ?? []) users.set(item.name, [...(users.get(item.name) ?? []), { user, item }]);
    const item = own.get(user)?.find(({ isMet }) => !isMet);
    if (item?.problem === undefined) continue;
    refused.set(user, { item, problem: item.problem, root: `"${user.name}" requires "${item.name}" ${item.range}, but ${item.problem}` });
  }
  for (let round = [...refused.keys()]; round.length > 0; ) {
    const next: Skill[] = [];
    for (const gone of round.sort(byName)) {
      const { root } = refused.get(gone)!;
      for (const { user, item } of users.get(gone.name) ?? []) {
        if (refused.has(user)) continue;
        refused.set(user, { item, problem: refusalOf(gone, root), root });
        next.push(user);
      }
    }
    round = next;
  }
  return refused;
}

function refusalOf({ version }: Skill, root: string): string {
  return `${version === undefined ? "that skill" : `version ${version} of it`} is rejected: ${root}`;
}

function withRefusal(item: SkillRequirement, { active }: Place, refused: ReadonlyMap<Skill, Lack>): SkillRequirement {
  const found = active.get(item.name);
  const lack = found && refused.get(found);
  return !item.isMet || found === undefined || lack === undefined ? item : { ...item, isMet: false, problem: refusalOf(found, lack.root) };
}

function byName(a: Skill, b: Skill): number {
  return a.name < b.name ? -1 : 1;
}

function unmet({ name, folder }: Skill, item: SkillRequirement, rule: string, { active, disabled }: Place): Diagnostic {
  // Disabling a skill is a deliberate choice; any other unmet requirement is a mistake.
  const isChosen = !active.has(item.name) && disabled.has(item.name);
  const message = `Skill "${name}" is not used: ${rule}.`;
  return {
    severity: isChosen ? "warning" : "error",
    code: "SKILL_REQUIRES",
    file: join(folder, "skill.json"),
    source: name,
    message,
  };
}

function circles(needy: readonly Skill[], refused: ReadonlyMap<Skill, unknown>): readonly Diagnostic[] {
  const serving = needy.filter((skill) => !refused.has(skill)).sort(byName);
  const items = serving.map(({ name, requires }) => ({ name, requires: Object.keys(requires).map((required) => ({ name: required })) }));
  const reported = new Set<readonly string[]>();
  return [...orderByRequirements(items).cycles].flatMap(([index, way]): Diagnostic[] => {
    if (reported.has(way)) return [];
    reported.add(way);
    const { name, folder } = serving[index]!;
    const shown = way.length <= 12 ? way : [...way.slice(0, 10), `… ${way.length - 11} more`, way.at(-1)!];
    const message = `Skills require each other in a cycle: ${shown.join(" → ")}. They work, but none can be used without the others.`;
    return [{ severity: "warning", code: "SKILL_REQUIRES_CYCLE", file: join(folder, "skill.json"), source: name, message }];
  });
}
