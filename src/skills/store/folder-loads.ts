import { Emitter, SnapshotStore } from "../../base/emitter.ts";
import { KeyedQueue } from "../../base/keyed-queue.ts";
import type { Logger } from "../../base/logger.ts";
import type { SkillTexts } from "../load/text-cache.ts";
import type { SkillsChange, SkillsSnapshot } from "../skill.ts";
import { type FolderChanges, type FolderParts, type LoadAttempt, SkillFolder, toSkillsChange } from "./skill-folder.ts";
import type { SkillRoots } from "./skill-roots.ts";
import type { SkillWatch } from "./watched-paths.ts";

interface FolderLoadsOptions {
  readonly parts: FolderParts;
  readonly roots: SkillRoots;
  readonly watch: SkillWatch;
  readonly publisher: SnapshotPublisher;
  readonly log: Logger;
}

/** The changed folders, with the changed files of each. */
export type ChangedFolders = ReadonlyMap<string, ReadonlySet<string>>;

// How long one skill delays the next at the first load: a skill that waits for something continues on its own.
const initialLoadGraceMs = 50;
// Longer than the watcher takes to report a change.
const secondCheckMs = 250;
// The longest delay of a timer. A check that runs too early schedules another.
const longestTimerMs = 2 ** 31 - 1;

/** The skill folders of the roots and their loads: never two loads of one folder at a time, and the latest wins. */
export class FolderLoads {
  readonly #options: FolderLoadsOptions;
  readonly #folders = new Map<string, SkillFolder>();
  readonly #queue: KeyedQueue;
  readonly #looks = new Map<string, NodeJS.Timeout>();
  /** The listed folders for which a `SkillFolder` was opened last. */
  #opened: ReadonlySet<string> | undefined;
  /** Loads that began before their burst of changes was over. */
  readonly #early = new Map<string, EarlyLoad>();
  #isClosed = false;

  constructor(options: FolderLoadsOptions) {
    const { log } = options;
    this.#options = options;
    this.#queue = new KeyedQueue((error, folder) => log.error("Loading a skill failed unexpectedly.", { folder, error }));
  }

  get folders(): ReadonlyMap<string, SkillFolder> {
    return this.#folders;
  }

