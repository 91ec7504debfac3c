import { basename } from "node:path";
import { type Isolation, tierFor } from "../skills/isolation/isolation-policy.ts";
import type { ResolvedSkills } from "../skills/resolve-overrides.ts";
import type { LoadedFolder, Skill, SkillsSnapshot } from "../skills/skill.ts";
import type { SkillInfo } from "./host.ts";

/** Lists the skills of a view in order of precedence. Folders that could not be loaded come last. */
export function describeSkills(resolved: ResolvedSkills, { folders, roots }: SkillsSnapshot, isolation: Isolation): SkillInfo[] {
  const packageOf = packagesIn(roots);
  const known = resolved.standings.map(({ skill, state, rule }): SkillInfo => {
    const { name, displayName, description, version, folder, generation, promptMode, prompts } = skill;
    const loaded = folders.get(folder);
    return {
      name,
      ...(displayName === undefined ? {} : { displayName }),
      description,
      ...(version === undefined ? {} : { version }),
      folder,
      ...packageOf(folder),
      state,
      rule,
      stale: loaded?.stale ?? false,
      generation,
      promptMode,
      prompts,
      tools: skill.tools.map((tool) => tool.definition.name),
      ...(skill.permissions && { permissions: skill.permissions }),
      ...isolationOf(skill, isolation),
      ...(skill.uses.size > 0 && { uses: Object.fromEntries(skill.uses) }),
      diagnostics: loaded?.diagnostics ?? [],
      ...trustOf(loaded),
    };
  });
  const failed = resolved.failed.map(({ folder, diagnostics }): SkillInfo => {
    const nothing = { description: "", stale: false, generation: 0, promptMode: "on-demand", prompts: [], tools: [] } as const;
    return {
      name: basename(folder),
      folder,
      ...packageOf(folder),
      ...(diagnostics.some(({ code, severity }) => severity === "error" && code.startsWith("TRUST_"))
        ? { state: "refused", rule: "it is not trusted" }
        : { state: "failed", rule: "it could not be loaded" }),
      ...nothing,
      diagnostics,
      ...trustOf(folders.get(folder)),
    };
  });
  return [...known, ...failed];
}

/** Absent: its code runs in this process. */
function isolationOf({ scope }: Skill, isolation: Isolation): Pick<SkillInfo, "isolation"> {
  const tier = tierFor(isolation, scope);
  return tier === "off" ? {} : { isolation: tier };
}

function trustOf(loaded: LoadedFolder | undefined): Pick<SkillInfo, "trust" | "held"> {
  const held = loaded?.held?.map(({ name, reason, diff }) => ({ name, reason, diff }));
  return { ...(loaded?.trust && { trust: loaded.trust }), ...(held && { held }) };
}

/** Returns a function that finds the npm package of a skill's folder. */
export function packagesIn(roots: SkillsSnapshot["roots"]): (folder: string) => Pick<SkillInfo, "package"> {
  const listed = [...roots.values()].flatMap((listing) => listing.packages ?? []);
  return (folder) => {
    const found = listed.find((packages) => packages.has(folder))?.get(folder);
    return found === undefined ? {} : { package: found };
  };
}
