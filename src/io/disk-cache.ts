import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  futimesSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { sha256 } from "../base/canonical-json.ts";
import { errorMessage } from "../base/errors.ts";
import { packageVersion } from "../base/package-root.ts";
import { cacheFolder } from "./cache-folder.ts";

/** Approximate limits of one cache. Beyond them, the entries that were not used for the longest time are removed. */
export interface CacheLimits {
  readonly entries: number;
  readonly bytes: number;
}

/** What is in a cache, for people. */
export interface CacheState {
  readonly folder: string;
  /** Why the folder is not used. */
  readonly problem?: string;
  readonly entries: number;
  readonly bytes: number;
}

/** A file name that is unique for the inputs of a computation. */
export type CacheKey = string & { readonly isCacheKey: true };

const defaultLimits: CacheLimits = { entries: 20_000, bytes: 128 * 1024 * 1024 };
const day = 24 * 3_600_000;
// Entries lie in 16 folders, by the first digit of their key, so that removing old ones lists a sixteenth of the cache.
const digits = [..."0123456789abcdef"];
// One key in so many causes a look at the size of its folder.
const trimInterval = 32;
// A full disk makes every write fail; another process may make one fail.
const mostFailedWrites = 3;
const entryName = /^[0-9a-f]{64}$/;
const temporaryName = /^\.[0-9a-f]{64}\.[0-9a-f]{12}\.tmp$/;
const digestLength = 64;
// Opening a pipe must not block, and a link must not be followed.
const readFlags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** The key of a computation with these inputs, in this version of skillhost. `kind` names the computation and its stored form. */
export function cacheKey(kind: string, inputs: readonly string[]): CacheKey {
  return sha256(JSON.stringify([packageVersion, kind, ...inputs])) as CacheKey;
}

/**
 * JSON values that cost time to compute, by a key that determines them, in a folder that several processes share. Reading and writing
 * never fail: an entry that is missing, truncated, corrupt or of another key counts as absent. The folder must belong to this user, and
 * no other user may be able to write to it, because code that lies there is run. Nothing about trust may be stored.
 */
export class DiskCache {
  readonly #folder: string;
  readonly #limits: CacheLimits;
  readonly #isChecked = new Map<string, string | undefined>();
  #failedWrites = 0;

  /** The folder is created by the first write. */
  constructor(folder: string, limits: CacheLimits = defaultLimits) {
    this.#folder = folder;
    this.#limits = limits;
  }

