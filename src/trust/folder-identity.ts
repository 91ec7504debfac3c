import { existsSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { HostError } from "../base/errors.ts";
import { isInside, realPathOfDeepest } from "../io/confine-path.ts";

/** A trusted folder, as it was when it was trusted. */
export interface TrustedFolder {
  /** Its real path. */
  readonly path: string;
  readonly identity: string;
  /** ISO 8601. */
  readonly trustedAt: string;
}

/**
 * Distinguishes a folder from a later one at the same path: its birth time and inode number. File systems without birth times
 * report 0; the device is used instead, whose number is not stable everywhere. Undefined: the folder is missing.
 */
export function identityOf(folder: string): string | undefined {
  try {
    const stats = statSync(folder, { bigint: true });
    const { ino, dev, birthtimeNs } = stats;
    if (!stats.isDirectory()) return undefined;
    return birthtimeNs === 0n ? `device ${dev} number ${ino}` : `born ${birthtimeNs} number ${ino}`;
  } catch {
    // Missing or inaccessible: no code of it can run.
    return undefined;
  }
}

/**
 * Describes a folder, so that it can be trusted together with everything below it.
 * @throws HostError `FOLDER_MISSING`; `FOLDER_TOO_WIDE` for a folder that contains more than one project, such as a home
 * folder.
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

/** Whether a folder contains a whole home folder. */
export function isTooWide(realFolder: string): boolean {
  return realFolder === dirname(realFolder) || isInside(realFolder, realPathOfDeepest(resolve(homedir())));
}

/**
 * The id of a folder in approvals: the root of its checkout, or else the folder itself, with links resolved. A home folder and
 * the root of a file system never count as a checkout, because an approval for one of them would cover everything below.
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
    // It does not exist yet, so its spelling is used.
    return path;
  }
}