  /** Loads all new folders for the first time, as one publication and one event. */
  async loadNew(): Promise<void> {
    const paths = this.#openNew();
    const changes = new Map<string, FolderChanges>();
    const { texts: cache } = this.#options.parts;
    const texts = cache?.open(paths);
    const grace = new Grace(initialLoadGraceMs);
    for (const [index, path] of paths.entries()) {
      // Lets the event loop run between bursts, for timers, sockets and input.
      if (index % 32 === 31) await new Promise(setImmediate);
      this.#schedule(path, nothing, { publish: (item) => changes.set(path, item), texts });
      await grace.of(this.#folders.get(path)?.settled);
    }
    grace.end();
    await this.settled();
    this.#options.publisher.announce(paths.flatMap((path) => changes.get(path) ?? []));
    if (texts !== undefined) cache?.save(texts);
  }

  /**
   * Loads these folders and new ones, and removes folders that no longer exist. A failure of an early load is not reported: `confirm`
   * loads the folder again.
   */
  bring(wanted: Iterable<string>, changed: ChangedFolders = new Map(), isEarly = false): void {
    const { folders } = this.#options.roots;
    const isOtherList = folders !== this.#opened;
    const fresh = isOtherList ? this.#openNew() : [];
    this.#opened = folders;
    const gone = isOtherList ? [...this.#folders.keys()].filter((path) => !folders.has(path)) : [];
    for (const path of new Set([...wanted, ...fresh, ...gone])) {
      if (isEarly) this.#scheduleEarly(path, changed.get(path) ?? nothing);
      else this.#schedule(path, changed.get(path) ?? nothing);
    }
  }

  /** The burst of changes that led to early loads is over: what failed is loaded again, and its failure is reported. */
  confirm(): void {
    for (const [path, load] of [...this.#early]) {
      load.isQuiet = true;
      if (load.hasFailed) this.#schedule(path, nothing);
    }
  }

  /** Settles when every folder has been loaded once. */
  async settled(): Promise<void> {
    await Promise.all([...this.#folders.values()].map(({ settled }) => settled));
  }

  idle(): Promise<void> {
    return this.#queue.idle();
  }

  /** Ends running loads and all active skills. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#looks.values()) clearTimeout(timer);
    await this.#queue.close();
    for (const folder of this.#folders.values()) folder.end();
  }

  #openNew(): string[] {
    const { roots, parts } = this.#options;
    const fresh = [...roots.folders].filter((path) => !this.#folders.has(path));
    for (const path of fresh) this.#folders.set(path, new SkillFolder(path, parts));
    return fresh;
  }

  #schedule(path: string, files: ReadonlySet<string>, { publish, texts }: FirstLoad = {}): void {
    if (this.#isClosed) return;
    const started = performance.now();
    this.#early.delete(path);
    this.#dropCheck(path);
    this.#folders.get(path)?.note(files);
    this.#queue.add(path, async (signal) => {
      const changes = await this.#load(path, { started, signal, texts });
      if (changes === undefined) return;
      this.#options.publisher.touch(path);
      if (publish === undefined) this.#options.publisher.announce([changes]);
      else publish(changes);
    });
  }

  #scheduleEarly(path: string, files: ReadonlySet<string>): void {
    if (this.#isClosed) return;
    const started = performance.now();
    const early: EarlyLoad = { isQuiet: false, hasFailed: false };
    this.#early.set(path, early);
    this.#dropCheck(path);
    this.#folders.get(path)?.note(files);
    this.#queue.add(path, async (signal) => {
      const changes = await this.#load(path, { started, signal, isEarly: true });
      // A later load may have taken its place; what this one changed is announced in any case.
      if (this.#early.get(path) === early) {
        early.hasFailed = this.#folders.get(path)?.isPending === true;
        if (!early.hasFailed) this.#early.delete(path);
        else if (early.isQuiet) this.#schedule(path, nothing);
      }
      if (changes === undefined) return;
      this.#options.publisher.touch(path);
      this.#options.publisher.announce([changes]);
    });
  }

  async #load(path: string, attempt: LoadAttempt): Promise<FolderChanges | undefined> {
    const { started, signal } = attempt;
    const { roots, watch } = this.#options;
    const folder = this.#folders.get(path);
    if (folder === undefined) return undefined;
    const changes = roots.folders.has(path) ? await folder.load(attempt) : folder.remove(started);
    const isGone = folder.current === undefined && !signal.aborted;
    if (isGone) {
      this.#folders.delete(path);
      // It may be listed still, and must be opened when it has content again.
      this.#opened = undefined;
    }
    watch.setFiles(path, isGone ? [] : folder.files);
    // A check would end the load that takes the place of this one, again and again if a load takes longer than the delay.
    if (signal.aborted) return changes;
    if (folder.isUnconfirmed && watch.isWatching) this.#checkAgain(path, secondCheckMs);
    else if (folder.expires !== undefined) this.#checkAgain(path, folder.expires - Date.now());
    return changes;
  }

  /** Schedules one check at a time for a folder. */
  #checkAgain(path: string, delay: number): void {
    this.#dropCheck(path);
    const timer = setTimeout(() => this.#schedule(path, nothing), Math.min(Math.max(delay, 0), longestTimerMs));
    timer.unref();
    this.#looks.set(path, timer);
  }

  /** A load that is scheduled anyway is the check. */
  #dropCheck(path: string): void {
    clearTimeout(this.#looks.get(path));
    this.#looks.delete(path);
  }
}

interface FirstLoad {
  /** Absent: the changes are announced at once. */
  readonly publish?: (changes: FolderChanges) => void;
  readonly texts?: SkillTexts | undefined;
}

interface EarlyLoad {
  isQuiet: boolean;
  hasFailed: boolean;
}

const nothing: ReadonlySet<string> = new Set();

/** Waits for one piece of work after the other, for each up to a limit. One timer for all: there may be thousands. */
class Grace {
  readonly #timer: NodeJS.Timeout;
  #release: () => void = () => {};

  constructor(milliseconds: number) {
    this.#timer = setTimeout(() => this.#release(), milliseconds);
  }

  of(work: Promise<void> | undefined): Promise<void> {
    this.#timer.refresh();
    return new Promise((resolve) => {
      this.#release = resolve;
      void work?.then(resolve, resolve);
      if (work === undefined) resolve();
    });
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/** Creates a snapshot of the current state. `touched`: the only folders that differ from the last one, if that is known. */
type TakeSnapshot = (before: SkillsSnapshot, touched: ReadonlySet<string> | undefined) => SkillsSnapshot;

/** Holds the published snapshot and notifies listeners of changes. */
export class SnapshotPublisher {
  readonly #store: SnapshotStore<SkillsSnapshot>;
  readonly #events: Emitter<{ change: SkillsChange }>;
  readonly #take: TakeSnapshot;
  /** The folders that changed since the last publication. Undefined: anything may have changed. */
  #touched: Set<string> | undefined = new Set();

  constructor(take: TakeSnapshot, onError: (error: Error) => void) {
    this.#take = take;
    this.#store = new SnapshotStore<SkillsSnapshot>({ roots: new Map(), folders: new Map() }, onError);
    this.#events = new Emitter(onError);
  }

  get snapshot(): SkillsSnapshot {
    return this.#store.current;
  }

  subscribe(listener: (snapshot: SkillsSnapshot) => void): Disposable {
    return this.#store.subscribe(listener);
  }

  onChange(listener: (change: SkillsChange) => void): Disposable {
    return this.#events.on("change", listener);
  }

  /** Marks the published snapshot as outdated: in one folder, or altogether. */
  touch(folder?: string): void {
    if (folder === undefined) this.#touched = undefined;
    else this.#touched?.add(folder);
  }

  publish(): void {
    const touched = this.#touched;
    if (touched?.size === 0) return;
    this.#touched = new Set();
    this.#store.publish(this.#take(this.#store.current, touched));
  }

  /** Publishes the snapshot, then notifies listeners. */
  announce(changes: readonly FolderChanges[]): void {
    this.publish();
    const change = toSkillsChange(changes);
    if (change !== undefined) this.#events.emit("change", change);
  }

  close(): void {
    this.#events.clear();
  }
}
