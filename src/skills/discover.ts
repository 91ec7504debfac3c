import { type Dirent, existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { globSync, isDynamicPattern } from "tinyglobby";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, isOutOfFiles } from "../base/errors.ts";
import { requireFileHandle } from "../io/require-file-handle.ts";
import { isSkillFolder } from "./is-skill-folder.ts";
import { listPackageSkills, projectOfRoot } from "./package-skills.ts";
import type { RootListing } from "./skill.ts";

/** Folders in which nobody keeps skills. */
export const skippedNames: ReadonlySet<string> = new Set(["node_modules", ".git"]);
const mostFolders = 20_000;

/** An entry of `skillDirectories` as an absolute path or absolute glob: `~` is the home folder. */
export function resolveRoot(entry: string, workingDirectory: string): string {
  const expanded = entry === "~" || entry.startsWith("~/") || entry.startsWith("~\\") ? join(homedir(), entry.slice(1)) : entry;
  return isDynamicPattern(expanded) && !existsSync(expanded)
    ? toGlob(resolve(workingDirectory, expanded))
    : resolve(workingDirectory, expanded);
}

/** The part of a root that is no pattern: the folder to watch. */
export function fixedPart(root: string): string {
  const project = projectOfRoot(root);
  if (project !== undefined) return join(project, "package.json");
  if (!isGlobRoot(root)) return root;
  const parts = root.split("/");
  const first = parts.findIndex((part) => isDynamicPattern(part));
  return parts.slice(0, first).join("/") || "/";
}

/**
 * Lists the skill folders of a root: the root itself when it holds a skill, else its immediate children that do, by
 * name. Links are followed; a folder that is reached twice counts once. A root that is not there is empty, with an error
 * that says so. While no file can be opened, it keeps the folders that it had before.
 */
export function discoverRoot(root: string, before?: RootListing): RootListing {
  try {
    requireFileHandle(fixedPart(root));
  } catch (error) {
    return { folders: [], ...before, root, diagnostics: [unreadable(root, error)], isOutdated: true };
  }
  const project = projectOfRoot(root);
  if (project !== undefined) return listPackageSkills(root, project);
  if (!isGlobRoot(root)) return listFolder(root);
  const matches = globSync(root, { onlyDirectories: true, absolute: true, expandDirectories: false, followSymbolicLinks: false });
  const listings = matches.map((match) => listFolder(match.replace(/[\\/]$/, ""))).sort((a, b) => (a.root < b.root ? -1 : 1));
  return { root, folders: [...new Set(listings.flatMap((l) => l.folders))], diagnostics: listings.flatMap((l) => l.diagnostics) };
}

function isGlobRoot(root: string): boolean {
  return isDynamicPattern(root) && !existsSync(root);
}

function toGlob(path: string): string {
  return path.replaceAll("\\", "/");
}

function listFolder(root: string): RootListing {
  if (!existsSync(root)) return { root, folders: [], diagnostics: [missing(root)] };
  if (isSkillFolder(root)) return { root, folders: [root], diagnostics: [] };
  let entries: Dirent[];
  let realRoot: string;
  try {
    // The folder may be renamed at any moment, also between these two.
    realRoot = realpathSync.native(root);
    entries = readdirSync(root, { withFileTypes: true }).filter(
      (entry) => !skippedNames.has(entry.name) && (entry.isDirectory() || entry.isSymbolicLink()),
    );
  } catch (error) {
    return { root, folders: [], diagnostics: [unreadable(root, error)] };
  }
  const sorted = entries.sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, mostFolders);
  const { folders, diagnostics } = withoutRepeats(root, realRoot, sorted);
  if (entries.length > mostFolders) diagnostics.push(tooMany(root, entries.length));
  return { root, folders: folders.filter(isSkillFolder), diagnostics };
}

/** Leaves out links that lead to a folder that is listed anyway, and those that lead nowhere. */
function withoutRepeats(root: string, realRoot: string, entries: readonly Dirent[]): { folders: string[]; diagnostics: Diagnostic[] } {
  const seen = new Set(entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(realRoot, name)));
  const diagnostics: Diagnostic[] = [];
  const isWanted = (entry: Dirent): boolean => {
    if (entry.isDirectory()) return true;
    try {
      const real = realpathSync.native(join(root, entry.name));
      const isNew = !seen.has(real) && statSync(real).isDirectory();
      seen.add(real);
      return isNew;
    } catch (error) {
      diagnostics.push(brokenLink(join(root, entry.name), error));
      return false;
    }
  };
  return { folders: entries.filter(isWanted).map(({ name }) => join(root, name)), diagnostics };
}

/** The code of what is said of a root that is not there. */
export const rootMissingCode = "SKILLS_DIRECTORY_MISSING";

function missing(root: string): Diagnostic {
  const message = "This skill directory does not exist. Create it, or correct the name where it is given.";
  return { severity: "error", code: rootMissingCode, file: root, message };
}

function unreadable(root: string, error: unknown): Diagnostic {
  return {
    severity: "error",
    code: "SKILLS_UNREADABLE",
    file: root,
    message: `This skill directory cannot be read: ${errorMessage(error)}.${isOutOfFiles(error) ? "" : " Check its permissions."}`,
  };
}

function tooMany(root: string, count: number): Diagnostic {
  const message = `This skill directory holds ${count} folders; the first ${mostFolders} are read. Split it, or name the folders you need.`;
  return { severity: "warning", code: "SKILLS_TOO_MANY", file: root, message };
}

function brokenLink(path: string, error: unknown): Diagnostic {
  return {
    severity: "warning",
    code: "SKILL_LINK_BROKEN",
    file: path,
    message: `This link is broken (${errorMessage(error)}). Fix or remove it.`,
  };
}
