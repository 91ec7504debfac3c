import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { HostError } from "../base/errors.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { confinePath, isInside } from "../io/confine-path.ts";

/** A change in a project's `node_modules`. Paths are relative to the project, with forward slashes. */
export type Change =
  /** Moves a staged folder to this path. */
  | { readonly kind: "put"; readonly path: string; readonly staged: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  | { readonly kind: "remove"; readonly path: string };

/** The folder in which packages are prepared. It is on the same disk as the project, so that they can be renamed into place. */
export interface Staging {
  readonly project: string;
  readonly folder: string;
}

const stagingPrefix = ".skillhost-";
// The files that a command may change besides packages.
export const manifests: readonly string[] = ["package.json", "package-lock.json", "skillhost-lock.json", "node_modules/.package-lock.json"];

export async function openStaging(project: string): Promise<Staging> {
  const folder = join(project, "node_modules", `${stagingPrefix}${randomBytes(6).toString("hex")}`);
  await mkdir(folder, { recursive: true });
  return { project, folder };
}

/**
 * A completed step of a commit or a rollback. `away`: the old package has been moved to the staging folder; `placed`: the new one has
 * been moved from there; `undone`: a move was reversed. `settled`: the journal is deleted.
 */
export interface CommitStep {
  readonly kind: "journal" | "away" | "placed" | "manifests" | "settled" | "undone" | "returned" | "restored";
  readonly path?: string;
}

export interface CommitOptions {
  /** Called after each step. The process may end, or this may throw, at any of them. */
  onStep?(step: CommitStep): void;
}

/** Deletes the staging folder with everything in it. */
export async function closeStaging({ folder }: Staging): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

interface Journal {
  readonly staging: string;
  readonly changes: readonly Change[];
  /** The previous texts of the manifests; null for a file that did not exist. */
  readonly manifests: Readonly<Record<string, string | null>>;
}

/**
 * Applies all changes, then `finish`, which writes the manifests; or none of it. A journal is written first, so that after a process was
 * killed the next one can roll back: see `recoverProject`. Each package moves as a whole, so it is never half there. A replaced package
 * is absent between two renames, because no system that Node.js supports can exchange folders; nothing else happens between these two,
 * and as long as one may be absent the journal exists and the staging folder has both versions.
 */
export async function commitChanges(
  staging: Staging,
  changes: readonly Change[],
  finish: () => Promise<void>,
  { onStep }: CommitOptions = {},
): Promise<void> {
  const { project } = staging;
  const journal: Journal = { staging: relative(project, staging.folder), changes, manifests: readManifests(project) };
  stageLinks(changes, staging);
  await writeFileAtomic(journalOf(project), JSON.stringify(journal), { inside: project });
  try {
    onStep?.({ kind: "journal" });
    for (const [index, change] of changes.entries()) carryOut(change, index, staging, onStep);
    await finish();
    onStep?.({ kind: "manifests" });
  } catch (error) {
    await takeBack(project, journal);
    throw error;
  }
  // The commit is complete here; only cleaning up is left.
  await rm(journalOf(project), { force: true });
  onStep?.({ kind: "settled" });
  await closeStaging(staging);
}

/** Rolls back what a killed process began, and deletes abandoned staging folders. The caller must hold the project's lock. */
export async function recoverProject(project: string, options: CommitOptions = {}): Promise<readonly string[]> {
  const journal = readJournal(project);
  if (journal !== undefined) await takeBack(project, journal, options);
  const left = readdirSync(join(project, "node_modules")).filter((name) => name.startsWith(stagingPrefix) && name !== journalName);
  for (const name of left) await rm(join(project, "node_modules", name), { recursive: true, force: true });
  return journal?.changes.map(({ path }) => path) ?? [];
}

/** Creates links in the staging folder, so that placing one is a rename too. */
function stageLinks(changes: readonly Change[], { project, folder }: Staging): void {
  const isWindows = process.platform === "win32";
  for (const [index, change] of changes.entries()) {
    if (change.kind !== "link") continue;
    // A junction has an absolute target, which would be resolved from its current folder.
    const target = isWindows ? resolve(project, dirname(change.path), change.target) : change.target;
    symlinkSync(target, stagedLink(folder, index), isWindows ? "junction" : "dir");
  }
}

function carryOut(change: Change, index: number, { project, folder }: Staging, onStep: CommitOptions["onStep"]): void {
  const path = join(project, change.path);
  const place = confinePath(project, dirname(change.path));
  if (!place.ok) throw new HostError("PACKAGES_PLACE", `${change.path} cannot be changed. ${place.message}`);
  const isReplaced = isThere(path);
  if (change.kind !== "remove") mkdirSync(dirname(path), { recursive: true });
  // Without a pause: between these two renames the package is absent.
  if (isReplaced) renameSync(path, trashOf(folder, index));
  if (isReplaced) onStep?.({ kind: "away", path: change.path });
  if (change.kind === "remove") return;
  renameSync(stagedOf(change, index, { project, folder }), path);
  onStep?.({ kind: "placed", path: change.path });
}

/** Each step is one rename, so the positions of the folders show what has been done; missing steps are skipped. */
async function takeBack(project: string, journal: Journal, { onStep }: CommitOptions = {}): Promise<void> {
  const folder = join(project, journal.staging);
  for (const [index, change] of [...journal.changes.entries()].reverse()) {
    const path = join(project, change.path);
    const trash = trashOf(folder, index);
    const had = isThere(trash);
    // The rollback may have been interrupted too: this folder has already been moved away once.
    const isUndone = isThere(`${trash}-undone`);
    // The staged folder no longer exists: it has been placed.
    const isPlaced = change.kind !== "remove" && !isThere(stagedOf(change, index, { project, folder })) && isThere(path);
    if (!isUndone && isPlaced) {
      renameSync(path, `${trash}-undone`);
      onStep?.({ kind: "undone", path: change.path });
    }
    if (had) {
      renameSync(trash, path);
      onStep?.({ kind: "returned", path: change.path });
    }
  }
  for (const [name, text] of Object.entries(journal.manifests)) {
    const file = join(project, name);
    if (text === null) await rm(file, { force: true });
    else if (!existsSync(file) || readFileSync(file, "utf8") !== text) await writeFileAtomic(file, text, { inside: project });
  }
  onStep?.({ kind: "restored" });
  await rm(journalOf(project), { force: true });
  onStep?.({ kind: "settled" });
  await rm(folder, { recursive: true, force: true });
}

function readManifests(project: string): Record<string, string | null> {
  return Object.fromEntries(
    manifests.map((name) => {
      const file = join(project, name);
      return [name, existsSync(file) ? readFileSync(file, "utf8") : null];
    }),
  );
}

function readJournal(project: string): Journal | undefined {
  if (!isUnsettled(project)) return undefined;
  const file = journalOf(project);
  try {
    const journal = JSON.parse(readFileSync(file, "utf8")) as Journal;
    // Without the staging folder the completed steps are unknown and the old packages are lost.
    if (isOurs(journal, project) && isThere(join(project, journal.staging))) return journal;
  } catch {
    // Not written by skillhost, which writes journals atomically.
  }
  throw new HostError("PACKAGES_JOURNAL", `${file} cannot be read. Check node_modules, run "npm ci", and delete that file.`);
}

/** A journal decides what is moved and deleted, and may come with the project: only journals in our own form are followed. */
function isOurs({ staging, changes, manifests: texts }: Journal, project: string): boolean {
  const isPlain = (path: unknown): path is string =>
    typeof path === "string" && !path.split(/[\\/]/).some((part) => part === "" || part === "..");
  const isStaged = (path: string): boolean => isPlain(path) && isInside(staging, path);
  return (
    /^node_modules[\\/]\.skillhost-[0-9a-f]{12}$/.test(staging) &&
    // Paths must not lead through a link out of the project.
    [staging, ...changes.map(({ path }) => dirname(path))].every((path) => confinePath(project, path).ok) &&
    // The first part of an absolute path is empty.
    changes.every(({ path }) => isPlain(path) && path.split("/").includes("node_modules")) &&
    changes.every((change) => change.kind !== "put" || isStaged(change.staged)) &&
    Object.entries(texts).every(([name, text]) => manifests.includes(name) && (text === null || typeof text === "string"))
  );
}

function trashOf(folder: string, index: number): string {
  return join(folder, `old-${index}`);
}

function stagedLink(folder: string, index: number): string {
  return join(folder, `link-${index}`);
}

function stagedOf(change: Exclude<Change, { kind: "remove" }>, index: number, { project, folder }: Staging): string {
  return change.kind === "put" ? join(project, change.staged) : stagedLink(folder, index);
}

/** True also for a broken link. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

const journalName = ".skillhost-journal.json";

/** The journal of a command that moves packages of a project, deleted after its completion or rollback. */
function journalOf(project: string): string {
  return join(project, "node_modules", journalName);
}

/** Whether a command is moving packages of a project, or was killed while doing so. */
export function isUnsettled(project: string): boolean {
  return existsSync(journalOf(project));
}
