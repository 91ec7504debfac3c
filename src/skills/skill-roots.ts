import { basename, dirname } from "node:path";
import { isInside } from "../io/confine-path.ts";
import type { PathChange } from "../io/watch-tree.ts";
import { discoverRoot, fixedPart, isSkillFolder } from "./discover.ts";
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
      if (changes !== undefined && !changes.some((change) => this.#concerns(root, change))) continue;
      entry.listing = discoverRoot(root);
      this.#folders = undefined;
    }
  }

  /** Whether a change may alter which folders a root brings. */
  #concerns(root: string, { path, kind, directory }: PathChange): boolean {
    const base = fixedPart(root);
    if (isInside(path, base)) return true;
    if (!isInside(base, path)) return false;
    if (base !== root) return kind !== "changed" || directory || isSkillFile(path);
    const parent = dirname(path);
    if (parent === root) return kind !== "changed" || directory;
    return dirname(parent) === root && isSkillFile(path) && isSkillFolder(parent) !== this.folders.has(parent);
  }
}

function isSkillFile(path: string): boolean {
  return ["skill.md", "skill.json"].includes(basename(path).toLowerCase());
}
