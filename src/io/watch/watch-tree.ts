import { basename, resolve, sep } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { ChangeBatch, type PathChange, Settler } from "./watch-batch.ts";
import { createChokidarFeed } from "./watch-chokidar.ts";
import { DirectoryTree, type Root } from "./watch-directories.ts";
import { type HintFeed, nativeFeed, PathResolutions, type TreeContext, type WatchTrouble } from "./watch-links.ts";

export type { PathChange } from "./watch-batch.ts";

export type WatchBackend = "directory" | "chokidar";

export interface WatchOptions {
  /** Files or directories; they need not exist yet. */
  readonly roots: readonly string[];
  onChange(changes: readonly PathChange[]): void;
  onProblem(diagnostic: Diagnostic): void;
  /** Milliseconds of quiet before changes are reported, default 15. */
  readonly debounce?: number;
  /** Milliseconds after which they are reported although it is not quiet, default 100. */
  readonly maxWait?: number;
  /** Paths (as reported) to leave out, with all that is below. Default: version control's own files and installed packages. */
  ignore?(path: string): boolean;
  /** "auto", the default: SKILLHOST_WATCHER if it is set, else "directory" on Linux and "chokidar" elsewhere. */
  readonly backend?: WatchBackend | "auto";
  /** Levels below a root that are entered; 0: its own entries only. Default: 64, and a diagnostic names what lies deeper. */
  readonly depth?: number;
  /** Milliseconds between looks at what cannot be watched, default 1000. */
  readonly pollInterval?: number;
  /** Directories beyond this number are not watched, default 65,536. */
  readonly maxDirectories?: number;
}

interface WatchCounts {
  readonly backend: WatchBackend;
  readonly roots: number;
  readonly directories: number;
  /** Directories that are looked at in intervals because they could not be watched. */
  readonly polled: number;
  /** Folders outside that are watched because a root or a link leads through them. */
  readonly holders: number;
}

export interface TreeWatcher extends AsyncDisposable {
  /** Settles when everything that was added so far is watched. What changes after that is reported. */
  readonly ready: Promise<void>;
  readonly counts: WatchCounts;
  /** Adding a root that is there already does nothing. @throws HostError `WATCHER_CLOSED`. */
  add(root: string, options?: { readonly depth?: number }): void;
  remove(root: string): void;
}

/**
 * Reports what changes in files and folders, in batches, each path once. Follows links (changes are reported under the
 * link), survives deletion and re-creation of anything, and turns to polling, with a diagnostic, where the system has
 * no watches left. What a "changed" file contains may be what it contained before: comparing is up to the listener.
 */
export function watchTree(options: WatchOptions): TreeWatcher {
  const watcher = new RootsWatcher(options);
  for (const root of options.roots) watcher.add(root);
  return watcher;
}

const USUALLY_IGNORED: ReadonlySet<string> = new Set([".git", ".hg", ".svn", "node_modules"]);

// The kernel drops events beyond 16,384 waiting ones, and the runtime does not say so. A batch of this size is a
// reason to compare everything.
const MAYBE_LOST = 4096;
const mostTold = 1_000;
// File times and our clock differ by some clock ticks, and the next events arrive while a batch is looked at.
const CLOCK_MARGIN = 1000;

