import { join, sep } from "node:path";
import { isPlainRecord } from "../base/read-fields.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { fileState } from "./file-state.ts";
import { isTrackedByGit } from "./git-index.ts";

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
    if (location !== undefined && locationsIn(project).has(location)) return !isTrackedByGit(join(project, location));
  }
  return false;
}

/** Whether a path has a folder in it that is named like those that packages are installed in. */
export function isBelowNodeModules(path: string): boolean {
  return path.split(sep).includes(modules);
}

const modules = "node_modules";

/**
 * The location of the package as locks name it, such as `node_modules/a/node_modules/@b/c`. Undefined when another
 * `node_modules` lies inside the package itself, where npm installed nothing.
 */
function locationOf(segments: readonly string[]): string | undefined {
  let end = 0;
  while (segments[end] === modules) end += segments[end + 1]?.startsWith("@") ? 3 : 2;
  const isWhole = end <= segments.length && !segments.slice(end).includes(modules);
  return isWhole ? segments.slice(0, end).join("/") : undefined;
}

// npm reads the first of these that exists; the last is all there is where a project keeps no lock of its own.
const lockFiles = ["npm-shrinkwrap.json", "package-lock.json", join(modules, ".package-lock.json")];
const maxLockBytes = 64 * 1024 * 1024;
const maxCached = 64;
const none: ReadonlySet<string> = new Set();

interface CachedLock {
  readonly state: string;
  readonly locations: ReadonlySet<string>;
}

const cache = new Map<string, CachedLock>();

function locationsIn(project: string): ReadonlySet<string> {
  for (const name of lockFiles) {
    const file = join(project, name);
    const state = fileState(file);
    if (state === undefined) continue;
    const cached = cache.get(file);
    if (cached?.state === state) return cached.locations;
    const locations = readLocations(file);
    if (cache.size >= maxCached) cache.clear();
    cache.set(file, { state, locations });
    return locations;
  }
  return none;
}

/** A lock that cannot be read lists nothing. An entry that is a link leads to a folder of the project, which is no package. */
function readLocations(file: string): ReadonlySet<string> {
  const read = readTextFile(file, maxLockBytes);
  if (!read.ok) return none;
  try {
    const lock: unknown = JSON.parse(read.text);
    const packages = isPlainRecord(lock) ? lock["packages"] : undefined;
    if (!isPlainRecord(packages)) return none;
    const installed = Object.entries(packages).filter(([, entry]) => isPlainRecord(entry) && entry["link"] !== true);
    return new Set(installed.map(([location]) => location));
  } catch {
    return none;
  }
}
