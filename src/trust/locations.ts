import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";

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
