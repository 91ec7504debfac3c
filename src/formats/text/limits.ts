import type { Diagnostic } from "../../base/diagnostic.ts";

/** The largest JSON file of a skill (`skill.json`, a tool's JSON) in bytes. Check the file's size before reading it. */
export const maxJsonBytes: number = 1_048_576;

/** The size limit of a SKILL.md or prompt file in bytes. Published ones are smaller than 300 kB. */
export const maxDocumentBytes: number = 4_194_304;

/** The size limit of front matter that is parsed as YAML, in UTF-16 units. Published ones are smaller than 3,000. */
export const maxFrontMatterLength: number = 65_536;

/** The diagnostic for a file that exceeds its limit, by its size on disk or by the length of its text. */
export function fileTooLarge(file: string, size: number, limit: number): Diagnostic {
  const message = `This file has ${size} bytes, but at most ${limit} are allowed. Move large parts into other files.`;
  return { severity: "error", code: "FILE_TOO_LARGE", message, file };
}
