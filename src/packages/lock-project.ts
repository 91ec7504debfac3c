import { existsSync } from "node:fs";
import { basename, join, relative, resolve, sep } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { isInside } from "../io/confine-path.ts";
import { readFileBytes, readTextFile } from "../io/read-bounded.ts";
import { isSkillFolder } from "../skills/load/skill-path.ts";
import {
  findPackageSkills,
  type InstalledPackage,
  listSkillSources,
  productionNames,
  projectOfRoot,
  readManifest,
  usedPackages,
} from "../skills/store/package-skills.ts";
import { discoverRoot } from "../skills/store/skill-roots.ts";
import { digestBytes, digestFolder, signatureFileName } from "../trust/folder-digests.ts";
import {
  type LockedLocalSkill,
  type LockedPackage,
  type LockedSkill,
  type LockedSource,
  type PackagesLock,
  sourcesOf,
} from "./lock-file.ts";
import type { SkillReader } from "./read-skill-folder.ts";
import { lockedPaths, type TreeRequest } from "./resolve-tree.ts";

export interface LockOptions {
  readonly reader: SkillReader;
  readonly signal: AbortSignal;
  /** The project's own skill directories. Directories outside of the project are not locked. */
  readonly roots: readonly string[];
  /** Unchanged entries are copied from this lock file and not read again. */
  readonly before?: PackagesLock | undefined;
  /** The copied skills, by folder relative to the project. Default: those of `before`. */
  readonly sources?: Readonly<Record<string, LockedSource>>;
  /** Packages that are included even if they no longer contain skills. */
  readonly expected?: readonly string[];
  /** Called after each package or skill is read. */
  onRead?(name: string): void;
}

/** A package with skills, and their folders. */
interface SkillPackageFolder {
  readonly installed: InstalledPackage;
  readonly skills: readonly string[];
}

/** Returns the installed direct dependencies whose skills a project uses. */
export function skillPackages(project: string, expected: readonly string[] = []): readonly SkillPackageFolder[] {
  return listSkillSources(project).packages.flatMap((installed) => {
    const skills = findPackageSkills(installed.folder, installed.manifest).folders;
    return skills.length > 0 || expected.includes(installed.name) ? [{ installed, skills }] : [];
  });
}

/** Returns the folders of a project's own skills, relative to it. */
function localSkills(project: string, roots: readonly string[]): readonly string[] {
  const folders = roots.filter((root) => projectOfRoot(root) === undefined).flatMap((root) => discoverRoot(root).folders);
  const own = folders.filter((folder) => isInside(project, folder) && !/[\\/]node_modules[\\/]/.test(folder));
  return own.map((folder) => relative(project, folder).split(sep).join("/"));
}

/** Copied skills count wherever they are, even if no configured directory contains them. */
function foldersOfCopies(project: string, sources: Readonly<Record<string, LockedSource>>): readonly string[] {
  return Object.keys(sources).filter((path) => isSkillFolder(join(project, path)));
}

/**
 * Creates the lock of a project: its packages with skills, and its own skills.
 * @throws HostError `PACKAGES_UNREADABLE` when their files cannot be listed.
 */
export async function lockProject(project: string, options: LockOptions): Promise<PackagesLock> {
  const locked = lockedPaths(project);
  const packages: Record<string, LockedPackage> = {};
  for (const { installed, skills } of skillPackages(project, options.expected)) {
    packages[installed.name] = await lockPackage({ installed, skills, locked }, options);
    options.onRead?.(installed.name);
  }
  const skills: Record<string, LockedLocalSkill> = {};
  const sources = options.sources ?? sourcesOf(options.before);
  for (const path of [...new Set([...localSkills(project, options.roots), ...foldersOfCopies(project, sources)])].sort()) {
    const source = Object.hasOwn(sources, path) ? sources[path] : undefined;
    const { source: _, ...locked } = await lockLocal(join(project, path), options.before?.skills[path], options);
    skills[path] = { ...locked, ...(source && { source }) };
    options.onRead?.(path);
  }
  return { packages, skills };
}

interface PackagePlace extends SkillPackageFolder {
  readonly locked: ReturnType<typeof lockedPaths>;
}

async function lockPackage({ installed, skills, locked }: PackagePlace, options: LockOptions): Promise<LockedPackage> {
  const { name, folder, version = "0.0.0", isLink } = installed;
  const entry = locked.get(`node_modules/${name}`) ?? {};
  const text = (key: string): string | undefined => (typeof entry[key] === "string" ? (entry[key] as string) : undefined);
  const files = filesOf(folder);
  const source = isLink ? { link: text("resolved") ?? "" } : { resolved: text("resolved"), integrity: text("integrity") };
  const known = options.before?.packages[name];
  const paths = skills.map((skill) => relative(folder, skill).split(sep).join("/") || ".");
  const isSame = known !== undefined && sameRecord(known.files, files) && paths.join("\n") === Object.keys(known.skills).join("\n");
  const read = isSame ? known.skills : await readSkills(skills, paths, options);
  return { version, ...defined(source), skills: read, files };
}

