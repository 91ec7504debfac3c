import { statSync } from "node:fs";

/** What changes when a file is written or replaced. Undefined: it is not there, or cannot be looked at. */
export function fileState(file: string): string | undefined {
  try {
    const stats = statSync(file, { bigint: true, throwIfNoEntry: false });
    return stats && `${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`;
  } catch {
    // Nothing of it can be read either.
    return undefined;
  }
}
