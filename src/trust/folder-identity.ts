import { existsSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { HostError } from "../base/errors.ts";
import { isInside, realPathOfDeepest } from "../io/confine-path.ts";

/** A folder whose code may run, as it was when somebody said so. */
export interface TrustedFolder {
  /** Its real path. */
  readonly path: string;
  readonly identity: string;
  /** ISO 8601. */
  readonly trustedAt: string;
}

/**
 * What tells a folder from another that takes its path later: the time of its birth and its number. File systems without a
 * time of birth give 0; there the device counts, whose number is not stable everywhere. Undefined: no folder is there.
 */
export function identityOf(folder: string): string | undefined {
  try {
    const { ino, dev, birthtimeNs, isDirectory } = readStats(folder);
    if (!isDirectory) return undefined;
    return birthtimeNs === 0n ? `device ${dev} number ${ino}` : `born ${birthtimeNs} number ${ino}`;
  } catch {
    // It is not there, or cannot be looked at: then nothing of it can be run.
    return undefined;
  }
}

/**
 * Describes a folder, so that it can be trusted together with everything below it.
 * @throws HostError `FOLDER_MISSING`; `FOLDER_TOO_WIDE` for a folder that holds what has nothing to do with one project.
 */
export function describeFolder(folder: string): TrustedFolder {
  const identity = identityOf(folder);
  if (identity === undefined)
    throw new HostError("FOLDER_MISSING", `Folder ${folder} does not exist, so it cannot be trusted. Choose an existing folder.`);
  const path = realpathSync.native(folder);
  if (isTooWide(path)) {
    const why = "Trust covers everything below a folder, and this one contains more than one project.";
    throw new HostError(
      "FOLDER_TOO_WIDE",
      `${path} cannot be trusted. ${why} Trust the folder of the project, or pass its skills with --skills.`,
    );
  }
  return { path, identity, trustedAt: new Date().toISOString() };
}

/** Whether trusting a folder would trust a whole home folder. */
export function isTooWide(realFolder: string): boolean {
  return realFolder === dirname(realFolder) || isInside(realFolder, realPathOfDeepest(resolve(homedir())));
}

function readStats(folder: string): { ino: bigint; dev: bigint; birthtimeNs: bigint; isDirectory: boolean } {
  const stats = statSync(folder, { bigint: true });
  return { ino: stats.ino, dev: stats.dev, birthtimeNs: stats.birthtimeNs, isDirectory: stats.isDirectory() };
}

/**
 * The name under which approvals for a folder are kept: the root of the checkout that it is in, or else the folder
 * itself, with links followed. A home folder and the root of a file system never count as a checkout: with an approval
 * for one of them everything below would be approved.
 */
export function locationOf(directory: string): string {
  const start = realPathOf(resolve(directory));
  const home = realPathOf(homedir());
  for (let at = start; at !== dirname(at) && at !== home; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at;
  }
  return start;
}

function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // It does not exist, or not yet: its spelling must do.
    return path;
  }
}
