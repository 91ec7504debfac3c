import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { statFile } from "../../../io/module-loader/read-source.ts";

/** A program that may attach to a session: `extension.mjs` in a folder of its own. */
export interface FoundExtension {
  /** `project:<name>` or `user:<name>`. */
  readonly id: string;
  /** That of its folder. */
  readonly name: string;
  readonly source: "project" | "user";
  readonly file: string;
}

export interface ExtensionPlaces {
  readonly workingDirectory: string;
  /** Where this user keeps extensions for every project. */
  readonly userDirectory: string | undefined;
}

/**
 * Finds the extensions of a project, in `.github/extensions` at the top of its git checkout, and those of the user. Of one
 * name, the project's counts.
 */
export function discoverExtensions({ workingDirectory, userDirectory }: ExtensionPlaces): readonly FoundExtension[] {
  const ofProject = findIn(join(topOf(workingDirectory), ".github", "extensions"), "project");
  const ofUser = userDirectory === undefined ? [] : findIn(userDirectory, "user");
  const taken = new Set(ofProject.map(({ name }) => name));
  return [...ofProject, ...ofUser.filter(({ name }) => !taken.has(name))];
}

function findIn(folder: string, source: FoundExtension["source"]): readonly FoundExtension[] {
  return namesIn(folder).flatMap((name) => {
    const file = join(folder, name, "extension.mjs");
    return statFile(file)?.isFile() === true ? [{ id: `${source}:${name}`, name, source, file }] : [];
  });
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    // There are none.
    return [];
  }
}

/** The folder that holds the checkout; without one, the working directory itself. */
function topOf(workingDirectory: string): string {
  for (let folder = workingDirectory; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".git"))) return folder;
    if (dirname(folder) === folder) return workingDirectory;
  }
}
