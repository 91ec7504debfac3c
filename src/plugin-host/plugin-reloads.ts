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
  /** Settles when what depends on plugins goes by what they are now: what was replaced ends no sooner. */
  adapt(): Promise<void>;
}

/**
 * Loads plugins again when their files change: of one plugin never two at a time, and the latest wins. A load is all or
 * nothing, and tells what it changed.
 */
export class PluginReloads {
  readonly #options: PluginReloadsOptions;
  readonly #slots: readonly PluginEntry[];
  readonly #queue: KeyedQueue;
  readonly #hashes = new FileHashes();
  /** What was looked for and not there. */
  readonly #absent = new Set<string>();
  readonly #watcher: TreeWatcher | undefined;
  readonly #files: SkillWatch;
  readonly #changed = new Map<PluginEntry, Set<string>>();
  readonly #events: Emitter<{ change: PluginsChange }>;
  #isClosed = false;

  constructor(slots: readonly PluginEntry[], options: PluginReloadsOptions) {
    const { log } = options;
    this.#slots = slots;
    this.#options = options;
    this.#events = new Emitter((error) => log.error("A plugin listener failed.", { error }));
    this.#queue = new KeyedQueue((error, plugin) => log.error("Loading a plugin failed unexpectedly.", { plugin, error }));
    const backend = options.watchBackend ?? "auto";
    const { onProblem } = options;
    this.#watcher = options.watch
      ? watchTree({ roots: [], backend, onChange: (changes) => this.#look(changes.map(({ path }) => path)), onProblem })
      : undefined;
    // It knows owners of files by a text, which for skills is their folder.
    this.#files = new SkillWatch(this.#watcher);
  }

  onChange(listener: (change: PluginsChange) => void): Disposable {
    return this.#events.on("change", listener);
  }

  /** A slot was tried since `start` (by `Date.now()`): its files are watched from now on. */
  follow(slot: PluginEntry, start: number): void {
    if (!isReloadable(slot)) return;
    for (const file of slot.attempted) {
      if (statFile(file) === undefined) this.#absent.add(file);
      else this.#hashes.recordRead(file, this.#options.loader.contentHash(file), start);
    }
    this.#files.setFiles(this.#keyOf(slot), filesOf(slot));
  }

  /** Looks at all files again, and tries again what failed. */
  async reload(): Promise<void> {
    this.#look(new Set(this.#slots.flatMap((slot) => (isReloadable(slot) ? [...filesOf(slot)] : []))));
    for (const slot of this.#slots) if (slot.state === "failed" || slot.state === "unknown") this.#schedule(slot, []);
    await this.idle();
  }

  /** Settles when nothing is being loaded, and what changed before everything was watched is noticed. */
  async idle(): Promise<void> {
    await this.#watcher?.ready;
    await this.#queue.idle();
  }

  /** Ends what is being loaded, and loads nothing more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#watcher?.[Symbol.asyncDispose]();
    await this.#queue.close();
    this.#events.clear();
  }

  #look(paths: Iterable<string>): void {
    const edited = [...paths].filter((path) => this.#files.foldersOf(path).size > 0 && this.#isEdited(path));
    if (edited.length === 0) return;
    this.#options.loader.invalidate(edited);
    for (const slot of this.#slots) {
      const own = edited.filter((path) => this.#files.foldersOf(path).has(this.#keyOf(slot)));
      if (own.length > 0) this.#schedule(slot, own);
    }
  }

  #isEdited(path: string): boolean {
    if (!this.#absent.has(path)) return this.#hashes.changed(path);
    return statFile(path) !== undefined && this.#absent.delete(path);
  }

  #schedule(slot: PluginEntry, files: readonly string[]): void {
    if (this.#isClosed) return;
    const started = performance.now();
    this.#changed.set(slot, new Set([...(this.#changed.get(slot) ?? []), ...files]));
    this.#queue.add(this.#keyOf(slot), (signal) => this.#load(slot, started, signal));
  }

  async #load(slot: PluginEntry, started: number, signal: AbortSignal): Promise<void> {
    const { life, adapt } = this.#options;
    const start = Date.now();
    const known = JSON.stringify(slot.diagnostics);
    const prepared = await life.prepare(slot, signal);
    if (signal.aborted) return void (await discard(prepared));
    let taken: Awaited<ReturnType<PluginLifecycle["enter"]>>;
    if (prepared.kind === "ready") taken = await life.enter(slot, prepared.candidate, signal);
    else {
      slot.attempted = prepared.files;
      await life.fail(slot, prepared);
    }
    // Whoever aborted it comes next, with all that has changed.
    if (taken === undefined && signal.aborted) return;
    this.follow(slot, start);
    const files = [...(this.#changed.get(slot) ?? [])];
    this.#changed.delete(slot);
    if (taken === undefined) {
      // What was tried because something else changed is told only if it fails for another reason.
      if (files.length > 0 || JSON.stringify(slot.diagnostics) !== known) this.#events.emit("change", toFailed(slot, files, started));
      return;
    }
    await adapt();
    this.#events.emit("change", toUpdated(slot, taken.before, files, started));
    if (taken.before !== undefined) life.retire(slot, taken.before);
    for (const other of this.#slots) if (other !== slot && other.isHeldBack) this.#schedule(other, []);
  }

  #keyOf(slot: PluginEntry): string {
    return `plugin:${this.#slots.indexOf(slot)}`;
  }
}

function filesOf({ active, attempted }: PluginEntry): ReadonlySet<string> {
  return new Set([...(active?.files ?? []), ...attempted]);
}

async function discard(prepared: Awaited<ReturnType<PluginLifecycle["prepare"]>>): Promise<void> {
  await (prepared.kind === "ready" ? prepared.candidate.scope : prepared.scope).dispose();
}

/** What one load of plugins changed. Durations are milliseconds. */
export interface PluginsChange {
  /** Activated for the first time. */
  readonly added: readonly PluginChange[];
  /** Another generation serves. */
  readonly updated: readonly PluginChange[];
  /** Attempts that were not taken: the last good generation serves on, where there was one. */
  readonly failed: readonly FailedPluginChange[];
  /** The files whose change caused this. */
  readonly files: readonly string[];
}

export interface PluginChange {
  readonly name: string;
  readonly specifier?: string;
  readonly version?: string;
  readonly tools: NamesChange;
  readonly durationMs: number;
}

export interface FailedPluginChange {
  readonly name: string;
  readonly specifier?: string;
  readonly diagnostics: readonly Diagnostic[];
  readonly lastGoodServes: boolean;
  readonly durationMs: number;
}

/** What it is that a slot has become another generation. `started`: by `performance.now()`. */
function toUpdated(slot: PluginEntry, before: ActivePlugin | undefined, files: readonly string[], started: number): PluginsChange {
  const { name, specifier, version, active } = slot;
  const change: PluginChange = {
    name,
    ...(specifier !== undefined && { specifier }),
    ...(version !== undefined && { version }),
    tools: diffTools(before, active),
    durationMs: performance.now() - started,
  };
  return before === undefined ? { added: [change], updated: [], failed: [], files } : { added: [], updated: [change], failed: [], files };
}

function toFailed(slot: PluginEntry, files: readonly string[], started: number): PluginsChange {
  const { name, specifier, diagnostics, active } = slot;
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
