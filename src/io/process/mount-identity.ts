import { closeSync, fstatSync, openSync, readlinkSync, statSync } from "node:fs";

/** What a path leads to: a device and a file on it. Undefined: nothing, or nothing that can be seen. */
export function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    // Missing, or in a folder that may not be searched.
    return undefined;
  }
}

/** O_PATH of Linux, which Node.js has no name for: opens a file only to ask about it, so neither rights nor a writer of a pipe are needed. */
const onlyAsPath = 0o10000000;

/**
 * Whether a file lies at exactly this path of this Linux now, with no link on the way. Not decided step by step: the system says where the opened
 * file lies, so a link that is exchanged meanwhile changes nothing.
 */
export function liesAt(path: string, identity: string): boolean {
  let file: number | undefined;
  try {
    file = openSync(path, onlyAsPath);
    const { dev, ino } = fstatSync(file, { bigint: true });
    return `${dev}:${ino}` === identity && readlinkSync(`/proc/self/fd/${file}`) === path;
  } catch {
    // Missing: it lies elsewhere.
    return false;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
