import { existsSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { join } from "node:path";
import { HostError } from "../../base/errors.ts";
import { closeStaging, openStaging, type Staging } from "../commit.ts";
import { type InstallContext, waitingText } from "../install.ts";
import { claimProject } from "../package-project.ts";
import { type FoundSkills, folderName, namedSkills } from "./find-skills.ts";
import { type GitSource, repositoryLabel } from "./git-source.ts";
import { type InstallSkillsOptions, installSkills, type SkillsOutcome, type StagedSource } from "./install-skills.ts";
import { openGit } from "./open-git.ts";
import { openWeb } from "./open-web.ts";
import type { OpenedSource } from "./opened-source.ts";

export interface AddSkillsOptions extends Pick<InstallSkillsOptions, "into" | "confirm"> {
  readonly context: InstallContext;
  /** A string is a web address. */
  readonly sources: readonly (GitSource | string)[];
  /** The names, paths or patterns of the wanted skills. Absent: the caller chooses. */
  readonly wanted?: readonly string[] | undefined;
  /** Chooses among several skills, by path. */
  choose(label: string, skills: readonly string[]): Promise<readonly string[]>;
}

/**
 * Copies skills from Git repositories and websites into the project: fetches them, judges their files, shows what they contain, asks, and
 * copies all or none. Undefined: a web address is one of npm's packages, and nothing was done.
 * @throws HostError `GIT_…`, `INDEX_…`, `SOURCE_…`, `PACKAGE_TARBALL`, `SKILL_EXISTS`, `PACKAGE_REFUSED`, `PACKAGES_BUSY`.
 */
export async function addSkills(options: AddSkillsOptions): Promise<SkillsOutcome | undefined> {
  const { signal, onProgress, checkSource } = options.context;
  return withStaging(options.context, async (staging) => {
    const staged: StagedSource[] = [];
    for (const [index, source] of options.sources.entries()) {
      const place = { folder: join(staging.folder, `source-${index}`), signal, onProgress, checkSource };
      const opened = typeof source === "string" ? await openWeb(source, place) : await openGit(source, place);
      if (opened === undefined) return undefined;
      staged.push(await stageSource(opened, options));
    }
    return installSkills(staged, { ...options, staging });
  });
}

/** Runs `use` with a staging folder, while no other process changes the project's packages. */
export async function withStaging<T>(context: InstallContext, use: (staging: Staging) => Promise<T>): Promise<T> {
  const { project, signal, onProgress } = context;
  const modules = join(project.folder, "node_modules");
  const hadModules = existsSync(modules);
  const claim = await claimProject(project, { signal, manager: "any", onWait: () => onProgress(waitingText) });
  try {
    const staging = await openStaging(project.folder);
    try {
      return await use(staging);
    } finally {
      if (existsSync(staging.folder)) await closeStaging(staging);
    }
  } finally {
    claim[Symbol.dispose]();
    // The lock and the staging folder were all that was in it. A project without npm packages needs none.
    if (!hadModules) await rmdir(modules).catch(() => {});
  }
}

async function stageSource(opened: OpenedSource, { wanted, choose }: AddSkillsOptions): Promise<StagedSource> {
  const { origin, isTag, warnings } = opened;
  const found = await opened.find();
  const skills = wanted === undefined ? await choose(repositoryLabel(origin.url), found.usual) : resolveWanted(wanted, found, origin);
  return { origin, isTag, warnings, skills: await opened.stage(skills) };
}

function resolveWanted(wanted: readonly string[], found: FoundSkills, { url }: OpenedSource["origin"]): readonly string[] {
  const paths = wanted.flatMap((name) => {
    const named = namedSkills(name, found);
    if (named !== undefined) return named;
    const message = `${repositoryLabel(url)} has no skill ${JSON.stringify(name)}. It has ${listed(found.all)}.`;
    throw new HostError("GIT_SKILL_UNKNOWN", message);
  });
  return [...new Set(paths)];
}

/** The names of skills for a message, with the number of those that are left out. */
export function listed(paths: readonly string[], most = 20): string {
  const names = paths.slice(0, most).map(folderName).join(", ");
  return paths.length > most ? `${names} and ${paths.length - most} more` : names;
}
