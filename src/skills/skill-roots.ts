import { basename, dirname } from "node:path";
import { isInside } from "../io/confine-path.ts";
import type { PathChange } from "../io/watch-tree.ts";
import { discoverRoot, fixedPart } from "./discover.ts";
import { isSkillFolder } from "./is-skill-folder.ts";
import { projectOfRoot } from "./package-skills.ts";
import type { RootListing } from "./skill.ts";

/** The roots that somebody claims, and the skill folders that each brings at the moment. */
export class SkillRoots {
  readonly #roots = new Map<string, { claims: number; listing: RootListing }>();
  #folders: ReadonlySet<string> | undefined;

  /** All skill folders, in the order of their roots. */
  get folders(): ReadonlySet<string> {
    this.#folders ??= new Set([...this.#roots.values()].flatMap(({ listing }) => listing.folders));
    return this.#folders;
  }

  get listings(): ReadonlyMap<string, RootListing> {
    return new Map([...this.#roots].map(([root, { listing }]) => [root, listing]));
  }

  /** What must be watched for them beside the roots themselves; false: only its own entries. */
  get watched(): ReadonlyMap<string, boolean> {
    const all = [...this.#roots.values()].flatMap(({ listing }) => listing.watched ?? []);
    return new Map(all.map(({ path, isWhole }) => [path, isWhole]));
  }

  /** Whether a folder belongs to a package that is being replaced. */
  isInFlux(folder: string): boolean {
    return [...this.#roots.values()].some(({ listing }) => listing.inFlux?.some((path) => isInside(path, folder)) ?? false);
  }

  /** One more claim on a root; true: it is a new one. `begin` runs before it is looked at, so that it is watched from then on. */
  claim(root: string, begin: (base: string) => void): boolean {
    const known = this.#roots.get(root);
    if (known) {
      known.claims++;
      return false;
    }
    begin(fixedPart(root));
    this.#roots.set(root, { claims: 1, listing: discoverRoot(root) });
    this.#folders = undefined;
    return true;
  }

  /** One claim less. With the last one the root goes; `end` runs when nothing else needs its folder. */
  release(root: string, end: (base: string) => void): void {
    const entry = this.#roots.get(root);
    if (entry === undefined || --entry.claims > 0) return;
    this.#roots.delete(root);
    this.#folders = undefined;
    const base = fixedPart(root);
    if (![...this.#roots.keys()].some((other) => fixedPart(other) === base)) end(base);
  }

  /** Looks again at every root, or at those that these changes may concern. */
  rescan(changes?: readonly PathChange[]): void {
    for (const [root, entry] of this.#roots) {
      const isConcerned = entry.listing.isOutdated || changes === undefined || changes.some((change) => this.#concerns(root, change));
      if (!isConcerned) continue;
      entry.listing = keepReplaced(entry.listing, discoverRoot(root, entry.listing));
      this.#folders = undefined;
    }
  }

  /** Something in one of the watched folders of packages. */
  #concernsPackages(root: string, path: string): boolean {
    const watched = this.#roots.get(root)?.listing.watched ?? [];
    return watched.some((folder) => isInside(folder.path, path));
  }

  /** Whether a change may alter which folders a root brings. */
  #concerns(root: string, { path, kind, directory }: PathChange): boolean {
    const base = fixedPart(root);
    if (isInside(path, base)) return true;
    if (projectOfRoot(root) !== undefined) return this.#concernsPackages(root, path);
    if (!isInside(base, path)) return false;
    if (base !== root) return kind !== "changed" || directory || isSkillFile(path);
    const parent = dirname(path);
    if (parent === root) return kind !== "changed" || directory;
    return dirname(parent) === root && isSkillFile(path) && isSkillFolder(parent) !== this.folders.has(parent);
  }
}

/** What a package manager is replacing has not gone: until the new version is there, the old one is listed. */
function keepReplaced(before: RootListing, now: RootListing): RootListing {
  const inFlux = now.inFlux ?? [];
  const isKept = (folder: string): boolean => inFlux.some((path) => isInside(path, folder));
  const kept = before.folders.filter(isKept);
  if (kept.length === 0) return now;
  const packages = [...(now.packages ?? []), ...[...(before.packages ?? [])].filter(([folder]) => isKept(folder))];
  return { ...now, folders: [...new Set([...now.folders, ...kept])].sort(), packages: new Map(packages) };
}

function isSkillFile(path: string): boolean {
  return ["skill.md", "skill.json"].includes(basename(path).toLowerCase());
}
