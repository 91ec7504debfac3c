import type { Diagnostic } from "../base/diagnostic.ts";
import { Emitter } from "../base/emitter.ts";
import { KeyedQueue } from "../base/keyed-queue.ts";
import type { Logger } from "../base/logger.ts";
import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import { statFile } from "../io/module-loader/read-source.ts";
import { type TreeWatcher, type WatchBackend, watchTree } from "../io/watch/watch-tree.ts";
import { FileHashes } from "../skills/store/file-hashes.ts";
import { SkillWatch } from "../skills/store/watched-paths.ts";
import type { PluginLife } from "./plugin-life.ts";
import { isReloadable, type PluginSlot } from "./plugin-slot.ts";
import { type PluginsChange, toFailed, toTaken } from "./plugins-change.ts";

export interface PluginReloadsOptions {
  readonly life: PluginLife;
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
  readonly #slots: readonly PluginSlot[];
  readonly #queue: KeyedQueue;
  readonly #hashes = new FileHashes();
  /** What was looked for and not there. */
  readonly #absent = new Set<string>();
  readonly #watcher: TreeWatcher | undefined;
  readonly #files: SkillWatch;
  readonly #changed = new Map<PluginSlot, Set<string>>();
  readonly #events: Emitter<{ change: PluginsChange }>;
  #isClosed = false;

  constructor(slots: readonly PluginSlot[], options: PluginReloadsOptions) {
    const { log } = options;
    this.#slots = slots;
    this.#options = options;
    this.#events = new Emitter((error) => log.error("A listener for plugins failed.", { error }));
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
  follow(slot: PluginSlot, start: number): void {
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

  #schedule(slot: PluginSlot, files: readonly string[]): void {
    if (this.#isClosed) return;
    const started = performance.now();
    this.#changed.set(slot, new Set([...(this.#changed.get(slot) ?? []), ...files]));
    this.#queue.add(this.#keyOf(slot), (signal) => this.#load(slot, started, signal));
  }

  async #load(slot: PluginSlot, started: number, signal: AbortSignal): Promise<void> {
    const { life, adapt } = this.#options;
    const start = Date.now();
    const known = JSON.stringify(slot.diagnostics);
    const prepared = await life.prepare(slot, signal);
    if (signal.aborted) return void (await discard(prepared));
    let taken: Awaited<ReturnType<PluginLife["enter"]>>;
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
    this.#events.emit("change", toTaken(slot, taken.before, files, started));
    if (taken.before !== undefined) life.retire(slot, taken.before);
    for (const other of this.#slots) if (other !== slot && other.isHeldBack) this.#schedule(other, []);
  }

  #keyOf(slot: PluginSlot): string {
    return `plugin:${this.#slots.indexOf(slot)}`;
  }
}

function filesOf({ active, attempted }: PluginSlot): ReadonlySet<string> {
  return new Set([...(active?.files ?? []), ...attempted]);
}

async function discard(prepared: Awaited<ReturnType<PluginLife["prepare"]>>): Promise<void> {
  await (prepared.kind === "ready" ? prepared.candidate.scope : prepared.scope).dispose();
}
