import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { Emitter } from "../../base/emitter.ts";
import type { Logger } from "../../base/logger.ts";
import type { ModuleLoader } from "../../io/module-loader/module-loader.ts";
import { type PathChange, type TreeWatcher, type WatchBackend, watchTree } from "../../io/watch/watch-tree.ts";
import type { Pins } from "../../trust/pins/pins.ts";
import type { SkillTrust } from "../../trust/skill-trust.ts";
import { UnitRetirement } from "../load/stage-tool.ts";
import type { SkillTextCache } from "../load/text-cache.ts";
import type { ToolRunner } from "../load/tool-runner.ts";
import type { LoadedFolder, SkillsChange, SkillsSnapshot } from "../skill.ts";
import { FileHashes } from "./file-hashes.ts";
import { type ChangedFolders, FolderLoads, SnapshotPublisher } from "./folder-loads.ts";
import type { FolderParts, RunConsent, SkillFolder } from "./skill-folder.ts";
import { SkillRoots } from "./skill-roots.ts";
import { SkillWatch } from "./watched-paths.ts";

interface SkillStoreOptions {
  readonly loader: ModuleLoader;
  readonly runners: readonly ToolRunner[];
  readonly hostVersion: string;
  readonly log: Logger;
  /** Whether files are watched. Otherwise `reload` finds the changes. */
  readonly watch: boolean;
  readonly watchBackend?: WatchBackend | "auto";
  /** The time limit for loading a module, in milliseconds. Default: 10 s. */
  readonly importTimeout?: number;
  /** Decides what may be loaded. Absent: everything may. */
  readonly trust?: SkillTrust | undefined;
  /** Decides which definitions of tools are offered; undefined: all are. */
  pinsOf?(folder: string): Pins | undefined;
  /** Called with changed files before they are loaded again. */
  onEdited?(files: readonly string[]): void;
  /** Decides of which skill folders code may run. Absent: of all. */
  readonly consent?: RunConsent | undefined;
  /** Remembers what the front matter of skills says. Absent: every file is parsed. */
  readonly texts?: SkillTextCache | undefined;
}

/** A claim on some roots, which stay loaded until every claim on them is released. */
export interface RootsLease extends Disposable {
  /** Settles when all skills in the roots have been loaded once. */
  readonly ready: Promise<void>;
}

// Sessions have already cancelled their calls by then.
const closingGrace = 2000;

/**
 * Loads skill folders once for all sessions and keeps them up to date. Each reload is a transaction of one folder: it publishes a new
 * snapshot, or keeps the last working generation and reports why.
 */
export class SkillStore implements AsyncDisposable {
  readonly #parts: FolderParts;
  readonly #roots = new SkillRoots();
  readonly #watch: SkillWatch;
  readonly #loads: FolderLoads;
  readonly #publisher: SnapshotPublisher;
  readonly #problems: Emitter<{ problem: Diagnostic }>;
  readonly #lists: Emitter<{ changed: undefined }>;
  readonly #watcher: TreeWatcher | undefined;
  /** Changes in packages that are being replaced. */
  #held: ChangedFolders = new Map();

  constructor({ log, importTimeout = 10_000, ...options }: SkillStoreOptions) {
    const report = (error: Error): void => log.error("A skill store listener failed.", { error });
    this.#problems = new Emitter(report);
    this.#lists = new Emitter(report);
    this.#parts = {
      ...options,
      importTimeout,
      hashes: new FileHashes(),
      retirement: new UnitRetirement(log),
      onProblem: (problem) => this.#problems.emit("problem", problem),
      onResourcesChanged: () => this.#lists.emit("changed", undefined),
    };
    this.#publisher = new SnapshotPublisher((before, touched) => this.#takeSnapshot(before, touched), report);
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

  /** Calls the listener after each new snapshot is in place. */
  subscribe(listener: (snapshot: SkillsSnapshot) => void): Disposable {
    return this.#publisher.subscribe(listener);
  }

  /** Calls the listener with the changes of each load, after its snapshot is in place. */
  onChange(listener: (change: SkillsChange) => void): Disposable {
    return this.#publisher.onChange(listener);
  }

  /**
   * Calls the listener when resources of skills may have changed within the same snapshot: files were added or removed, or a module
   * reported it.
   */
  onResources(listener: () => void): Disposable {
    return this.#lists.on("changed", listener);
  }

  /** Calls the listener with problems of watching, and of folders that are not load diagnostics. */
  onProblem(listener: (problem: Diagnostic) => void): Disposable {
    return this.#problems.on("problem", listener);
  }

  /** Loads roots (absolute paths or patterns) and keeps them until the lease is disposed of. */
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
    // Includes loads that an earlier claim started.
    const ready = first.then(() => this.#loads.settled()).then(() => this.#publisher.publish());
    return { ready, [Symbol.dispose]: release };
  }