class RootsWatcher implements TreeWatcher {
  readonly #options: WatchOptions;
  readonly #backend: WatchBackend;
  readonly #trees = new Map<string, DirectoryTree>();
  readonly #context: TreeContext;
  readonly #settler: Settler;
  readonly #pending = new Set<Promise<void>>();
  readonly #told = new Set<string>();
  #poll: NodeJS.Timeout | undefined;
  #lastSettled = now();
  #isClosed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#backend = chooseBackend(options);
    this.#settler = new Settler((touches) => this.#settle(touches), options.debounce ?? 15, options.maxWait ?? 100);
    this.#context = {
      batch: new ChangeBatch(),
      resolutions: new PathResolutions((code, path) => this.#problem("limit", path, code)),
      budget: { directories: 0, maxDirectories: options.maxDirectories ?? 65_536 },
      ignore: (name, path) => (options.ignore === undefined ? USUALLY_IGNORED.has(name) : options.ignore(path())),
      touch: () => this.#settler.touch(),
      problem: (trouble, path, code) => this.#problem(trouble, path, code),
    };
  }

  get ready(): Promise<void> {
    return Promise.all(this.#pending).then(() => (this.#pending.size > 0 ? this.ready : undefined));
  }

  get counts(): WatchCounts {
    const { budget, resolutions } = this.#context;
    const polled = [...this.#trees.values()].reduce((sum, tree) => sum + tree.polled, resolutions.polled);
    return { backend: this.#backend, roots: this.#trees.size, directories: budget.directories, polled, holders: resolutions.size };
  }

  add(root: string, options: { readonly depth?: number } = {}): void {
    if (this.#isClosed) throw new HostError("WATCHER_CLOSED", `This watcher is closed and cannot watch ${root}.`);
    const spelled = withoutEnd(root);
    if (this.#trees.has(spelled)) return;
    const wanted = options.depth ?? this.#options.depth;
    const described: Root = { spelled, path: resolve(root), depth: wanted ?? maxLevels, tellsTooDeep: wanted === undefined };
    const tree: DirectoryTree = new DirectoryTree(described, this.#context, (path, onHint) =>
      this.#backend === "directory" ? nativeFeed : this.#chokidarFeed(tree, described, path, onHint),
    );
    this.#trees.set(spelled, tree);
    tree.start();
    this.#schedulePoll();
  }

  remove(root: string): void {
    const spelled = withoutEnd(root);
    this.#trees.get(spelled)?.dispose();
    this.#trees.delete(spelled);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const root of [...this.#trees.keys()]) this.remove(root);
    this.#settler.dispose();
    clearTimeout(this.#poll);
    await this.ready;
  }

  #settle(touches: number): void {
    const since = sinceThen(this.#lastSettled);
    this.#lastSettled = now();
    if (touches >= MAYBE_LOST) for (const tree of this.#trees.values()) tree.reconcile(since);
    for (const tree of this.#trees.values()) tree.settle();
    this.#schedulePoll();
    this.#deliver(this.#context.batch.take());
  }

  #deliver(changes: readonly PathChange[]): void {
    if (changes.length === 0) return;
    try {
      this.#options.onChange(changes);
    } catch (error) {
      const message = `A file-change listener failed: ${errorMessage(error)}`;
      this.#options.onProblem({ severity: "error", code: "WATCH_LISTENER_FAILED", message });
    }
  }

  #chokidarFeed(tree: DirectoryTree, root: Root, path: string, onHint: (segments: readonly string[]) => void): HintFeed {
    const done = this.#promise();
    return createChokidarFeed({
      path,
      depth: root.depth,
      ignore: (at) => this.#context.ignore(basename(at), () => root.spelled + at.slice(root.path.length)),
      onHint,
      onReady: () => {
        // What changed between our look at the tree and chokidar's is known to neither: it is told before `ready` is.
        tree.poll();
        this.#settle(0);
        done();
      },
      onLimit: (code, at) => {
        this.#problem("limit", at, code);
        tree.pollOnly();
        this.#schedulePoll();
      },
      onUnreadable: (code, at) => this.#problem("unreadable", at, code),
      onEnd: (closing) => {
        this.#waitFor(closing);
        done();
      },
    });
  }

  #schedulePoll(): void {
    if (this.#poll !== undefined || this.#isClosed || this.counts.polled === 0) return;
    this.#pollAfter(this.#options.pollInterval ?? 1000);
  }

  #pollAfter(delay: number): void {
    this.#poll = setTimeout(() => {
      const begin = performance.now();
      this.#context.resolutions.poll();
      for (const tree of this.#trees.values()) tree.poll();
      this.#poll = undefined;
      // Never more than a tenth of the time, however much there is to look at.
      if (this.counts.polled > 0) this.#pollAfter(Math.max(delay, (performance.now() - begin) * 9));
    }, delay);
  }

  #problem(trouble: WatchTrouble, path: string, code: string): void {
    // The limit concerns thousands of folders at once: it is said once.
    const key = trouble === "unreadable" || trouble === "too-deep" ? `${trouble}:${path}` : trouble;
    if (this.#told.has(key) || this.#told.size >= mostTold) return;
    this.#told.add(key);
    this.#options.onProblem(watchDiagnostic(trouble, path, code));
  }

  #promise(): () => void {
    let done = (): void => {};
    this.#waitFor(
      new Promise<void>((resolvePromise) => {
        done = resolvePromise;
      }),
    );
    return done;
  }

  #waitFor(promise: Promise<void>): void {
    const settled = promise.then(() => void this.#pending.delete(settled));
    this.#pending.add(settled);
  }
}

interface Moment {
  readonly clock: number;
  readonly elapsed: number;
}

function now(): Moment {
  return { clock: Date.now(), elapsed: performance.now() };
}

// In the terms of file times. The clock may have been set back or forth meanwhile: the earlier reading is the safe one.
function sinceThen(then: Moment): number {
  return Math.min(then.clock, Date.now() - (performance.now() - then.elapsed)) - CLOCK_MARGIN;
}

function chooseBackend({ backend = "auto", onProblem }: WatchOptions): WatchBackend {
  if (backend !== "auto") return backend;
  const wanted = process.env["SKILLHOST_WATCHER"];
  if (wanted === "directory" || wanted === "chokidar") return wanted;
  if (wanted !== undefined && wanted !== "" && wanted !== "auto") {
    const message = `SKILLHOST_WATCHER is "${wanted}". Use directory, chokidar or auto.`;
    onProblem({ severity: "warning", code: "WATCH_BACKEND_UNKNOWN", message });
  }
  return process.platform === "linux" ? "directory" : "chokidar";
}

// "skills/" and "skills" are one root; only the root of a file system ends in its separator.
function withoutEnd(root: string): string {
  const end = sep === "\\" ? /[\\/]+$/ : /\/+$/;
  return root.replace(end, "") || root.slice(0, 1) || ".";
}

/** Levels below a root that are entered unless its owner says otherwise. */
const maxLevels = 64;

const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: "Raise it (sysctl fs.inotify.max_user_watches=524288), close other programs that watch files, or watch fewer folders.",
  EMFILE: "Raise it (sysctl fs.inotify.max_user_instances=1024, or ulimit -n for open files), or close other programs that watch files.",
};

/** The words for what can go wrong with watching. */
function watchDiagnostic(trouble: WatchTrouble, file: string, code: string): Diagnostic {
  if (trouble === "limit") {
    const advice = ADVICE[code] ?? "Raise the limit of this system, or watch fewer folders.";
    const message = `The system's limit on file watches is reached (${code}). Changes are still found, but later, by polling. ${advice}`;
    return { severity: "warning", code: "WATCH_LIMIT", message, file };
  }
  if (trouble === "too-many") {
    const message =
      "There are too many folders below the watched ones, so changes in this folder and others are not noticed. Watch a folder further down, or exclude this one.";
    return { severity: "warning", code: "WATCH_TOO_MANY", message, file };
  }
  if (trouble === "too-deep") {
    const message = `This folder is more than ${maxLevels} levels below the watched one, so changes in it are not noticed. Move it up, or exclude it.`;
    return { severity: "warning", code: "WATCH_TOO_DEEP", message, file };
  }
  const message = `This cannot be read${code === "" ? "" : ` (${code})`}, so changes in it are not noticed. Check its permissions.`;
  return { severity: "warning", code: "WATCH_UNREADABLE", message, file };
}
