import { hash } from "node:crypto";
import { type Dirent, readdirSync } from "node:fs";
import { sep } from "node:path";
import { canonicalJson, sha256 } from "../base/canonical-json.ts";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import { type CheckedFile, readFileBytes } from "../io/read-bounded.ts";

/** One file of a folder, as in signatures and lock files. */
export type FileDigest = CheckedFile;

export interface FolderDigests {
  /** By path from the folder: forward slashes, Unicode NFC, sorted by code unit. */
  readonly files: ReadonlyMap<string, FileDigest>;
  /** The reasons that the list is incomplete. With any of these, the folder must not be signed or trusted. */
  readonly problems: readonly Diagnostic[];
}

interface DigestOptions {
  /** The files to read, by path from the folder with forward slashes. Folders without one of them are not entered. Default: all. */
  readonly only?: ReadonlySet<string> | undefined;
  /** Files and folders with these names are skipped at any depth. */
  readonly exclude?: ReadonlySet<string> | undefined;
  /** Whether a `.git` is a problem. Otherwise it is skipped. */
  readonly refusesGit?: boolean | undefined;
  /** Called with the bytes of each file, from which the digest was computed. */
  onRead?(file: string, bytes: Uint8Array, digest: string): void;
  /** Called for each folder that was read, with its entries. */
  onList?(folder: string, entries: readonly Dirent[]): void;
}

/** The signature file of a skill. It does not cover itself. */
export const signatureFileName = "skill.sig.json";

// Files that operating systems and git create. None of them is part of a skill.
const skipped: ReadonlySet<string> = new Set([signatureFileName, ".DS_Store", "Thumbs.db", "desktop.ini"]);

/** Whether files with this name are excluded from a skill's files: signatures, and files that operating systems and git create. */
export function isIgnoredName(name: string): boolean {
  return name === ".git" || skipped.has(name);
}

const maxFiles = 20_000;
const maxFileBytes = 64 * 1024 * 1024;
const maxBytes = 256 * 1024 * 1024;
const maxDepth = 64;

/**
 * The digests of all files of a folder, including hidden ones. Problems are: links and other non-regular files, names that are
 * equal on some systems, a `node_modules` folder, and more than 20,000 files or 256 MiB. Git's own folder, the signature and
 * desktop files are skipped at any depth.
 */
export function digestFolder(folder: string, { exclude, only, ...options }: DigestOptions = {}): FolderDigests {
  const folders = only && foldersOf(only);
  const walk: Walk = { folder, files: [], byFoldedName: new Map(), problems: [], bytes: 0, ...options };
  for (const waiting: Place[] = [{ path: "", depth: 0 }]; waiting.length > 0; ) {
    const place = waiting.pop()!;
    for (const entry of entriesOf(place, walk)) {
      if (exclude?.has(entry.name)) continue;
      const path = place.path === "" ? entry.name : `${place.path}/${entry.name}`;
      if (only !== undefined && (entry.isDirectory() ? !folders?.has(path) : entry.isFile() && !only.has(path))) continue;
      if (entry.name === ".git") passOverGit(path, walk);
      else if (entry.isDirectory()) enter(entry.name, { path, depth: place.depth + 1 }, waiting, walk);
      else if (!skipped.has(entry.name)) addFile(entry, path, walk);
    }
    if (isTooMuch(walk)) break;
  }
  return { files: new Map(walk.files.sort(([a], [b]) => (a < b ? -1 : 1))), problems: walk.problems };
}

/** The sha256 digest of bytes: `sha256:` and 64 hex digits. */
export function digestBytes(bytes: Uint8Array): string {
  return `sha256:${hash("sha256", bytes, "hex")}`;
}

/**
 * Equal for names that some file system treats as equal: macOS and Windows ignore case, macOS also ignores composition and
 * invisible characters.
 */
export function foldedName(path: string): string {
  const visible = path.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  // Upper case first, because the long s and the sharp s are lower-case letters that share the capitals of others.
  return visible.toLowerCase().toUpperCase().toLowerCase().normalize("NFKC");
}

interface Place {
  readonly path: string;
  readonly depth: number;
}

interface Walk {
  readonly folder: string;
  readonly files: [path: string, FileDigest][];
  readonly byFoldedName: Map<string, string>;
  readonly problems: Diagnostic[];
  readonly refusesGit?: boolean | undefined;
  onRead?: DigestOptions["onRead"];
  onList?: DigestOptions["onList"];
  bytes: number;
}

function entriesOf({ path }: Place, walk: Walk): readonly Dirent[] {
  try {
    const folder = placeOf(walk, path);
    const entries = readdirSync(folder, { withFileTypes: true });
    walk.onList?.(folder, entries);
    return entries;
  } catch (error) {
    add(walk, "TRUST_FILE_UNREADABLE", path, `This folder cannot be listed: ${errorMessage(error)}.`);
    return [];
  }
}

