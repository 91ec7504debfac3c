import { existsSync, renameSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";
import { isReallyInside } from "../../io/confine-path.ts";
import type { Staging } from "../commit.ts";
import { compareSkill, type Drift } from "../compare-locks.ts";
import { EntryRules } from "../entry-rules.ts";
import { tarballLimits } from "../inspect-tarball.ts";
import type { InstallContext } from "../install.ts";
import { type LockedLocalSkill, type LockedSource, type PackagesLock, readLock, sourcesOf, writeLock } from "../lock-file.ts";
import { filesOf, lockProject } from "../lock-project.ts";
import type { PreviewedSkill } from "../preview.ts";
import { type CopiedFileChange, compareFolders } from "./compare-folders.ts";
import { folderDigest } from "./folder-digest.ts";
import { type Placement, placeSkills } from "./place-skills.ts";
import { isSkillFolderName, type StagedSkill } from "./stage-git-skills.ts";

/** A fetched source, and its skills that were chosen. */
export interface StagedSource {
  readonly origin: Omit<LockedSource, "digest" | "path">;
  readonly isTag: boolean;
  readonly warnings: readonly string[];
  readonly skills: readonly StagedSkill[];
}

/** What is about to be copied from one source, for the user's consent. */
export interface PreviewedSource extends Omit<StagedSource["origin"], "kind"> {
  readonly kind: LockedSource["kind"];
  /** The commit in the lock file, if it is another one. */
  readonly was?: string;
  /** The ref is a tag, and it names another commit than before. */
  readonly isMovedTag: boolean;
  readonly warnings: readonly string[];
  readonly skills: readonly PreviewedCopy[];
}

export interface PreviewedCopy {
  /** `same`: its files are those that are here, or those that the local changes began with. */
  readonly state: "new" | "changed" | "same";
  readonly skill: PreviewedSkill;
  /** Its folder, relative to the project. */
  readonly path: string;
  readonly digest: string;
  readonly files: number;
  readonly bytes: number;
  /** Its folder was changed here since it was copied. */
  readonly isEdited: boolean;
  readonly fileChanges: readonly CopiedFileChange[];
  /** The differences of its tools. */
  readonly changes: readonly Drift[];
}

export interface InstallSkillsOptions {
  readonly context: InstallContext;
  readonly staging: Staging;
  /** The folder for new skills. */
  readonly into: string;
  confirm(preview: readonly PreviewedSource[], diagnostics: readonly Diagnostic[]): Promise<boolean>;
}

export interface SkillsOutcome {
  readonly kind: "unchanged" | "declined" | "done";
  readonly sources: readonly PreviewedSource[];
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Copies staged skills to their places: compares them with what is there, asks for consent, and copies all or none.
 * @throws HostError `SKILL_EXISTS` when another skill has the place; `PACKAGE_REFUSED` by the signature policy.
 */
export async function installSkills(staged: readonly StagedSource[], options: InstallSkillsOptions): Promise<SkillsOutcome> {
  const { context, staging, confirm } = options;
  const { folder } = context.project;
  const before = readLock(folder);
  const planned: PlannedSource[] = [];
  for (const source of staged) planned.push(await planSource(source, before, options));
  refuseSharedPlaces(planned.flatMap(({ copies }) => copies));
  const sources = planned.map(({ preview }) => preview);
  const copies = planned.flatMap((plan) => plan.copies);
  const diagnostics = await judge(sources, context);
  const fresh = copies.filter(({ preview }) => preview.state !== "same");
  const locked = { ...sourcesOf(before), ...Object.fromEntries(copies.map(({ preview, source }) => [preview.path, source])) };
  if (fresh.length === 0 && JSON.stringify(locked) === JSON.stringify(sourcesOf(before)))
    return { kind: "unchanged", sources, diagnostics };
  if (fresh.length > 0 && !(await confirm(sources, diagnostics))) return { kind: "declined", sources, diagnostics };
  context.signal.throwIfAborted();
  const placements = fresh.map(({ staged: from, target }): Placement => ({ staged: from, folder: target }));
  await placeSkills(staging, placements, () => writeSources(context, before, locked));
  return { kind: fresh.length === 0 ? "unchanged" : "done", sources, diagnostics };
}

/** Writes the lock file of a project whose copied skills are these. */
export async function writeSources(
  { project: { folder }, reader, signal, roots }: InstallContext,
  before: PackagesLock | undefined,
  sources: Readonly<Record<string, LockedSource>>,
): Promise<void> {
  await writeLock(folder, await lockProject(folder, { reader, signal, roots, before, sources }));
}

interface PlannedSource {
  readonly preview: PreviewedSource;
  readonly copies: readonly PlannedCopy[];
}

interface PlannedCopy {
  readonly preview: PreviewedCopy;
  readonly source: LockedSource;
  readonly staged: string;
  readonly target: string;
}

async function planSource(
  { origin, isTag, warnings, skills }: StagedSource,
  before: PackagesLock | undefined,
  options: InstallSkillsOptions,
): Promise<PlannedSource> {
  const copies: PlannedCopy[] = [];
  for (const skill of skills) copies.push(await planCopy(skill, origin, before, options));
  const known = copies.map(({ preview }) => before?.skills[preview.path]?.source).find((source) => source !== undefined);
  const isMoved = known?.commit !== undefined && known.commit !== origin.commit;
  const preview = {
    ...origin,
    ...(isMoved && { was: known.commit! }),
    warnings,
    isMovedTag: isMoved && isTag && known.ref === origin.ref,
    skills: copies.map((copy) => copy.preview),
  };
  return { preview, copies };
}

async function planCopy(
  staged: StagedSkill,
  origin: StagedSource["origin"],
  before: PackagesLock | undefined,
  { context, into }: InstallSkillsOptions,
): Promise<PlannedCopy> {
  const { project, reader, signal } = context;
  const named = await withOwnName(staged, context);
  const known = Object.entries(before?.skills ?? {}).find(([, { source }]) => isSameOrigin(source, origin, staged.path));
  const target = known === undefined ? join(into, named.name) : join(project.folder, known[0]);
  const path = relative(project.folder, target).split(sep).join("/");
  assertPlace(target, path, context);
  const files = filesOf(named.folder);
  const digest = folderDigest(files);
  const here = existsSync(target) ? { folder: target, files: filesOf(target) } : undefined;
  if (known === undefined && here !== undefined && folderDigest(here.files) !== digest) throw taken(target, before?.skills[path]);
  const skill: PreviewedSkill = {
    path: named.path === "" ? "." : named.path,
    folder: named.folder,
    ...(await reader.read(named.folder, signal)),
  };
  const isSame = here !== undefined && (known?.[1].source?.digest === digest || folderDigest(here.files) === digest);
  const state = here === undefined ? "new" : isSame ? "same" : "changed";
  const source: LockedSource = { ...origin, ...(staged.path !== "" && { path: staged.path }), digest };
  const preview: PreviewedCopy = {
    state,
    skill,
    path,
    digest,
    files: named.files,
    bytes: named.bytes,
    isEdited: here !== undefined && known !== undefined && folderDigest(here.files) !== known[1].source?.digest,
    fileChanges: here === undefined || isSame ? [] : await compareFolders(here, { folder: named.folder, files }),
    changes: known === undefined || isSame ? [] : changesOf(known[1], skill),
  };
  return { preview, source, staged: named.folder, target };
}

/** A skill at the top of a repository gets the name that it has, if it can be the name of a folder. */
async function withOwnName(staged: StagedSkill, { reader, signal }: InstallContext): Promise<StagedSkill> {
  if (staged.path !== "") return staged;
  const skill = await reader.read(staged.folder, signal);
  if (!("name" in skill) || skill.name === staged.name || !isSkillFolderName(skill.name)) return staged;
  const folder = join(dirname(staged.folder), skill.name);
  renameSync(staged.folder, folder);
  return { ...staged, name: skill.name, folder };
}

function isSameOrigin(source: LockedSource | undefined, { kind, url }: Pick<LockedSource, "kind" | "url">, path: string): boolean {
  return source !== undefined && source.kind === kind && source.url === url && (source.path ?? "") === path;
}

function changesOf(known: LockedLocalSkill, { name, tools, permissions }: PreviewedSkill): readonly Drift[] {
  return name === undefined || tools === undefined ? [] : compareSkill(name, known, { name, tools, permissions });
}

/**
 * The place may come from a lock file, which comes with the project.
 * @throws HostError `PATH_OUTSIDE`
 */
export function assertPlace(target: string, path: string, { project }: Pick<InstallContext, "project">): void {
  const home = project.scope === "user" ? join(dirname(project.folder), "skills") : project.folder;
  const inner = relative(home, target).split(sep).join("/");
  const fault = new EntryRules(tarballLimits).faultOfName(inner);
  if (inner !== "" && fault === undefined && isReallyInside(home, target) && !inner.split("/").includes("node_modules")) return;
  throw new HostError("PATH_OUTSIDE", `${path} is not a place for skills in ${home}, so nothing was changed.`);
}

function taken(target: string, known: LockedLocalSkill | undefined): HostError {
  const from = known?.source === undefined ? "" : ` It was copied from ${known.source.url}.`;
  return new HostError(
    "SKILL_EXISTS",
    `${target} already exists with other files, so nothing was written.${from} Remove it or move it away first.`,
  );
}

function refuseSharedPlaces(copies: readonly PlannedCopy[]): void {
  const places = new Map<string, PlannedCopy>();
  for (const copy of copies) {
    const other = places.get(copy.target);
    if (other !== undefined) {
      const paths = [other, copy].map(({ preview }) => JSON.stringify(preview.skill.path)).join(" and ");
      throw new HostError("SKILL_EXISTS", `${paths} both need the folder ${copy.preview.path}. Choose one of them: --skill <path>.`);
    }
    places.set(copy.target, copy);
  }
}

async function judge(sources: readonly PreviewedSource[], context: InstallContext): Promise<readonly Diagnostic[]> {
  const found: Diagnostic[] = [];
  for (const { url, commit = "", skills } of sources) {
    const about = { name: url, version: commit, files: 0, bytes: 0, hasScripts: false, changes: [] };
    const own = await context.judge({ ...about, skills: skills.map(({ skill }) => skill) }, context.project.scope);
    const [error] = own.filter(({ severity }) => severity === "error");
    if (error !== undefined) throw new HostError("PACKAGE_REFUSED", `Nothing was installed from ${url}: ${error.message}`);
    found.push(...own, ...skills.flatMap(({ skill }) => skill.diagnostics));
  }
  return found;
}
