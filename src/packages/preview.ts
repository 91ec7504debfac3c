import { dirname, join, resolve } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { findPackageSkills, readManifest } from "../skills/store/package-skills.ts";
import { compareSkill, type Drift } from "./compare-locks.ts";
import type { PackagesLock } from "./lock-file.ts";
import type { ReadSkill, SkillReader } from "./read-skill-folder.ts";
import { lockedPaths, type ResolvedTree, type WantedPackage } from "./resolve-tree.ts";
import type { StagedPackage } from "./stage-packages.ts";

/** What a command is about to do, for the user's consent. */
export interface Preview {
  /** Direct dependencies that are added or change their version. */
  readonly packages: readonly PreviewedPackage[];
  /** Their transitive dependencies: `name@version`. */
  readonly dependencies: readonly string[];
  /** Names of removed packages. */
  readonly removed: readonly string[];
}

export interface PreviewedPackage {
  readonly name: string;
  readonly version: string;
  /** The version that it replaces. */
  readonly replaces?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  /** The target folder of a link. */
  readonly link?: string;
  readonly files: number;
  readonly bytes: number;
  /** The package has install scripts, which are not run. */
  readonly hasScripts: boolean;
  readonly skills: readonly PreviewedSkill[];
  /** The differences from the installed tools. */
  readonly changes: readonly Drift[];
}

export interface PreviewedSkill extends Partial<Omit<ReadSkill, "diagnostics">> {
  /** Relative to the package. */
  readonly path: string;
  /** Its staged folder. */
  readonly folder: string;
  readonly diagnostics: readonly Diagnostic[];
}

export interface PreviewOptions {
  readonly project: string;
  readonly reader: SkillReader;
  readonly signal: AbortSignal;
  readonly lock: PackagesLock | undefined;
}

/** Describes staged packages before their installation, without running anything. */
export async function previewTree(tree: ResolvedTree, staged: readonly StagedPackage[], options: PreviewOptions): Promise<Preview> {
  const { project } = options;
  const direct = tree.missing.filter(({ isDirect }) => isDirect);
  const packages: PreviewedPackage[] = [];
  for (const wanted of direct)
    packages.push(
      await previewPackage(
        wanted,
        staged.find((each) => each.wanted === wanted),
        options,
      ),
    );
  const names = lockedPaths(project);
  return {
    packages,
    dependencies: tree.missing.filter(({ isDirect }) => !isDirect).map(({ name, version }) => `${name}@${version}`),
    removed: tree.surplus.map((path) => `${path.slice(path.lastIndexOf("node_modules/") + 13)}@${names.get(path)?.["version"] ?? "?"}`),
  };
}

async function previewPackage(
  wanted: WantedPackage,
  staged: StagedPackage | undefined,
  options: PreviewOptions,
): Promise<PreviewedPackage> {
  const { project, reader, signal, lock } = options;
  const at = join(project, wanted.path);
  const folder = staged?.folder ?? resolve(dirname(at), wanted.target ?? ".");
  const found = findPackageSkills(folder, readManifest(folder));
  const skills: PreviewedSkill[] = [];
  for (const skill of found.folders) {
    const path = skill === folder ? "." : skill.slice(folder.length + 1).replaceAll("\\", "/");
    skills.push({ path, folder: skill, ...(await reader.read(skill, signal)) });
  }
  const { version: replaces } = readManifest(at);
  return {
    name: wanted.name,
    version: wanted.version,
    ...(typeof replaces === "string" && replaces !== wanted.version && { replaces }),
    ...(wanted.resolved !== undefined && { resolved: wanted.resolved }),
    ...(staged !== undefined && { integrity: staged.integrity }),
    ...(wanted.target !== undefined && { link: folder }),
    files: staged?.files ?? 0,
    bytes: staged?.bytes ?? 0,
    hasScripts: wanted.hasScripts,
    skills,
    changes: changesOf(wanted.name, skills, lock),
  };
}

function changesOf(name: string, skills: readonly PreviewedSkill[], lock: PackagesLock | undefined): readonly Drift[] {
  const before = lock?.packages[name];
  if (before === undefined) return [];
  return skills.flatMap((skill) => {
    const known = before.skills[skill.path];
    return known === undefined || skill.tools === undefined || skill.name === undefined
      ? []
      : compareSkill(skill.name, known, { name: skill.name, tools: skill.tools, permissions: skill.permissions });
  });
}
