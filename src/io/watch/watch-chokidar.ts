import { realpathSync } from "node:fs";
import { relative, resolve, sep } from "node:path";
import type { FSWatcher, watch } from "chokidar";
import { toError } from "../../base/errors.ts";
import type { HintFeed } from "./watch-links.ts";
import { errorCode, isWatchLimit, stampOf, tryLstat } from "./watch-native.ts";
import { type DirectoryNode, hintAtSuspects, maxNestedLinks } from "./watch-node.ts";

interface ChokidarFeedOptions {
  readonly path: string;
  readonly depth: number;
  ignore(path: string): boolean;
  onHint(segments: readonly string[]): void;
  /** All existing files are watched. */
  onReady(): void;
  /** It stopped working: the system's limit is reached, or chokidar could not be loaded. */
  onLimit(code: string, path: string): void;
  onUnreadable(code: string, path: string): void;
  /** The feed was disposed of; the promise settles when it is fully closed. */
  onEnd(closing: Promise<void>): void;
}

// chokidar starts its watches with a delay and without a notification: a path added while it runs counts as watched after this
// many polls. Paths that exist at the start are watched when it emits "ready".
const pollsWhenNew = 2;

/** One chokidar instance per root. Its events are only hints, as with native watches. chokidar is loaded on first use. */
export function createChokidarFeed(options: ChokidarFeedOptions): HintFeed {
  const looksLeft = new Map<string, number>();
  let watcher: FSWatcher | undefined;
  let isReady = false;
  let isDisposed = false;
  const becomeReady = (): void => {
    isReady = true;
    options.onReady();
  };
  const starting = import("chokidar").then(
    (chokidar) => {
      if (!isDisposed) watcher = start(chokidar.watch, becomeReady, options);
    },
    (error) => options.onLimit(errorCode(toError(error)), options.path),
  );
  return {
    open(path) {
      const known = looksLeft.get(path);
      const left = known === undefined ? (isReady ? pollsWhenNew : 1) : isReady ? known - 1 : known;
      looksLeft.set(path, left);
      // chokidar loses a folder that is deleted and created again quickly. Adding it again restores the watch.
      if (isReady && known === undefined) watcher?.unwatch(path).add(path);
      return { kind: left > 0 ? "pending" : "open", watch: { close: () => void looksLeft.delete(path) } };
    },
    [Symbol.dispose]() {
      isDisposed = true;
      options.onEnd(watcher === undefined ? starting : close(watcher));
    },
  };
}

function start(watchPath: typeof watch, onReady: () => void, options: ChokidarFeedOptions): FSWatcher {
  const watcher = watchPath(options.path, {
    ignoreInitial: true,
    // Both would delay events; the Settler does the debouncing.
    atomic: false,
    awaitWriteFinish: false,
    ignored: (path, stats) => isLeftOut(resolve(path), stats?.isSymbolicLink() === true, options),
    ...(Number.isFinite(options.depth) ? { depth: options.depth } : {}),
  });
  const hint = (path: string): void => {
    const inside = relative(options.path, resolve(path));
    options.onHint(inside === "" ? [] : inside.split(sep));
  };
  // chokidar drops a second change within 50 ms and a second removal within 100 ms: the raw events fill the gap.
  watcher.on("raw", (_event, name, details) => {
    const watched = (details as { watchedPath?: unknown } | undefined)?.watchedPath;
    if (typeof watched !== "string") return;
    if (typeof name === "string" && name !== "") hint(resolve(watched, name));
    hint(watched);
  });
  watcher.on("all", (_event, path) => hint(path));
  watcher.on("ready", onReady);
  watcher.on("error", (error) => reportError(error, options));
  return watcher;
}

function reportError(error: unknown, options: ChokidarFeedOptions): void {
  const code = errorCode(error);
  const path = String((error as NodeJS.ErrnoException).path ?? options.path);
  if (isWatchLimit(code)) options.onLimit(code, path);
  else options.onUnreadable(code, path);
}

function close(watcher: FSWatcher): Promise<void> {
  const closing = watcher.close();
  // close() removes all listeners, and a pending file access may fail afterwards: without a listener that error would be an
  // uncaught exception.
  watcher.on("error", () => {});
  return closing;
}

// chokidar follows all links, also in cycles: two links to a parent yield 2^40 paths.
function isLeftOut(path: string, isLink: boolean, options: ChokidarFeedOptions): boolean {
  if (path === options.path) return false;
  return options.ignore(path) || (isLink && leadsBack(path, options.path));
}

function leadsBack(link: string, root: string): boolean {
  try {
    const reals = [realpathSync(root)];
    let links = 0;
    let at = root;
    for (const name of relative(root, link).split(sep)) {
      at = resolve(at, name);
      const real = realpathSync(at);
      if (real !== resolve(reals.at(-1) ?? "", name)) links++;
      reals.push(real);
    }
    return links > maxNestedLinks || reals.indexOf(reals.at(-1) ?? "") < reals.length - 1;
  } catch {
    // A dangling or circular link cannot be followed.
    return false;
  }
}

type Stamps = ReadonlyMap<string, string>;

/** The directories without a watch, with the stamps of their entries at the last poll. */
export class PolledDirectories {
  readonly #stamps = new Map<DirectoryNode, Stamps>();

  get size(): number {
    return this.#stamps.size;
  }

  /** Keeps the existing stamps of a directory that is polled already. */
  add(node: DirectoryNode): void {
    if (!this.#stamps.has(node)) this.#stamps.set(node, stampsOf(node));
  }

  /** Makes the current state of the directory the one to compare with. */
  refresh(node: DirectoryNode): void {
    if (this.#stamps.has(node)) this.#stamps.set(node, stampsOf(node));
  }

  delete(node: DirectoryNode): void {
    this.#stamps.delete(node);
  }

  /** Polls all directories. `retry` tries to watch one natively, and returns whether to try the next. */
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
    const stats = tryLstat(node.pathTo(name));
    if (typeof stats !== "string") stamps.set(name, stampOf(stats));
  }
  return stamps;
}