/** Its settings can name programs that git runs (`core.fsmonitor`, hooks), which no signature covers. */
function passOverGit(path: string, walk: Walk): void {
  if (walk.refusesGit !== true) return;
  const advice = "Install the skill without it: copy or pack the folder, or keep the skill in a subfolder of its repository.";
  add(
    walk,
    "TRUST_GIT",
    path,
    `A skill whose signature is required must not contain .git, because git runs programs that its configuration names. ${advice}`,
  );
}

function enter(name: string, place: Place, waiting: Place[], walk: Walk): void {
  if (name === "node_modules") {
    const advice =
      "Put packages into a node_modules folder above the skill, as npm does for a skill in a package, or bundle what it needs.";
    add(
      walk,
      "TRUST_NODE_MODULES",
      place.path,
      `A signed skill must not contain a node_modules folder, because Node.js loads unverified code from it. ${advice}`,
    );
  } else if (place.depth > maxDepth) add(walk, "TRUST_TOO_LARGE", place.path, `Folders are nested more than ${maxDepth} deep here.`);
  else if (noClash(place.path, walk)) waiting.push(place);
}

function addFile(entry: Dirent, path: string, walk: Walk): void {
  if (!entry.isFile()) {
    const what = entry.isSymbolicLink() ? "a symbolic link, whose target can change" : "not a regular file";
    add(walk, entry.isSymbolicLink() ? "TRUST_LINK" : "TRUST_NOT_REGULAR", path, `This is ${what}. Replace it with a regular file.`);
    return;
  }
  if (!noClash(path, walk) || isTooMuch(walk)) return;
  const file = placeOf(walk, path);
  const read = readFileBytes(file, maxFileBytes);
  if (!read.ok) {
    add(walk, "TRUST_FILE_UNREADABLE", path, read.diagnostic.message);
    return;
  }
  walk.bytes += read.bytes.length;
  const digest = digestBytes(read.bytes);
  walk.files.push([path.normalize("NFC"), { size: read.bytes.length, digest }]);
  walk.onRead?.(file, read.bytes, digest);
}

/** Two files on a case-sensitive system; on others, one replaces the other. */
function noClash(path: string, walk: Walk): boolean {
  const folded = foldedName(path);
  const other = walk.byFoldedName.get(folded);
  walk.byFoldedName.set(folded, path);
  if (other === undefined) return true;
  add(walk, "TRUST_NAMES_CLASH", path, `On some systems this name equals ${JSON.stringify(other)}. Rename one.`);
  return false;
}

function isTooMuch(walk: Walk): boolean {
  if (walk.files.length <= maxFiles && walk.bytes <= maxBytes) return false;
  if (!walk.problems.some(({ code }) => code === "TRUST_TOO_LARGE")) {
    const message = `This folder has more than ${maxFiles} files or ${maxBytes / 1024 / 1024} MiB. Keep large and generated files outside of the skill.`;
    add(walk, "TRUST_TOO_LARGE", "", message);
  }
  return true;
}

function placeOf({ folder }: Walk, path: string): string {
  return path === "" ? folder : `${folder}${sep}${sep === "/" ? path : path.replaceAll("/", sep)}`;
}

function add(walk: Walk, code: string, path: string, message: string): void {
  walk.problems.push({ severity: "error", code, file: placeOf(walk, path), message });
}

/** All ancestor folders of these files. */
export function foldersOf(files: Iterable<string>): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const file of files) {
    for (let end = file.lastIndexOf("/"); end > 0 && !folders.has(file.slice(0, end)); end = file.lastIndexOf("/", end - 1)) {
      folders.add(file.slice(0, end));
    }
  }
  return folders;
}

/**
 * A digest of JSON data, independent of the order of keys. It contains its algorithm, so that stored digests stay valid if
 * another one is added: `sha256:` and 64 hex digits.
 * @throws TypeError for cycles and for values that JSON would drop or change, because different data could then have the same
 * digest.
 */
export function digestOf(data: unknown): string {
  assertJson(data, 0);
  return `sha256:${sha256(canonicalJson(data))}`;
}

/** Whether a text is a well-formed digest. */
export function isDigest(text: unknown): text is string {
  return typeof text === "string" && /^sha256:[0-9a-f]{64}$/.test(text);
}

// The depth that common JSON parsers accept; a cycle exceeds it.
const maxJsonDepth = 500;

function assertJson(value: unknown, depth: number): void {
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "number" && Number.isFinite(value)) return;
  if (typeof value !== "object" || depth === maxJsonDepth)
    throw new TypeError("This value cannot be represented in JSON, so it has no digest.");
  if (!Array.isArray(value) && !isPlain(value)) throw new TypeError("Only plain objects and arrays have a digest.");
  // JSON omits undefined fields, as if they were absent; in arrays they would become null.
  for (const item of Object.values(value)) if (item !== undefined || Array.isArray(value)) assertJson(item, depth + 1);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
