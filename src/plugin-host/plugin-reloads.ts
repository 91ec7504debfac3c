import type { Diagnostic } from "../base/diagnostic.ts";
import { Emitter } from "../base/emitter.ts";
import { KeyedQueue } from "../base/keyed-queue.ts";
import type { Logger } from "../base/logger.ts";
import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import { statFile } from "../io/module-loader/read-source.ts";
import { type TreeWatcher, type WatchBackend, watchTree } from "../io/watch/watch-tree.ts";
import type { NamesChange } from "../skills/skill.ts";
import { FileHashes } from "../skills/store/file-hashes.ts";
import { SkillWatch } from "../skills/store/watched-paths.ts";
import { type ActivePlugin, isReloadable, type PluginEntry } from "./plugin-entry.ts";
import type { PluginLifecycle } from "./plugin-lifecycle.ts";

interface PluginReloadsOptions {
  readonly life: PluginLifecycle;
  readonly loader: ModuleLoader;
  readonly log: Logger;
  readonly watch: boolean;
  readonly watchBackend?: WatchBackend | "auto" | undefined;
  onProblem(problem: Diagnostic): void;
  /** Settles when everything that depends on plugins uses the new ones. Replaced ones are disposed of after that. */
  adapt(): Promise<void>;
}

/**
 * Loads plugins again when their files change. Loads of the same plugin never overlap, and a newer one aborts an older one. A
 * load is all or nothing, and emits what it changed.
 */
export class PluginReloads {
  readonly #options: PluginReloadsOptions;
  readonly #entries: readonly PluginEntry[];
  readonly #queue: KeyedQueue;
  readonly #hashes = new FileHashes();
  /** Paths that were checked and did not exist. */
  readonly #absent = new Set<string>();
  readonly #watcher: TreeWatcher | undefined;
  readonly #files: SkillWatch;
  readonly #changed = new Map<PluginEntry, Set<string>>();
  readonly #events: Emitter<{ change: PluginsChange }>;
  #isClosed = false;

