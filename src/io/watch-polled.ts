import { type DirectoryNode, hintAtSuspects } from "./watch-node.ts";
import { lookAtEntry, stampOf } from "./watch-stat.ts";

type Stamps = ReadonlyMap<string, string>;

/** The directories that nobody tells us about, and what their entries looked like the last time. */
export class PolledDirectories {
  readonly #stamps = new Map<DirectoryNode, Stamps>();

  get size(): number {
    return this.#stamps.size;
  }

  /** Keeps the older stamps of a directory that is polled already. */
  add(node: DirectoryNode): void {
    if (!this.#stamps.has(node)) this.#stamps.set(node, stampsOf(node));
  }

  /** Takes what is known of the directory now as the state to compare with. */
  refresh(node: DirectoryNode): void {
    if (this.#stamps.has(node)) this.#stamps.set(node, stampsOf(node));
  }

  delete(node: DirectoryNode): void {
    this.#stamps.delete(node);
  }

  /** Looks at all of them. `retry` tries to have one watched after all, and answers whether to try the next. */
  poll(retry: (node: DirectoryNode) => boolean): void {
    let mayRetry = true;
    for (const [node, before] of [...this.#stamps]) {
      if (mayRetry) mayRetry = retry(node);
      const after = new Map<string, string>();
      hintAtSuspects(node, (name, stats) => {
        const stamp = stampOf(stats);
        after.set(name, stamp);
        return before.get(name) !== stamp;
      });
      if (this.#stamps.has(node)) this.#stamps.set(node, after);
    }
  }
}

function stampsOf(node: DirectoryNode): Stamps {
  const stamps = new Map<string, string>();
  for (const name of node.entries.keys()) {
    const stats = lookAtEntry(node.pathTo(name));
    if (typeof stats !== "string") stamps.set(name, stampOf(stats));
  }
  return stamps;
}
