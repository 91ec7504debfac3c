import { lstat, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { PluginSession } from "skillhost";

/** The folders that calls of one session may access. Absolute. */
export interface Roots {
  /** The base of relative paths. */
  readonly workingDirectory: string;
  readonly writable: readonly string[];
  /** Additional folders whose files may only be read. */
  readonly readable: readonly string[];
  /** Whether rules forbid reading a path. Undefined: there are no such rules. */
  readonly isKeptBack?: ((path: string) => boolean) | undefined;
  /** The same for addresses. */
  readonly isAddressKeptBack?: PluginSession["isAddressKeptBack"];
  /** The limits of a command line. */
  readonly limitsOf?: PluginSession["limitsOf"];
}

/** A path that a call may use. */
export interface Place {
  /** Absolute, as the call names it. */
  readonly path: string;
  /** The same with links resolved; missing parts stay as they are. */
  readonly real: string;
  /** The root that contains it, with links resolved. */
  readonly root: string;
}

export type Located =
  | { readonly ok: true; readonly place: Place }
  | { readonly ok: false; readonly reason: "invalid" | "outside" | "unreadable" };

/**
 * Resolves a path within the roots. Checks it as text and with links resolved, so that neither `..` nor a link leads out.
 * The file need not exist. The check is valid only for this moment.
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
    // A cycle of links, a broken link or a folder that cannot be opened: whether the path stays inside is unknown.
    return no(folders.some((folder) => isWithin(folder, target)) ? "unreadable" : "outside");
  }
}

/** Whether a path is the folder or below it, by its text alone. */
function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

const maxPathLength = 4096;

/** On Windows these names open a device in every folder and with any extension. */
function isDevice(path: string): boolean {
  if (process.platform !== "win32") return false;
  return path.split(/[\\/]/).some((name) => /^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\s*[.:].*)?$/i.test(name));
}

function expandHome(path: string): string {
  return path === "~" || /^~[\\/]/.test(path) ? join(homedir(), path.slice(1)) : path;
}

/** The deepest existing part decides where the rest would be created. */
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
