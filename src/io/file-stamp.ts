import { type BigIntStats, lstatSync, statSync } from "node:fs";

/** A text that changes when a file is written or replaced; links are followed. Undefined: the file is missing or inaccessible. */
export function fileStamp(file: string): string | undefined {
  return stampOf(() => statSync(file, { bigint: true, throwIfNoEntry: false }));
}

/** Like `fileStamp`, of the entry itself: links are not followed. */
export function entryStamp(file: string): string | undefined {
  return stampOf(() => lstatSync(file, { bigint: true, throwIfNoEntry: false }));
}

function stampOf(stat: () => BigIntStats | undefined): string | undefined {
  try {
    const stats = stat();
    return stats && `${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`;
  } catch {
    // For example, a part of the path is a file, or a folder is not accessible.
    return undefined;
  }
}
