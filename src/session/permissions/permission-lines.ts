import { join } from "node:path";
import { forbidsPath, forbidsWithin, type PathPattern, type RequestedPath, readFollowedPath } from "./permission-paths.ts";
import { forbidsWord, type UrlPattern } from "./permission-urls.ts";
import { trackedPaths } from "./shell-git.ts";
import type { PathUse, ShellReach } from "./shell-reach.ts";

/** Whether a command line reaches what a rule forbids: it does, it may, or it cannot. */
export type LineVerdict = "reaches" | "unsure" | "apart";

const maxPaths = 5_000;

/** What a line means for a rule about reading or writing paths. */
export function reachesPath(reach: ShellReach, pattern: PathPattern, kind: string): LineVerdict {
  if (reach.repositories.some((repository) => keepsForbidden(repository, pattern))) return "reaches";
  const uses = kind === "write" ? reach.paths.filter(({ access }) => access !== "read") : reach.paths;
  let isSure = reach.pathDoubt === undefined && (kind === "read" || reach.writeDoubt === undefined) && reach.paths.length <= maxPaths;
  for (const use of uses.slice(0, maxPaths)) {
    const path = readFollowedPath(use.path);
    if (path === undefined) isSure = false;
    else if (forbidsPath(pattern, path)) return "reaches";
    else if (isSure && mayReachBelow(use, path, pattern, kind)) isSure = false;
  }
  return isSure ? "apart" : "unsure";
}

/** Deleting and moving a folder does not show what is in it, but changes that. */
function mayReachBelow({ tree, access }: PathUse, path: RequestedPath, pattern: PathPattern, kind: string): boolean {
  return tree !== undefined && !(kind === "read" && access === "write") && forbidsWithin(pattern, path, tree);
}

const maxTracked = 20_000;

function keepsForbidden(repository: string, pattern: PathPattern): boolean {
  const tracked = trackedPaths(repository);
  if (tracked === undefined || tracked.length > maxTracked) return true;
  return tracked.some((path) => {
    const written = join(repository, path);
    return forbidsPath(pattern, { written, real: written });
  });
}

/** What a line means for a rule about addresses. */
export function reachesAddress({ addresses, addressDoubt }: ShellReach, pattern: UrlPattern): LineVerdict {
  if (addresses.some((word) => forbidsWord(pattern, word))) return "reaches";
  return addressDoubt === undefined ? "apart" : "unsure";
}
