import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";
import type { InstallContext } from "../install.ts";
import {
  type CopiedSkill,
  copiedSkills,
  type LockedLocalSkill,
  type LockedSource,
  type PackagesLock,
  readLock,
  sourcesOf,
} from "../lock-file.ts";
import { filesOf } from "../lock-project.ts";
import { withStaging } from "./add-skills.ts";
import { folderName } from "./find-skills.ts";
import { folderDigest } from "./folder-digest.ts";
import { assertFetchable, repositoryLabel } from "./git-source.ts";
import {
  assertPlace,
  type InstallSkillsOptions,
  installSkills,
  type SkillsOutcome,
  type StagedSource,
  writeSources,
} from "./install-skills.ts";
import { openGit } from "./open-git.ts";
import { openLockedWeb } from "./open-web.ts";
import type { OpenedSource, OpenOptions } from "./opened-source.ts";
import { placeSkills } from "./place-skills.ts";

/** The copied skills with a name: their own, or that of their folder. */
export function copiesNamed(name: string, lock: PackagesLock | undefined): readonly CopiedSkill[] {
  const names = ({ path }: CopiedSkill): readonly (string | undefined)[] => [path, folderName(path), lock?.skills[path]?.name];
  return copiedSkills(lock).filter((copy) => names(copy).includes(name));
}

export interface UpdateSkillsOptions extends Pick<InstallSkillsOptions, "confirm"> {
  readonly context: InstallContext;
  /** The folders of the copied skills, relative to the project. */
  readonly paths: readonly string[];
}

/**
 * Fetches what the refs of copied skills name now, shows the differences, asks, and copies all or none. A skill that its repository no
 * longer has stays as it is, with a warning.
 * @throws HostError as `addGitSkills`
 */
export async function updateSkills({ context, paths, confirm }: UpdateSkillsOptions): Promise<SkillsOutcome> {
  return withStaging(context, async (staging) => {
    const wanted = copiedSkills(readLock(context.project.folder)).filter(({ path }) => paths.includes(path));
    const gone: Diagnostic[] = [];
    const staged: StagedSource[] = [];
    for (const [index, group] of groupByRef(wanted).entries()) {
      const folder = join(staging.folder, `source-${index}`);
      const source = await stageNewer(group, { context, folder, gone });
      if (source !== undefined) staged.push(source);
    }
    const outcome = await installSkills(staged, { context, staging, into: context.project.folder, confirm });
    return { ...outcome, diagnostics: [...outcome.diagnostics, ...gone] };
  });
}

/** The copies of one repository at one ref, which are fetched together. */
function groupByRef(copies: readonly CopiedSkill[]): readonly (readonly CopiedSkill[])[] {
  const groups = new Map<string, CopiedSkill[]>();
  for (const copy of copies) {
    const { kind, url, ref = "" } = copy.source;
    const key = [kind, url, ref].join("\0");
    groups.set(key, [...(groups.get(key) ?? []), copy]);
  }
  return [...groups.values()];
}

interface StageNewer {
  readonly context: InstallContext;
  readonly folder: string;
  readonly gone: Diagnostic[];
}

/** Undefined: the ref names the locked commit still. */
async function stageNewer(group: readonly CopiedSkill[], { context, folder, gone }: StageNewer): Promise<StagedSource | undefined> {
  const { project } = context;
  const [first] = group;
  const opened = await openLocked(first!.source, { ...context, folder });
  const { origin, isTag, warnings } = opened;
  const isHere = ({ path }: CopiedSkill): boolean => existsSync(join(project.folder, path));
  const newer = group.filter((copy) => origin.commit === undefined || copy.source.commit !== origin.commit || !isHere(copy));
  const skills: string[] = [];
  for (const { path, source } of newer) {
    if (await opened.has(source.path ?? "")) skills.push(source.path ?? "");
    else gone.push(missing(path, source, origin.commit));
  }
  return skills.length === 0 ? undefined : { origin, isTag, warnings, skills: await opened.stage(skills) };
}

/** Opens the source of a copied skill: at its ref, or at the locked commit. */
export function openLocked(
  source: LockedSource,
  options: OpenOptions,
  { isFrozen = false }: { readonly isFrozen?: boolean } = {},
): Promise<OpenedSource> {
  const { kind, url, path } = source;
  if (kind !== "git") return openLockedWeb(kind, url, options);
  assertFetchable(source);
  const ref = isFrozen ? source.commit : source.ref;
  return openGit({ url, ...(ref !== undefined && { ref }), ...(isFrozen && path !== undefined && { path }) }, options);
}

function missing(path: string, { url, path: inner }: LockedSource, commit: string | undefined): Diagnostic {
  const where = inner === undefined ? "" : ` in ${JSON.stringify(inner)}`;
  const message = `${repositoryLabel(url)} has no skill${where} any more${commit === undefined ? "" : ` (commit ${commit.slice(0, 12)})`}. ${path} stays as it is; "skillhost remove ${path}" removes it.`;
  return { severity: "warning", code: "SKILL_GONE", source: path, message };
}

export interface RemoveSkillsOptions {
  readonly context: InstallContext;
  readonly paths: readonly string[];
  /** Removes skills that were changed here, too. */
  readonly isForced: boolean;
}

/** Removes copied skills, all or none. @throws HostError `SKILL_EDITED`, `PATH_OUTSIDE`, `PACKAGES_BUSY`. */
export async function removeSkills({ context, paths, isForced }: RemoveSkillsOptions): Promise<void> {
  const { folder } = context.project;
  await withStaging(context, async (staging) => {
    const before = readLock(folder);
    const placements = paths.map((path) => ({ path, folder: join(folder, path) }));
    for (const { path, folder: target } of placements) {
      assertPlace(target, path, context);
      if (!isForced && isEdited(target, before?.skills[path])) throw edited(path);
    }
    const sources = Object.fromEntries(Object.entries(sourcesOf(before)).filter(([path]) => !paths.includes(path)));
    await placeSkills(
      staging,
      placements.filter((placement) => existsSync(placement.folder)),
      () => writeSources(context, before, sources),
    );
  });
}

function isEdited(folder: string, known: LockedLocalSkill | undefined): boolean {
  return existsSync(folder) && folderDigest(filesOf(folder)) !== known?.source?.digest;
}

function edited(path: string): HostError {
  const message = `${path} was changed here since it was copied, so nothing was removed. With --yes it is removed nevertheless.`;
  return new HostError("SKILL_EDITED", message);
}
