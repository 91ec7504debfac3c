import { existsSync } from "node:fs";
import { join } from "node:path";
import { HostError } from "../../base/errors.ts";
import type { Staging } from "../commit.ts";
import { compareFiles, type Drift } from "../compare-locks.ts";
import type { InstallContext } from "../install.ts";
import { type CopiedSkill, copiedSkills, type PackagesLock } from "../lock-file.ts";
import { filesOf } from "../lock-project.ts";
import { assertPlace } from "./install-skills.ts";
import type { Placement } from "./place-skills.ts";
import { openLocked } from "./update-skills.ts";

interface Restored {
  readonly placements: readonly Placement[];
  /** What the sources have instead of the locked files. */
  readonly drift: readonly Drift[];
}

/**
 * Fetches the copied skills of a lock file whose folders are missing, each at its locked commit, and compares them with the lock.
 * @throws HostError `GIT_…`, `SOURCE_…`, `INDEX_…`, `SKILL_GONE`, `PATH_OUTSIDE`, `PACKAGE_REFUSED`.
 */
export async function stageMissingSkills(lock: PackagesLock, context: InstallContext, staging: Staging): Promise<Restored> {
  const { project } = context;
  const missing = copiedSkills(lock).filter(({ path }) => !existsSync(join(project.folder, path)));
  const placements: Placement[] = [];
  const drift: Drift[] = [];
  for (const [index, copy] of missing.entries()) {
    const target = join(project.folder, copy.path);
    assertPlace(target, copy.path, context);
    const staged = await stageLocked(copy, context, join(staging.folder, `restored-${index}`));
    drift.push(...compareFiles(copy.path, lock.skills[copy.path]!.files, filesOf(staged)));
    await judge(copy, staged, context);
    placements.push({ staged, folder: target });
  }
  return { placements, drift };
}

async function stageLocked({ path, source }: CopiedSkill, context: InstallContext, folder: string): Promise<string> {
  const opened = await openLocked(source, { ...context, folder }, { isFrozen: true });
  if (!(await opened.has(source.path ?? ""))) throw new HostError("SKILL_GONE", `${source.url} has no skill for ${path} any more.`);
  const [staged] = await opened.stage([source.path ?? ""]);
  return staged!.folder;
}

async function judge(
  { path, source }: CopiedSkill,
  folder: string,
  { reader, signal, judge: decide, project }: InstallContext,
): Promise<void> {
  const skills = [{ path, folder, ...(await reader.read(folder, signal)) }];
  const about = { name: source.url, version: source.commit ?? "", files: 0, bytes: 0, hasScripts: false, changes: [], skills };
  const error = (await decide(about, project.scope)).find(({ severity }) => severity === "error");
  if (error !== undefined) throw new HostError("PACKAGE_REFUSED", `Nothing was installed from ${source.url}: ${error.message}`);
}
