import type { Stats } from "node:fs";
import type { PathChange } from "./watch-batch.ts";
import { PolledDirectories } from "./watch-chokidar.ts";
import type { CreateFeed, HintFeed, Resolution, TreeContext } from "./watch-links.ts";
import { type Identity, identityOf, listDirectory, sameIdentity, tryLstat, tryStat } from "./watch-native.ts";
import { DirectoryNode, hintAtSuspects, isAncestor, maxNestedLinks, type NodeOwner, nodesBelow } from "./watch-node.ts";

export interface Root {
  /** As the caller wrote it, and as changes are reported. */
  readonly spelled: string;
  readonly path: string;
  readonly depth: number;
  /** Whether a directory below the depth limit is reported as a problem. */
  readonly reportsTooDeep: boolean;
}

const noIdentity = { device: -1, inode: -1, birth: -1 };

/**
 * The known state of one root, kept current by hints. A hint says only where to look, not what happened, so duplicate or
 * reordered system events cost at most one comparison. The root itself is the single entry, "", of a virtual top directory, so
 * that it appears, disappears and is replaced by the same rules as its descendants.
 */
export class DirectoryTree implements NodeOwner {
  readonly #root: Root;
  readonly #context: TreeContext;
  readonly #createFeed: CreateFeed;
  readonly #top: DirectoryNode;
  readonly #polled = new PolledDirectories();
  readonly #resolutions = new Map<DirectoryNode, Map<string, Resolution>>();
  #feed: HintFeed | undefined;
  #dirty = new Map<DirectoryNode, Set<string | undefined>>();
  #silent = false;

  constructor(root: Root, context: TreeContext, createFeed: CreateFeed) {
    this.#root = root;
    this.#context = context;
    this.#createFeed = createFeed;
    this.#top = new DirectoryNode(this, undefined, "", noIdentity, root.depth + 1, 0);
  }

  get path(): string {
    return this.#root.path;
  }

  get polled(): number {
    return this.#polled.size;
  }

  /** Records the present state, without reporting it. */
  start(): void {
    this.#silent = true;
    this.#apply(this.#top, "");
    this.#silent = false;
  }

  dispose(): void {
    this.#silent = true;
    this.#leave(this.#top);
    this.#feed?.[Symbol.dispose]();
    this.#dirty.clear();
  }

  /** Compares all hinted entries with the disk and reports the differences. */
  settle(): void {
    const dirty = this.#dirty;
    this.#dirty = new Map();
    for (const [node, names] of dirty) {
      for (const name of names) {
        if (node.closed) break;
        if (name === undefined) this.#relist(node);
        else this.#apply(node, name);
      }
    }
  }

  /** Compares the whole known state with the disk; a file counts as changed if it was touched at or after `since`. */
  reconcile(since: number): void {
    for (const node of nodesBelow(this.#top)) {
      hintAtSuspects(node, (name, stats) => stats.ctimeMs >= since || !node.entries.has(name));
    }
  }

  /** Polls the directories without a watch, and tries to watch them. */
  poll(): void {
    this.#polled.poll((node) => this.#feed !== undefined && this.#watch(node));
  }

  /** Closes all watches and polls every directory from now on. */
  pollOnly(): void {
    for (const node of nodesBelow(this.#top)) this.#demote(node);
    this.#feed?.[Symbol.dispose]();
    this.#feed = undefined;
  }

  /** @internal */
  onHint(node: DirectoryNode, name: string | undefined): void {
    const names = this.#dirty.get(node);
    if (names === undefined) this.#dirty.set(node, new Set([name]));
    else names.add(name);
    this.#context.touch();
  }

  /** @internal */
  onLost(node: DirectoryNode): void {
    this.#demote(node);
    node.hint(undefined);
  }

  // The deepest known node receives the hint; listing it finds the entries below.
  #hintPath(segments: readonly string[]): void {
    const way = ["", ...segments];
    let node = this.#top;
    for (const name of way.slice(0, -1)) {
      const next = node.entries.get(name);
      if (typeof next !== "object") {
        node.hint(name);
        return;
      }
      node = next;
    }
    node.hint(way.at(-1));
  }

  #relist(node: DirectoryNode): void {
    const listed = listDirectory(node.path);
    if (listed === "missing") this.#verify(node);
    if (typeof listed === "string") return;
    const names = new Set(listed.map((dirent) => dirent.name));
    for (const name of [...node.entries.keys()]) if (!names.has(name)) this.#apply(node, name);
    for (const name of names) if (!node.closed && !node.entries.has(name)) this.#apply(node, name);
  }

  // Checks whether the known directory is still the one at this path.
  #verify(node: DirectoryNode): void {
    const stats = tryStat(node.path);
    if (stats === "unsure" || node.parent === undefined) return;
    if (stats === "missing" || !sameIdentity(node, identityOf(stats))) this.#apply(node.parent, node.name);
  }

  #apply(node: DirectoryNode, name: string): void {
    if (this.#isIgnored(node, name)) return;
    const path = node.pathTo(name);
    const entry = tryLstat(path);
    if (entry === "unsure") return;
    const isLink = entry !== "missing" && entry.isSymbolicLink();
    this.#resolve(node, name, path, isLink || node === this.#top);
    const now = isLink ? tryStat(path) : entry;
    if (now === "missing") {
      // A missing entry with an unknown name: the directory itself may be gone.
      if (!node.entries.has(name)) this.#verify(node);
      else this.#disappear(node, name);
    } else if (now !== "unsure" && now.isDirectory()) this.#compareDirectory(node, name, now, isLink);
    else if (now !== "unsure") {
      const known = node.entries.get(name);
      if (known !== undefined && known !== "file") this.#disappear(node, name);
      node.entries.set(name, "file");
      this.#report(known === "file" ? "changed" : "added", node, name, false);
    }
  }

