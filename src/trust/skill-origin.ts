import { dirname, join, relative, sep } from "node:path";
import { isRecord } from "../base/json.ts";
import { LruMap } from "../base/lru-map.ts";
import { fileStamp } from "../io/file-stamp.ts";
import { readTextFile } from "../io/read-bounded.ts";

/**
 * Whether a skill was copied from a Git repository or a website, by the lock file of a folder above it. A lock of a checkout can say so of any
 * skill, which only limits it further.
 */
export function isCopiedSkill(realFolder: string): boolean {
  for (let project = dirname(realFolder); ; project = dirname(project)) {
    if (copiesIn(project).has(relative(project, realFolder).split(sep).join("/"))) return true;
    if (dirname(project) === project) return false;
  }
}

const lockName = "skillhost-lock.json";
const maxLockBytes = 64 * 1024 * 1024;
const none: ReadonlySet<string> = new Set();

interface CachedLock {
  readonly state: string;
  readonly copies: ReadonlySet<string>;
}

const cache = new LruMap<string, CachedLock>(64);

function copiesIn(project: string): ReadonlySet<string> {
  const file = join(project, lockName);
  const state = fileStamp(file);
  if (state === undefined) return none;
  const cached = cache.get(file);
  if (cached?.state === state) return cached.copies;
  const copies = readCopied(file);
  cache.set(file, { state, copies });
  return copies;
}

/** An unreadable lock lists nothing; commands that change skills report it. */
function readCopied(file: string): ReadonlySet<string> {
  const read = readTextFile(file, maxLockBytes);
  if (!read.ok) return none;
  try {
    const lock: unknown = JSON.parse(read.text);
    const skills = isRecord(lock) ? lock["skills"] : undefined;
    if (!isRecord(skills)) return none;
    return new Set(Object.entries(skills).flatMap(([path, skill]) => (isRecord(skill) && isRecord(skill["source"]) ? [path] : [])));
  } catch {
    return none;
  }
}
