import { existsSync } from "node:fs";
import { join } from "node:path";
import { HostError } from "../base/errors.ts";
import { compareLocks, type Drift } from "./compare-locks.ts";
import { lockFileName, type PackagesLock, readLock } from "./lock-file.ts";
import { type LockOptions, lockProject } from "./lock-project.ts";

export interface VerifyOutcome {
  readonly drift: readonly Drift[];
  readonly packages: number;
  readonly skills: number;
  readonly files: number;
}

/**
 * Compares every byte of what is there with the lock. What is the same as the lock knows is not read as a skill, and
 * nothing of it is run, unless `runs` is true; of what is not, the tools are told that are defined differently, as far as their files say.
 * @throws HostError `PACKAGES_LOCK` when there is no lock.
 */
export async function verifyProject(
  project: string,
  options: Omit<LockOptions, "before"> & { readonly runs?: boolean },
): Promise<VerifyOutcome> {
  const locked = needLock(project);
  const found = await lockProject(project, {
    ...options,
    expected: Object.keys(locked.packages),
    before: options.runs === true ? undefined : locked,
  });
  return { drift: compareLocks(locked, found), ...countsOf(locked) };
}

/** Reads the lock that there must be. */
export function needLock(project: string): PackagesLock {
  const lock = readLock(project);
  if (lock !== undefined) return lock;
  const isProject = existsSync(join(project, "package.json"));
  const advice = isProject
    ? 'Write one with "skillhost lock", and keep it in version control.'
    : "There is no package.json here either: go to the project.";
  throw new HostError("PACKAGES_LOCK", `${join(project, lockFileName)} does not exist. ${advice}`);
}

export function countsOf({ packages, skills }: PackagesLock): Omit<VerifyOutcome, "drift"> {
  const all = [...Object.values(packages), ...Object.values(skills)];
  return {
    packages: Object.keys(packages).length,
    skills: Object.keys(skills).length + Object.values(packages).reduce((sum, each) => sum + Object.keys(each.skills).length, 0),
    files: all.reduce((sum, { files }) => sum + Object.keys(files).length, 0),
  };
}
