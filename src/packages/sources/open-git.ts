import { HostError } from "../../base/errors.ts";
import { counted } from "../../base/text.ts";
import { assertAddress } from "../check-sources.ts";
import { findSkills } from "./find-skills.ts";
import { fetchRepository, type TreeEntry } from "./git-repository.ts";
import { assertFetchable, type GitSource } from "./git-source.ts";
import type { OpenedSource, OpenOptions } from "./opened-source.ts";
import { stageGitSkills } from "./stage-git-skills.ts";

/** Fetches a repository. @throws HostError `GIT_…` */
export async function openGit(source: GitSource, options: OpenOptions): Promise<OpenedSource> {
  const { folder, signal, onProgress } = options;
  assertFetchable(source);
  assertAddress(source.url, options);
  onProgress(`Fetching ${source.url}…`);
  const repository = await fetchRepository(source, { folder: `${folder}.git`, signal });
  const entries = new Map<string | undefined, Promise<readonly TreeEntry[]>>();
  /** A large repository may be listed only in part, so each wanted folder is listed by itself. */
  const list = (path: string | undefined): Promise<readonly TreeEntry[]> => {
    if (!entries.has(path)) entries.set(path, repository.list(path, signal));
    return entries.get(path)!;
  };
  const { url, ref, path: base } = source;
  return {
    origin: { kind: "git", url, ...(ref !== undefined && { ref }), commit: repository.commit },
    isTag: repository.isTag,
    warnings: [],
    find: async () => {
      const all = await list(base);
      const found = findSkills(pathsOf(all), base);
      if (found.all.length === 0) throw noSkills(source, all);
      return found;
    },
    has: async (path) => findSkills(pathsOf(await list(path === "" ? undefined : path)), path).all.includes(path),
    stage: async (skills) => {
      // After `find` everything is listed.
      const listings = entries.has(base) ? [list(base)] : skills.map((path) => list(path === "" ? undefined : path));
      return stageGitSkills(repository, source, { entries: (await Promise.all(listings)).flat(), skills, folder, signal });
    },
  };
}

function pathsOf(entries: readonly TreeEntry[]): readonly string[] {
  return entries.filter(({ kind }) => kind === "file").map(({ path }) => path);
}

function noSkills(source: GitSource, entries: readonly TreeEntry[]): HostError {
  const { url, path } = source;
  const where = path === undefined ? "" : ` in ${JSON.stringify(path)}`;
  if (path !== undefined && entries.length === 0) return new HostError("GIT_PATH", `The repository ${url} has nothing${where}.`);
  const submodules = entries.filter(({ kind }) => kind === "submodule").length;
  const more = submodules > 0 ? ` It has ${counted(submodules, "submodule")}, which are not fetched: add their repositories instead.` : "";
  return new HostError("GIT_NO_SKILLS", `The repository ${url} contains no folder with a SKILL.md${where}.${more}`);
}
