import { realpathSync } from "node:fs";
import { relative, resolve, sep } from "node:path";
import type { FSWatcher, watch } from "chokidar";
import { toError } from "../../base/errors.ts";
import type { HintFeed } from "./watch-links.ts";
import { errorCode, isWatchLimit, lookAtEntry, stampOf } from "./watch-native.ts";
import { type DirectoryNode, hintAtSuspects, MAX_NESTED_LINKS } from "./watch-node.ts";

interface ChokidarFeedOptions {
  readonly path: string;
  readonly depth: number;
  ignore(path: string): boolean;
  onHint(segments: readonly string[]): void;
  /** Everything that was there is watched. */
  onReady(): void;
  /** It cannot go on: the system's limit is reached, or it did not load. */
  onLimit(code: string, path: string): void;
  onUnreadable(code: string, path: string): void;
  /** It has been disposed of; settles when nothing of it is left. */
  onEnd(closing: Promise<void>): void;
}

// chokidar starts its watches some time after it was told to, and does not say when: what it is told while running
// counts as watched after so many looks in intervals. What was there at the start is watched when it says "ready".
const LOOKS_WHEN_NEW = 2;

/** One chokidar instance per root. Its events are hints like any others. Loaded when first wanted. */
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
      const left = known === undefined ? (isReady ? LOOKS_WHEN_NEW : 1) : isReady ? known - 1 : known;
      looksLeft.set(path, left);
      // It loses a folder that is deleted and made again within moments. Told about it, it finds it again.
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
    // Both would hold events back; batching is done by our own debounce.
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
  watcher.on("raw", (_event, name, details) => hintRaw(hint, name, details));
  watcher.on("all", (_event, path) => hint(path));
  watcher.on("ready", onReady);
  watcher.on("error", (error) => reportError(error, options));
  return watcher;
}

function hintRaw(hint: (path: string) => void, name: unknown, details: unknown): void {
  const watched = (details as { watchedPath?: unknown } | undefined)?.watchedPath;
  if (typeof watched !== "string") return;
  if (typeof name === "string" && name !== "") hint(resolve(watched, name));
  hint(watched);
}

function reportError(error: unknown, options: ChokidarFeedOptions): void {
  const code = errorCode(error);
  const path = String((error as NodeJS.ErrnoException).path ?? options.path);
  if (isWatchLimit(code)) options.onLimit(code, path);
  else options.onUnreadable(code, path);
}

function close(watcher: FSWatcher): Promise<void> {
  const closing = watcher.close();
  // close() takes our listeners away, and a look that is still under way may fail after it: nobody listening would
  // make that an uncaught exception.
  watcher.on("error", () => {});
  return closing;
}

// chokidar follows links wherever they lead, also in circles: two links to a parent are 2^40 paths to it.
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
    return links > MAX_NESTED_LINKS || reals.indexOf(reals.at(-1) ?? "") < reals.length - 1;
  } catch {
    // It leads nowhere or in a circle of its own: nothing to follow.
    return false;
  }
}

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
