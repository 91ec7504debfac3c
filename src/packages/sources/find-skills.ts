import { matchesWildcard } from "../../base/text.ts";
import { clientSkillFolders } from "../../skills/store/client-skill-folders.ts";

/** The folders of skills in a listing of files, by path. "" is the top of the repository. */
export interface FoundSkills {
  /** The skills that a reader of the repository would expect, in the order of their paths. */
  readonly usual: readonly string[];
  /** All skills, with those in unusual places. */
  readonly all: readonly string[];
}

// Where clients look for skills in a repository. "" means everywhere else.
const places: readonly (readonly string[])[] = [["skills"], clientSkillFolders, [""]];

/**
 * Finds the skills in a listing of files: the folder itself if it is one; otherwise what is below `skills`; otherwise what is in the
 * folders of clients, such as `.claude/skills`; otherwise every folder with a SKILL.md. Skills inside of skills belong to the outer one.
 */
export function findSkills(paths: Iterable<string>, base = ""): FoundSkills {
  const documents = new Map<string, "document" | "manifest">();
  for (const path of paths) {
    const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
    const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
    if (isExcluded(folder) || (name !== "skill.md" && name !== "skill.json")) continue;
    if (name === "skill.md") documents.set(folder, "document");
    else if (!documents.has(folder)) documents.set(folder, "manifest");
  }
  if (documents.get(base) === "document") return { usual: [base], all: [base] };
  const sorted = [...documents.keys()].sort();
  const found = places.map((group) =>
    outermost(sorted.filter((folder) => group.some((place) => isIn(folder, joined(base, place), documents)))),
  );
  return { usual: found.find((folders) => folders.length > 0) ?? [], all: [...new Set(found.flat())].sort() };
}

/** Another product may have a skill.json, so it counts only in a folder for skills. */
function isIn(folder: string, place: string, documents: ReadonlyMap<string, string>): boolean {
  if (place !== "" && !folder.startsWith(`${place}/`)) return false;
  return documents.get(folder) === "document" || /(?:^|\/)skills\/[^/]+$/.test(folder);
}

function isExcluded(folder: string): boolean {
  return folder.split("/").includes("node_modules");
}

/** Expects sorted paths. */
function outermost(folders: readonly string[]): readonly string[] {
  const found = new Set<string>();
  const isInFound = (folder: string): boolean => {
    for (let end = folder.lastIndexOf("/"); end > 0; end = folder.lastIndexOf("/", end - 1))
      if (found.has(folder.slice(0, end))) return true;
    return found.has("") && folder !== "";
  };
  for (const folder of folders) if (!isInFound(folder)) found.add(folder);
  return [...found];
}

function joined(base: string, place: string): string {
  return [base, place].filter((part) => part !== "").join("/");
}

/** The skills that `--skill` names, by the name of their folder, their path or a pattern. Undefined: nothing has that name. */
export function namedSkills(name: string, { usual, all }: FoundSkills): readonly string[] | undefined {
  const isNamed = (folder: string): boolean => folder === name || matchesWildcard(name, folderName(folder));
  const found = [usual.filter(isNamed), all.filter(isNamed)].find((folders) => folders.length > 0);
  return found;
}

export function folderName(folder: string): string {
  return folder.slice(folder.lastIndexOf("/") + 1);
}
