import { existsSync } from "node:fs";
import { join } from "node:path";
import { HostError } from "../../base/errors.ts";
import { counted } from "../../base/text.ts";
import { closeStaging, openStaging, type Staging } from "../commit.ts";
import { type InstallContext, waitingText } from "../install.ts";
import { claimProject } from "../package-project.ts";
import { findSkills, folderName, namedSkills } from "./find-skills.ts";
import { fetchRepository, type GitLimits, type TreeEntry } from "./git-repository.ts";
import { type GitSource, repositoryLabel } from "./git-source.ts";
import { type InstallSkillsOptions, installSkills, type SkillsOutcome, type StagedSource } from "./install-skills.ts";
import { stageGitSkills } from "./stage-git-skills.ts";

export interface AddSkillsOptions extends Pick<InstallSkillsOptions, "into" | "confirm"> {
  readonly context: InstallContext;
  readonly sources: readonly GitSource[];
  /** The names, paths or patterns of the wanted skills. Absent: the caller chooses. */
  readonly wanted?: readonly string[] | undefined;
  /** Chooses among several skills, by path. */
  choose(label: string, skills: readonly string[]): Promise<readonly string[]>;
  readonly limits?: GitLimits;
}

/**
 * Copies skills from Git repositories into the project: fetches them, judges their files, shows what they contain, asks, and copies all
 * or none.
 * @throws HostError `GIT_…`, `SKILL_EXISTS`, `PACKAGE_REFUSED`, `PACKAGES_BUSY`.
 */
export async function addGitSkills(options: AddSkillsOptions): Promise<SkillsOutcome> {
  return withStaging(options.context, async (staging) => {
    const staged: StagedSource[] = [];
    for (const source of options.sources) staged.push(await stageSource(source, staging, options));
    return installSkills(staged, { ...options, staging });
  });
}

/** Runs `use` with a staging folder, while no other process changes the project's packages. */
export async function withStaging<T>(context: InstallContext, use: (staging: Staging) => Promise<T>): Promise<T> {
  const { project, signal, onProgress } = context;
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
  }
}

async function stageSource(source: GitSource, staging: Staging, options: AddSkillsOptions): Promise<StagedSource> {
  const { context, wanted, choose, limits } = options;
  const { signal, onProgress } = context;
  onProgress(`Fetching ${source.url}…`);
  const place = join(staging.folder, `source-${options.sources.indexOf(source)}`);
  const repository = await fetchRepository(source, { folder: `${place}.git`, signal, ...(limits && { limits }) });
  const entries = await repository.list(source.path, signal);
  const found = findSkills(pathsOf(entries), source.path);
  if (found.all.length === 0) throw noSkills(source, entries);
  const skills = wanted === undefined ? await choose(repositoryLabel(source.url), found.usual) : resolveWanted(wanted, found, source);
  const origin = { kind: "git", url: source.url, ...(source.ref !== undefined && { ref: source.ref }), commit: repository.commit } as const;
  return { origin, isTag: repository.isTag, skills: await stageGitSkills(repository, source, { entries, skills, folder: place, signal }) };
}

function pathsOf(entries: readonly TreeEntry[]): readonly string[] {
  return entries.filter(({ kind }) => kind === "file").map(({ path }) => path);
}

function resolveWanted(wanted: readonly string[], found: ReturnType<typeof findSkills>, source: GitSource): readonly string[] {
  const paths = wanted.flatMap((name) => {
    const named = namedSkills(name, found);
    if (named !== undefined) return named;
    const message = `${repositoryLabel(source.url)} has no skill ${JSON.stringify(name)}. It has ${listed(found.all)}.`;
    throw new HostError("GIT_SKILL_UNKNOWN", message);
  });
  return [...new Set(paths)];
}

/** The names of skills for a message, with the number of those that are left out. */
export function listed(paths: readonly string[], most = 20): string {
  const names = paths.slice(0, most).map(folderName).join(", ");
  return paths.length > most ? `${names} and ${paths.length - most} more` : names;
}

function noSkills(source: GitSource, entries: readonly TreeEntry[]): HostError {
  const { url, path } = source;
  const where = path === undefined ? "" : ` in ${JSON.stringify(path)}`;
  if (path !== undefined && entries.length === 0) return new HostError("GIT_PATH", `The repository ${url} has nothing${where}.`);
  const submodules = entries.filter(({ kind }) => kind === "submodule").length;
  const more = submodules > 0 ? ` It has ${counted(submodules, "submodule")}, which are not fetched: add their repositories instead.` : "";
  return new HostError("GIT_NO_SKILLS", `The repository ${url} contains no folder with a SKILL.md${where}.${more}`);
}
