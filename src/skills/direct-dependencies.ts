import { existsSync, lstatSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { maxJsonBytes } from "../formats/text/limits.ts";
import { readTextFile } from "../io/read-bounded.ts";

/** A package that a project names as its dependency and that is installed. */
export interface InstalledPackage {
  readonly name: string;
  readonly version: string | undefined;
  /** Where it is installed, as the project sees it: links are not followed. */
  readonly folder: string;
  /** Its package.json. */
  readonly manifest: Readonly<Record<string, unknown>>;
  /** A workspace, or a folder that was linked: it is being worked on. */
  readonly isLink: boolean;
  /** A package manager is putting another version in its place at this moment. */
  readonly isInFlux: boolean;
}

export interface DirectDependencies {
  readonly packages: readonly InstalledPackage[];
  /** The `node_modules` folders that were searched, whether or not they are there. */
  readonly searched: readonly string[];
}

const groups = ["dependencies", "optionalDependencies", "devDependencies"];
const mostDependencies = 5_000;

/** The direct dependencies of the project in a folder that are installed, by name. What they depend on is none of them. */
export function listDirectDependencies(project: string): DirectDependencies {
  const searched = packagePlaces(project);
  const names = dependencyNames(readManifest(project)).slice(0, mostDependencies);
  const fluxOf = memo(namesInFlux);
  return { packages: names.flatMap((name) => findInstalled(name, searched, fluxOf) ?? []), searched };
}

/**
 * Those of a project's packages whose skills it uses: dependencies at run time that somebody has asked for by `skillhost
 * add`, which notes them in package.json. An installation alone brings no skills, and skillhost itself never does.
 */
export function listSkillSources(project: string): DirectDependencies {
  const { packages, searched } = listDirectDependencies(project);
  const manifest = readManifest(project);
  const used = new Set(usedPackages(manifest).filter((name) => productionNames(manifest).includes(name)));
  return { packages: packages.filter((each) => used.has(each.name) && each.manifest["name"] !== ownName), searched };
}

const ownName = "skillhost";

/** What a package.json says of the packages whose skills are used. */
export function usedPackages({ skillhost }: Readonly<Record<string, unknown>>): readonly string[] {
  const named = isRecord(skillhost) && Array.isArray(skillhost["packages"]) ? skillhost["packages"] : [];
  return named.filter((name): name is string => typeof name === "string");
}

/** The names of the dependencies that a package.json has for run time. */
export function productionNames(manifest: Readonly<Record<string, unknown>>): readonly string[] {
  return namesIn(manifest, ["dependencies", "optionalDependencies"]);
}

/** A folder's package.json; an empty one where there is none that can be read. */
export function readManifest(folder: string, file = "package.json"): Readonly<Record<string, unknown>> {
  const read = readTextFile(join(folder, file), maxJsonBytes);
  if (!read.ok) return {};
  try {
    const value: unknown = JSON.parse(read.text.replace(/^\ufeff/, ""));
    return isRecord(value) ? value : {};
  } catch {
    // The package manager complains of it; there are no dependencies in it that we could know.
    return {};
  }
}

/** The nearest folder upwards with a package.json, within the checkout; else the folder itself. */
export function findProject(folder: string): string {
  return upwards(folder).find((at) => existsSync(join(at, "package.json"))) ?? folder;
}

function dependencyNames(manifest: Readonly<Record<string, unknown>>): readonly string[] {
  return namesIn(manifest, groups);
}

function namesIn(manifest: Readonly<Record<string, unknown>>, keys: readonly string[]): readonly string[] {
  const named = keys.flatMap((group) => {
    const value = Object.hasOwn(manifest, group) ? manifest[group] : undefined;
    return isRecord(value) ? Object.keys(value) : [];
  });
  return [...new Set(named)].filter(isPackageName).sort();
}

/** A name is part of a path here. */
function isPackageName(name: string): boolean {
  return name.length <= 214 && /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/i.test(name) && name !== "node_modules";
}

/** As Node.js looks for packages, but not above the checkout or the workspace: what lies there may be anybody's. */
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
    const isInFlux = fluxOf(dirname(folder)).has(basename(folder));
    if (stat === undefined && !isInFlux) continue;
    const manifest = readManifest(folder);
    const version = typeof manifest["version"] === "string" ? manifest["version"] : undefined;
    return { name, version, folder, manifest, isLink: stat?.isSymbolicLink() ?? false, isInFlux };
  }
  return undefined;
}

// npm moves the old version to `.<name>-<8 characters>` beside it, and deletes that when it is done.
const retiredName = /^\.(.+)-[a-zA-Z0-9]{1,8}$/;
const replacingMs = 60_000;

/** What is being replaced in a `node_modules` folder, or in that of a scope. */
function namesInFlux(folder: string): ReadonlySet<string> {
  try {
    const retired = readdirSync(folder).filter((name) => retiredName.test(name));
    const fresh = retired.filter((name) => Date.now() - statSync(join(folder, name)).ctimeMs < replacingMs);
    return new Set(fresh.map((name) => retiredName.exec(name)![1]!));
  } catch {
    // There is no such folder, or what was there has just gone.
    return new Set();
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function memo<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, T>();
  return (key) => {
    if (!made.has(key)) made.set(key, make(key));
    return made.get(key)!;
  };
}
