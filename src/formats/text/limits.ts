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