  /** Checks every file and loads what changed. For hosts that do not watch, and on request. */
  async reload(): Promise<void> {
    const { folders } = this.#loads;
    const doubtful = [...folders.values()].filter((folder) => !folder.isUnchanged);
    const files = new Set(doubtful.flatMap((folder) => [...folder.files]));
    const changed = this.#findChanged([...files].map((path) => ({ path, kind: "changed", directory: false })));
    this.#noteFiles([...folders.keys()]);
    this.#roots.rescan();
    this.#watch.setListed(this.#roots.watched);
    // A module may find other files now, so folders with code are always loaded.
    this.#loads.bring(
      doubtful.map(({ path }) => path),
      changed,
    );
    await this.idle();
  }

  /** Reloads files with these extensions, because another runner runs them now. */
  async reloadFiles(extensions: ReadonlySet<string>): Promise<void> {
    const { folders } = this.#loads;
    const changed = new Map<string, ReadonlySet<string>>();
    for (const [path, folder] of folders) {
      const own = [...folder.files].filter((file) => extensions.has(extname(file)));
      if (own.length > 0) changed.set(path, new Set(own));
    }
    // Files without a runner so far are unknown, so all folders are loaded.
    this.#loads.bring(folders.keys(), changed);
    await this.#loads.idle();
  }

  /** Reloads folders with unchanged files, because their trust has changed. */
  async reconsider(folders: Iterable<string>): Promise<void> {
    this.#loads.bring(folders);
    await this.#loads.idle();
  }

  /** Settles when nothing is loading and all additions are watched. */
  async idle(): Promise<void> {
    await this.#watcher?.ready;
    await this.#loads.idle();
  }

  /** Ends everything, once running calls have ended or some seconds have passed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#watcher?.[Symbol.asyncDispose]();
    await this.#loads.close();
    await this.#parts.texts?.idle();
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
      isComplete: (path) => isCode(path, this.#parts) && this.#parts.hashes.isComplete(path),
      onQuiet: () => this.#loads.confirm(),
      onChange: (changes, isEarly) => {
        this.#noteFiles(changes.map(({ path }) => path));
        const changed = this.#findChanged(changes);
        const isOtherList = this.#roots.rescan(changes);
        this.#watch.setListed(this.#roots.watched);
        // Changes in a package that is being replaced are held back until the replacement is complete: until then the old version stays
        // active.
        const all = new Map(this.#held);
        for (const [folder, files] of changed) all.set(folder, new Set([...(all.get(folder) ?? []), ...files]));
        this.#held = new Map([...all].filter(([folder]) => this.#roots.isBeingReplaced(folder)));
        const ready = new Map([...all].filter(([folder]) => !this.#held.has(folder)));
        this.#loads.bring(ready.keys(), ready, isEarly);
        if (isOtherList) this.#publishLists();
      },
      onProblem,
    });
  }

  /** Publishes what was found in the roots, which may be only a diagnostic, with the folders that are being loaded. */
  #publishLists(): void {
    this.#publisher.touch();
    void this.#loads.settled().then(() => this.#publisher.publish());
  }

  /** Copies the last snapshot if the same folders are loaded, so that a save costs little beside thousands of skills. */
  #takeSnapshot(before: SkillsSnapshot, touched: ReadonlySet<string> | undefined): SkillsSnapshot {
    const { folders } = this.#loads;
    const roots = this.#roots.listings;
    const isSameSet = touched !== undefined && [...touched].every((path) => before.folders.has(path) && folders.get(path)?.current);
    if (!isSameSet) {
      const loaded = [...folders.values()].flatMap((folder) => folder.current ?? []);
      return { roots, folders: new Map(loaded.map((current) => [current.folder, current])) };
    }
    const copy = new Map(before.folders);
    for (const path of touched) copy.set(path, folders.get(path)?.current as LoadedFolder);
    return { roots, folders: copy, changed: { before: before.folders, folders: touched } };
  }

  /** Any other file of the folder is a resource of the skill too. */
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
}

interface ChangedFoldersPlace {
  readonly folders: ReadonlyMap<string, SkillFolder>;
  readonly watch: SkillWatch;
  readonly parts: FolderParts;
}

/**
 * Finds the skill folders that these changes affect, with the files. Touches do not count. The module loader forgets edited files;
 * modules that used them count as changed too.
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

/** A change under its reported path and under its real path. */
function spellingsOf(change: PathChange, realFolders: Map<string, string | undefined>): PathChange[] {
  const real = realPathOf(change.path, realFolders);
  return real === undefined || real === change.path ? [change] : [change, { ...change, path: real }];
}

/** A file that the skill does not use matters when it appears or disappears, but not when it changes, as logs constantly do. */
function matters({ path, kind, directory }: PathChange, { folders, watch, parts }: ChangedFoldersPlace): boolean {
  if (kind !== "changed" || directory || watch.foldersOf(path).size > 0 || isCode(path, parts)) return true;
  return folderOf(path, folders)?.files.has(path) ?? false;
}

/** A code file may belong to a module that failed before its imports were known. */
function isCode(path: string, { runners }: FolderParts): boolean {
  const extension = extname(path);
  return extension === ".json" || runners.some((runner) => runner.extensions.includes(extension));
}

/** The skill folder that contains a path. */
function folderOf(path: string, folders: ReadonlyMap<string, SkillFolder>): SkillFolder | undefined {
  for (let at = path; ; at = dirname(at)) {
    const folder = folders.get(at);
    if (folder !== undefined || dirname(at) === at) return folder;
  }
}

/** The real path. A removed file is resolved through its folder; each folder is resolved once per batch. */
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
    // The parent became a file: the path no longer exists.
    return false;
  }
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    // The path no longer exists.
    return undefined;
  }
}
