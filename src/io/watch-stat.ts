import { type Dirent, lstatSync, readdirSync, type Stats, statSync } from "node:fs";
import { errorCode } from "./watch-native.ts";

/**
 * Which directory it is, whatever its name. The number alone is not enough: file systems hand the number of a deleted
 * directory to the next one that is made, hence the time of birth.
 */
export interface Identity {
  readonly device: number;
  readonly inode: number;
  readonly birth: number;
}

/** `missing` is sure; `unsure` means that the system would not say (no rights, no descriptors left). */
export type Looked<T> = T | "missing" | "unsure";

export function identityOf(stats: Stats): Identity {
  return { device: stats.dev, inode: stats.ino, birth: stats.birthtimeMs };
}

export function sameIdentity(a: Identity, b: Identity): boolean {
  return a.inode === b.inode && a.device === b.device && a.birth === b.birth;
}

/** Looks at what the path leads to, through links. */
export function lookAt(path: string): Looked<Stats> {
  return tryLook(() => statSync(path, { throwIfNoEntry: false }));
}

/** Looks at the entry itself: a link is a link. */
export function lookAtEntry(path: string): Looked<Stats> {
  return tryLook(() => lstatSync(path, { throwIfNoEntry: false }));
}

export function listDirectory(path: string): Looked<readonly Dirent[]> {
  return tryLook(() => readdirSync(path, { withFileTypes: true }));
}

function tryLook<T>(look: () => T | undefined): Looked<T> {
  try {
    return look() ?? "missing";
  } catch (error) {
    const code = errorCode(error);
    // ELOOP is a link that leads to itself: there is nothing to read behind it.
    return code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP" ? "missing" : "unsure";
  }
}

/**
 * Two equal stamps mean an unchanged entry. A stamp taken within a clock tick of the last change cannot promise that
 * (a second write in the same tick looks the same), so it is marked and differs from the one taken next.
 */
export function stampOf(stats: Stats): string {
  const fresh = Math.abs(Date.now() - stats.ctimeMs) < 20 ? "?" : "";
  return `${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}${fresh}`;
}
