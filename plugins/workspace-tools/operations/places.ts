import { lstat, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { PluginSession } from "skillhost";

/** The folders that calls of one session may reach. Absolute. */
export interface Roots {
  /** What relative paths start at. */
  readonly workingDirectory: string;
  readonly writable: readonly string[];
  /** Beside those: folders whose files may be read only. */
  readonly readable: readonly string[];
  /** Whether rules forbid to read what is at a path. Undefined: there are no such rules. */
  readonly isKeptBack?: ((path: string) => boolean) | undefined;
  /** The same for addresses. */
  readonly isAddressKeptBack?: PluginSession["isAddressKeptBack"];
  /** What a command line is to be kept from. */
  readonly limitsOf?: PluginSession["limitsOf"];
}

/** A path that may be used. */
export interface Place {
  /** Absolute, as it was named. */
  readonly path: string;
  /** The same with links followed; what is missing comes as it was named. */
  readonly real: string;
  /** The folder among the roots that it lies in, links followed. */
  readonly root: string;
}

export type Located =
  | { readonly ok: true; readonly place: Place }
  | { readonly ok: false; readonly reason: "invalid" | "outside" | "unreadable" };

/**
 * Where a path leads, if it stays within the roots: as it is spelt and with links followed, so that neither `..` nor a
 * link leads out. The file need not exist. What is checked is the state of this moment.
 */
export async function locate(path: string, roots: Roots, access: "read" | "write"): Promise<Located> {
  if (path === "" || path.length > maxPathLength || path.includes("\0") || isDevice(path)) return no("invalid");
  const target = resolve(roots.workingDirectory, expandHome(path));
  const folders = access === "read" ? [...roots.writable, ...roots.readable] : roots.writable;
  try {
    const real = await realPathOfDeepest(target);
    for (const folder of folders) {
      const root = await realPathOfDeepest(resolve(folder));
      if (isWithin(root, real)) return { ok: true, place: { path: target, real, root } };
    }
    return no("outside");
  } catch {
    // A circle of links, one that leads nowhere, a folder that is closed to us: nobody knows whether it stays inside.
    return no(folders.some((folder) => isWithin(folder, target)) ? "unreadable" : "outside");
  }
}

/** Whether a path is the folder itself or below it, by its spelling alone. */
function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

const maxPathLength = 4096;

/** Windows opens these names in every folder, with any extension, as the device. */
function isDevice(path: string): boolean {
  if (process.platform !== "win32") return false;
  return path.split(/[\\/]/).some((name) => /^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\s*[.:].*)?$/i.test(name));
}

function expandHome(path: string): string {
  return path === "~" || /^~[\\/]/.test(path) ? join(homedir(), path.slice(1)) : path;
}

/** The deepest part that exists decides where the rest would be created. */
async function realPathOfDeepest(path: string): Promise<string> {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    if (await exists(at)) return join(await realpath(at), ...missing.reverse());
    if (at === dirname(at)) return path;
    missing.push(basename(at));
  }
}

// lstat, so that a link whose target is missing counts: writing through it would create the target.
async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw error;
  }
}

function no(reason: "invalid" | "outside" | "unreadable"): Located {
  return { ok: false, reason };
}
