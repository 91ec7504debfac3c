import { type Dirent, readdirSync } from "node:fs";
import { join } from "node:path";
import { skippedNames } from "./discover.ts";
import { isSkillFolder } from "./is-skill-folder.ts";

/** Skills that lie deeper in a folder than a host looks when it is given the folder. */
export interface DeeperSkills {
  /** The folders that hold them: what a host would have to be given. By path. */
  readonly parents: readonly string[];
  readonly count: number;
  /** There is more in the folder than was looked at. */
  readonly isCut: boolean;
}

// What other hosts search; no folder that somebody made for skills is deeper.
const maxDepth = 6;
const maxFolders = 2_000;

/** Looks for skills several levels below a folder. Links are not followed, and what is below a skill is part of it. */
export function findDeeperSkills(root: string): DeeperSkills {
  const parents = new Set<string>();
  const waiting = [{ folder: root, depth: 0 }];
  let [count, looked] = [0, 0];
  for (let next = waiting.shift(); next !== undefined && looked < maxFolders; next = waiting.shift()) {
    const { folder, depth } = next;
    looked++;
    for (const { name } of foldersIn(folder)) {
      const path = join(folder, name);
      if (isSkillFolder(path)) {
        parents.add(folder);
        count++;
      } else if (depth + 1 < maxDepth) waiting.push({ folder: path, depth: depth + 1 });
    }
  }
  return { parents: [...parents].sort(), count, isCut: waiting.length > 0 };
}

function foldersIn(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory() && !skippedNames.has(entry.name));
  } catch {
    // It cannot be read, so nothing in it can be used.
    return [];
  }
}
