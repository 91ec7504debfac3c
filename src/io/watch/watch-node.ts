import type { Stats } from "node:fs";
import { sep } from "node:path";
import { type HintListener, type Identity, identityOf, listDirectory, sameIdentity, tryLstat } from "./watch-native.ts";

/** A file, a directory that is not entered (too deep, a cycle), or the node of an entered one. */
export type Entry = "file" | "directory" | DirectoryNode;

/** The tree of a node: the path of its root, and the receiver of its hints. */
export interface NodeOwner {
  readonly path: string;
  onHint(node: DirectoryNode, name: string | undefined): void;
  onLost(node: DirectoryNode): void;
}

/** Limit of links inside linked folders: far more than intended structures have, far fewer than a maze of links. */
export const maxNestedLinks = 8;

/** A directory whose entries are known. */
export class DirectoryNode implements Identity, HintListener {
  readonly parent: DirectoryNode | undefined;
  readonly name: string;
  /** Cached although it could be derived, because each comparison needs it. */
  readonly path: string;
  readonly entries: Map<string, Entry> = new Map();
  readonly device: number;
  readonly inode: number;
  readonly birth: number;
  /** The number of levels below it that may be entered. */
  readonly depth: number;
  /** The number of links on the path to it. */
  readonly links: number;
  readonly #owner: NodeOwner;
  watch: { close(): void } | undefined = undefined;
  closed = false;

  constructor(owner: NodeOwner, parent: DirectoryNode | undefined, name: string, identity: Identity, depth: number, links: number) {
    this.#owner = owner;
    this.parent = parent;
    this.name = name;
    this.path = parent === undefined ? owner.path : parent.pathTo(name);
    this.device = identity.device;
    this.inode = identity.inode;
    this.birth = identity.birth;
    this.depth = depth;
    this.links = links;
  }

  // The virtual top directory has the root as its only entry.
  pathTo(name: string): string {
    return this.parent === undefined ? this.#owner.path : childPath(this.path, name);
  }

  hint(name: string | undefined): void {
    if (!this.closed) this.#owner.onHint(this, name);
  }

  lost(): void {
    if (!this.closed) this.#owner.onLost(this);
  }
}

function childPath(path: string, name: string): string {
  return path.endsWith(sep) ? path + name : path + sep + name;
}

/** Every node below this one, parents first. */
export function* nodesBelow(node: DirectoryNode): Generator<DirectoryNode> {
  const waiting: DirectoryNode[] = [node];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next !== node) yield next;
    for (const entry of next.entries.values()) if (typeof entry === "object") waiting.push(entry);
  }
}

/** Whether a directory is an ancestor of the node, so that entering it would never end. */
export function isAncestor(node: DirectoryNode, { inode, device }: Identity): boolean {
  for (let at: DirectoryNode | undefined = node; at !== undefined; at = at.parent) {
    if (at.inode === inode && at.device === device) return true;
  }
  return false;
}

/** Hints at entries that are missing, new, replaced by another directory, or touched as defined by the caller. */
export function hintAtSuspects(node: DirectoryNode, isTouched: (name: string, stats: Stats) => boolean): void {
  const { path } = node;
  const listed = listDirectory(path);
  if (listed === "missing") node.parent?.hint(node.name);
  if (typeof listed === "string") return;
  const names = new Set(listed.map((dirent) => dirent.name));
  for (const name of node.entries.keys()) if (!names.has(name)) node.hint(name);
  for (const name of names) {
    const stats = tryLstat(childPath(path, name));
    if (typeof stats !== "string" && isSuspect(node.entries.get(name), stats, isTouched(name, stats))) node.hint(name);
  }
}

function isSuspect(known: Entry | undefined, stats: Stats, isTouched: boolean): boolean {
  // A directory's own stamp changes with each of its entries, so only a different identity counts as a change.
  if (typeof known === "object" && stats.isDirectory()) return !sameIdentity(known, identityOf(stats));
  return isTouched;
}
