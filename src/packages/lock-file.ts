import { join } from "node:path";
import { HostError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import { type FieldReaders, fieldsReader, mustBe, readFields, readOneOf, readText, readTexts } from "../base/read-fields.ts";
import type { SkillPermissions } from "../formats/skills/skill-permissions.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { readTextFile } from "../io/read-bounded.ts";
import type { LockedTool } from "./read-skill-folder.ts";

/** A skill in a lock file. */
export interface LockedSkill {
  readonly name: string;
  readonly version?: string | undefined;
  readonly tools: Readonly<Record<string, LockedTool>>;
  /** The permissions that its manifest declares for its tools. */
  readonly permissions?: SkillPermissions | undefined;
}

/** A package with skills. Paths are relative to its folder, with forward slashes. */
export interface LockedPackage {
  readonly version: string;
  /** The URL of its tarball; absent for a link. */
  readonly resolved?: string | undefined;
  /** The sha512 of the tarball, in npm's form. */
  readonly integrity?: string | undefined;
  /** The target of a link, relative to the project. */
  readonly link?: string | undefined;
  readonly skills: Readonly<Record<string, LockedSkill>>;
  /** The sha256 digest of every file. */
  readonly files: Readonly<Record<string, string>>;
}

/** Where a copied skill came from. */
export interface LockedSource {
  readonly kind: SourceKind;
  readonly url: string;
  /** The branch, tag or commit that was asked for; absent for the default branch. */
  readonly ref?: string | undefined;
  readonly commit?: string | undefined;
  /** The folder in the repository or archive; absent for its top. For an index: the name there. */
  readonly path?: string | undefined;
  /** The digest of the files as they were fetched. */
  readonly digest: string;
}

export type SourceKind = (typeof sourceKinds)[number];
const sourceKinds = ["git", "index", "archive"] as const;

/** A skill of the project itself. */
export interface LockedLocalSkill extends LockedSkill {
  /** Absent for a skill that was written here. */
  readonly source?: LockedSource | undefined;
  readonly files: Readonly<Record<string, string>>;
}

/** `skillhost-lock.json`: what was reviewed and accepted. */
export interface PackagesLock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
  /** By folder, relative to the project. */
  readonly skills: Readonly<Record<string, LockedLocalSkill>>;
}

export const lockFileName = "skillhost-lock.json";
const version = 1;
const maxBytes = 64 * 1024 * 1024;

/**
 * Reads the lock file of a project; undefined if it does not exist.
 * @throws HostError `PACKAGES_LOCK` for an invalid lock file, or one of a later version.
 */
export function readLock(project: string): PackagesLock | undefined {
  const file = join(project, lockFileName);
  const read = readTextFile(file, maxBytes);
  if (!read.ok && read.diagnostic.code === "FILE_MISSING") return undefined;
  if (!read.ok) throw unusable(file, read.diagnostic.message);
  try {
    const value: unknown = JSON.parse(read.text);
    const { lockfileVersion, ...rest } = isRecord(value) ? value : mustBe("the lock", "an object");
    if (lockfileVersion !== version)
      throw unusable(file, `Its lockfileVersion is ${JSON.stringify(lockfileVersion)}, but this version of skillhost supports ${version}.`);
    // Missing fields of an edited file are read as empty; the comparison reports them.
    const { packages = {}, skills = {} } = readFields<Partial<PackagesLock>>(
      rest,
      "lock",
      "PACKAGES_LOCK",
      readers as FieldReaders<Partial<PackagesLock>>,
    );
    const whole = <T extends LockedSkill>(skill: T): T => ({ ...skill, name: skill.name ?? "", tools: skill.tools ?? {} });
    return {
      packages: mapValues(packages, (each) => ({
        ...each,
        version: each.version ?? "",
        files: each.files ?? {},
        skills: mapValues(each.skills ?? {}, whole),
      })),
      skills: mapValues(skills, (each) => ({ ...whole(each), files: each.files ?? {} })),
    };
  } catch (error) {
    throw error instanceof HostError && error.message.includes(file) ? error : unusable(file, (error as Error).message);
  }
}

function mapValues<T>(record: Readonly<Record<string, T>>, to: (value: T) => T): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null), Object.fromEntries(Object.entries(record).map(([key, value]) => [key, to(value)])));
}

export async function writeLock(project: string, lock: PackagesLock): Promise<void> {
  await writeFileAtomic(join(project, lockFileName), lockText(lock), { inside: project });
}

/** Sorted, with one fact per line, so that reviews show changes clearly. */
function lockText({ packages, skills }: PackagesLock): string {
  return `${JSON.stringify({ lockfileVersion: version, packages: sortKeys(packages), skills: sortKeys(skills) }, null, 2)}\n`;
}

function sortKeys<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function unusable(file: string, why: string): HostError {
  return new HostError(
    "PACKAGES_LOCK",
    `${file} is not valid. ${why} Restore it from version control, or create a new one with "skillhost lock".`,
  );
}

const mapOf =
  <T>(read: (value: unknown, path: string) => T) =>
  (value: unknown, path: string): Readonly<Record<string, T>> => {
    if (!isRecord(value)) return mustBe(path, "an object");
    const entries = Object.entries(value).map(([key, item]): [string, T] => [key, read(item, `${path}.${key}`)]);
    return Object.assign(Object.create(null) as Record<string, T>, Object.fromEntries(entries));
  };

const tool: FieldReaders<LockedTool> = { signature: readText, definition: readTexts, uses: readTexts } as FieldReaders<LockedTool>;
const permissions = fieldsReader<SkillPermissions>({
  env: readTexts,
  hosts: readTexts,
  programs: readTexts,
  read: readTexts,
  write: readTexts,
  tools: readTexts,
  servers: readTexts,
} as FieldReaders<SkillPermissions>);
const skill = { name: readText, version: readText, tools: mapOf(fieldsReader<LockedTool>(tool)), permissions };
const source = fieldsReader<LockedSource>({
  kind: readOneOf(sourceKinds),
  url: readText,
  ref: readText,
  commit: readText,
  path: readText,
  digest: readText,
} as FieldReaders<LockedSource>);
const readers = {
  packages: mapOf(
    fieldsReader<LockedPackage>({
      version: readText,
      resolved: readText,
      integrity: readText,
      link: readText,
      skills: mapOf(fieldsReader<LockedSkill>(skill as FieldReaders<LockedSkill>)),
      files: mapOf(readText),
    } as FieldReaders<LockedPackage>),
  ),
  skills: mapOf(fieldsReader<LockedLocalSkill>({ ...skill, source, files: mapOf(readText) } as FieldReaders<LockedLocalSkill>)),
} as FieldReaders<PackagesLock>;

/** The sources of the copied skills in a lock, by folder. */
export function sourcesOf(lock: PackagesLock | undefined): Readonly<Record<string, LockedSource>> {
  const entries = Object.entries(lock?.skills ?? {});
  return Object.fromEntries(entries.flatMap(([path, { source }]) => (source === undefined ? [] : [[path, source]])));
}

/** A copied skill of the project. */
export interface CopiedSkill {
  /** Its folder, relative to the project. */
  readonly path: string;
  readonly source: LockedSource;
}

/** The copied skills in a lock file. */
export function copiedSkills(lock: PackagesLock | undefined): readonly CopiedSkill[] {
  return Object.entries(sourcesOf(lock)).map(([path, source]) => ({ path, source }));
}
