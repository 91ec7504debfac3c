import { existsSync } from "node:fs";
import { join } from "node:path";
import { HostError } from "../base/errors.ts";
import {
  type LockedLocalSkill,
  type LockedPackage,
  type LockedSkill,
  type LockedSource,
  lockFileName,
  type PackagesLock,
  readLock,
  sourcesOf,
} from "./lock-file.ts";
import { type LockOptions, lockProject, sameRecord } from "./lock-project.ts";

/** A difference from the lock file. */
export interface Drift {
  readonly kind: "package" | "skill" | "version" | "source" | "file" | "tool" | "permission";
  /** The package or skill, with its file or tool. */
  readonly subject: string;
  readonly message: string;
  /** The lines of the lock file and of the project, `- …` and `+ …`. */
  readonly diff?: readonly string[];
}

interface CompareOptions {
  /** The project was read without running anything: a tool that is missing there may be computed by a module. */
  readonly isUnrun?: boolean;
}

/** The differences, sorted by name. */
export function compareLocks(locked: PackagesLock, found: PackagesLock, { isUnrun = false }: CompareOptions = {}): readonly Drift[] {
  const all: readonly Drift[] = [
    ...compareNames(locked.packages, found.packages).flatMap(([name, before, now]) =>
      before === undefined || now === undefined ? [presence("package", name, before !== undefined)] : comparePackage(name, before, now),
    ),
    ...compareNames(locked.skills, found.skills).flatMap(([path, before, now]) =>
      before === undefined || now === undefined
        ? [presence("skill", path, before !== undefined)]
        : [...compareSource(path, before, now), ...compareSkill(path, before, now), ...compareFiles(path, before.files, now.files)],
    ),
  ];
  return isUnrun ? all.filter(({ kind, diff }) => kind !== "tool" || diff !== undefined) : all;
}

function comparePackage(name: string, before: LockedPackage, now: LockedPackage): readonly Drift[] {
  const found: Drift[] = [];
  if (before.version !== now.version) found.push(changed("version", name, "is another version", before.version, now.version));
  for (const key of ["resolved", "integrity", "link"] as const) {
    if (before[key] !== now[key]) found.push(changed("source", name, `has another ${key}`, before[key] ?? "none", now[key] ?? "none"));
  }
  for (const [path, one, other] of compareNames(before.skills, now.skills)) {
    const subject = path === "." ? name : `${name}/${path}`;
    if (one === undefined || other === undefined) found.push(presence("skill", subject, one !== undefined));
    else found.push(...compareSkill(subject, one, other));
  }
  return [...found, ...compareFiles(name, before.files, now.files)];
}

function compareSource(path: string, { source: before }: LockedLocalSkill, { source: now }: LockedLocalSkill): readonly Drift[] {
  const [one, other] = [before, now].map((source) => (source === undefined ? "written here" : sourceText(source)));
  return one === other ? [] : [changed("source", path, "has another source", one!, other!)];
}

/** `<url> <path>, <ref> at <commit>` */
function sourceText({ url, path, ref, commit }: LockedSource): string {
  const at = [ref, commit].filter((part) => part !== undefined).join(" at ");
  return [[url, path].filter((part) => part !== undefined).join(" "), at].filter((part) => part !== "").join(", ");
}

/** Tools whose definition is unknown on one side are compared only by their files. */
export function compareSkill(subject: string, before: LockedSkill, now: LockedSkill): readonly Drift[] {
  const found: Drift[] = [];
  if (before.name !== now.name) found.push(changed("skill", subject, "has another name", before.name, now.name));
  const permissions = diffLines(linesOf(before.permissions), linesOf(now.permissions));
  if (permissions.length > 0) found.push({ kind: "permission", subject, message: "declares other permissions", diff: permissions });
  for (const [name, one, other] of compareNames(before.tools, now.tools)) {
    const tool = `${subject} ${name}`;
    if (one === undefined || other === undefined) found.push(presence("tool", tool, one !== undefined));
    else if (one.signature !== undefined && other.signature !== undefined && one.signature !== other.signature) {
      found.push({
        kind: "tool",
        subject: tool,
        message: "is defined differently",
        diff: diffLines([...one.definition, ...(one.uses ?? [])], [...other.definition, ...(other.uses ?? [])]),
      });
    } else {
      // An older lock file has no uses; the digests of the files cover them.
      const uses = one.uses === undefined ? [] : diffLines(one.uses, other.uses ?? []);
      if (uses.length > 0) found.push({ kind: "tool", subject: tool, message: "has a different implementation", diff: uses });
    }
  }
  return found;
}

/** The lines that only one of the two lists contains. */
function diffLines(before: readonly string[], now: readonly string[]): readonly string[] {
  const removed = before.filter((line) => !now.includes(line)).map((line) => `- ${line}`);
  const added = now.filter((line) => !before.includes(line)).map((line) => `+ ${line}`);
  return [...removed, ...added];
}

function linesOf(permissions: LockedSkill["permissions"]): readonly string[] {
  return Object.entries(permissions ?? {}).flatMap(([kind, items]: [string, readonly string[]]) => items.map((item) => `${kind}: ${item}`));
}

export function compareFiles(
  subject: string,
  before: Readonly<Record<string, string>>,
  now: Readonly<Record<string, string>>,
): readonly Drift[] {
  if (sameRecord(before, now)) return [];
  return compareNames(before, now).flatMap(([path, one, other]): readonly Drift[] => {
    const what = { kind: "file", subject: `${subject} ${path}` } as const;
    if (one === undefined) return [{ ...what, message: "is not in skillhost-lock.json" }];
    if (other === undefined) return [{ ...what, message: "is missing" }];
    return one === other ? [] : [{ ...what, message: "has changed since it was locked" }];
  });
}

function compareNames<T>(
  before: Readonly<Record<string, T>>,
  now: Readonly<Record<string, T>>,
): readonly [name: string, before: T | undefined, now: T | undefined][] {
  const own = (record: Readonly<Record<string, T>>, name: string): T | undefined =>
    Object.hasOwn(record, name) ? record[name] : undefined;
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])].sort();
  return names.map((name) => [name, own(before, name), own(now, name)]);
}

function presence(kind: Drift["kind"], subject: string, isLocked: boolean): Drift {
  return { kind, subject, message: isLocked ? "is in skillhost-lock.json but is missing" : "is not in skillhost-lock.json" };
}

function changed(kind: Drift["kind"], subject: string, message: string, before: string, now: string): Drift {
  return { kind, subject, message, diff: [`- ${before}`, `+ ${now}`] };
}

export interface VerifyOutcome {
  readonly drift: readonly Drift[];
  readonly packages: number;
  readonly skills: number;
  readonly files: number;
}

/**
 * Compares every byte of the project with the lock file. Unchanged folders are not read as skills, and nothing is run unless `runs` is
 * true; for changed ones, differently defined tools are reported as far as their files show.
 * @throws HostError `PACKAGES_LOCK` when there is no lock file.
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
    sources: sourcesOf(locked),
  });
  return { drift: compareLocks(locked, found), ...countsOf(locked) };
}

/** Reads the lock file, which must exist. */
export function needLock(project: string): PackagesLock {
  const lock = readLock(project);
  if (lock !== undefined) return lock;
  const isProject = existsSync(join(project, "package.json"));
  const advice = isProject
    ? 'Create it with "skillhost lock", and commit it to version control.'
    : "There is no package.json here either: change to the project's folder.";
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
