import { existsSync, mkdirSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { errorMessage, HostError } from "../../base/errors.ts";
import type { Staging } from "../commit.ts";

/** A skill folder that takes its place, or leaves it. */
export interface Placement {
  /** The new folder. Absent: the skill is removed. */
  readonly staged?: string | undefined;
  readonly folder: string;
}

/**
 * Moves all folders to their places and runs `finish`, or takes everything back when one of these fails. Each folder moves as a whole. A
 * process that is killed meanwhile leaves folders that the lock file does not describe: `verify` reports them, and the same command
 * completes its work when it runs again.
 */
export async function placeSkills(
  { folder: staging }: Staging,
  placements: readonly Placement[],
  finish: () => Promise<void>,
): Promise<void> {
  const done: { readonly folder: string; readonly old: string; readonly isReplaced: boolean; isPlaced: boolean }[] = [];
  try {
    for (const [index, { staged, folder }] of placements.entries()) {
      const step = { folder, old: join(staging, `old-${index}`), isReplaced: existsSync(folder), isPlaced: false };
      mkdirSync(dirname(folder), { recursive: true });
      if (step.isReplaced) move(folder, step.old);
      done.push(step);
      if (staged === undefined) continue;
      move(staged, folder);
      step.isPlaced = true;
    }
    await finish();
  } catch (error) {
    for (const [index, { folder, old, isReplaced, isPlaced }] of [...done.entries()].reverse()) {
      if (isPlaced) renameSync(folder, join(staging, `undone-${index}`));
      if (isReplaced) renameSync(old, folder);
    }
    throw error;
  }
}

function move(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    const advice = "The skills' folder must be writable, and on the same disk as the project.";
    throw new HostError("SKILLS_PLACE", `${to} could not be written (${errorMessage(error)}). ${advice}`, { cause: error });
  }
}
