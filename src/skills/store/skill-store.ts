import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { Emitter } from "../../base/emitter.ts";
import type { Logger } from "../../base/logger.ts";
import type { ModuleLoader } from "../../io/module-loader/module-loader.ts";
import { type PathChange, type TreeWatcher, type WatchBackend, watchTree } from "../../io/watch/watch-tree.ts";
import type { Pins } from "../../trust/pins/pins.ts";
import type { SkillTrust } from "../../trust/skill-trust.ts";
import type { ToolRunner } from "../load/tool-runner.ts";
import type { SkillsChange, SkillsSnapshot } from "../skill.ts";
import { Retirement } from "./disposal.ts";
import { FileHashes } from "./file-hashes.ts";
import { type ChangedFolders, FolderLoads, Publisher } from "./folder-loads.ts";
import type { FolderParts, RunConsent, SkillFolder } from "./skill-folder.ts";
import { SkillRoots } from "./skill-roots.ts";
import { SkillWatch } from "./watched-paths.ts";

interface SkillStoreOptions {
  readonly loader: ModuleLoader;
  readonly runners: readonly ToolRunner[];
  readonly hostVersion: string;
  readonly log: Logger;
  /** Whether files are watched. Without it `reload` looks for what changed. */
  readonly watch: boolean;
  readonly watchBackend?: WatchBackend | "auto";
  /** Milliseconds that a module may take to load; 10 s when absent. */
  readonly importTimeout?: number;
  /** Has the say about what may be loaded. Absent: everything may. */
  readonly trust?: SkillTrust | undefined;
  /** Has the say about which definitions of tools are offered; undefined: all are. */
  pinsOf?(folder: string): Pins | undefined;
  /** Told of files that have changed, before anything is made of them again. */
  onEdited?(files: readonly string[]): void;
  /** Says of which skill folders code may run. Absent: of all. */
  readonly consent?: RunConsent | undefined;
}

/** A claim on some roots. They stay loaded until every claim on them is given back. */
export interface RootsLease extends Disposable {
  /** Settles when everything in the roots has been loaded once. */
  readonly ready: Promise<void>;
}

// Sessions have told their calls to stop by then.
const closingGrace = 2000;

/**
 * Loads skill folders once for all sessions and keeps them as the files are. Each reload is a transaction of one folder:
 * it publishes a new snapshot, or leaves the last good generation serving and says why.
 */
export class SkillStore implements AsyncDisposable {
  readonly #parts: FolderParts;
  readonly #roots = new SkillRoots();
  readonly #watch: SkillWatch;
  readonly #loads: FolderLoads;
  readonly #publisher: Publisher;
  readonly #problems: Emitter<{ problem: Diagnostic }>;
  readonly #lists: Emitter<{ changed: undefined }>;
  readonly #watcher: TreeWatcher | undefined;
  /** What changed in packages that are being replaced. */
  #held: ChangedFolders = new Map();

