import { existsSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { errorMessage } from "../../base/errors.ts";
import { isInside, isReallyInside } from "../../io/confine-path.ts";
import { isTooWide, trustFileIn, trustFolderIn } from "../../trust/trust-file.ts";
import { skillhostHome } from "../../trust/trust-policy.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { withheldCode } from "../project-consent.ts";

/** The files to create, by path relative to their folder, with forward slashes. */
export type ScaffoldFiles = Readonly<Record<string, string>>;

/** Writes files below a folder and returns their paths. If one already exists or cannot be written, none is left. */
export function writeScaffold(folder: string, files: ScaffoldFiles): readonly string[] {
  const planned = Object.entries(files).map(([path, text]) => ({ file: join(folder, path), text }));
  const taken = planned.find(({ file }) => existsSync(file));
  if (taken)
    throw new CliError(
      "FILE_EXISTS",
      `${taken.file} already exists, so nothing was written. Choose another name, or move the file away.`,
      1,
    );
  const made: string[] = [];
  try {
    for (const { file, text } of planned) write(file, text, made);
  } catch (error) {
    // In reverse, so that a folder is empty when it is removed.
    for (const path of made.reverse()) undo(path);
    throw error;
  }
  return planned.map(({ file }) => file);
}

/**
 * Writes files below a folder and trusts them: the whole project if it contains no other code that would run, otherwise only `made`, the
 * new folder among them.
 */
export async function writeTrusted(
  context: CommandContext,
  folder: string,
  files: ScaffoldFiles,
  made: string = folder,
): Promise<readonly string[]> {
  const trusted = planTrust(context, folder) ?? made;
  const written = writeScaffold(folder, files);
  await trustMade(context, trusted);
  return written;
}

/** The project, if it contains no other code that would run than a folder that is about to be written. */
export function planTrust(context: CommandContext, folder: string): string | undefined {
  const { consent } = context;
  const { skills: _, ...options } = context.options;
  // Without --skills: the folder that is named for one command is not all that later commands run.
  const isEmpty = withheldCode({ ...context, options }) === undefined && !isTooWide(consent.folder) && isInside(consent.folder, folder);
  return isEmpty ? consent.folder : undefined;
}

/** Trusts a folder that the user has agreed to, unless it is trusted already. */
export async function trustMade({ consent }: CommandContext, folder: string): Promise<void> {
  if (!consent.trust.allows(folder)) await trustFolderIn(trustFileIn(skillhostHome()), folder);
}

/**
 * Refuses to write outside of the project through a link or a configuration.
 * @throws CliError `PATH_OUTSIDE`
 */
export function assertOwnPlace({ consent, options, out }: CommandContext, folder: string): void {
  if (options.skills !== undefined || isReallyInside(consent.folder, folder)) return;
  const message = `${out.path(folder)} points out of the project ${consent.folder}, so nothing was written. If this is intended, pass the folder with --skills.`;
  throw new CliError("PATH_OUTSIDE", message, 1);
}

/** Writes one file; adds it, and each folder created for it, to `made`. */
function write(file: string, text: string, made: string[]): void {
  try {
    const first = mkdirSync(dirname(file), { recursive: true });
    if (first !== undefined) made.push(...foldersBetween(first, dirname(file)));
    // Fails too if the file was created since the check.
    writeFileSync(file, text, { flag: "wx" });
    made.push(file);
  } catch (error) {
    throw new CliError(
      "FILE_NOT_WRITTEN",
      `${file} could not be written (${errorMessage(error)}), so nothing was. Check the permissions of its folder.`,
      1,
    );
  }
}

function foldersBetween(first: string, last: string): readonly string[] {
  const names = relative(first, last).split(sep).filter(Boolean);
  return [first, ...names.map((_name, index) => join(first, ...names.slice(0, index + 1)))];
}

function undo(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Either a file, or a folder in which another program has written since: that one stays.
    try {
      rmSync(path);
    } catch {}
  }
}
