import type { Diagnostic } from "../base/diagnostic.ts";
import type { EngineChoice } from "../io/module-loader.ts";
import type { ResolvedSkills, SkillState } from "../skills/resolve-overrides.ts";
import type { Tool } from "../tools/tool.ts";

/** Why a name means what it means. */
export interface Explanation {
  readonly name: string;
  /** Every skill of that name, in order of precedence. */
  readonly skills: readonly ExplainedSkill[];
  /** Every tool of that name, winner first. */
  readonly tools: readonly ExplainedTool[];
  readonly diagnostics: readonly Diagnostic[];
}

export interface ExplainedSkill {
  readonly name: string;
  readonly folder: string;
  readonly state: SkillState;
  readonly rule: string;
  /** The folder of the skill that has the name. */
  readonly winner?: string;
  readonly tools: readonly string[];
}

export interface ExplainedTool {
  readonly name: string;
  readonly kind: string;
  readonly source: string;
  readonly file?: string;
  /** `wins`: called by this name. `lost`: another has it. `renamed`: offered under `renamedTo`. `disabled`: its skill is. */
  readonly state: "wins" | "lost" | "renamed" | "disabled";
  readonly rule: string;
  readonly renamedTo?: string;
  readonly signature: string;
  /** For a tool that a module defines: which engine runs it, and why. */
  readonly engine?: EngineChoice;
}

type Fate = Pick<ExplainedTool, "state" | "rule" | "renamedTo">;

/** Follows a name, of a skill or a tool, through the rules that decided about it. */
export function explainName(name: string, resolved: ResolvedSkills, engineOf: (file: string) => EngineChoice | undefined): Explanation {
  const skills = resolved.standings.filter(({ skill }) => skill.name === name);
  const fates = new Map<Tool, Fate>();
  for (const tool of resolved.tools) fates.set(tool, { state: "wins", rule: "no tool that ranks higher has its name" });
  for (const { tool, rule, renamedTo } of resolved.shadowed)
    fates.set(tool, renamedTo === undefined ? { state: "lost", rule } : { state: "renamed", rule, renamedTo });
  for (const { skill, state, rule } of resolved.standings) {
    if (state === "active") continue;
    for (const tool of skill.tools)
      fates.set(tool, { state: state === "disabled" ? "disabled" : "lost", rule: `its skill is ${state}: ${rule}` });
  }
  const tools = [...fates].filter(([tool]) => tool.definition.name === name).map(([tool, fate]) => describe(tool, fate, engineOf));
  const concerned = new Set([...skills.map((s) => s.skill.name), ...tools.map((tool) => tool.source)]);
  return {
    name,
    skills: skills.map(({ skill, state, rule, winner }) => ({
      name: skill.name,
      folder: skill.folder,
      state,
      rule,
      ...(winner === undefined ? {} : { winner }),
      tools: skill.tools.map((tool) => tool.definition.name),
    })),
    tools: tools.sort((a, b) => Number(b.state === "wins") - Number(a.state === "wins")),
    diagnostics: resolved.diagnostics.filter(({ source }) => source !== undefined && concerned.has(source)),
  };
}

function describe(tool: Tool, fate: Fate, engineOf: (file: string) => EngineChoice | undefined): ExplainedTool {
  const { kind, source, file } = tool.origin;
  const engine = file === undefined ? undefined : engineOf(file);
  return {
    name: tool.definition.name,
    kind,
    source,
    ...(file === undefined ? {} : { file }),
    ...fate,
    signature: tool.signature,
    ...(engine === undefined ? {} : { engine }),
  };
}
