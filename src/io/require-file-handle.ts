import { opendirSync } from "node:fs";
import { isOutOfFiles } from "../base/errors.ts";

/**
 * Throws the system's error when no more files can be opened. For callers that treat a path that cannot be read like one that does not exist:
 * at such a moment everything would seem to be gone.
 */
export function requireFileHandle(path: string): void {
  try {
    opendirSync(path).closeSync();
  } catch (error) {
    // Any other error is reported where the path is read.
    if (isOutOfFiles(error)) throw error;
  }
}
