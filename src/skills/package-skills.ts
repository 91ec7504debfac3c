import { readdirSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { globSync, isDynamicPattern } from "tinyglobby";
import type { Diagnostic } from "../base/diagnostic.ts";
import { confinePath } from "../io/confine-path.ts";
import { type InstalledPackage, listSkillSources, readManifest } from "./direct-dependencies.ts";
import { hasSkillDocument, isSkillFolder } from "./is-skill-folder.ts";
import type { RootListing, SkillPackage, WatchedFolder } from "./skill.ts";

const prefix = "packages:";

/** The root that stands for the skills which a project uses of its direct dependencies. */
export function packagesRoot(project: string): string {
  return `${prefix}${resolve(project)}`;
}

/** The project of such a root; undefined for any other root. */
export function projectOfRoot(root: string): string | undefined {
  return root.startsWith(prefix) ? root.slice(prefix.length) : undefined;
}

/** Lists the skills that a project uses of its direct dependencies, by the names of the packages. Nothing of them is run. */
export function listPackageSkills(root: string, project: string): RootListing {
  const { packages, searched } = listSkillSources(project);
  const folders: string[] = [];
  const diagnostics: Diagnostic[] = [];
  const byFolder = new Map<string, SkillPackage>();
  const inFlux: string[] = [];
  const watched: WatchedFolder[] = searched.map((path) => ({ path, isWhole: false }));
  for (const installed of packages) {
    const { name, version, folder } = installed;
    if (installed.isInFlux) inFlux.push(folder);
    const scope = dirname(folder);
    if (name.startsWith("@") && !watched.some(({ path }) => path === scope)) watched.push({ path: scope, isWhole: false });
    const found = findPackageSkills(folder, installed.manifest);
    diagnostics.push(...found.diagnostics.map((diagnostic) => ({ source: name, ...diagnostic })));
    for (const skill of found.folders) {
      folders.push(skill);
      byFolder.set(skill, { name, ...(version !== undefined && { version }) });
    }
    watched.push(...watchedOf(installed, found.bases, found.folders.length > 0));
  }
  return { root, folders, diagnostics, packages: byFolder, watched, inFlux };
}

export interface PackageSkills {
  /** Skill folders, by name. */
  readonly folders: readonly string[];
  /** The folders that they were looked for in. */
  readonly bases: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Finds the skills of one package: where its package.json says (`skillhost.skillDirectories`, `skills`, `agents.skills`,
 * `agentskills.skills`, `pi.skills`, the first of them that is there), else the package itself when it is a skill, else
 * every skill below its folder `skills`, three levels deep.
 */
export function findPackageSkills(folder: string, manifest: Readonly<Record<string, unknown>>): PackageSkills {
  const named = readKey(manifest);
  if (named !== undefined) return findNamed(folder, named.entries, named.key);
  if (isSkill(folder)) return { folders: [folder], bases: [folder], diagnostics: [] };
  const base = join(folder, "skills");
  return { folders: skillsBelow(base, 3), bases: [base], diagnostics: [] };
}

/** A skill.json beside package.json may be anybody's; one that lists prompts or tools is a skill's. */
function isSkill(folder: string): boolean {
  if (hasSkillDocument(folder)) return true;
  const { tools, prompts } = readManifest(folder, "skill.json");
  return Array.isArray(tools) || Array.isArray(prompts);
}

const keys: readonly (readonly string[])[] = [
  ["skillhost", "skillDirectories"],
  ["skills"],
  ["agents", "skills"],
  ["agentskills", "skills"],
  ["pi", "skills"],
];

function readKey(manifest: Readonly<Record<string, unknown>>): { readonly key: string; readonly entries: readonly unknown[] } | undefined {
  for (const path of keys) {
    const value = path.reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), manifest);
    if (typeof value === "string") return { key: path.join("."), entries: [value] };
    if (Array.isArray(value)) return { key: path.join("."), entries: value };
  }
  return undefined;
}

function findNamed(folder: string, entries: readonly unknown[], key: string): PackageSkills {
  const diagnostics: Diagnostic[] = [];
  const bases: string[] = [];
  const excluded: string[] = [];
  for (const entry of entries.slice(0, 1_000)) {
    const path = typeof entry === "string" ? entry : isRecord(entry) && typeof entry["path"] === "string" ? entry["path"] : undefined;
    // Other hosts name packages and repositories there, which are theirs to fetch.
    if (path === undefined || /^[a-z+]{2,}:/i.test(path)) continue;
    if (path.startsWith("!")) excluded.push(...expand(folder, path.slice(1)));
    else bases.push(...expand(folder, path).filter((at) => isConfined(folder, at, key, diagnostics)));
  }
  const found = bases.flatMap((base) => (isSkillFolder(base) ? [base] : skillsBelow(base, 3)));
  return { folders: [...new Set(found)].filter((skill) => !excluded.includes(skill)).sort(), bases, diagnostics };
}

function expand(folder: string, path: string): readonly string[] {
  if (!isDynamicPattern(path)) return [resolve(folder, path)];
  if (path.startsWith("/") || path.split(/[\\/]/).includes("..")) return [resolve(folder, path)];
  const found = globSync(path, {
    cwd: folder,
    onlyDirectories: true,
    absolute: true,
    expandDirectories: false,
    followSymbolicLinks: false,
  });
  return found.map((match) => match.replace(/[\\/]$/, "")).sort();
}

function isConfined(folder: string, path: string, key: string, diagnostics: Diagnostic[]): boolean {
  const confined = confinePath(folder, relative(folder, path) || ".");
  if (confined.ok) return true;
  const message = `"${key}" of this package: ${confined.message}`;
  diagnostics.push({ severity: "warning", code: "PACKAGE_SKILL_PATH", file: join(folder, "package.json"), message });
  return false;
}

/** A skill folder is not looked into: what lies in it belongs to it. */
function skillsBelow(base: string, depth: number): readonly string[] {
  const found: string[] = [];
  for (const name of foldersIn(base)) {
    const folder = join(base, name);
    if (isSkillFolder(folder)) found.push(folder);
    else if (depth > 1) found.push(...skillsBelow(folder, depth - 1));
  }
  return found;
}

const mostFolders = 10_000;

function foldersIn(folder: string): readonly string[] {
  try {
    const names = readdirSync(folder, { withFileTypes: true }).filter(
      (entry) => entry.name !== "node_modules" && !entry.name.startsWith(".") && isFolder(folder, entry),
    );
    return names
      .map(({ name }) => name)
      .sort()
      .slice(0, mostFolders);
  } catch {
    // There is none, or none that can be read: nothing is in it for us.
    return [];
  }
}

function isFolder(folder: string, entry: { readonly name: string; isDirectory(): boolean; isSymbolicLink(): boolean }): boolean {
  if (entry.isDirectory()) return true;
  // A package has no business with what a link of it leads to elsewhere.
  return entry.isSymbolicLink() && confinePath(folder, entry.name).ok && statSync(join(folder, entry.name)).isDirectory();
}

/** What must be watched of a package: its skills as a whole, and what tells that it got some. */
function watchedOf({ folder, isLink }: InstalledPackage, bases: readonly string[], hasSkills: boolean): readonly WatchedFolder[] {
  if (!hasSkills && !isLink) return [];
  const whole = bases.map((path) => ({ path, isWhole: true }));
  return bases.includes(folder) ? whole : [{ path: folder, isWhole: false }, ...whole];
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
