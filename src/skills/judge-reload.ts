import type { Diagnostic } from "../base/diagnostic.ts";
import type { Tool } from "../tools/tool.ts";
import type { Generation } from "./load-skill.ts";
import type { SkillText } from "./read-skill.ts";
import type { ToolUnit } from "./stage-tool.ts";
import type { ToolEntries } from "./tool-entries.ts";

/** What an attempt to load a skill anew has come to. */
export interface Attempt {
  readonly text: SkillText;
  readonly listed: ToolEntries;
  readonly units: readonly ToolUnit[];
  readonly tools: readonly Tool[];
}

/** Whether a fault would take away something that works now. What the author took out on purpose is no loss. */
export function losesSomething(before: Generation, attempt: Attempt): boolean {
  return losesText(before, attempt.text) || before.units.some((unit) => losesTools(before, unit, attempt));
}

function losesText({ text: before }: Generation, { lost }: SkillText): boolean {
  if (lost.manifest && !before.lost.manifest) return true;
  if (lost.document && before.document !== undefined && !before.lost.document) return true;
  return before.prompts.some((prompt) => lost.prompts.includes(prompt.path));
}

function losesTools(before: Generation, unit: ToolUnit, { listed, units, tools }: Attempt): boolean {
  const serving = before.skill.tools.filter((tool) => unit.tools.includes(tool));
  const isGone = serving.some(({ definition }) => !tools.some((tool) => tool.definition.name === definition.name));
  return isGone && (isFaulty(unit, units) || listed.lost.some((path) => unit.path === path || unit.path?.startsWith(`${path}/`)));
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
