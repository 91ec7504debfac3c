import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

export type Confined =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly reason: "absolute" | "escapes" | "invalid" | "link-out" | "unreadable"; readonly message: string };

/**
 * Where a relative path leads inside a folder, or why it does not stay there. The file need not exist. Links are followed as
 * far as they exist: one that leads out of the folder is refused, one that stays inside is fine. The check is valid for this
 * moment only: open the returned path soon, and let no untrusted program write to the folder in between. Paths for which
 * `isPlain` returns true are known to involve no link, so the disk is not checked for them.
 */
export function confinePath(root: string, path: string, isPlain?: (target: string) => boolean): Confined {
  const refusal = refuse(path);
  if (refusal !== undefined) return refusal;
  const target = resolve(root, ...path.split(/[\\/]/));
  if (!isInside(root, target)) return no("escapes", `${JSON.stringify(path)} points out of its folder. Use a path inside the folder.`);
  if (isPlain?.(target)) return { ok: true, path: target };
  try {
    const real = realPathOfDeepest(target);
    // A part of a path without links has none either, so the root itself is resolved only where this does not answer.
    if (isInside(root, real) || isInside(realPathOfDeepest(resolve(root)), real)) return { ok: true, path: target };
    return no(
      "link-out",
      `${JSON.stringify(path)} is, or is below, a symbolic link that points out of its folder. Copy the file into the folder instead.`,
    );
  } catch (error) {
    // A model may read this, and the system's own message contains absolute paths.
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    return no("unreadable", `${JSON.stringify(path)} cannot be resolved (${code}). Check its permissions, and look for broken links.`);
  }
}

/** Whether a path is the folder itself or below it, by its spelling alone: links are not followed. */
export function isInside(root: string, path: string): boolean {
  const [from, to] = [resolve(root), resolve(path)];
  // Asked several times for each skill; `relative` would resolve both again.
  if (sep === "/") return to.startsWith(from) && (to.length === from.length || from === sep || to[from.length] === sep);
  const way = relative(from, to);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Like `isInside`, with existing links followed. A dangling link is not inside. */
export function isReallyInside(root: string, path: string): boolean {
  try {
    return isInside(realPathOfDeepest(resolve(root)), realPathOfDeepest(resolve(path)));
  } catch {
    // A write through a dangling link would create its target.
    return false;
  }
}

type Refusal = Extract<Confined, { ok: false }>;

// Windows opens these names in every folder, with any extension, as the device.
const windowsDevice = /^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\s*\..*|\s*:.*|\s*)$/i;

// Skills are copied between systems, so the rules of all systems apply on each.
function refuse(path: string): Refusal | undefined {
  const shown = JSON.stringify(path.slice(0, 200));
  if (path.includes("\0")) return no("invalid", `${shown} contains a NUL character.`);
  if (/^[\\/]/.test(path) || /^[a-z]:/i.test(path)) return no("absolute", `${shown} is absolute. Use a path relative to the folder.`);
  for (const name of path.split(/[\\/]/)) {
    if (windowsDevice.test(name)) return no("invalid", `${shown} contains ${name}, which is a device on Windows. Use another name.`);
    // Windows drops dots and spaces at the end of a name, so ".. " means the parent folder.
    if (/^[. ]+$/.test(name) && name !== "." && name !== "..")
      return no("invalid", `${shown} contains a name that consists only of dots and spaces.`);
    if (process.platform === "win32" && name.includes(":"))
      return no("invalid", `${shown} contains a colon, which Windows reads as a stream.`);
  }
  return undefined;
}

function no(reason: Refusal["reason"], message: string): Refusal {
  return { ok: false, reason, message };
}

/**
 * Where a path leads with links followed as far as it exists: the deepest part that does decides where the rest would be
 * created. Throws the system's error for a dangling link and for an unreadable folder.
 */
export function realPathOfDeepest(path: string): string {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    const real = realPathOf(at);
    if (real !== undefined) return join(real, ...missing.reverse());
    if (at === dirname(at)) return path;
    missing.push(basename(at));
  }
}

/** Undefined: the path does not exist. Throws the system's error for a link that leads nowhere. */
function realPathOf(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch (error) {
    if (!exists(path)) return undefined;
    throw error;
  }
}

// lstat, so that a link whose target is missing counts: writing through it would create the target.
function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return false;
    throw error;
  }
}
