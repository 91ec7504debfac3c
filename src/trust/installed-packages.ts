import { existsSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { isRecord } from "../base/json.ts";
import { LruMap } from "../base/lru-map.ts";
import { readFileBytes, readTextFile } from "../io/read-bounded.ts";
import { createLockListing } from "./lock-listing.ts";

/**
 * Whether a folder belongs to a package that npm installed: whether the lock of the project around its `node_modules` lists
 * the location, and Git tracks no file of it. The name `node_modules` alone proves nothing, because a checkout can contain a
 * folder with that name, and a lock that lists it.
 */
export function isInInstalledPackage(realFolder: string): boolean {
  const segments = realFolder.split(sep);
  for (let at = segments.indexOf(modules); at !== -1; at = segments.indexOf(modules, at + 1)) {
    const project = segments.slice(0, at).join(sep) || sep;
    const location = locationOf(segments.slice(at));
    if (location !== undefined && locationsIn(project)?.has(location)) return !isTrackedByGit(join(project, location));
  }
  return false;
}

/** Whether a path contains a folder named `node_modules`. */
export function isBelowNodeModules(path: string): boolean {
  return path.split(sep).includes(modules);
}

const modules = "node_modules";

/**
 * The location of the package as in lock files, such as `node_modules/a/node_modules/@b/c`. Undefined when another
 * `node_modules` lies inside the package itself, where npm installed nothing.
 */
function locationOf(segments: readonly string[]): string | undefined {
  let end = 0;
  while (segments[end] === modules) end += segments[end + 1]?.startsWith("@") ? 3 : 2;
  const isWhole = end <= segments.length && !segments.slice(end).includes(modules);
  return isWhole ? segments.slice(0, end).join("/") : undefined;
}

// npm reads the first of these that exists; a project without its own lock has only the last one.
const lockFiles = ["npm-shrinkwrap.json", "package-lock.json", join(modules, ".package-lock.json")];

function locationsIn(project: string): ReadonlySet<string> | undefined {
  for (const name of lockFiles) {
    const locations = locationsOfLock(join(project, name));
    if (locations !== undefined) return locations;
  }
  return undefined;
}

/** A link entry refers to a folder of the project, which is not an installed package. */
const locationsOfLock = createLockListing((lock) => {
  const packages = isRecord(lock) ? lock["packages"] : undefined;
  if (!isRecord(packages)) return [];
  return Object.entries(packages).flatMap(([location, entry]) => (isRecord(entry) && entry["link"] !== true ? [location] : []));
});

/**
 * Whether Git tracks a file in a folder, so that the folder came with the checkout and was not installed into it. An unreadable
 * index counts as tracking it. `realFolder` must not contain links.
 * @internal Exported for tests.
 */
export function isTrackedByGit(realFolder: string): boolean {
  const checkout = checkoutOf(realFolder);
  if (checkout === undefined) return false;
  const { top, index } = checkout;
  const wanted = relative(top, realFolder).split(sep).join("/");
  const tracked = pathsIn(index);
  if (tracked === undefined) return true;
  // A sparse index names a folder instead of the files in it.
  return tracked.some((path) => path.startsWith(`${wanted}/`) || (path.endsWith("/") && wanted.startsWith(path)));
}

const maxIndexBytes = 256 * 1024 * 1024;
const maxPointerBytes = 4_096;

/** The checkout that contains a folder, with its index. */
function checkoutOf(folder: string): { readonly top: string; readonly index: string } | undefined {
  for (let top = folder; ; top = dirname(top)) {
    const dotGit = join(top, ".git");
    if (existsSync(dotGit)) return { top, index: join(gitDirectory(dotGit), "index") };
    if (dirname(top) === top) return undefined;
  }
}

/** The path of the index: worktrees and submodules have a `.git` file that names another directory. */
function gitDirectory(dotGit: string): string {
  const read = readTextFile(dotGit, maxPointerBytes);
  const named = read.ok ? /^gitdir: (.+)$/m.exec(read.text)?.[1]?.trim() : undefined;
  if (named === undefined) return dotGit;
  return isAbsolute(named) ? named : resolve(dirname(dotGit), named);
}

interface CachedIndex {
  readonly state: string;
  readonly paths: readonly string[] | undefined;
}

// Hosts use few checkouts; each entry contains only the paths in folders named node_modules.
const indexes = new LruMap<string, CachedIndex>(16);

function pathsIn(index: string): readonly string[] | undefined {
  const state = stateOf(index);
  // No file was ever added.
  if (state === "absent") return [];
  const cached = indexes.get(index);
  if (cached?.state === state) return cached.paths;
  const read = readFileBytes(index, maxIndexBytes);
  const paths = read.ok ? parseGitIndex(read.bytes) : undefined;
  indexes.set(index, { state, paths });
  return paths;
}

function stateOf(file: string): string {
  try {
    const stats = statSync(file, { bigint: true, throwIfNoEntry: false });
    return stats === undefined ? "absent" : `${stats.ino} ${stats.size} ${stats.mtimeNs}`;
  } catch {
    // It is inaccessible, so it cannot be read either.
    return "unreadable";
  }
}

/**
 * The tracked paths of an index that lie in a folder named `node_modules`, or that stand for a whole folder. Undefined: the
 * index has an unsupported format (SHA-256 names, a split index) or is damaged. Format: https://git-scm.com/docs/index-format
 * @internal Exported for tests.
 */
export function parseGitIndex(bytes: Uint8Array): readonly string[] | undefined {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (data.length < 12 || data.toString("latin1", 0, 4) !== "DIRC") return undefined;
  const [version, count] = [data.readUInt32BE(4), data.readUInt32BE(8)];
  if (version < 2 || version > 4) return undefined;
  const found: string[] = [];
  let at = 12;
  let name: Buffer = Buffer.alloc(0);
  for (let entry = 0; entry < count; entry++) {
    const next = readEntry(data, at, version, name);
    if (next === undefined) return undefined;
    ({ end: at, name } = next);
    const path = name.toString("utf8");
    if (path.endsWith("/") || path.startsWith("node_modules/") || path.includes("/node_modules/")) found.push(path);
  }
  return isWholeIndex(data, at) ? found : undefined;
}

const fixedBytes = 62;
const extendedFlag = 0x4000;

function readEntry(
  data: Buffer,
  at: number,
  version: number,
  previous: Buffer,
): { readonly end: number; readonly name: Buffer } | undefined {
  if (at + fixedBytes > data.length) return undefined;
  const isExtended = version > 2 && (data.readUInt16BE(at + fixedBytes - 2) & extendedFlag) !== 0;
  const start = at + fixedBytes + (isExtended ? 2 : 0);
  const prefix = version === 4 ? readPrefix(data, start, previous) : { kept: Buffer.alloc(0), end: start };
  const end = prefix && data.indexOf(0, prefix.end);
  if (prefix === undefined || end === undefined || end === -1) return undefined;
  const name = Buffer.concat([prefix.kept, data.subarray(prefix.end, end)]);
  // Up to version 3 an entry is padded with at least one NUL to a multiple of eight bytes.
  return { name, end: version === 4 ? end + 1 : at + Math.ceil((end + 1 - at) / 8) * 8 };
}

/** The prefix that an entry of version 4 shares with the previous name: a number gives the bytes to drop from its end. */
function readPrefix(data: Buffer, start: number, previous: Buffer): { readonly kept: Buffer; readonly end: number } | undefined {
  let [dropped, at] = [0, start];
  for (let byte = 0x80; byte & 0x80; at++) {
    if (at >= data.length || dropped > previous.length) return undefined;
    byte = data[at]!;
    dropped = at === start ? byte & 0x7f : ((dropped + 1) << 7) | (byte & 0x7f);
  }
  return dropped > previous.length ? undefined : { kept: previous.subarray(0, previous.length - dropped), end: at };
}

const checksumBytes = 20;

/** Whether only extensions and a SHA-1 checksum follow, and no extension moves entries to another file. */
function isWholeIndex(data: Buffer, from: number): boolean {
  let at = from;
  while (at + 8 <= data.length - checksumBytes) {
    if (data.toString("latin1", at, at + 4) === "link") return false;
    at += 8 + data.readUInt32BE(at + 4);
  }
  return at === data.length - checksumBytes;
}
