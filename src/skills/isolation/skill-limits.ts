import { lstatSync, mkdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { errorMessage, HostError } from "../../base/errors.ts";
import { packageRoot } from "../../base/package-root.ts";
import type { SkillPermissions } from "../../formats/skills/skill-permissions.ts";
import { realPathOfDeepest } from "../../io/confine-path.ts";
import type { Enclosure } from "../../io/process/enclose-process.ts";

/** What the code of a skill may reach, by its manifest. What is not declared is nothing. */
export interface SkillLimits extends Enclosure {
  readonly hosts: readonly string[];
  /** Paths that must not lead through a link, where they exist. */
  readonly exact: readonly string[];
}

/** Where relative paths of declarations begin. */
export interface LimitPlace {
  readonly folder: string;
  /** The working directory of the host. */
  readonly workingDirectory: string;
}

/**
 * The limits that a manifest declares, with what its paths are now: the code of the skill may have changed them since another child started.
 * Folders to write to are created. @throws HostError `ISOLATION_PATH` when that fails, or when a path leads elsewhere than it says
 */
export function limitsOf(permissions: SkillPermissions | undefined, place: LimitPlace): SkillLimits {
  const { read = [], write = [], hosts = [], programs = [] } = permissions ?? {};
  const exact = new Set<string>();
  const at = (path: string): string => resolvePath(path, place, exact);
  const modules = modulesOfSkill(place.folder);
  for (const path of modules) exact.add(join(realPathOfDeepest(dirname(path)), basename(path)));
  return {
    readable: [place.folder, ...ownFiles(), ...modules, ...read.map(at)],
    writable: write.map(at).map(createFolder),
    programs: programs.flatMap((name) => findProgram(name, place, exact)),
    hosts,
    exact: [...exact],
  };
}

function resolvePath(path: string, { folder, workingDirectory }: LimitPlace, exact: Set<string>): string {
  const withoutLinks = (base: string, relative: string): string => {
    const [target, real] = pathWithoutLinks(base, relative, path);
    exact.add(real);
    return target;
  };
  if (path === "~" || path.startsWith("~/")) return join(homedir(), path.slice(1));
  const [isInProject, rest = ""] = /^\{workingDirectory\}(?:[\\/](.*))?$/s.exec(path) ?? [];
  if (isInProject !== undefined) return withoutLinks(workingDirectory, rest);
  return isAbsolute(path) ? path : withoutLinks(folder, path);
}

/**
 * A link would make another file of what people read in the declaration, and a skill can bring links. Absolute paths and those of the home
 * folder belong to the user, whose links count.
 */
function pathWithoutLinks(base: string, path: string, declared: string): readonly [path: string, real: string] {
  const target = resolve(base, path);
  const real = realPathOfDeepest(target);
  if (real === resolve(realPathOfDeepest(base), path)) return [target, real];
  const message = `The skill declares ${JSON.stringify(declared)}, which leads through a link to ${real}. Declare that path, or replace the link.`;
  throw new HostError("ISOLATION_PATH", message);
}

function createFolder(path: string): string {
  try {
    if (statSync(path, { throwIfNoEntry: false }) !== undefined) return path;
    mkdirSync(path, { recursive: true });
    return path;
  } catch (error) {
    const message = `The skill declares that it writes to ${path}, which does not exist and cannot be created: ${errorMessage(error)}.`;
    throw new HostError("ISOLATION_PATH", message);
  }
}

/** The files of this package that a child runs. */
function ownFiles(): readonly string[] {
  return [join(packageRoot, "dist"), ...moduleFiles(packageRoot)];
}

/** The same above the skill, whose folder is readable as a whole. Links could lead anywhere, and may come with the skill. */
function modulesOfSkill(folder: string): readonly string[] {
  const places = new Set([folder, realPathOfDeepest(folder)]);
  return [...places].flatMap((place) => moduleFiles(dirname(place))).filter((path) => !isLink(path));
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

/** What modules in a folder are resolved with: installed packages, and settings of the folders above. */
function moduleFiles(folder: string): readonly string[] {
  const found: string[] = [];
  for (let at = folder; ; at = dirname(at)) {
    found.push(...["node_modules", "package.json", "tsconfig.json", "tsconfig.base.json"].map((name) => join(at, name)));
    if (dirname(at) === at) return found;
  }
}

/** A program by its path, or by its name in the folders of PATH. */
export function findProgram(name: string, place: LimitPlace, exact: Set<string> = new Set()): readonly string[] {
  if (/[\\/]/.test(name)) return [resolvePath(name, place, exact)];
  const folders = (process.env["PATH"] ?? "").split(process.platform === "win32" ? ";" : ":").filter(isAbsolute);
  const found = folders.map((each) => join(each, name)).find((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true);
  return found === undefined ? [] : [found];
}