  /** The value that was stored under this key. The caller checks its shape. */
  get(key: CacheKey): unknown {
    const folder = this.#folderOf(key);
    if (this.#problemOf(folder) !== undefined) return undefined;
    const path = join(folder, key);
    try {
      const text = readEntry(path, key, this.#mostBytes);
      if (text !== undefined) return JSON.parse(text);
      remove(path);
    } catch {
      // Missing or not readable.
    }
    return undefined;
  }

  /** Stores a value, unless the folder cannot be written. */
  set(key: CacheKey, value: unknown): void {
    const text = JSON.stringify(value);
    const folder = this.#folderOf(key);
    if (this.#failedWrites >= mostFailedWrites || text.length > this.#mostBytes || !this.#prepare(folder)) return;
    const temporary = join(folder, `.${key}.${randomBytes(6).toString("hex")}.tmp`);
    try {
      writeFileSync(temporary, digestOf(key, text) + text, { flag: "wx", mode: 0o600 });
      renameSync(temporary, join(folder, key));
    } catch {
      // A full disk, a read-only or removed folder, or a file that another process holds.
      this.#failedWrites++;
      remove(temporary);
      return;
    }
    // The key decides, so that short and long processes together look often enough.
    if (Number.parseInt(key.slice(-4), 16) % trimInterval === 0) trim(folder, this.#limits);
  }

  get state(): CacheState {
    const problem = this.#problemOf(this.#folder);
    const sizes = problem === undefined ? digits.flatMap((digit) => entriesIn(join(this.#folder, digit))).map(({ size }) => size) : [];
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    return { folder: this.#folder, ...(problem && problem !== absent && { problem }), entries: sizes.length, bytes };
  }

  /** Removes all entries, and nothing else that may lie in the folder. */
  clear(): void {
    if (this.#problemOf(this.#folder) !== undefined) return;
    for (const digit of digits) {
      const folder = join(this.#folder, digit);
      if (folderProblem(folder) === undefined) for (const { path } of entriesIn(folder)) remove(path);
    }
  }

  #folderOf(key: CacheKey): string {
    return join(this.#folder, key.slice(0, 1));
  }

  // An entry that fills more than half of its folder's share would remove all others.
  get #mostBytes(): number {
    return this.#limits.bytes / digits.length / 2;
  }

  #problemOf(folder: string): string | undefined {
    if (!this.#isChecked.has(folder)) {
      const ofParent = folder === this.#folder ? undefined : this.#problemOf(this.#folder);
      this.#isChecked.set(folder, ofParent ?? folderProblem(folder));
    }
    return this.#isChecked.get(folder);
  }

  #prepare(folder: string): boolean {
    if (this.#problemOf(folder) !== absent) return this.#problemOf(folder) === undefined;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    } catch {
      // It cannot be created. Later writes are not tried.
      this.#failedWrites = mostFailedWrites;
      return false;
    }
    this.#isChecked.delete(this.#folder);
    this.#isChecked.delete(folder);
    return this.#problemOf(folder) === undefined;
  }
}

/** The cache of transformed modules. Undefined: this user has none, or turned caches off. */
export function openTransformCache(): DiskCache | undefined {
  const folder = cacheFolder("transforms");
  return folder === undefined ? undefined : new DiskCache(folder);
}

const absent = "it does not exist";

/** Why the files of a folder must not be used. */
function folderProblem(folder: string): string | undefined {
  try {
    const stats = lstatSync(folder, { throwIfNoEntry: false });
    if (stats === undefined) return absent;
    if (!stats.isDirectory()) return "it is not a folder";
    return isOwn(stats) ? undefined : "it belongs to another user, or other users can write to it";
  } catch (error) {
    return errorMessage(error);
  }
}

// On Windows the folder inherits the access list of the user's profile.
function isOwn({ uid, mode }: Stats): boolean {
  return process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);
}

/** The stored text; undefined when the file is not what was written under this key. Throws when it is missing. */
function readEntry(path: string, key: CacheKey, mostBytes: number): string | undefined {
  const descriptor = openSync(path, readFlags);
  try {
    const stats = fstatSync(descriptor);
    // In UTF-8 a character may take three bytes.
    if (!stats.isFile() || stats.size > digestLength + mostBytes * 3 || !isOwn(stats)) return undefined;
    const content = readFileSync(descriptor, "utf8");
    const text = content.slice(digestLength);
    if (content.slice(0, digestLength) !== digestOf(key, text)) return undefined;
    markUsed(descriptor, stats);
    return text;
  } finally {
    closeSync(descriptor);
  }
}

// At most once a day. Times decide only which entries are removed first.
function markUsed(descriptor: number, { mtimeMs }: Stats): void {
  const now = Date.now();
  if (Math.abs(now - mtimeMs) < day) return;
  try {
    futimesSync(descriptor, now / 1000, now / 1000);
  } catch {
    // A read-only file system.
  }
}

// Of the key too, so that an entry under another name is not used.
function digestOf(key: CacheKey, text: string): string {
  return sha256(`${key}\n${text}`);
}

interface StoredFile {
  readonly path: string;
  readonly isTemporary: boolean;
  readonly size: number;
  readonly used: number;
}

function entriesIn(folder: string): readonly StoredFile[] {
  try {
    return readdirSync(folder).flatMap((name) => {
      const path = join(folder, name);
      const isTemporary = temporaryName.test(name);
      const stats = isTemporary || entryName.test(name) ? lstatSync(path, { throwIfNoEntry: false }) : undefined;
      return stats === undefined ? [] : [{ path, isTemporary, size: stats.size, used: stats.mtimeMs }];
    });
  } catch {
    // Missing, or it cannot be listed.
    return [];
  }
}

/** Removes the entries of one folder that exceed its share of the limits, and what killed processes left. */
function trim(folder: string, limits: CacheLimits): void {
  const now = Date.now();
  const found = entriesIn(folder);
  const abandoned = found.filter(({ isTemporary, used }) => isTemporary && Math.abs(now - used) > day);
  const kept = found.filter(({ isTemporary }) => !isTemporary).toSorted((a, b) => b.used - a.used);
  let bytes = 0;
  const excess = kept.filter(({ size }, index) => {
    bytes += size;
    return index >= limits.entries / digits.length || bytes > limits.bytes / digits.length;
  });
  for (const { path } of [...abandoned, ...excess]) remove(path);
}

function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // A read-only folder, or a folder of that name. It stays.
  }
}
