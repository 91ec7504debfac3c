import { sep } from "node:path";

/** Which paths may mend an entry that failed, so that a change of one of them names the entry for another try. */
export class FailedLoads {
  readonly #paths = new Map<string, ReadonlySet<string>>();

  remember(entry: string, paths: ReadonlySet<string>): void {
    this.#paths.set(entry, paths);
  }

  forget(entry: string): void {
    this.#paths.delete(entry);
  }

  /** The entries that one of these changes concerns; each is named once. */
  invalidate(changed: ReadonlySet<string>): ReadonlySet<string> {
    const concerned = new Set<string>();
    for (const [entry, paths] of this.#paths) {
      if (![...changed].some((path) => isAmong(path, entry, paths))) continue;
      concerned.add(entry);
      this.#paths.delete(entry);
    }
    return concerned;
  }

  clear(): void {
    this.#paths.clear();
  }
}

// A folder that appears, as when a helpers' folder is renamed back, may hold what was missing.
function isAmong(path: string, entry: string, paths: ReadonlySet<string>): boolean {
  if (path === entry || paths.has(path)) return true;
  for (const each of paths) if (each.startsWith(path + sep)) return true;
  return false;
}
