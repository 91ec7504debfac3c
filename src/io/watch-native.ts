import { watch } from "node:fs";

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
