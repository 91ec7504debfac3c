import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { errorMessage } from "../base/errors.ts";
import { CliError } from "./cli-error.ts";
import type { ScaffoldFiles } from "./scaffold-files.ts";

/** Writes files below a folder and gives their paths. One that is there already is left alone, and then so is everything else. */
export function writeScaffold(folder: string, files: ScaffoldFiles): readonly string[] {
  const planned = Object.entries(files).map(([path, text]) => ({ file: join(folder, path), text }));
  const taken = planned.find(({ file }) => existsSync(file));
  if (taken)
    throw new CliError("FILE_EXISTS", `${taken.file} is there already and nothing was written. Take another name, or move it away.`, 1);
  for (const { file, text } of planned) write(file, text);
  return planned.map(({ file }) => file);
}

function write(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    // Also when somebody made it since we looked.
    writeFileSync(file, text, { flag: "wx" });
  } catch (error) {
    throw new CliError("FILE_NOT_WRITTEN", `${file} cannot be written (${errorMessage(error)}). Check the permissions of its folder.`, 1);
  }
}

/** Where the schema of skill.json lies as seen from a skill, if this package is installed above it. */
export function schemaPath(folder: string): string | undefined {
  for (let at = folder; dirname(at) !== at; at = dirname(at)) {
    const schema = join(at, "node_modules", "skillhost", "schemas", "skill.schema.json");
    if (existsSync(schema)) return relative(folder, schema).split(sep).join("/");
  }
  return undefined;
}
