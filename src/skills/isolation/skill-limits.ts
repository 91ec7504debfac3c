import { mkdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { errorMessage, HostError } from "../../base/errors.ts";
import { packageRoot } from "../../base/package-root.ts";
import type { SkillPermissions } from "../../formats/skills/skill-permissions.ts";
import { type Enclosure, findSandbox, type Sandbox } from "../../io/process/enclose-process.ts";

/** What the code of a skill may reach, by its manifest. What is not declared is nothing. */
export interface SkillLimits extends Enclosure {
  readonly hosts: readonly string[];
  /** Tools that it may call. */
  readonly tools: readonly string[];
}

/** Where relative paths of declarations begin. */
export interface LimitPlace {
  readonly folder: string;
  /** The working directory of the host. */
  readonly workingDirectory: string;
}

/** The limits that a manifest declares. Folders to write to are created. @throws HostError `ISOLATION_PATH` when that fails */
export function limitsOf(permissions: SkillPermissions | undefined, place: LimitPlace): SkillLimits {
  const { read = [], write = [], hosts = [], programs = [], tools = [] } = permissions ?? {};
  const at = (path: string): string => resolvePath(path, place);
  return {
    readable: [place.folder, ...ownFiles(), ...moduleFiles(place.folder), ...read.map(at)],
    writable: write.map(at).map(createFolder),
    programs: programs.flatMap((name) => findProgram(name, place)),
    hosts,
    tools,
  };
}

function resolvePath(path: string, { folder, workingDirectory }: LimitPlace): string {
  if (path === "~" || path.startsWith("~/")) return join(homedir(), path.slice(1));
  const [, rest] = /^\{workingDirectory\}(?:[\\/](.*))?$/s.exec(path) ?? [];
  if (path.startsWith("{workingDirectory}")) return resolve(workingDirectory, rest ?? "");
  return resolve(folder, path);
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
  return [join(packageRoot, "dist"), join(packageRoot, "package.json"), ...moduleFiles(packageRoot)];
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
function findProgram(name: string, { folder }: LimitPlace): readonly string[] {
  if (/[\\/]/.test(name)) return [resolve(folder, name)];
  const folders = (process.env["PATH"] ?? "").split(process.platform === "win32" ? ";" : ":").filter(isAbsolute);
  const found = folders.map((each) => join(each, name)).find((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true);
  return found === undefined ? [] : [found];
}

/** How far this machine enforces the limits of isolated code. */
export interface Protection {
  /** `enforced`: what is not declared is not reached. `partly`: as far as Node.js refuses it. `not-enforced`: everything is reached. */
  readonly state: "enforced" | "partly" | "not-enforced";
  /** By what, or why not. */
  readonly reason: string;
}

/** Describes what a sandbox promises. */
function protectionOf(sandbox: Sandbox): Protection {
  if (sandbox.kind === "system") return { state: "enforced", reason: sandbox.by };
  if (sandbox.kind === "none") return { state: "not-enforced", reason: sandbox.why };
  const open = "the network, native code, links and signals to other processes are not limited";
  return { state: "partly", reason: `${sandbox.by}; ${open}, because ${sandbox.why}` };
}

/** How far this machine enforces the limits of isolated code. */
export async function findProtection(): Promise<Protection> {
  return protectionOf(await findSandbox());
}
