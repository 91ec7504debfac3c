import type { Diagnostic } from "../base/diagnostic.ts";
import type { EngineChoice } from "../io/module-loader/module-loader.ts";
import { assembleCatalog } from "../session/catalog/assemble-catalog.ts";
import { createCatalogView } from "../session/catalog/catalog-view.ts";
import type { CatalogSource } from "../session/catalog/tool-catalog.ts";
import type { SkillRequirement } from "../skills/load/skill-requirements.ts";
import { nameOfFailed, type ResolvedSkills, type SkillState } from "../skills/resolve-overrides.ts";
import type { SkillPackage } from "../skills/skill.ts";
import type { Tool, ToolDefinition } from "../tools/tool.ts";

/** Which skills and tools a name refers to, and why. */
export interface Explanation {
  readonly name: string;
  /** All skills with this name, in order of precedence. */
  readonly skills: readonly ExplainedSkill[];
  /** All tools with this name, the winner first. */
  readonly tools: readonly ExplainedTool[];
  readonly diagnostics: readonly Diagnostic[];
}

/** A skill with a name that was asked about, and whether it is the one that is used. */
export interface ExplainedSkill {
  readonly name: string;
  readonly folder: string;
  /** The npm package that contains it. */
  readonly package?: SkillPackage;
  readonly state: SkillState | "failed";
  readonly rule: string;
  /** The folder of the skill that the name refers to. */
  readonly winner?: string;
  /** Its requirements, and whether they are met. */
  readonly requires?: readonly SkillRequirement[];
  readonly tools: readonly string[];
}

/** A tool with a name that was asked about, and whether it is the one that sessions get. */
export interface ExplainedTool {
  readonly name: string;
  readonly kind: string;
  readonly source: string;
  readonly file?: string;
  /** For a tool of an MCP server: the server's own name for it. */
  readonly nativeName?: string;
  /** `wins`: the name refers to it. `lost`: the name refers to another tool. `renamed`: available as `renamedTo`. `disabled`: its skill is disabled. */
  readonly state: "wins" | "lost" | "renamed" | "disabled";
  readonly rule: string;
  readonly renamedTo?: string;
  readonly signature: string;
  /** For a tool that is written in JSON: its program or URL, and the variables that it sends. */
  readonly uses?: readonly string[];
  /** For a tool in a module: the engine that runs it, and why. */
  readonly engine?: EngineChoice;
}

/** A tool of a host, whether or not its name refers to it. */
export interface HostTool extends Omit<ExplainedTool, "uses" | "engine"> {
  readonly definition: ToolDefinition;
}

type Fate = Pick<ExplainedTool, "state" | "rule" | "renamedTo">;

export interface ExplainParts {
  readonly skills: ResolvedSkills;
  /** Finds the npm package of a skill's folder. */
  readonly packageOf: (folder: string) => { readonly package?: SkillPackage };
  /** The tools of plugins and MCP servers. */
  readonly others: readonly CatalogSource[];
  readonly engineOf: (file: string) => EngineChoice | undefined;
}

