import { type Dirent, lstatSync, readdirSync, type Stats, statSync, watch } from "node:fs";

export interface HintListener {
  /** The entry with this name may have changed. Without a name: any entry may have. */
  hint(name: string | undefined): void;
  /** The watch has ended; no more hints follow. */
  lost(): void;
}

/**
 * The outcome of watching one directory. `pending`: hints may not arrive yet, so poll it as well, and call `open` again.
 * `limit`: the system has no watches left.
 */
export type Opened =
  | { readonly kind: "open" | "pending"; readonly watch: { close(): void } }
  | { readonly kind: "limit"; readonly code: string }
  | { readonly kind: "failed"; readonly code: string };

/** Watches one directory, not its subdirectories. */
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
 * Identifies a directory independently of its name. The inode number is not enough, because file systems reuse it after a
 * deletion; hence the birth time.
 */
export interface Identity {
  readonly device: number;
  readonly inode: number;
  readonly birth: number;
}

/** `missing` is certain; `unsure` means that the system refused to answer (no permission, no descriptors left). */
type Answer<T> = T | "missing" | "unsure";

export function identityOf(stats: Stats): Identity {
  return { device: stats.dev, inode: stats.ino, birth: stats.birthtimeMs };
}

export function sameIdentity(a: Identity, b: Identity): boolean {
  return a.inode === b.inode && a.device === b.device && a.birth === b.birth;
}

/** Like `stat`: follows links. */
export function tryStat(path: string): Answer<Stats> {
  return answerOf(() => statSync(path, { throwIfNoEntry: false }));
}

/** Like `lstat`: does not follow links. */
export function tryLstat(path: string): Answer<Stats> {
  return answerOf(() => lstatSync(path, { throwIfNoEntry: false }));
}

export function listDirectory(path: string): Answer<readonly Dirent[]> {
  return answerOf(() => readdirSync(path, { withFileTypes: true }));
}

function answerOf<T>(call: () => T | undefined): Answer<T> {
  try {
    return call() ?? "missing";
  } catch (error) {
    const code = errorCode(error);
    // ELOOP: a circular link has no target to read.
    return code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP" ? "missing" : "unsure";
  }
}

/**
 * Equal stamps mean an unchanged entry. A stamp taken within one clock tick of the last change cannot guarantee that (a second
 * write in the same tick looks the same), so it is marked and differs from the next one.
 */
export function stampOf(stats: Stats): string {
  const fresh = Math.abs(Date.now() - stats.ctimeMs) < 20 ? "?" : "";
  return `${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}${fresh}`;
}
