import { lstatSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";
import { isRecord } from "../base/json.ts";
import { readTextFile } from "../io/read-bounded.ts";

/**
 * The identity of a skill or plugin, independent of its name: its real path, the key of its signature, and its installed
 * package. Approvals are bound to this text, so two sources with the same name share none. `real`: its real path, if it was just resolved.
 */
export function sourceIdentity(path: string, options: { readonly signedBy?: string | undefined; readonly real?: string } = {}): string {
  const { signedBy, real = realPathOf(path) } = options;
  return JSON.stringify({ path: real, ...(signedBy !== undefined && { signedBy }), ...packageOf(real) });
}

function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // It was removed: loading reports that.
    return path;
  }
}

/** The package of a path. Its integrity is read from the lock that npm keeps beside installed packages. */
function packageOf(path: string): { readonly package?: string; readonly integrity?: string } {
  const parts = path.split(sep);
  const at = parts.lastIndexOf("node_modules");
  const first = parts[at + 1];
  if (at === -1 || first === undefined) return {};
  const length = first.startsWith("@") ? 2 : 1;
  const inModules = parts.slice(at, at + 1 + length);
  const folder = parts.slice(0, at + 1 + length);
  const { version, integrity } = lockedPackage(folder) ?? {};
  const name = inModules.slice(1).join("/");
  const known = version ?? versionIn(folder.join(sep));
  return { package: known === undefined ? name : `${name}@${known}`, ...(integrity !== undefined && { integrity }) };
}

interface LockedPackage {
  readonly version?: string | undefined;
  readonly integrity?: string | undefined;
}

/** A nested package is listed in the lock of the outer `node_modules`. */
function lockedPackage(folder: readonly string[]): LockedPackage | undefined {
  for (let at = folder.lastIndexOf("node_modules"); at !== -1; at = folder.lastIndexOf("node_modules", at - 1)) {
    const packages = readLock(folder.slice(0, at + 1).join(sep));
    const key = folder.slice(at).join("/");
    const entry = packages !== undefined && Object.hasOwn(packages, key) ? packages[key] : undefined;
    if (isRecord(entry)) return { version: textOf(entry["version"]), integrity: textOf(entry["integrity"]) };
    if (at === 0) break;
  }
  return undefined;
}

const maxLockBytes = 64 * 1024 * 1024;
const maxManifestBytes = 1024 * 1024;

/** The last lock: skills of the same project use the same one. */
let lastLock: { readonly state: string; readonly packages: Readonly<Record<string, unknown>> | undefined } | undefined;

function readLock(modules: string): Readonly<Record<string, unknown>> | undefined {
  const file = join(modules, ".package-lock.json");
  const stats = lstatSync(file, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  const state = `${stats.ino} ${stats.size} ${stats.mtimeNs} ${file}`;
  if (lastLock?.state !== state) {
    const packages = readJson(file, maxLockBytes)?.["packages"];
    lastLock = { state, packages: isRecord(packages) ? packages : undefined };
  }
  return lastLock.packages;
}

function versionIn(folder: string): string | undefined {
  return textOf(readJson(join(folder, "package.json"), maxManifestBytes)?.["version"]);
}

function readJson(file: string, maxBytes: number): Readonly<Record<string, unknown>> | undefined {
  const read = readTextFile(file, maxBytes);
  if (!read.ok) return undefined;
  try {
    const value: unknown = JSON.parse(read.text);
    return isRecord(value) ? value : undefined;
  } catch {
    // Not JSON: the identity is only the path.
    return undefined;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
