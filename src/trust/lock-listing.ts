import { LruMap } from "../base/lru-map.ts";
import { fileStamp } from "../io/file-stamp.ts";
import { readTextFile } from "../io/read-bounded.ts";

const maxLockBytes = 64 * 1024 * 1024;
const none: ReadonlySet<string> = new Set();

/** What a lock file lists. Undefined: there is no such file. */
type LockListing = (file: string) => ReadonlySet<string> | undefined;

/**
 * Reads what lock files list, once for each state of a file. An unreadable lock lists nothing; commands that change what is locked
 * report it.
 */
export function createLockListing(entriesOf: (lock: unknown) => Iterable<string>): LockListing {
  const cache = new LruMap<string, { readonly state: string; readonly entries: ReadonlySet<string> }>(64);
  return (file) => {
    const state = fileStamp(file);
    if (state === undefined) return undefined;
    const cached = cache.get(file);
    if (cached?.state === state) return cached.entries;
    const entries = readEntries(file, entriesOf);
    cache.set(file, { state, entries });
    return entries;
  };
}

function readEntries(file: string, entriesOf: (lock: unknown) => Iterable<string>): ReadonlySet<string> {
  const read = readTextFile(file, maxLockBytes);
  if (!read.ok) return none;
  try {
    return new Set(entriesOf(JSON.parse(read.text)));
  } catch {
    return none;
  }
}
