import { existsSync, lstatSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { globSync } from "tinyglobby";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord } from "../../base/json.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { confinePath } from "../../io/confine-path.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { hasSkillDocument, isPattern, isSkillFolder } from "../load/skill-path.ts";
import type { RootListing, SkillPackage, WatchedFolder } from "../skill.ts";

const prefix = "packages:";

/** The root that represents the skills that a project uses of its direct dependencies. */
export function packagesRoot(project: string): string {
  return `${prefix}${resolve(project)}`;
}

/** The project of a packages root; undefined for any other root. */
export function projectOfRoot(root: string): string | undefined {
  return root.startsWith(prefix) ? root.slice(prefix.length) : undefined;
}

/** Lists the skills that a project uses of its direct dependencies, sorted by package name, without running anything. */
export function listPackageSkills(root: string, project: string): RootListing {
  const { packages, searched } = listSkillSources(project);
  const folders: string[] = [];
  const diagnostics: Diagnostic[] = [];
  const byFolder = new Map<string, SkillPackage>();
  const beingReplaced: string[] = [];
  const watched: WatchedFolder[] = searched.map((path) => ({ path, isWhole: false }));
  for (const installed of packages) {
    const { name, version, folder } = installed;
    if (installed.isBeingReplaced) beingReplaced.push(folder);
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
  return { root, folders, diagnostics, packages: byFolder, watched, beingReplaced };
}

export interface PackageSkills {
  /** Skill folders, sorted by name. */
  readonly folders: readonly string[];
  /** The folders that were searched. */
  readonly bases: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Finds the skills of one package: in the folders that its package.json names (`skillhost.skillDirectories`, `skills`, `agents.skills`,
 * `agentskills.skills`, `pi.skills`; the first that exists), otherwise the package itself if it is a skill, otherwise every skill below
 * its folder `skills`, three levels deep.
 */
export function findPackageSkills(folder: string, manifest: Readonly<Record<string, unknown>>): PackageSkills {
  const named = readKey(manifest);
  if (named !== undefined) return findNamed(folder, named.entries, named.key);
  if (isSkill(folder)) return { folders: [folder], bases: [folder], diagnostics: [] };
  const base = join(folder, "skills");
  return { folders: skillsBelow(base, 3), bases: [base], diagnostics: [] };
}

/** A skill.json beside package.json may belong to another product; with prompts or tools it is a skill's. */
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
    // Other hosts name packages and repositories there, which they fetch.
    if (path === undefined || /^[a-z+]{2,}:/i.test(path)) continue;
    if (path.startsWith("!")) excluded.push(...expand(folder, path.slice(1)));
    else bases.push(...expand(folder, path).filter((at) => isConfined(folder, at, key, diagnostics)));
  }
  const found = bases.flatMap((base) => (isSkillFolder(base) ? [base] : skillsBelow(base, 3)));
  return { folders: [...new Set(found)].filter((skill) => !excluded.includes(skill)).sort(), bases, diagnostics };
}

function expand(folder: string, path: string): readonly string[] {
  if (!isPattern(path)) return [resolve(folder, path)];
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

/** Skill folders are not searched: their content belongs to the skill. */
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
    // The folder is missing or unreadable: it contains no skills.
    return [];
  }
}

function isFolder(folder: string, entry: { readonly name: string; isDirectory(): boolean; isSymbolicLink(): boolean }): boolean {
  if (entry.isDirectory()) return true;
  // A link of a package must not lead out of it.
  return entry.isSymbolicLink() && confinePath(folder, entry.name).ok && statSync(join(folder, entry.name)).isDirectory();
}

/** The folders to watch for a package: its skills with everything below, and the folder where skills may appear. */
function watchedOf({ folder, isLink }: InstalledPackage, bases: readonly string[], hasSkills: boolean): readonly WatchedFolder[] {
  if (!hasSkills && !isLink) return [];
  const whole = bases.map((path) => ({ path, isWhole: true }));
  return bases.includes(folder) ? whole : [{ path: folder, isWhole: false }, ...whole];
}

/** An installed dependency of a project. */
export interface InstalledPackage {
  readonly name: string;
  readonly version: string | undefined;
  /** Its folder as the project sees it, without resolving links. */
  readonly folder: string;
  /** Its package.json. */
  readonly manifest: Readonly<Record<string, unknown>>;
  /** True for a workspace or a linked folder, which may be under development. */
  readonly isLink: boolean;
  /** True while a package manager replaces it. */
  readonly isBeingReplaced: boolean;
}

interface DirectDependencies {
  readonly packages: readonly InstalledPackage[];
  /** The `node_modules` folders that were searched, existing or not. */
  readonly searched: readonly string[];
}

const groups = ["dependencies", "optionalDependencies", "devDependencies"];
const mostDependencies = 5_000;

