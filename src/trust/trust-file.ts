import { existsSync, realpathSync, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { errorMessage, HostError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import { type FieldReaders, mustBe, readFields, readText, readTexts } from "../base/read-fields.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { isInside, realPathOfDeepest } from "../io/confine-path.ts";
import { takeFileLock } from "../io/file-lock.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { approvalLogIn, logApproval, runningProgram } from "./approval-log.ts";
import { readPackagePatterns, readRegistries } from "./package-rules.ts";
import { type PolicyPart, readDefinitions, readPolicy, readProvenance } from "./trust-policy.ts";
import { formatKey, isKeyId, type PublicKey, parseKey, parseKeyList, type Revocation } from "./trusted-keys.ts";

/** The settings that a user and an organisation have. */
export interface PolicyFields extends PolicyPart {
  readonly keys?: readonly TrustedKey[] | undefined;
  readonly revoked?: readonly Revocation[] | undefined;
  /** The only keys that skills of projects and of packages may be signed with. */
  readonly onlyKeys?: readonly string[] | undefined;
}

/** The content of `trust.json` in the user's folder. */
export interface TrustFile extends PolicyFields {
  /** Folders whose code may run. */
  readonly folders?: readonly TrustedFolder[] | undefined;
}

interface TrustedKey extends PublicKey {
  /** ISO 8601. */
  readonly trustedAt?: string;
}

export function trustFileIn(directory: string): string {
  return join(directory, "trust.json");
}

/**
 * Reads the user's trust file; a missing file is empty.
 * @throws HostError `TRUST_FILE_INVALID`: ignoring it would check less than the user requires.
 */
export function readTrustFile(file: string): TrustFile {
  const read = readTextFile(file, maxBytes);
  if (!read.ok) {
    if (read.diagnostic.code === "FILE_MISSING") return {};
    throw unusable(file, read.diagnostic.message);
  }
  try {
    return readFields<TrustFile>(JSON.parse(read.text), "trust file", "TRUST_FILE_INVALID", readers);
  } catch (error) {
    throw unusable(file, errorMessage(error));
  }
}

/** Changes the file, under a lock against other programs. @throws HostError `TRUST_FILE_INVALID`, `TRUST_FILE_BUSY`. */
export async function changeTrustFile(file: string, change: (before: TrustFile) => TrustFile): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const taken = await takeFileLock(`${file}.lock`);
  if (taken.kind === "taken") throw new HostError("TRUST_FILE_BUSY", `${file} is being changed by another program. Try again.`);
  try {
    const { keys, ...rest } = change(readTrustFile(file));
    const lines = keys?.map(({ trustedAt, ...key }) => ({
      key: formatKey(key),
      id: key.id,
      ...(trustedAt !== undefined && { trustedAt }),
    }));
    await writeFileAtomic(file, `${JSON.stringify({ ...rest, ...(lines && { keys: lines }) }, undefined, 2)}\n`, { mode: 0o600 });
  } finally {
    taken.lock.release();
  }
}

/** Adds a folder, as it is now, to the trusted ones. @throws HostError `FOLDER_MISSING`, `FOLDER_TOO_WIDE`, and as `changeTrustFile`. */
export async function trustFolderIn(file: string, folder: string): Promise<TrustedFolder> {
  const described = describeFolder(folder);
  const by = runningProgram();
  logApproval({ action: "approved", kind: "folder", id: described.path, digest: described.identity, by }, approvalLogBeside(file));
  await changeTrustFile(file, (before) => ({
    ...before,
    folders: [...(before.folders ?? []).filter(({ path }) => path !== described.path), described],
  }));
  return described;
}

/** The log of approvals that belongs to a trust file. */
function approvalLogBeside(file: string): string {
  return approvalLogIn(dirname(file));
}

const maxBytes = 1024 * 1024;

export const policyReaders: FieldReaders<PolicyFields> = {
  policy: readPolicy,
  definitions: readDefinitions,
  provenance: readProvenance,
  registries: readRegistries,
  packages: readPackagePatterns,
  deniedPackages: readPackagePatterns,
  keys: (value, path) => listOf(value, path, readKey),
  revoked: (value, path) => listOf(value, path, readRevocation),
  onlyKeys: (value, path) => {
    const texts = readTexts(value, path);
    parseKeyList(texts, path);
    return texts;
  },
};

const readers: FieldReaders<TrustFile> = {
  ...policyReaders,
  folders: (value, path) => listOf(value, path, readFolder),
};

function listOf<T>(value: unknown, path: string, read: (item: unknown, path: string) => T): readonly T[] {
  if (!Array.isArray(value)) return mustBe(path, "an array");
  return value.map((item: unknown, index) => read(item, `${path}[${index}]`));
}

function readKey(value: unknown, path: string): TrustedKey {
  if (!isRecord(value)) return mustBe(path, "an object with a key");
  const key = parseKey(readText(value["key"], `${path}.key`));
  return { ...key, ...(value["trustedAt"] !== undefined && { trustedAt: readText(value["trustedAt"], `${path}.trustedAt`) }) };
}

function readRevocation(value: unknown, path: string): Revocation {
  if (!isRecord(value) || !isKeyId(value["id"])) return mustBe(path, "an object with the id of a key");
  const { id, at, reason } = value;
  return { id, at: readText(at, `${path}.at`), ...(reason !== undefined && { reason: readText(reason, `${path}.reason`) }) };
}

function readFolder(value: unknown, path: string): TrustedFolder {
  if (!isRecord(value)) return mustBe(path, "an object with the path and the identity of a folder");
  const text = (key: "path" | "identity" | "trustedAt"): string => readText(value[key], `${path}.${key}`);
  return { path: text("path"), identity: text("identity"), trustedAt: text("trustedAt") };
}

function unusable(file: string, why: string): HostError {
  return new HostError("TRUST_FILE_INVALID", `${file}, which stores what you trust, is not valid: ${why} Fix it, or move it away.`);
}

/** A trusted folder, as it was when it was trusted. */
export interface TrustedFolder {
  /** Its real path. */
  readonly path: string;
  readonly identity: string;
  /** ISO 8601. */
  readonly trustedAt: string;
}

/**
 * Distinguishes a folder from a later one at the same path: its birth time and inode number. File systems without birth times
 * report 0; the device is used instead, whose number is not stable everywhere. Undefined: the folder is missing.
 */
export function identityOf(folder: string): string | undefined {
  try {
    const stats = statSync(folder, { bigint: true });
    const { ino, dev, birthtimeNs } = stats;
    if (!stats.isDirectory()) return undefined;
    return birthtimeNs === 0n ? `device ${dev} number ${ino}` : `born ${birthtimeNs} number ${ino}`;
  } catch {
    // Missing or inaccessible: no code of it can run.
    return undefined;
  }
}

/**
 * Describes a folder, so that it can be trusted together with everything below it.
 * @throws HostError `FOLDER_MISSING`; `FOLDER_TOO_WIDE` for a folder that contains more than one project, such as a home
 * folder.
 */
export function describeFolder(folder: string): TrustedFolder {
  const identity = identityOf(folder);
  if (identity === undefined)
    throw new HostError("FOLDER_MISSING", `Folder ${folder} does not exist, so it cannot be trusted. Choose an existing folder.`);
  const path = realpathSync.native(folder);
  if (isTooWide(path)) {
    const why = "Trust covers everything below a folder, and this one contains more than one project.";
    throw new HostError(
      "FOLDER_TOO_WIDE",
      `${path} cannot be trusted. ${why} Trust the folder of the project, or pass its skills with --skills.`,
    );
  }
  return { path, identity, trustedAt: new Date().toISOString() };
}

/** Whether a folder contains a whole home folder. */
export function isTooWide(realFolder: string): boolean {
  return realFolder === dirname(realFolder) || isInside(realFolder, realPathOfDeepest(resolve(homedir())));
}

/**
 * The id of a folder in approvals: the root of its checkout, or else the folder itself, with links resolved. A home folder and
 * the root of a file system never count as a checkout, because an approval for one of them would cover everything below.
 */
export function locationOf(directory: string): string {
  const start = realPathOf(resolve(directory));
  const home = realPathOf(homedir());
  for (let at = start; at !== dirname(at) && at !== home; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at;
  }
  return start;
}

function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // It does not exist yet, so its spelling is used.
    return path;
  }
}
