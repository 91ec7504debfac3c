import type { Diagnostic } from "../../base/diagnostic.ts";

/** The largest JSON file of a skill (`skill.json`, a tool's JSON) that is parsed, in bytes. Check the file's size before reading it. */
export const maxJsonBytes: number = 1_048_576;

/** The largest SKILL.md or prompt file worth reading, in bytes. Published ones stay under 300 kB. */
export const maxDocumentBytes: number = 4_194_304;

/** The largest front matter that is parsed as YAML, in UTF-16 units. Published ones stay under 3,000. */
export const maxFrontMatterLength: number = 65_536;

/** The diagnostic for a file that is over its limit, for whoever finds out first: the loader by its size, a parser by its length. */
export function fileTooLarge(file: string, size: number, limit: number): Diagnostic {
  const message = `This file has ${size} bytes, but at most ${limit} are allowed. Move large parts into other files.`;
  return { severity: "error", code: "FILE_TOO_LARGE", message, file };
}

/** Why a path of a manifest is refused. */
interface PathFault {
  readonly code: "PATH_OUTSIDE" | "PATH_INVALID";
  readonly message: string;
}

/**
 * What is wrong with a path that should stay inside a skill's folder, judged by its text alone: symbolic links are for
 * whoever opens it. Slashes are forward, as in every manifest that must work on all systems.
 * `up: true` allows `..`, for paths that start from somewhere inside the folder.
 */
export function pathFault(path: string, options: { up?: boolean } = {}): PathFault | undefined {
  const shown = JSON.stringify(path.slice(0, 200));
  if (path.trim() === "")
    return { code: "PATH_INVALID", message: "A path is empty. Write one relative to the skill's folder, or remove it." };
  if (path.includes("\0")) return { code: "PATH_INVALID", message: `The path ${shown} contains a NUL character. Remove it.` };
  if (/^(?:\/|~|[A-Za-z]:|\\\\|file:)/.test(path)) return outside(`The path ${shown} is absolute.`);
  if (path.includes("\\")) return { code: "PATH_INVALID", message: `The path ${shown} contains a backslash. Use forward slashes.` };
  return options.up || !path.split("/").includes("..") ? undefined : outside(`The path ${shown} contains "..".`);
}

function outside(what: string): PathFault {
  return { code: "PATH_OUTSIDE", message: `${what} Only files inside the skill's folder can be used: write a path relative to it.` };
}