/** The installed direct dependencies of the project in a folder, sorted by name. Transitive dependencies are excluded. */
export function listDirectDependencies(project: string): DirectDependencies {
  const searched = packagePlaces(project);
  const names = namesIn(readManifest(project), groups).slice(0, mostDependencies);
  const fluxOf = memo(namesBeingReplaced);
  return { packages: names.flatMap((name) => findInstalled(name, searched, fluxOf) ?? []), searched };
}

/**
 * The packages whose skills a project uses: runtime dependencies that `skillhost add` has recorded in package.json. An installation alone
 * activates no skills, and skillhost itself never does.
 */
export function listSkillSources(project: string): DirectDependencies {
  const { packages, searched } = listDirectDependencies(project);
  const manifest = readManifest(project);
  const used = new Set(usedPackages(manifest).filter((name) => productionNames(manifest).includes(name)));
  return { packages: packages.filter((each) => used.has(each.name) && each.manifest["name"] !== ownName), searched };
}

const ownName = "skillhost";

/** The packages that a package.json lists as sources of skills. */
export function usedPackages({ skillhost }: Readonly<Record<string, unknown>>): readonly string[] {
  const named = isRecord(skillhost) && Array.isArray(skillhost["packages"]) ? skillhost["packages"] : [];
  return named.filter((name): name is string => typeof name === "string");
}

/** The names of the runtime dependencies in a package.json. */
export function productionNames(manifest: Readonly<Record<string, unknown>>): readonly string[] {
  return namesIn(manifest, ["dependencies", "optionalDependencies"]);
}

/** A folder's package.json; empty if missing or unreadable. */
export function readManifest(folder: string, file = "package.json"): Readonly<Record<string, unknown>> {
  const read = readTextFile(join(folder, file), maxJsonBytes);
  if (!read.ok) return {};
  try {
    const value: unknown = JSON.parse(read.text.replace(/^\ufeff/, ""));
    return isRecord(value) ? value : {};
  } catch {
    // The package manager reports the error; its dependencies are unknown here.
    return {};
  }
}

/** The nearest ancestor with a package.json within the checkout; otherwise the folder itself. */
export function findProject(folder: string): string {
  return upwards(folder).find((at) => existsSync(join(at, "package.json"))) ?? folder;
}

function namesIn(manifest: Readonly<Record<string, unknown>>, keys: readonly string[]): readonly string[] {
  const named = keys.flatMap((group) => {
    const value = Object.hasOwn(manifest, group) ? manifest[group] : undefined;
    return isRecord(value) ? Object.keys(value) : [];
  });
  return [...new Set(named)].filter(isPackageName).sort();
}

/** Validates the name, because it becomes part of a path. */
function isPackageName(name: string): boolean {
  return name.length <= 214 && /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/i.test(name) && name !== "node_modules";
}

/** Searches as Node.js does, but not above the checkout or the workspace, which another user may own. */
export function packagePlaces(project: string): readonly string[] {
  return upwards(project).map((folder) => join(folder, "node_modules"));
}

function upwards(folder: string): readonly string[] {
  const passed: string[] = [];
  for (let at = folder; ; at = dirname(at)) {
    passed.push(at);
    if (existsSync(join(at, ".git"))) return passed;
    if (dirname(at) === at) return passed.slice(0, passed.findLastIndex(isWorkspaceRoot) + 1 || 1);
  }
}

function isWorkspaceRoot(folder: string): boolean {
  return existsSync(join(folder, "pnpm-workspace.yaml")) || readManifest(folder)["workspaces"] !== undefined;
}

function findInstalled(
  name: string,
  places: readonly string[],
  fluxOf: (folder: string) => ReadonlySet<string>,
): InstalledPackage | undefined {
  for (const place of places) {
    const folder = join(place, name);
    const stat = lstatSync(folder, { throwIfNoEntry: false });
    const isBeingReplaced = fluxOf(dirname(folder)).has(basename(folder));
    if (stat === undefined && !isBeingReplaced) continue;
    const manifest = readManifest(folder);
    const version = typeof manifest["version"] === "string" ? manifest["version"] : undefined;
    return { name, version, folder, manifest, isLink: stat?.isSymbolicLink() ?? false, isBeingReplaced };
  }
  return undefined;
}

// npm moves the old version to `.<name>-<8 characters>` beside it, and deletes that at the end.
const retiredName = /^\.(.+)-[a-zA-Z0-9]{1,8}$/;
const replacingMs = 60_000;

/** The packages being replaced in a `node_modules` or scope folder. */
function namesBeingReplaced(folder: string): ReadonlySet<string> {
  try {
    const retired = readdirSync(folder).filter((name) => retiredName.test(name));
    const fresh = retired.filter((name) => Date.now() - statSync(join(folder, name)).ctimeMs < replacingMs);
    return new Set(fresh.map((name) => retiredName.exec(name)![1]!));
  } catch {
    // The folder is missing, or was just removed.
    return new Set();
  }
}

function memo<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, T>();
  return (key) => {
    if (!made.has(key)) made.set(key, make(key));
    return made.get(key)!;
  };
}