  constructor({ log, importTimeout = 10_000, ...options }: SkillStoreOptions) {
    const report = (error: Error): void => log.error("A skill store listener failed.", { error });
    this.#problems = new Emitter(report);
    this.#lists = new Emitter(report);
    this.#parts = {
      ...options,
      importTimeout,
      hashes: new FileHashes(),
      retirement: new Retirement(log),
      onProblem: (problem) => this.#problems.emit("problem", problem),
      onResourcesChanged: () => this.#lists.emit("changed", undefined),
    };
    this.#publisher = new Publisher(() => this.#takeSnapshot(), report);
    this.#watcher = options.watch ? this.#startWatching(options.watchBackend ?? "auto") : undefined;
    this.#watch = new SkillWatch(this.#watcher);
    this.#loads = new FolderLoads({ parts: this.#parts, roots: this.#roots, watch: this.#watch, publisher: this.#publisher, log });
  }

  get snapshot(): SkillsSnapshot {
    return this.#publisher.snapshot;
  }

  get watchCounts(): TreeWatcher["counts"] | undefined {
    return this.#watcher?.counts;
  }

  /** Tells of each new snapshot, after it is there. */
  subscribe(listener: (snapshot: SkillsSnapshot) => void): Disposable {
    return this.#publisher.subscribe(listener);
  }

  /** Tells what each load changed, after its snapshot is there. */
  onChange(listener: (change: SkillsChange) => void): Disposable {
    return this.#publisher.onChange(listener);
  }

  /** Tells that skills may list other resources, though the snapshot is the same: files came or went, or a module said so. */
  onResources(listener: () => void): Disposable {
    return this.#lists.on("changed", listener);
  }

  /** Tells of trouble with watching, and with folders beyond what loading them shows. */
  onProblem(listener: (problem: Diagnostic) => void): Disposable {
    return this.#problems.on("problem", listener);
  }

  /** Loads roots (absolute paths or patterns) that are not loaded yet, and keeps them until the lease is disposed of. */
  acquire(roots: readonly string[]): RootsLease {
    const distinct = [...new Set(roots)];
    for (const root of distinct) {
      if (this.#roots.claim(root, (base) => this.#watch.addRoot(base))) this.#publisher.touch();
    }
    this.#watch.setListed(this.#roots.watched);
    const first = this.#loads.loadNew();
    let isHeld = true;
    const release = (): void => {
      if (isHeld) this.#release(distinct);
      isHeld = false;
    };
    // Also what an earlier claim has begun to load.
    const ready = first.then(() => this.#loads.settled()).then(() => this.#publisher.publish());
    return { ready, [Symbol.dispose]: release };
  }

  /** Looks at every file again and loads what changed. For hosts that do not watch, and on request. */
  async reload(): Promise<void> {
    const { folders } = this.#loads;
    const files = new Set([...folders.values()].flatMap((folder) => [...folder.files]));
    const changed = this.#findChanged([...files].map((path) => ({ path, kind: "changed", directory: false })));
    this.#noteFiles([...folders.keys()]);
    this.#roots.rescan();
    this.#watch.setListed(this.#roots.watched);
    // What is new in a folder is among no known files, so all are looked at.
    this.#loads.bring(folders.keys(), changed);
    await this.idle();
  }

  /** Loads anew what has one of these extensions: something else runs such files now. */
  async reloadFiles(extensions: ReadonlySet<string>): Promise<void> {
    const { folders } = this.#loads;
    const changed = new Map<string, ReadonlySet<string>>();
    for (const [path, folder] of folders) {
      const own = [...folder.files].filter((file) => extensions.has(extname(file)));
      if (own.length > 0) changed.set(path, new Set(own));
    }
    // One that was run by nobody so far is among no known files, so all folders are looked at.
    this.#loads.bring(folders.keys(), changed);
    await this.#loads.idle();
  }

  /** Loads folders again whose files are the same, because what is trusted of them is not. */
  async reconsider(folders: Iterable<string>): Promise<void> {
    this.#loads.bring(folders);
    await this.#loads.idle();
  }

  /** Settles when nothing is being loaded and everything that was added is watched. */
  async idle(): Promise<void> {
    await this.#watcher?.ready;
    await this.#loads.idle();
  }

  /** Ends everything, once the calls that run have ended or some seconds have passed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#watcher?.[Symbol.asyncDispose]();
    await this.#loads.close();
    await this.#parts.retirement.ended(closingGrace);
    this.#publisher.close();
    this.#problems.clear();
    this.#lists.clear();
  }

  #startWatching(backend: WatchBackend | "auto"): TreeWatcher {
    const onProblem = (diagnostic: Diagnostic): void => this.#problems.emit("problem", diagnostic);
    return watchTree({
      roots: [],
      backend,
      onChange: (changes) => {
        this.#noteFiles(changes.map(({ path }) => path));
        const changed = this.#findChanged(changes);
        this.#roots.rescan(changes);
        this.#watch.setListed(this.#roots.watched);
        // What happens to a package while it is being replaced is looked at when that is done: until then the old one serves.
        const all = new Map(this.#held);
        for (const [folder, files] of changed) all.set(folder, new Set([...(all.get(folder) ?? []), ...files]));
        this.#held = new Map([...all].filter(([folder]) => this.#roots.isInFlux(folder)));
        const ready = new Map([...all].filter(([folder]) => !this.#held.has(folder)));
        this.#loads.bring(ready.keys(), ready);
      },
      onProblem,
    });
  }

  /** What a skill is not made of belongs to it all the same, as a file that can be read. */
  #noteFiles(paths: readonly string[]): void {
    const isWanted = paths.map((path) => folderOf(path, this.#loads.folders)?.listing.note(path) ?? false);
    if (isWanted.includes(true)) this.#lists.emit("changed", undefined);
  }

  #findChanged(changes: readonly PathChange[]): ChangedFolders {
    return findChangedFolders(changes, { folders: this.#loads.folders, watch: this.#watch, parts: this.#parts });
  }

  #release(roots: readonly string[]): void {
    for (const root of roots) this.#roots.release(root, (base) => this.#watch.removeRoot(base));
    this.#watch.setListed(this.#roots.watched);
    this.#loads.bring([]);
  }

  #takeSnapshot(): SkillsSnapshot {
    const loaded = [...this.#loads.folders.values()].flatMap((folder) => folder.current ?? []);
    return { roots: this.#roots.listings, folders: new Map(loaded.map((current) => [current.folder, current])) };
  }
}

interface ChangedFoldersPlace {
  readonly folders: ReadonlyMap<string, SkillFolder>;
  readonly watch: SkillWatch;
  readonly parts: FolderParts;
}

/**
 * Which skill folders these changes concern, and by which files. Touches are no changes. The module loader forgets what
 * was edited; what it had made of it counts as changed, too.
 */
function findChangedFolders(changes: readonly PathChange[], place: ChangedFoldersPlace): ReadonlyMap<string, ReadonlySet<string>> {
  const { folders, watch, parts } = place;
  const realFolders = new Map<string, string | undefined>();
  const edited = changes.flatMap((change) => spellingsOf(change, realFolders)).filter(({ path }) => parts.hashes.changed(path));
  const paths = edited.map(({ path }) => path);
  parts.onEdited?.(paths);
  const forgotten = parts.loader.invalidate(paths);
  const found = new Map<string, Set<string>>();
  const note = (folder: string, path: string): void => void found.set(folder, (found.get(folder) ?? new Set()).add(path));
  for (const path of [...edited.filter((change) => matters(change, place)).map((change) => change.path), ...forgotten]) {
    const folder = folderOf(path, folders);
    if (folder !== undefined) note(folder.path, path);
    for (const owner of watch.foldersOf(path)) note(owner, path);
  }
  return found;
}

/** A change under the name it was seen by, and under the real one of what it happened to. */
function spellingsOf(change: PathChange, realFolders: Map<string, string | undefined>): PathChange[] {
  const real = realPathOf(change.path, realFolders);
  return real === undefined || real === change.path ? [change] : [change, { ...change, path: real }];
}

/** What a skill is not made of may become part of it when it appears or goes, but not when it changes, as logs do all the time. */
function matters({ path, kind, directory }: PathChange, { folders, watch, parts }: ChangedFoldersPlace): boolean {
  if (kind !== "changed" || directory || watch.foldersOf(path).size > 0 || isCode(path, parts)) return true;
  return folderOf(path, folders)?.files.has(path) ?? false;
}

/** Code may be part of a module that never got as far as telling what it imports. */
function isCode(path: string, { runners }: FolderParts): boolean {
  const extension = extname(path);
  return extension === ".json" || runners.some((runner) => runner.extensions.includes(extension));
}

/** The skill folder that a path lies in. */
function folderOf(path: string, folders: ReadonlyMap<string, SkillFolder>): SkillFolder | undefined {
  for (let at = path; ; at = dirname(at)) {
    const folder = folders.get(at);
    if (folder !== undefined || dirname(at) === at) return folder;
  }
}

/** Where a path really lies. What is gone is looked up by its folder; each folder once for all that changed in it. */
function realPathOf(path: string, realFolders: Map<string, string | undefined>): string | undefined {
  const target = isLink(path) ? realOf(path) : undefined;
  if (target !== undefined) return target;
  const folder = dirname(path);
  if (!realFolders.has(folder)) realFolders.set(folder, realOf(folder));
  const real = realFolders.get(folder);
  return real === undefined ? undefined : join(real, basename(path));
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  } catch {
    // In a folder that became a file: it is gone.
    return false;
  }
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    // Gone.
    return undefined;
  }
}
