import { opendirSync } from "node:fs";
import { isOutOfFiles } from "../base/errors.ts";

/**
 * Throws the system's error when no more files can be opened. For callers that treat a path that cannot be read like one that
 * does not exist: without this check all files would seem to be missing at such a moment.
 */
export function requireFileHandle(path: string): void {
  try {
    opendirSync(path).closeSync();
  } catch (error) {
    // Any other error is reported where the path is read.
    if (isOutOfFiles(error)) throw error;
  }
}