  constructor(entries: readonly PluginEntry[], options: PluginReloadsOptions) {
    const { log } = options;
    this.#entries = entries;
    this.#options = options;
    this.#events = new Emitter((error) => log.error("A plugin listener failed.", { error }));
    this.#queue = new KeyedQueue((error, plugin) => log.error("Loading a plugin failed unexpectedly.", { plugin, error }));
    const backend = options.watchBackend ?? "auto";
    const { onProblem } = options;
    this.#watcher = options.watch
      ? watchTree({ roots: [], backend, onChange: (changes) => this.#check(changes.map(({ path }) => path)), onProblem })
      : undefined;
    // It identifies the owners of files by a text, which for skills is their folder.
    this.#files = new SkillWatch(this.#watcher);
  }

  onChange(listener: (change: PluginsChange) => void): Disposable {
    return this.#events.on("change", listener);
  }

  /** Watches the files of an entry from now on. `start`: when its last attempt began, by `Date.now()`. */
  follow(entry: PluginEntry, start: number): void {
    if (!isReloadable(entry)) return;
    for (const file of entry.attempted) {
      if (statFile(file) === undefined) this.#absent.add(file);
      else this.#hashes.recordRead(file, this.#options.loader.contentHash(file), start);
    }
    this.#files.setFiles(this.#keyOf(entry), filesOf(entry));
  }

  /** Checks all files, and retries failed plugins. */
  async reload(): Promise<void> {
    this.#check(new Set(this.#entries.flatMap((entry) => (isReloadable(entry) ? [...filesOf(entry)] : []))));
    for (const entry of this.#entries) if (entry.state === "failed" || entry.state === "unknown") this.#schedule(entry, []);
    await this.idle();
  }

  /** Settles when nothing is being loaded and all files are watched. */
  async idle(): Promise<void> {
    await this.#watcher?.ready;
    await this.#queue.idle();
  }

  /** Ends running loads, and starts no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#watcher?.[Symbol.asyncDispose]();
    await this.#queue.close();
    this.#events.clear();
  }

  #check(paths: Iterable<string>): void {
    const edited = [...paths].filter((path) => this.#files.foldersOf(path).size > 0 && this.#isEdited(path));
    if (edited.length === 0) return;
    this.#options.loader.invalidate(edited);
    for (const entry of this.#entries) {
      const own = edited.filter((path) => this.#files.foldersOf(path).has(this.#keyOf(entry)));
      if (own.length > 0) this.#schedule(entry, own);
    }
  }

  #isEdited(path: string): boolean {
    if (!this.#absent.has(path)) return this.#hashes.changed(path);
    return statFile(path) !== undefined && this.#absent.delete(path);
  }

  #schedule(entry: PluginEntry, files: readonly string[]): void {
    if (this.#isClosed) return;
    const started = performance.now();
    this.#changed.set(entry, new Set([...(this.#changed.get(entry) ?? []), ...files]));
    this.#queue.add(this.#keyOf(entry), (signal) => this.#load(entry, started, signal));
  }

  async #load(entry: PluginEntry, started: number, signal: AbortSignal): Promise<void> {
    const { life, adapt } = this.#options;
    const start = Date.now();
    const known = JSON.stringify(entry.diagnostics);
    const prepared = await life.prepare(entry, signal);
    if (signal.aborted) {
      await (prepared.kind === "ready" ? prepared.candidate.scope : prepared.scope).dispose();
      return;
    }
    let taken: Awaited<ReturnType<PluginLifecycle["enter"]>>;
    if (prepared.kind === "ready") taken = await life.enter(entry, prepared.candidate, signal);
    else {
      entry.attempted = prepared.files;
      await life.fail(entry, prepared);
    }
    // A newer load follows, with all changed files.
    if (taken === undefined && signal.aborted) return;
    this.follow(entry, start);
    const files = [...(this.#changed.get(entry) ?? [])];
    this.#changed.delete(entry);
    if (taken === undefined) {
      // A retry because of another plugin is reported only when it fails for a new reason.
      if (files.length > 0 || JSON.stringify(entry.diagnostics) !== known) this.#events.emit("change", toFailed(entry, files, started));
      return;
    }
    await adapt();
    this.#events.emit("change", toUpdated(entry, taken.before, files, started));
    if (taken.before !== undefined) life.retire(entry, taken.before);
    for (const other of this.#entries) if (other !== entry && other.isHeldBack) this.#schedule(other, []);
  }

  #keyOf(entry: PluginEntry): string {
    return `plugin:${this.#entries.indexOf(entry)}`;
  }
}

function filesOf({ active, attempted }: PluginEntry): ReadonlySet<string> {
  return new Set([...(active?.files ?? []), ...attempted]);
}

/** The outcome of one load of plugins. Durations are in milliseconds. */
export interface PluginsChange {
  /** Plugins that were activated for the first time. */
  readonly added: readonly PluginChange[];
  /** Plugins that were replaced by a new generation. */
  readonly updated: readonly PluginChange[];
  /** Plugins that could not be loaded. The last working version keeps running, if there is one. */
  readonly failed: readonly FailedPluginChange[];
  /** The files whose change caused this. */
  readonly files: readonly string[];
}

/** What changed in a plugin that was activated. */
export interface PluginChange {
  readonly name: string;
  readonly specifier?: string;
  readonly version?: string;
  readonly tools: NamesChange;
  readonly durationMs: number;
}

/** A plugin that could not be activated after a change. */
export interface FailedPluginChange {
  readonly name: string;
  readonly specifier?: string;
  readonly diagnostics: readonly Diagnostic[];
  readonly lastGoodServes: boolean;
  readonly durationMs: number;
}

/** The change after a successful load. `started`: by `performance.now()`. */
function toUpdated(entry: PluginEntry, before: ActivePlugin | undefined, files: readonly string[], started: number): PluginsChange {
  const { name, specifier, version, active } = entry;
  const change: PluginChange = {
    name,
    ...(specifier !== undefined && { specifier }),
    ...(version !== undefined && { version }),
    tools: diffTools(before, active),
    durationMs: performance.now() - started,
  };
  return before === undefined ? { added: [change], updated: [], failed: [], files } : { added: [], updated: [change], failed: [], files };
}

function toFailed(entry: PluginEntry, files: readonly string[], started: number): PluginsChange {
  const { name, specifier, diagnostics, active } = entry;
  const failed: FailedPluginChange = {
    name,
    ...(specifier !== undefined && { specifier }),
    diagnostics: [...diagnostics],
    lastGoodServes: active !== undefined,
    durationMs: performance.now() - started,
  };
  return { added: [], updated: [], failed: [failed], files };
}

function diffTools(before: ActivePlugin | undefined, after: ActivePlugin | undefined): NamesChange {
  const [old, now] = [revisionsOf(before), revisionsOf(after)];
  return {
    added: [...now.keys()].filter((name) => !old.has(name)),
    updated: [...now].flatMap(([name, revision]) => (old.has(name) && old.get(name) !== revision ? [name] : [])),
    removed: [...old.keys()].filter((name) => !now.has(name)),
  };
}

function revisionsOf(plugin: ActivePlugin | undefined): ReadonlyMap<string, string> {
  if (plugin === undefined) return new Map();
  const all = [...plugin.contributions.tools, ...plugin.published.flatMap(({ snapshot }) => snapshot.tools)];
  return new Map(all.map(({ definition, revision }) => [definition.name, revision]));
}
