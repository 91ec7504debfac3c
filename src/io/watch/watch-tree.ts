import { basename, resolve, sep } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { ChangeBatch, type PathChange, Settler } from "./watch-batch.ts";
import { createChokidarFeed } from "./watch-chokidar.ts";
import { DirectoryTree, type Root } from "./watch-directories.ts";
import { type HintFeed, nativeFeed, PathResolutions, type TreeContext, type WatchProblem } from "./watch-links.ts";

export type { PathChange } from "./watch-batch.ts";

export type WatchBackend = "directory" | "chokidar";

export interface WatchOptions {
  /** Files or directories; they need not exist yet. */
  readonly roots: readonly string[];
  /** `isEarly`: the change was reported before the quiet that `debounce` asks for. */
  onChange(changes: readonly PathChange[], isEarly: boolean): void;
  /**
   * Whether a changed file is complete, as far as can be known. A burst that changes only such a file is reported shortly after its
   * first event. Absent: nothing is reported early.
   */
  isComplete?(path: string): boolean;
  /** Called when a burst of which a change was reported early is over. */
  onQuiet?(): void;
  onProblem(diagnostic: Diagnostic): void;
  /** Milliseconds of quiet before changes are reported, default 15. */
  readonly debounce?: number;
  /** Milliseconds after which changes are reported even without quiet, default 100. */
  readonly maxWait?: number;
  /** Paths (as reported) to ignore, with their contents. Default: files of version control and installed packages. */
  ignore?(path: string): boolean;
  /** "auto", the default: SKILLHOST_WATCHER if it is set, else "directory" on Linux and "chokidar" elsewhere. */
  readonly backend?: WatchBackend | "auto";
  /** Levels below a root that are entered; 0: its own entries only. Default: 64, and a diagnostic names what lies deeper. */
  readonly depth?: number;
  /** Polling interval of directories that cannot be watched, in milliseconds, default 1000. */
  readonly pollInterval?: number;
  /** Directories beyond this number are not watched, default 65,536. */
  readonly maxDirectories?: number;
}

interface WatchCounts {
  readonly backend: WatchBackend;
  readonly roots: number;
  readonly directories: number;
  /** Directories that are polled because they could not be watched. */
  readonly polled: number;
  /** Folders outside that are watched because a root or a link leads through them. */
  readonly holders: number;
}

export interface TreeWatcher extends AsyncDisposable {
  /** Settles when all roots added so far are watched. Later changes are reported. */
  readonly ready: Promise<void>;
  readonly counts: WatchCounts;
  /** Adding an existing root has no effect. @throws HostError `WATCHER_CLOSED`. */
  add(root: string, options?: { readonly depth?: number }): void;
  remove(root: string): void;
}

/**
 * Reports changes of files and folders in batches, each path once. Follows links (changes are reported under the link), handles
 * deletion and re-creation of any path, and falls back to polling, with a diagnostic, when the system has no watches left. The
 * content of a "changed" file may be unchanged: the listener compares it.
 */
export function watchTree(options: WatchOptions): TreeWatcher {
  const watcher = new RootsWatcher(options);
  for (const root of options.roots) watcher.add(root);
  return watcher;
}

const defaultIgnored: ReadonlySet<string> = new Set([".git", ".hg", ".svn", "node_modules"]);

// The kernel drops events beyond 16,384 pending ones without an error in Node.js. After a batch of this size, everything is
// compared.
const mayHaveLostEvents = 4096;
const maxReported = 1_000;
// A save by rename causes about ten. More is probably a change of several files.
const mostEarlyTouches = 16;
// File times and the system clock differ by some ticks, and further events arrive while a batch is processed.
const clockMarginMs = 1000;