/** Explains which rules decided what the name of a skill or tool refers to. */
export function explainName(name: string, { skills: resolved, others, packageOf, engineOf }: ExplainParts): Explanation {
  const skills = resolved.standings.filter(({ skill }) => skill.name === name);
  const fates = fatesOf(resolved, others);
  const usesOf = ({ origin, definition }: Tool): readonly string[] | undefined =>
    resolved.standings.find(({ skill }) => origin.kind === "skill" && skill.name === origin.source)?.skill.uses.get(definition.name);
  const tools = [...fates].filter(([tool]) => isNamed(tool, name)).map(([tool, fate]) => describe(tool, fate, usesOf(tool), engineOf));
  const related = new Set([name, ...skills.map((s) => s.skill.name), ...tools.map((tool) => tool.source)]);
  const diagnostics = [...resolved.diagnostics, ...others.flatMap((source) => source.diagnostics ?? [])];
  return {
    name,
    skills: [
      ...skills.map(({ skill, state, rule, winner, requires }) => ({
        name: skill.name,
        folder: skill.folder,
        ...packageOf(skill.folder),
        state,
        rule,
        ...(winner === undefined ? {} : { winner }),
        ...(requires === undefined ? {} : { requires }),
        tools: skill.tools.map((tool) => tool.definition.name),
      })),
      ...resolved.failed
        .filter((folder) => nameOfFailed(folder) === name)
        .map(({ folder, diagnostics: own }): ExplainedSkill => {
          const error = own.find(({ severity }) => severity === "error");
          const rule = `it could not be loaded${error === undefined ? "" : `: ${error.message}`}`;
          return { name, folder, state: "failed", rule, tools: [], ...packageOf(folder) };
        }),
    ],
    tools: tools.sort((a, b) => Number(b.state === "wins") - Number(a.state === "wins")),
    diagnostics: diagnostics.filter(({ source }) => source !== undefined && related.has(source)),
  };
}

/** The tools of every source, each with what decided about its name. */
export function describeTools({ skills, others }: Pick<ExplainParts, "skills" | "others">): readonly HostTool[] {
  return Array.from(fatesOf(skills, others), ([tool, fate]) => {
    const { uses: _, engine: __, ...described } = describe(tool, fate, undefined, () => undefined);
    return { ...described, definition: tool.definition };
  });
}

/** Whether a tool has this name, also in the form `server/tool`, `skill/tool` or `plugin/tool`. */
function isNamed({ definition, origin }: Tool, name: string): boolean {
  return definition.name === name || `${origin.source}/${origin.nativeName}` === name;
}

function fatesOf(resolved: ResolvedSkills, others: readonly CatalogSource[]): ReadonlyMap<Tool, Fate> {
  const fates = new Map<Tool, Fate>();
  for (const { skill, state, rule } of resolved.standings) {
    if (state === "active") continue;
    for (const tool of skill.tools)
      fates.set(tool, { state: state === "disabled" ? "disabled" : "lost", rule: `its skill is ${state}: ${rule}` });
  }
  for (const { tool, rule, renamedTo } of resolved.shadowed)
    fates.set(tool, renamedTo === undefined ? { state: "lost", rule } : { state: "renamed", rule, renamedTo });
  // The catalog of a session without options.
  const catalog = assembleCatalog([...others, { kind: "skill", id: "skills", tools: resolved.tools }], createCatalogView({}));
  for (const { tool, rule, winner } of catalog.losers) fates.set(tool, { state: "lost", rule: describeLoss(rule, winner) });
  for (const tool of catalog.candidates)
    if (!fates.has(tool)) fates.set(tool, { state: "wins", rule: "no tool with a higher rank has the same name" });
  return fates;
}

function describeLoss(rule: string, winner: Tool | undefined): string {
  const what = rules[rule] ?? rule;
  return winner === undefined ? what : `${what}; the name belongs to ${winner.origin.kind} "${winner.origin.source}"`;
}

const rules: Readonly<Record<string, string>> = {
  "higher-kind": "a tool of a kind with a higher rank has the same name",
  "later-source": "of two sources of the same kind, the later one wins",
  "same-source-twice": "its source has two tools with this name; the first is used",
  "builtin-name-without-flag": "it has the name of a built-in tool but does not set overridesBuiltInTool",
  "illegal-name": "models cannot call a tool with such a name",
};

function describe(
  tool: Tool,
  fate: Fate,
  uses: readonly string[] | undefined,
  engineOf: (file: string) => EngineChoice | undefined,
): ExplainedTool {
  const { kind, source, nativeName, file } = tool.origin;
  const engine = file === undefined ? undefined : engineOf(file);
  return {
    name: tool.definition.name,
    kind,
    source,
    ...(kind === "mcp" && { nativeName }),
    ...(file === undefined ? {} : { file }),
    ...fate,
    signature: tool.signature,
    ...(uses && { uses }),
    ...(engine === undefined ? {} : { engine }),
  };
}
