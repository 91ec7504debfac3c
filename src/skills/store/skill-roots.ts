import { type Dirent, existsSync, opendirSync, readdirSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { globSync } from "tinyglobby";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, isOutOfFiles } from "../../base/errors.ts";
import { isInside } from "../../io/confine-path.ts";
import type { PathChange } from "../../io/watch/watch-tree.ts";
import { isPattern, isSkillFolder } from "../load/skill-path.ts";
import type { RootListing } from "../skill.ts";
import { listPackageSkills, projectOfRoot } from "./package-skills.ts";

/** The claimed roots, and the current skill folders of each. */
export class SkillRoots {
  readonly #roots = new Map<string, { claims: number; listing: RootListing }>();
  #folders: ReadonlySet<string> | undefined;

  /** All skill folders in the order of their roots. */
  get folders(): ReadonlySet<string> {
    this.#folders ??= new Set([...this.#roots.values()].flatMap(({ listing }) => listing.folders));
    return this.#folders;
  }

  get listings(): ReadonlyMap<string, RootListing> {
    return new Map([...this.#roots].map(([root, { listing }]) => [root, listing]));
  }

  /** Further folders to watch; false: only its own entries. */
  get watched(): ReadonlyMap<string, boolean> {
    const all = [...this.#roots.values()].flatMap(({ listing }) => listing.watched ?? []);
    return new Map(all.map(({ path, isWhole }) => [path, isWhole]));
  }

  /** Whether a folder belongs to a package that is currently being replaced. */
  isBeingReplaced(folder: string): boolean {
    return [...this.#roots.values()].some(({ listing }) => listing.beingReplaced?.some((path) => isInside(path, folder)) ?? false);
  }

  /** Adds a claim on a root; returns true for a new root. `begin` runs before it is listed, so that it is watched from then on. */
  claim(root: string, begin: (base: string) => void): boolean {
    const known = this.#roots.get(root);
    if (known) {
      known.claims++;
      return false;
    }
    begin(fixedPart(root));
    this.#roots.set(root, { claims: 1, listing: discoverRoot(root) });
    this.#folders = undefined;
    return true;
  }

  /** Releases a claim. The last one removes the root; `end` runs when nothing else needs its folder. */
  release(root: string, end: (base: string) => void): void {
    const entry = this.#roots.get(root);
    if (entry === undefined || --entry.claims > 0) return;
    this.#roots.delete(root);
    this.#folders = undefined;
    const base = fixedPart(root);
    if (![...this.#roots.keys()].some((other) => fixedPart(other) === base)) end(base);
  }

  /** Lists all roots again, or those that these changes may affect. True: what was found differs. */
  rescan(changes?: readonly PathChange[]): boolean {
    let isDifferent = false;
    for (const [root, entry] of this.#roots) {
      const isConcerned = entry.listing.isOutdated || changes === undefined || changes.some((change) => this.#concerns(root, change));
      if (!isConcerned) continue;
      const now = keepReplaced(entry.listing, discoverRoot(root, entry.listing));
      if (areEqual(entry.listing, now)) continue;
      entry.listing = now;
      this.#folders = undefined;
      isDifferent = true;
    }
    return isDifferent;
  }

  /** Whether a change may affect the skill folders of a root. */
  #concerns(root: string, { path, kind, directory }: PathChange): boolean {
    const base = fixedPart(root);
    if (isInside(path, base)) return true;
    if (projectOfRoot(root) !== undefined) {
      // A change in a watched folder of a package.
      const watched = this.#roots.get(root)?.listing.watched ?? [];
      return watched.some((folder) => isInside(folder.path, path));
    }
    if (!isInside(base, path)) return false;
    if (base !== root) return kind !== "changed" || directory || isSkillFile(path);
    const parent = dirname(path);
    if (parent === root) return kind !== "changed" || directory;
    if (dirname(parent) === root && isSkillFile(path)) return isSkillFolder(parent) !== this.folders.has(parent);
    // The first or last file of `tools` in a folder that is not a skill, or `tools` itself.
    const tools = basename(parent) === "tools" ? parent : path;
    const folder = dirname(tools);
    return basename(tools) === "tools" && dirname(folder) === root && kind !== "changed" && !this.folders.has(folder);
  }
}

/** An equal listing keeps its object, which shows that nothing has changed. */
function areEqual(before: RootListing, now: RootListing): boolean {
  const isSameList = before.folders.length === now.folders.length && before.folders.every((folder, index) => folder === now.folders[index]);
  const rest = ({ packages, folders: _, ...others }: RootListing): string => JSON.stringify([others, [...(packages ?? [])]]);
  return isSameList && rest(before) === rest(now);
}

/** A package being replaced is not removed: until the new version exists, the old one stays listed. */
function keepReplaced(before: RootListing, now: RootListing): RootListing {
  const beingReplaced = now.beingReplaced ?? [];
  const isKept = (folder: string): boolean => beingReplaced.some((path) => isInside(path, folder));
  const kept = before.folders.filter(isKept);
  if (kept.length === 0) return now;
  const packages = [...(now.packages ?? []), ...[...(before.packages ?? [])].filter(([folder]) => isKept(folder))];
  return { ...now, folders: [...new Set([...now.folders, ...kept])].sort(), packages: new Map(packages) };
}

function isSkillFile(path: string): boolean {
  return ["skill.md", "skill.json"].includes(basename(path).toLowerCase());
}

/** Folders that never contain skills. */
const skippedNames: ReadonlySet<string> = new Set(["node_modules", ".git"]);
const mostFolders = 20_000;

/** Resolves an entry of `skillDirectories` to an absolute path or glob; `~` is the home folder. */
export function resolveRoot(entry: string, workingDirectory: string): string {
  const expanded = entry === "~" || entry.startsWith("~/") || entry.startsWith("~\\") ? join(homedir(), entry.slice(1)) : entry;
  return isPattern(expanded) && !existsSync(expanded)
    ? resolve(workingDirectory, expanded).replaceAll("\\", "/")
    : resolve(workingDirectory, expanded);
}

/** The part of a root before any pattern: the folder to watch. */
export function fixedPart(root: string): string {
  const project = projectOfRoot(root);
  if (project !== undefined) return join(project, "package.json");
  if (!isGlobRoot(root)) return root;
  const parts = root.split("/");
  const first = parts.findIndex(isPattern);
  return parts.slice(0, first).join("/") || "/";
}

/**
 * Lists the skill folders of a root: the root itself if it is a skill, otherwise its direct children that are, sorted by name. Links are
 * followed; a folder reached twice counts once. A missing root is empty, with an error. While the process is out of file handles, the
 * root keeps its previous folders.
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
  return isPattern(root) && !existsSync(root);
}

function listFolder(root: string): RootListing {
  if (!existsSync(root)) return { root, folders: [], diagnostics: [missing(root)] };
  if (isSkillFolder(root)) return { root, folders: [root], diagnostics: [] };
  let entries: Dirent[];
  let realRoot: string;
  try {
    // The folder may be renamed between these two calls.
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
  const skills = new Set(folders.filter(isSkillFolder));
  const unnamed = folders.filter((folder) => !skills.has(folder) && hasTools(folder));
  return { root, folders: [...skills], diagnostics: [...diagnostics, ...unnamed.map(withoutManifest)] };
}

/** Whether a folder has files that would be tools if it were a skill. */
function hasTools(folder: string): boolean {
  try {
    return readdirSync(join(folder, "tools")).some((name) => /\.(?:[cm]?[jt]s|json|py)$/.test(name));
  } catch {
    return false;
  }
}

function withoutManifest(folder: string): Diagnostic {
  const message =
    "This folder has tools, but neither SKILL.md nor skill.json, so it is not loaded. Create one of them, or configure a narrower skill directory.";
  return { severity: "warning", code: "SKILL_NO_MANIFEST", file: folder, message };
}

/** Removes links to folders that are listed anyway, and broken links. */
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

/** The diagnostic code for a missing root. */
export const rootMissingCode = "SKILLS_DIRECTORY_MISSING";

function missing(root: string): Diagnostic {
  const message = "This skill directory does not exist. Create it, or fix the configured path.";
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
  const message = `This skill directory has ${count} folders; only the first ${mostFolders} are read. Split it, or configure the folders that you need.`;
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

/** Skills in deeper folders than a host searches. */
interface DeeperSkills {
  /** The parent folders of these skills, which a host would need as roots. Sorted by path. */
  readonly parents: readonly string[];
  readonly count: number;
  /** The search was cut off. */
  readonly isCut: boolean;
}

// The depth that other hosts search.
const maxDepth = 6;
const maxFolders = 2_000;

/** Searches for skills several levels below a folder. Links are not followed, and skill folders are not searched. */
export function findDeeperSkills(root: string): DeeperSkills {
  const parents = new Set<string>();
  const waiting = [{ folder: root, depth: 0 }];
  let [count, looked] = [0, 0];
  for (let next = waiting.shift(); next !== undefined && looked < maxFolders; next = waiting.shift()) {
    const { folder, depth } = next;
    looked++;
    for (const { name } of foldersIn(folder)) {
      const path = join(folder, name);
      if (isSkillFolder(path)) {
        parents.add(folder);
        count++;
      } else if (depth + 1 < maxDepth) waiting.push({ folder: path, depth: depth + 1 });
    }
  }
  return { parents: [...parents].sort(), count, isCut: waiting.length > 0 };
}

function foldersIn(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory() && !skippedNames.has(entry.name));
  } catch {
    // An unreadable folder contributes nothing.
    return [];
  }
}

/**
 * Throws the system's error when no more files can be opened. For callers that treat a path that cannot be read like one that
 * does not exist: without this check all files would seem to be missing at such a moment.
 */
function requireFileHandle(path: string): void {
  try {
    opendirSync(path).closeSync();
  } catch (error) {
    // Any other error is reported where the path is read.
    if (isOutOfFiles(error)) throw error;
  }
}