class RootsWatcher implements TreeWatcher {
  readonly #options: WatchOptions;
  readonly #backend: WatchBackend;
  readonly #trees = new Map<string, DirectoryTree>();
  readonly #context: TreeContext;
  readonly #settler: Settler;
  readonly #pending = new Set<Promise<void>>();
  readonly #reported = new Set<string>();
  #poll: NodeJS.Timeout | undefined;
  #lastSettled = now();
  #wasEarly = false;
  #isClosed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#backend = chooseBackend(options);
    this.#settler = new Settler({
      run: (touches) => this.#settle(touches),
      debounce: options.debounce ?? 15,
      maxWait: options.maxWait ?? 100,
      runEarly: options.isComplete && ((touches) => this.#settleEarly(touches)),
    });
    this.#context = {
      batch: new ChangeBatch(),
      resolutions: new PathResolutions((code, path) => this.#problem("limit", path, code)),
      budget: { directories: 0, maxDirectories: options.maxDirectories ?? 65_536 },
      ignore: (name, path) => (options.ignore === undefined ? defaultIgnored.has(name) : options.ignore(path())),
      touch: () => this.#settler.touch(),
      problem: (kind, path, code) => this.#problem(kind, path, code),
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
    const described: Root = { spelled, path: resolve(root), depth: wanted ?? maxLevels, reportsTooDeep: wanted === undefined };
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
    if (touches >= mayHaveLostEvents) for (const tree of this.#trees.values()) tree.reconcile(since);
    for (const tree of this.#trees.values()) tree.settle();
    this.#schedulePoll();
    const wasEarly = this.#wasEarly;
    this.#wasEarly = false;
    this.#notify(this.#context.batch.take(), false);
    if (wasEarly) this.#options.onQuiet?.();
  }

  /** Reports the only change so far if its file is complete. Whatever else the burst brings is reported at its end. */
  #settleEarly(touches: number): void {
    if (touches > mostEarlyTouches) return;
    for (const tree of this.#trees.values()) tree.settle();
    const changes = this.#context.batch.takeOnly((path) => this.#options.isComplete?.(path) ?? false);
    this.#wasEarly = changes.length > 0;
    this.#notify(changes, true);
  }

  #notify(changes: readonly PathChange[], isEarly: boolean): void {
    if (changes.length === 0) return;
    try {
      this.#options.onChange(changes, isEarly);
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
        // Changes between the initial listing and chokidar's start are unknown to both, so they are found by comparing before
        // `ready` settles.
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
      // Polling uses at most a tenth of the time, however many directories are polled.
      if (this.counts.polled > 0) this.#pollAfter(Math.max(delay, (performance.now() - begin) * 9));
    }, delay);
  }

  #problem(kind: WatchProblem, path: string, code: string): void {
    // The limit affects thousands of folders at once, so it is reported once.
    const key = kind === "unreadable" || kind === "too-deep" ? `${kind}:${path}` : kind;
    if (this.#reported.has(key) || this.#reported.size >= maxReported) return;
    this.#reported.add(key);
    this.#options.onProblem(watchDiagnostic(kind, path, code));
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

// In the time base of the file system. The clock may have been adjusted in between, so the earlier reading is the safe one.
function sinceThen(then: Moment): number {
  return Math.min(then.clock, Date.now() - (performance.now() - then.elapsed)) - clockMarginMs;
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

// "skills/" and "skills" are the same root; only the root of a file system ends with a separator.
function withoutEnd(root: string): string {
  const end = sep === "\\" ? /[\\/]+$/ : /\/+$/;
  return root.replace(end, "") || root.slice(0, 1) || ".";
}

/** Default of the levels below a root that are entered. */
const maxLevels = 64;

const limitAdvice: Readonly<Record<string, string>> = {
  ENOSPC: "Raise it (sysctl fs.inotify.max_user_watches=524288), close other programs that watch files, or watch fewer folders.",
  EMFILE: "Raise it (sysctl fs.inotify.max_user_instances=1024, or ulimit -n for open files), or close other programs that watch files.",
};

/** The messages of watch problems. */
function watchDiagnostic(kind: WatchProblem, file: string, code: string): Diagnostic {
  if (kind === "limit") {
    const advice = limitAdvice[code] ?? "Raise the limit of this system, or watch fewer folders.";
    const message = `The system's limit on file watches is reached (${code}). Changes are still found, but later, by polling. ${advice}`;
    return { severity: "warning", code: "WATCH_LIMIT", message, file };
  }
  if (kind === "too-many") {
    const message =
      "There are too many folders below the watched ones, so changes in this folder and others are not noticed. Watch a folder further down, or exclude this one.";
    return { severity: "warning", code: "WATCH_TOO_MANY", message, file };
  }
  if (kind === "too-deep") {
    const message = `This folder is more than ${maxLevels} levels below the watched one, so changes in it are not noticed. Move it up, or exclude it.`;
    return { severity: "warning", code: "WATCH_TOO_DEEP", message, file };
  }
  const message = `This cannot be read${code === "" ? "" : ` (${code})`}, so changes in it are not noticed. Check its permissions.`;
  return { severity: "warning", code: "WATCH_UNREADABLE", message, file };
}
