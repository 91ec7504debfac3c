import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rename, rm, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { HostError } from "../base/errors.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { confinePath, isInside } from "../io/confine-path.ts";

/** Something that changes in a project's `node_modules`. Paths are relative to the project, with forward slashes. */
export type Change =
  /** What was staged takes this place. */
  | { readonly kind: "put"; readonly path: string; readonly staged: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  | { readonly kind: "remove"; readonly path: string };

/** The folder that what is installed is prepared in. It is on the same disk as where it goes, so that it can be moved there. */
export interface Staging {
  readonly project: string;
  readonly folder: string;
}

const stagingPrefix = ".skillhost-";
const journalName = ".skillhost-journal.json";
// What a command may change beside packages.
const manifests = ["package.json", "package-lock.json", "skillhost-lock.json", "node_modules/.package-lock.json"];

export async function openStaging(project: string): Promise<Staging> {
  const folder = join(project, "node_modules", `${stagingPrefix}${randomBytes(6).toString("hex")}`);
  await mkdir(folder, { recursive: true });
  return { project, folder };
}

/** Deletes what was staged, and what was moved there. */
export async function closeStaging({ folder }: Staging): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

interface Journal {
  readonly staging: string;
  readonly changes: readonly Change[];
  /** The texts of the manifests from before; null: there was none. */
  readonly manifests: Readonly<Record<string, string | null>>;
}

/**
 * Carries out all changes, then `finish`, which writes the manifests; or none of it. A journal is written first, so that
 * whoever comes after a process that was killed in the middle can take back what that had done: see `recoverProject`.
 * Each package moves as a whole: at no moment is one half there.
 */
export async function commitChanges(staging: Staging, changes: readonly Change[], finish: () => Promise<void>): Promise<void> {
  const { project } = staging;
  const journal: Journal = { staging: relative(project, staging.folder), changes, manifests: readManifests(project) };
  await writeFileAtomic(journalOf(project), JSON.stringify(journal));
  try {
    for (const [index, change] of changes.entries()) await carryOut(change, index, staging);
    await finish();
  } catch (error) {
    await takeBack(project, journal);
    throw error;
  }
  // From here on it is done: what is left is to clean up.
  await rm(journalOf(project), { force: true });
  await closeStaging(staging);
}

/** Takes back what a killed process had begun, and deletes what others had staged. Only for who holds the project's lock. */
export async function recoverProject(project: string): Promise<readonly string[]> {
  const journal = readJournal(project);
  if (journal !== undefined) await takeBack(project, journal);
  const left = readdirSync(join(project, "node_modules")).filter((name) => name.startsWith(stagingPrefix) && name !== journalName);
  for (const name of left) await rm(join(project, "node_modules", name), { recursive: true, force: true });
  return journal?.changes.map(({ path }) => path) ?? [];
}

async function carryOut(change: Change, index: number, { project, folder }: Staging): Promise<void> {
  const path = join(project, change.path);
  const place = confinePath(project, dirname(change.path));
  if (!place.ok) throw new HostError("PACKAGES_PLACE", `${change.path} cannot be changed. ${place.message}`);
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) await rename(path, trashOf(folder, index));
  if (change.kind === "remove") return;
  await mkdir(dirname(path), { recursive: true });
  if (change.kind === "put") await rename(join(project, change.staged), path);
  else await symlink(change.target, path, process.platform === "win32" ? "junction" : "dir");
}

/** Each step is one rename, so what has been done shows in what lies where; the steps not taken are left alone. */
async function takeBack(project: string, journal: Journal): Promise<void> {
  const folder = join(project, journal.staging);
  await mkdir(folder, { recursive: true });
  for (const [index, change] of [...journal.changes.entries()].reverse()) {
    const path = join(project, change.path);
    const trash = trashOf(folder, index);
    const had = lstatSync(trash, { throwIfNoEntry: false }) !== undefined;
    // Taking back may have been interrupted, too: what lies here has been taken away from there once.
    const isUndone = lstatSync(`${trash}-undone`, { throwIfNoEntry: false }) !== undefined;
    if (!isUndone && isPlaced(project, change, had)) await rename(path, `${trash}-undone`);
    if (had) await rename(trash, path);
  }
  for (const [name, text] of Object.entries(journal.manifests)) await restore(join(project, name), text);
  await rm(journalOf(project), { force: true });
  await rm(folder, { recursive: true, force: true });
}

function isPlaced(project: string, change: Change, had: boolean): boolean {
  if (lstatSync(join(project, change.path), { throwIfNoEntry: false }) === undefined) return false;
  if (change.kind === "put") return !existsSync(join(project, change.staged));
  // A link where nothing was moved away from is ours only if it leads where ours does.
  return change.kind === "link" && (had || lstatSync(join(project, change.path)).isSymbolicLink());
}

async function restore(file: string, text: string | null): Promise<void> {
  if (text === null) await rm(file, { force: true });
  else if (!existsSync(file) || readFileSync(file, "utf8") !== text) await writeFileAtomic(file, text);
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
  const file = journalOf(project);
  if (!existsSync(file)) return undefined;
  try {
    const journal = JSON.parse(readFileSync(file, "utf8")) as Journal;
    if (isOurs(journal, project)) return journal;
  } catch {
    // Not of ours: they are written as a whole.
  }
  throw new HostError("PACKAGES_JOURNAL", `${file} cannot be read. Look at node_modules, run "npm ci", and delete that file.`);
}

/** A journal says what is moved and deleted, and one may have come with the project: only what we write is followed. */
function isOurs({ staging, changes, manifests: texts }: Journal, project: string): boolean {
  const isPlain = (path: unknown): path is string =>
    typeof path === "string" && !path.split(/[\\/]/).some((part) => part === "" || part === "..");
  const isStaged = (path: string): boolean => isPlain(path) && isInside(staging, path);
  return (
    /^node_modules[\\/]\.skillhost-[0-9a-f]{12}$/.test(staging) &&
    // Nor through a link that leads elsewhere.
    [staging, ...changes.map(({ path }) => dirname(path))].every((path) => confinePath(project, path).ok) &&
    // An absolute path has an empty first part.
    changes.every(({ path }) => isPlain(path) && path.split("/").includes("node_modules")) &&
    changes.every((change) => change.kind !== "put" || isStaged(change.staged)) &&
    Object.entries(texts).every(([name, text]) => manifests.includes(name) && (text === null || typeof text === "string"))
  );
}

function journalOf(project: string): string {
  return join(project, "node_modules", journalName);
}

function trashOf(folder: string, index: number): string {
  return join(folder, `old-${index}`);
}
