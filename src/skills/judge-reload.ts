import type { Diagnostic } from "../base/diagnostic.ts";
import type { Resource } from "../tools/resource.ts";
import type { Tool } from "../tools/tool.ts";
import type { Generation } from "./load-skill.ts";
import type { SkillText } from "./read-skill.ts";
import type { SkillOffers } from "./skill-offers.ts";
import type { ToolUnit } from "./stage-tool.ts";
import type { ToolEntries } from "./tool-entries.ts";

/** What an attempt to load a skill anew has come to. */
export interface Attempt {
  readonly text: SkillText;
  readonly listed: ToolEntries;
  readonly units: readonly ToolUnit[];
  readonly tools: readonly Tool[];
  /** Tools that are there and must not be offered, by name. */
  readonly leftOut: ReadonlySet<string>;
  readonly offers: SkillOffers;
}

/** Whether a fault would take away something that works now. What the author took out on purpose is no loss. */
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

/** Whether something of the unit that serves has nothing of its name in its place. */
function loses<T>(own: readonly T[], serving: readonly T[], next: readonly T[], nameOf: (item: T) => string): boolean {
  return serving.some((item) => own.includes(item) && !next.some((other) => nameOf(other) === nameOf(item)));
}

/** Whether what took a unit's place has a fault. Tools written into the manifest have no place that they could be known by. */
function isFaulty(unit: ToolUnit, units: readonly ToolUnit[]): boolean {
  return units.some((other) => {
    const isSuccessor = unit.path === undefined ? other.path === undefined : other.key === unit.key;
    return isSuccessor && other.diagnostics.some(isError);
  });
}

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}
