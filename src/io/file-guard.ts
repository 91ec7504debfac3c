import type { Diagnostic } from "../base/diagnostic.ts";

/** What a guarded file holds, or why it may not be used. */
export type GuardedRead = { readonly ok: true; readonly bytes: Uint8Array } | { readonly ok: false; readonly diagnostic: Diagnostic };

/**
 * Stands between some folders and whoever reads them: of these only what was checked may be used, however the files
 * change between the check and the reading.
 */
export interface FileGuard {
  /** Undefined: the file is in no guarded folder, and whoever wants it reads it. */
  read(file: string): GuardedRead | undefined;
  /** The guarded folder that a file lies in. What runs from it may import only what is guarded as well. */
  folderOf(file: string): string | undefined;
}
