import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { errorMessage } from "../base/errors.ts";
import { isInside, isReallyInside } from "../io/confine-path.ts";
import { isTooWide } from "../trust/folder-identity.ts";
import { trustFileIn, trustFolderIn } from "../trust/trust-file.ts";
import { skillhostHome } from "../trust/trust-policy.ts";
import { CliError } from "./cli-error.ts";
import type { CommandContext } from "./command-context.ts";
import { withheldCode } from "./project-consent.ts";
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

/**
 * Writes the files of a new folder, and trusts what was made: the project, when there is nothing of anybody else in it that
 * would run by that, else the new folder only.
 */
export async function writeTrusted(context: CommandContext, folder: string, files: ScaffoldFiles): Promise<readonly string[]> {
  const { consent } = context;
  const isEmpty = withheldCode(context) === undefined && !isTooWide(consent.folder) && isInside(consent.folder, folder);
  const written = writeScaffold(folder, files);
  const made = isEmpty ? consent.folder : folder;
  if (!consent.trust.allows(made)) await trustFolderIn(trustFileIn(skillhostHome()), made);
  return written;
}

/**
 * Nothing is written outside of the project because a link or a configuration in it leads there.
 * @throws CliError `PATH_OUTSIDE`
 */
export function assertOwnPlace({ consent, options, out }: CommandContext, folder: string): void {
  if (options.skills !== undefined || isReallyInside(consent.folder, folder)) return;
  const message = `${out.path(folder)} leads out of the project ${consent.folder}, so nothing was written. Name the folder with --skills if you mean it.`;
  throw new CliError("PATH_OUTSIDE", message, 1);
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
  const installed = installedAbove(folder);
  return (
    installed &&
    relative(folder, join(installed, "schemas", "skill.schema.json"))
      .split(sep)
      .join("/")
  );
}

/** How to run a test that imports `skillhost/testing`. A global installation is not found by imports. */
export function testHint({ out }: CommandContext, test: string): string {
  const command = `node --test ${out.path(test)}`;
  return installedAbove(dirname(test)) === undefined
    ? `Run its test: npm install --save-dev skillhost, then ${command}`
    : `Run its test: ${command}`;
}

function installedAbove(folder: string): string | undefined {
  for (let at = folder; dirname(at) !== at; at = dirname(at)) {
    const installed = join(at, "node_modules", "skillhost");
    if (existsSync(join(installed, "schemas", "skill.schema.json"))) return installed;
  }
  return undefined;
}