  #isIgnored(node: DirectoryNode, name: string): boolean {
    const { ignore } = this.#context;
    return node !== this.#top && ignore(name, () => this.#spell(node.pathTo(name)));
  }

  #compareDirectory(node: DirectoryNode, name: string, stats: Stats, isLink: boolean): void {
    const known = node.entries.get(name);
    const identity = identityOf(stats);
    if (typeof known === "object" && sameIdentity(known, identity)) {
      this.#relist(known);
      return;
    }
    const links = node.links + (isLink && node !== this.#top ? 1 : 0);
    const mayEnter = this.#mayEnter(node, name, identity, links);
    if (known === "directory" && !mayEnter) return;
    this.#disappear(node, name);
    this.#report("added", node, name, true);
    if (mayEnter) this.#enter(new DirectoryNode(this, node, name, identity, node.depth - 1, links), node);
    else node.entries.set(name, "directory");
  }

  #mayEnter(parent: DirectoryNode, name: string, identity: Identity, links: number): boolean {
    if (parent.depth === 0 && this.#root.reportsTooDeep) this.#context.problem("too-deep", parent.pathTo(name), "");
    if (parent.depth === 0 || links > maxNestedLinks) return false;
    // Only a link can lead back to an ancestor.
    if (links > 0 && isAncestor(parent, identity)) return false;
    const { budget } = this.#context;
    if (budget.directories < budget.maxDirectories) return true;
    this.#context.problem("too-many", parent.pathTo(name), "");
    return false;
  }

  // Watch first, list second: an entry created in between is then seen twice instead of never.
  #enter(node: DirectoryNode, parent: DirectoryNode): void {
    const { path } = node;
    parent.entries.set(node.name, node);
    this.#context.budget.directories++;
    if (parent === this.#top) this.#feed = this.#createFeed(path, (segments) => this.#hintPath(segments));
    this.#watch(node, path);
    const listed = listDirectory(path);
    if (listed === "unsure") this.#context.problem("unreadable", path, "");
    if (typeof listed === "string") return;
    for (const dirent of listed) {
      // The listing already knows what is a file. Another stat would take most of the start-up time.
      if (!dirent.isFile()) this.#apply(node, dirent.name);
      else if (!this.#isIgnored(node, dirent.name)) {
        node.entries.set(dirent.name, "file");
        this.#report("added", node, dirent.name, false);
      }
    }
    this.#polled.refresh(node);
  }

  #disappear(node: DirectoryNode, name: string): void {
    const known = node.entries.get(name);
    if (known === undefined) return;
    node.entries.delete(name);
    this.#report("removed", node, name, known !== "file");
    if (typeof known !== "object") return;
    this.#leave(known);
    if (node !== this.#top) return;
    this.#feed?.[Symbol.dispose]();
    this.#feed = undefined;
  }

  #leave(node: DirectoryNode): void {
    node.closed = true;
    node.watch?.close();
    this.#polled.delete(node);
    for (const resolution of this.#resolutions.get(node)?.values() ?? []) resolution[Symbol.dispose]();
    this.#resolutions.delete(node);
    if (node !== this.#top) this.#context.budget.directories--;
    for (const [name, entry] of node.entries) {
      this.#report("removed", node, name, entry !== "file");
      if (typeof entry === "object") this.#leave(entry);
    }
  }

  // Returns false when the system's limit is reached, so that trying the next one is pointless.
  #watch(node: DirectoryNode, path: string = node.path): boolean {
    const opened = this.#feed?.open(path, node);
    if (opened?.kind === "open" || opened?.kind === "pending") node.watch = opened.watch;
    if (opened?.kind === "open") this.#polled.delete(node);
    else this.#polled.add(node);
    if (opened?.kind === "limit") this.#context.problem("limit", path, opened.code);
    return opened?.kind !== "limit";
  }

  #demote(node: DirectoryNode): void {
    node.watch?.close();
    node.watch = undefined;
    this.#polled.add(node);
  }

  #resolve(node: DirectoryNode, name: string, path: string, isFollowed: boolean): void {
    const known = this.#resolutions.get(node)?.get(name);
    if (isFollowed && known !== undefined) known.refresh();
    else if (isFollowed) {
      const own = this.#resolutions.get(node) ?? new Map<string, Resolution>();
      this.#resolutions.set(node, own);
      own.set(
        name,
        this.#context.resolutions.follow(path, () => node.hint(name)),
      );
    } else if (known !== undefined) {
      known[Symbol.dispose]();
      this.#resolutions.get(node)?.delete(name);
    }
  }

  #report(kind: PathChange["kind"], node: DirectoryNode, name: string, directory: boolean): void {
    if (!this.#silent) this.#context.batch.report(kind, this.#spell(node.pathTo(name)), directory);
  }

  #spell(path: string): string {
    const { spelled } = this.#root;
    return spelled === this.#root.path ? path : spelled + path.slice(this.#root.path.length);
  }
}
