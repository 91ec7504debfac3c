import type { Dirent, Stats } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { type CheckedTree, type FileGuard, type GuardedRead, readFileBytes } from "../io/read-bounded.ts";
import {
  digestBytes,
  digestFolder,
  type FileDigest,
  type FolderDigests,
  foldedName,
  foldersOf,
  signatureFileName,
} from "./folder-digests.ts";
import type { SignatureStatement } from "./skill-signature.ts";

/** Larger files are not kept in memory during a load: they are read again, and their digest is compared. */
const maxHeldBytes = 4 * 1024 * 1024;
const maxFileBytes = 64 * 1024 * 1024;

/** The bytes of a folder that were read during the check, for the subsequent load. */
export class HeldBytes implements FileGuard {
  readonly #folder: string;
  readonly #bytes = new Map<string, Uint8Array>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  hold(file: string, bytes: Uint8Array): void {
    const path = relativePath(this.#folder, file);
    if (path !== undefined && bytes.length <= maxHeldBytes) this.#bytes.set(path, bytes);
  }

  read(file: string): Extract<GuardedRead, { ok: true }> | undefined {
    const path = this.#bytes.size === 0 ? undefined : relativePath(this.#folder, file);
    const bytes = path === undefined ? undefined : this.#bytes.get(path);
    return bytes && { ok: true, bytes };
  }

  release(): void {
    this.#bytes.clear();
  }
}

interface CheckedFolderOptions {
  readonly files: ReadonlyMap<string, FileDigest>;
  readonly expires?: string | undefined;
  readonly now: () => number;
}

/**
 * A folder whose required signature is valid. During the load its files are the checked bytes; a file that is read later is
 * accepted only with the signed digest. So it never serves other content than the signed one.
 */
export class CheckedFolder implements CheckedTree {
  readonly folder: string;
  readonly files: ReadonlyMap<string, FileDigest>;
  readonly #expires: number | undefined;
  readonly #now: () => number;
  #held: HeldBytes | undefined;
  #folders: ReadonlySet<string> | undefined;

  constructor(folder: string, { files, expires, now }: CheckedFolderOptions) {
    this.folder = resolve(folder);
    this.files = files;
    this.#expires = expires === undefined ? undefined : Date.parse(expires);
    this.#now = now;
  }

  /** Serves the checked bytes until `release`. */
  hold(held: HeldBytes): void {
    this.#held = held;
  }

  release(): void {
    this.#held?.release();
    this.#held = undefined;
  }

  relative(file: string): string | undefined {
    return relativePath(this.folder, file);
  }

  kindOf(path: string): "file" | "folder" | undefined {
    const name = this.relative(path);
    if (name === undefined) return resolve(path) === this.folder ? "folder" : undefined;
    if (this.files.has(name)) return "file";
    this.#folders ??= foldersOf(this.files.keys());
    return this.#folders.has(name) ? "folder" : undefined;
  }

  read(file: string): GuardedRead {
    const held = this.#held?.read(file);
    if (held !== undefined) return held;
    const path = this.relative(file);
    const listed = path === undefined ? undefined : this.files.get(path);
    if (listed === undefined) return refused(file, "TRUST_FILE_ADDED", "This file is not one of the signed files, so it is not used.");
    const read = readFileBytes(file, maxFileBytes);
    if (!read.ok) return read;
    if (digestBytes(read.bytes) === listed.digest) return { ok: true, bytes: read.bytes };
    const advice = "Restore it, or have the skill signed again.";
    return refused(file, "TRUST_FILE_CHANGED", `This file has changed since the skill was signed, so it is not used. ${advice}`);
  }

  /** Checks the whole folder again, before programs open files by name. Undefined: it is unchanged, and the signature has not expired. */
  recheck(): Diagnostic | undefined {
    if (this.#expires !== undefined && this.#expires <= this.#now()) {
      const message = "The signature of this skill has expired since it was loaded. Have the skill signed again.";
      return { severity: "error", code: "TRUST_EXPIRED", file: this.folder, message };
    }
    return compareFiles(this.folder, this, digestFolder(this.folder, { refusesGit: true }), "the signer")[0];
  }

