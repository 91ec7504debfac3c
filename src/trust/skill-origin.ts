import { dirname, join, relative, sep } from "node:path";
import { isRecord } from "../base/json.ts";
import { createLockListing } from "./lock-listing.ts";

/**
 * Whether a skill was copied from a Git repository or a website, by the lock file of a folder above it. A lock of a checkout can say so of any
 * skill, which only limits it further.
 */
export function isCopiedSkill(realFolder: string): boolean {
  for (let project = dirname(realFolder); ; project = dirname(project)) {
    const path = relative(project, realFolder).split(sep).join("/");
    if (copiesIn(join(project, "skillhost-lock.json"))?.has(path)) return true;
    if (dirname(project) === project) return false;
  }
}

const copiesIn = createLockListing((lock) => {
  const skills = isRecord(lock) ? lock["skills"] : undefined;
  if (!isRecord(skills)) return [];
  return Object.entries(skills).flatMap(([path, skill]) => (isRecord(skill) && isRecord(skill["source"]) ? [path] : []));
});
