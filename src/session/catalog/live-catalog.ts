import { errorMessage, toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { SessionEvents } from "../history/events.ts";
import type { ToolCatalog } from "./tool-catalog.ts";

/** The catalog of a conversation that nobody listens to: made whenever it is read. */
export interface LiveCatalog {
  /** The catalog of now; where it cannot be made, the one before, and without one before it throws. */
  readonly current: ToolCatalog;
  /** Whether a name was callable once and is not any more. */
  hasVanished(name: string): boolean;
}

/** `assemble` gives the same object while nothing has changed, so reading costs little. */
export function createLiveCatalog(assemble: () => ToolCatalog, log: Logger): LiveCatalog {
  let catalog: ToolCatalog | undefined;
  const seen = new Set<string>();
  const refresh = (): ToolCatalog => {
    const next = assemble();
    if (next !== catalog) for (const name of next.executables.keys()) seen.add(name);
    return next;
  };
  return {
    get current() {
      try {
        catalog = refresh();
      } catch (error) {
        log.error("The tools of a sub-agent could not be refreshed; it keeps the previous ones.", { error: toError(error) });
        if (catalog === undefined) throw error;
      }
      return catalog;
    },
    hasVanished: (name) => seen.has(name) && catalog?.executables.has(name) !== true,
  };
}

const updated = "session.tools_updated";
const info = "session.info";

interface CatalogUpdatesOptions {
  readonly events: SessionEvents;
  readonly log: Logger;
  /** Makes the catalog of now. */
  readonly assemble: () => ToolCatalog;
  readonly model: () => string | undefined;
}

/**
 * Holds a session's catalog. What it was made of may change at any time: with somebody listening it is then made anew
 * in the next microtask, once for all changes before it, and otherwise when it is next read.
 */
export interface CatalogUpdates {
  /** The catalog of now. A rebuild that fails keeps the one before; with none before it throws what the rebuild threw. */
  readonly current: ToolCatalog;
  /** The built-in names of now, without telling anybody of a catalog. */
  builtinNames(): ReadonlySet<string>;
  /** Whether a name was callable once and is not any more. */
  hasVanished(name: string): boolean;
  invalidate(): void;
  /** With somebody listening: makes it anew if it is stale, and tells what was not told yet. */
  refresh(): void;
  /** Collects every change until `end`, which tells of all of them at once. */
  hold(): { end(): void };
  /** Tells somebody who has just come what there is. */
  greet(): void;
  /** The sources are there: names in filters that fit nothing can be told of. */
  setReady(): void;
  /** The filters are others: nothing is said of their names before the next `setReady`, and then anew. */
  forgetNotices(): void;
  close(): void;
}

export function createCatalogUpdates(options: CatalogUpdatesOptions): CatalogUpdates {
  return new Keeper(options);
}

class Keeper implements CatalogUpdates {
  readonly #options: CatalogUpdatesOptions;
  #catalog: ToolCatalog | undefined;
  #isStale = true;
  #isScheduled = false;
  #holds = 0;
  #isClosed = false;
  /** Counts the different catalogs that listeners were told of. */
  #version = 0;
  #toldSignature: string | undefined;
  #isReady = false;
  readonly #loggedNotices = new Set<string>();
  readonly #toldNotices = new Set<string>();
  readonly #vanished = new Set<string>();

  constructor(options: CatalogUpdatesOptions) {
    this.#options = options;
    options.events.onSinkAdded((type) => {
      if (type === undefined || type === updated || type === info) this.#schedule();
    });
  }

  get current(): ToolCatalog {
    if (this.#isStale) this.#rebuild();
    return this.#catalog!;
  }

  builtinNames(): ReadonlySet<string> {
    if (!this.#isStale) return this.#catalog!.builtinNames;
    try {
      return this.#options.assemble().builtinNames;
    } catch (error) {
      // What fails now is reported when the catalog is made; until then the names from before hold.
      if (this.#catalog === undefined) throw error;
      return this.#catalog.builtinNames;
    }
  }

  hasVanished(name: string): boolean {
    return this.#vanished.has(name);
  }

  invalidate(): void {
    this.#isStale = true;
    this.#schedule();
  }

  refresh(): void {
    if (this.#isClosed || !this.#hasListener()) return;
    try {
      if (this.#isStale) this.#rebuild();
      else this.#announce();
      this.#sayNotices();
    } catch {
      // The rebuild has reported it; the next reader meets it again.
    }
  }

  hold(): { end(): void } {
    this.#holds++;
    return {
      end: () => {
        this.#holds--;
        this.refresh();
      },
    };
  }

  greet(): void {
    if (this.#isStale) this.#schedule();
    else if (this.#version > 0) this.#tell();
  }

  setReady(): void {
    this.#isReady = true;
    this.#schedule();
  }

  forgetNotices(): void {
    this.#isReady = false;
    this.#loggedNotices.clear();
    this.#toldNotices.clear();
  }

  close(): void {
    this.#isClosed = true;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isClosed || this.#holds > 0 || !this.#hasListener()) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#holds === 0) this.refresh();
    });
  }

  #hasListener(): boolean {
    return this.#options.events.hasListener(updated) || this.#options.events.hasListener(info);
  }

  #rebuild(): void {
    const before = this.#catalog;
    try {
      const next = this.#options.assemble();
      this.#isStale = false;
      this.#catalog = next;
      if (next === before) return;
      this.#noteVanished(before, next);
    } catch (error) {
      this.#reportFailure(error);
      if (before === undefined) throw error;
      this.#isStale = false;
      return;
    }
    this.#announce();
    this.#sayNotices();
  }

  #announce(): void {
    if (this.#isClosed || !this.#options.events.wants(updated)) return;
    const { signature } = this.#catalog!;
    if (signature === this.#toldSignature) return;
    this.#toldSignature = signature;
    this.#version++;
    this.#tell();
  }

  #tell(): void {
    const { events, model } = this.#options;
    if (events.wants(updated)) events.append(updated, { model: model() ?? "", version: this.#version });
  }

  #noteVanished(before: ToolCatalog | undefined, next: ToolCatalog): void {
    if (before !== undefined) for (const name of vanishedBetween(before, next)) this.#vanished.add(name);
    for (const name of this.#vanished) if (next.executables.has(name)) this.#vanished.delete(name);
  }

  #sayNotices(): void {
    const { events, log } = this.#options;
    if (!this.#isReady || this.#isStale) return;
    for (const { key, name, problem, message } of this.#catalog!.notices) {
      if (!this.#loggedNotices.has(key)) log.info(message, { name, problem });
      this.#loggedNotices.add(key);
      if (this.#toldNotices.has(key) || !events.wants(info)) continue;
      this.#toldNotices.add(key);
      events.append(info, { infoType: "tool_filter", message });
    }
  }

  #reportFailure(error: unknown): void {
    const { events, log } = this.#options;
    const message = `The tools could not be refreshed; the session keeps the previous ones: ${errorMessage(error)}`;
    log.error(message, { error: toError(error) });
    if (events.wants(info)) events.append(info, { infoType: "tool_refresh", message });
  }
}

/** Of a thousand sessions with one catalog, the first looks. The next one is held weakly: who never reads again keeps only its own. */
const vanishings = new WeakMap<ToolCatalog, { readonly next: WeakRef<ToolCatalog>; readonly names: readonly string[] }>();

function vanishedBetween(before: ToolCatalog, next: ToolCatalog): readonly string[] {
  const known = vanishings.get(before);
  if (known?.next.deref() === next) return known.names;
  const names = [...before.executables.keys()].filter((name) => !next.executables.has(name));
  vanishings.set(before, { next: new WeakRef(next), names });
  return names;
}