async function readSkills(folders: readonly string[], paths: readonly string[], options: LockOptions): Promise<LockedPackage["skills"]> {
  const read: Record<string, LockedSkill> = {};
  for (const [index, folder] of folders.entries()) read[paths[index]!] = await lockSkill(folder, options);
  return read;
}

async function lockLocal(folder: string, known: LockedLocalSkill | undefined, options: LockOptions): Promise<LockedLocalSkill> {
  const files = filesOf(folder);
  if (known !== undefined && sameRecord(known.files, files)) return known;
  return { ...(await lockSkill(folder, options)), files };
}

async function lockSkill(folder: string, { reader, signal }: LockOptions): Promise<LockedSkill> {
  signal.throwIfAborted();
  const skill = await reader.read(folder, signal);
  // A skill that does not load is locked too, by its files.
  if (!("name" in skill)) return { name: basename(folder), tools: {} };
  const { name, version, tools, permissions } = skill;
  return { name, ...(version !== undefined && { version }), tools, ...(permissions && { permissions }) };
}

/** The digests of all files below a folder, except for nested packages. */
export function filesOf(folder: string): Readonly<Record<string, string>> {
  const { files, problems } = digestFolder(folder);
  const fatal = problems.filter(({ code }) => code !== "TRUST_NODE_MODULES");
  if (fatal.length > 0) throw unreadable(folder, fatal[0]!);
  const all = [...files].map(([path, { digest }]): [string, string] => [path, digest]);
  for (const path of signaturesIn(folder, files.keys())) {
    const read = readFileBytes(join(folder, path), 1024 * 1024);
    if (read.ok) all.push([path, digestBytes(read.bytes)]);
  }
  return Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A signature does not list itself, but its bytes count like any others. */
function signaturesIn(folder: string, paths: Iterable<string>): readonly string[] {
  const folders = new Set([...paths].map((path) => path.slice(0, path.lastIndexOf("/") + 1)));
  return [...new Set(["", ...folders])].map((at) => `${at}${signatureFileName}`).filter((path) => existsSync(join(folder, path)));
}

export function sameRecord(one: Readonly<Record<string, string>>, other: Readonly<Record<string, string>>): boolean {
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key]);
}

function defined<T extends object>(record: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: NonNullable<T[K]> };
}

function unreadable(folder: string, { file, message }: Diagnostic): HostError {
  return new HostError("PACKAGES_UNREADABLE", `${file ?? folder}: ${message}`);
}

/**
 * Records added packages in package.json under `skillhost.packages`, and removes those that were removed. `before`: the dependencies
 * before the change.
 */
export async function recordPackages(project: string, { add = [], remove = [] }: TreeRequest, before: readonly string[]): Promise<void> {
  const manifest = readManifest(project);
  const dependencies = productionNames(manifest);
  const fresh = dependencies.filter((name) => !before.includes(name));
  const named = add.flatMap((spec) => nameOf(spec, project, manifest) ?? []);
  const wanted = new Set([...usedPackages(manifest), ...(add.length > 0 ? [...fresh, ...named] : [])]);
  for (const name of [...remove, ...[...wanted].filter((name) => !dependencies.includes(name))]) wanted.delete(name);
  const packages = [...wanted].sort();
  if (JSON.stringify(packages) === JSON.stringify(usedPackages(manifest))) return;
  const file = join(project, "package.json");
  const own = isRecord(manifest["skillhost"]) ? manifest["skillhost"] : {};
  const { packages: _, ...rest } = own;
  const skillhost = packages.length > 0 ? { ...rest, packages } : rest;
  const { skillhost: _before, ...others } = manifest;
  const changed = Object.keys(skillhost).length > 0 ? { ...manifest, skillhost } : others;
  const text = readTextFile(file, maxBytes);
  const indent = (text.ok ? /^[ \t]+(?=")/m.exec(text.text)?.[0] : undefined) ?? "  ";
  await writeFileAtomic(file, `${JSON.stringify(changed, undefined, indent)}\n`, { inside: project });
}

/** The name of the dependency that a specification means. */
function nameOf(spec: string, project: string, manifest: Readonly<Record<string, unknown>>): string | undefined {
  if (!spec.startsWith("file:")) return /^(?:@[^/@]+\/)?[^/@]+/.exec(spec)?.[0];
  const path = resolve(project, spec.slice(5));
  const { dependencies } = manifest;
  if (!isRecord(dependencies)) return undefined;
  const isSame = (value: unknown): boolean =>
    typeof value === "string" && value.startsWith("file:") && resolve(project, value.slice(5)) === path;
  return Object.keys(dependencies).find((name) => isSame(dependencies[name]));
}

const maxBytes = 16 * 1024 * 1024;