  /** Whether its signature covers exactly the same files. */
  equals(other: CheckedFolder): boolean {
    if (this.folder !== other.folder || this.#expires !== other.#expires || this.files.size !== other.files.size) return false;
    for (const [path, { digest }] of this.files) if (other.files.get(path)?.digest !== digest) return false;
    return true;
  }
}

/** With forward slashes and in Unicode NFC, as in signatures. Undefined: not below the folder. */
function relativePath(folder: string, file: string): string | undefined {
  const prefix = folder + sep;
  // Most paths are joined from the folder, so they need not be resolved.
  const plain = file.startsWith(prefix) && !unresolvedSegment.test(file) ? file.slice(prefix.length) : relative(folder, resolve(file));
  if (plain === "" || plain === ".." || plain.startsWith(`..${sep}`) || isAbsolute(plain)) return undefined;
  return (sep === "/" ? plain : plain.replaceAll(sep, "/")).normalize("NFC");
}

const unresolvedSegment = /[\\/](?:\.{0,2})(?:[\\/]|$)/;

function refused(file: string, code: string, message: string): GuardedRead {
  return { ok: false, diagnostic: { severity: "error", code, file, message } };
}

// Further changes are only counted.
const maxReported = 10;
const maxTextBytes = 1024 * 1024;

/** Describes how a folder differs from its signature; empty if it does not. */
export function compareFiles(
  folder: string,
  { files: signed }: Pick<SignatureStatement, "files">,
  found: FolderDigests,
  signer: string,
): readonly Diagnostic[] {
  const faults: Diagnostic[] = [...found.problems];
  const fault = (code: string, path: string, message: string): void => {
    faults.push({ severity: "error", code, file: join(folder, path), message });
  };
  for (const [path, { digest, size }] of signed) {
    const now = found.files.get(path);
    if (now === undefined) fault("TRUST_FILE_MISSING", path, missing(path, found));
    else if (now.digest !== digest && isOtherLineEnds(join(folder, path), digest)) fault("TRUST_FILE_CHANGED", path, lineEnds);
    else if (now.digest !== digest)
      fault(
        "TRUST_FILE_CHANGED",
        path,
        `This file has changed since ${signer} signed the skill (${size} bytes when signed, ${now.size} now).`,
      );
  }
  for (const path of found.files.keys())
    if (!signed.has(path) && !isInert(path))
      fault(
        "TRUST_FILE_ADDED",
        path,
        `This file is not one of the files that ${signer} signed: it was added, or is not packed. Move it out of the skill, or have the skill signed again.`,
      );
  if (faults.length <= maxReported) return faults;
  const more = faults.length - maxReported;
  const message = `${more} more files differ from the signed ones.`;
  return [
    ...faults.slice(0, maxReported),
    { severity: "error", code: "TRUST_FILES_CHANGED", file: join(folder, signatureFileName), message },
  ];
}

/** Internal files of git and npm, which are never packed and not part of a skill. */
export function isInert(path: string): boolean {
  return /(?:^|\/)\.(?:gitignore|gitattributes|npmignore)$/.test(path);
}

const lineEnds =
  'Its line endings differ from the signed ones, probably because git converted them. Add "* -text" to the .gitattributes of the skill before signing, and check the files out again.';

/** Whether it is the signed file with the line ends of another system. */
function isOtherLineEnds(file: string, digest: string): boolean {
  const read = readFileBytes(file, maxTextBytes);
  if (!read.ok) return false;
  const text = Buffer.from(read.bytes).toString("latin1");
  const unix = text.replaceAll("\r\n", "\n");
  return [unix, unix.replaceAll("\n", "\r\n")].some((each) => digestBytes(Buffer.from(each, "latin1")) === digest);
}

function missing(path: string, { files }: FolderDigests): string {
  const folded = foldedName(path);
  const other = [...files.keys()].find((each) => foldedName(each) === folded);
  if (other !== undefined) return `This file was signed with this name, but is named ${JSON.stringify(other)} now. Rename it back.`;
  return "This file was signed but is missing. Restore it, or have the skill signed again.";
}

/**
 * The content of a folder at the time of its check. The load reads from here, so that each file is read once and later changes
 * have no effect.
 */
export class FolderView {
  readonly #prefix: string;
  readonly #lists = new Map<string, readonly Dirent[]>();
  readonly #entries = new Map<string, Dirent>();
  readonly #hashes = new Map<string, string>();
  /** The states of the listed folders before they were listed, where known. */
  readonly states: Map<string, Stats> = new Map();

  constructor(folder: string) {
    this.#prefix = folder + sep;
  }

  /** Undefined, also for links: the caller reads the disk. */
  kindOf(path: string): "file" | "folder" | "nothing" | undefined {
    const entry = this.#entries.get(path);
    if (entry === undefined) return this.#lists.has(dirname(path)) && path.startsWith(this.#prefix) && isExact ? "nothing" : undefined;
    if (entry.isFile()) return "file";
    return entry.isDirectory() ? "folder" : undefined;
  }

  /** Undefined: the folder is missing or was not read. */
  entriesOf(folder: string): readonly Dirent[] | undefined {
    return this.#lists.get(folder);
  }

  /**
   * sha256 of a file's text as 64 hex digits; undefined also if the hashed bytes include a byte order mark, which is not part
   * of the text.
   */
  hashOf(file: string): string | undefined {
    return this.#hashes.get(file);
  }

  /** Forgets everything after the load: from now on the disk is read. */
  release(): void {
    for (const map of [this.#lists, this.#entries, this.#hashes]) map.clear();
  }

  noteList(folder: string, entries: readonly Dirent[], state?: Stats): void {
    this.#lists.set(folder, entries);
    if (state !== undefined) this.states.set(folder, state);
    for (const entry of entries) this.#entries.set(folder + sep + entry.name, entry);
  }

  noteRead(file: string, bytes: Uint8Array, digest: string): void {
    if (bytes[0] !== 0xef || bytes[1] !== 0xbb || bytes[2] !== 0xbf) this.#hashes.set(file, digest.slice("sha256:".length));
  }
}

// On other systems a file is also found by other spellings of its name.
const isExact = process.platform !== "darwin" && process.platform !== "win32";
