import { type Dirent, lstatSync, readdirSync, type Stats, statSync, watch } from "node:fs";

export interface HintListener {
  /** Look at this name in the directory. Without a name: look at the whole directory. */
  hint(name: string | undefined): void;
  /** The watch has died; no more hints will come. */
  lost(): void;
}

/**
 * What came of the attempt to watch one directory. `pending`: hints may not come yet, so look at it as well, and ask
 * again. `limit`: the system has no watch left to give.
 */
export type Opened =
  | { readonly kind: "open" | "pending"; readonly watch: { close(): void } }
  | { readonly kind: "limit"; readonly code: string }
  | { readonly kind: "failed"; readonly code: string };

/** Opens a watch on one directory, not on what is below it. */
export function openDirectoryWatch(path: string, listener: HintListener): Opened {
  try {
    const watcher = watch(path, (_type, name) => listener.hint(name ?? undefined));
    // Windows reports EPERM when a watched folder is deleted; an unhandled "error" would end the process.
    watcher.on("error", () => {
      watcher.close();
      listener.lost();
    });
    return { kind: "open", watch: watcher };
  } catch (error) {
    const code = errorCode(error);
    return { kind: isWatchLimit(code) ? "limit" : "failed", code };
  }
}

/** Out of inotify watches or instances, of file descriptors, or of kernel memory for them. */
export function isWatchLimit(code: string): boolean {
  return code === "ENOSPC" || code === "EMFILE" || code === "ENFILE" || code === "ENOMEM";
}

export function errorCode(error: unknown): string {
  return String((error as NodeJS.ErrnoException | null | undefined)?.code ?? "unknown");
}

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
type Looked<T> = T | "missing" | "unsure";

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
