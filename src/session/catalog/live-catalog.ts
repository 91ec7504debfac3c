import { errorMessage, toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { AgentScope, ProgressListener, ScopeOptions } from "../calls/tool-call.ts";
import type { AskHandlers } from "../clients/client-requests.ts";
import type { SessionEvents } from "../history/events.ts";
import type { DiscoveredTools, ToolCatalog } from "./tool-catalog.ts";

/** The tools of a sub-agent's conversation, assembled whenever they are read. */
export class LiveCatalog {
  readonly #assemble: () => ToolCatalog;
  readonly #log: Logger;
  readonly #seen = new Set<string>();
  #catalog: ToolCatalog | undefined;

  /** `assemble` returns the same object while nothing has changed, so reading costs little. */
  constructor(assemble: () => ToolCatalog, log: Logger) {
    this.#assemble = assemble;
    this.#log = log;
  }

  /** The current catalog. If assembling fails, the previous one; if there is none, it throws. */
  get current(): ToolCatalog {
    try {
      const next = this.#assemble();
      if (next !== this.#catalog) for (const name of next.executables.keys()) this.#seen.add(name);
      this.#catalog = next;
    } catch (error) {
      this.#log.error("The tools of a sub-agent could not be refreshed; it keeps the previous ones.", { error: toError(error) });
      if (this.#catalog === undefined) throw error;
    }
    return this.#catalog;
  }

  /** Whether a name was callable once and is not any more. */
  hasVanished(name: string): boolean {
    return this.#seen.has(name) && this.#catalog?.executables.has(name) !== true;
  }
}

const updated = "session.tools_updated";
const info = "session.info";

interface SessionCatalogOptions {
  readonly events: SessionEvents;
  readonly log: Logger;
  /** Makes the catalog of now. */
  readonly assemble: () => ToolCatalog;
  readonly model: () => string | undefined;
}

/**
 * Holds a session's catalog. Its sources may change at any time: if there are listeners, it is assembled again
 * in the next microtask, once for all changes before it, and otherwise when it is next read.
 */
export class SessionCatalog {
  readonly #options: SessionCatalogOptions;
  #catalog: ToolCatalog | undefined;
  #isStale = true;
  #isScheduled = false;
  #holds = 0;
  #isClosed = false;
  /** Counts the different catalogs that were announced. */
  #version = 0;
  #announcedSignature: string | undefined;
  #isReady = false;
  readonly #loggedNotices = new Set<string>();
  readonly #announcedNotices = new Set<string>();
  readonly #vanished = new Set<string>();

  constructor(options: SessionCatalogOptions) {
    this.#options = options;
    options.events.onSinkAdded((type) => {
      if (type === undefined || type === updated || type === info) this.#schedule();
    });
  }

  /** The catalog of now. A rebuild that fails keeps the one before; with none before it throws what the rebuild threw. */
  get current(): ToolCatalog {
    if (this.#isStale) this.#rebuild();
    return this.#catalog!;
  }

  /** The current built-in names, without announcing a catalog. */
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

  /** Whether a name was callable once and is not any more. */
  hasVanished(name: string): boolean {
    return this.#vanished.has(name);
  }

  /** `disclosure`: what the conversation's model has been shown. */
  createScope(disclosure: DiscoveredTools, options: ScopeOptions = {}): AgentScope {
    return new ConversationScope(this, disclosure, options);
  }

  invalidate(): void {
    this.#isStale = true;
    this.#schedule();
  }

  /** If there are listeners: assembles it again if it is stale, and announces what was not announced yet. */
  refresh(): void {
    if (this.#isClosed || !this.#hasListener()) return;
    try {
      if (this.#isStale) this.#rebuild();
      else this.#announce();
      this.#emitNotices();
    } catch {
      // The rebuild has reported it; the next reader meets it again.
    }
  }

  /** Collects all changes until `end`, which announces them at once. */
  hold(): { end(): void } {
    this.#holds++;
    return {
      end: () => {
        this.#holds--;
        this.refresh();
      },
    };
  }

  /** Announces the current catalog to a client that has just attached. */
  announceCurrent(): void {
    if (this.#isStale) this.#schedule();
    else if (this.#version > 0) this.#emitUpdated();
  }

  /** The sources are loaded: from now on, names in filters that match nothing are reported. */
  setReady(): void {
    this.#isReady = true;
    this.#schedule();
  }

  /** The filters have changed: their names are reported again after the next `setReady`. */
  forgetNotices(): void {
    this.#isReady = false;
    this.#loggedNotices.clear();
    this.#announcedNotices.clear();
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
      if (before !== undefined) for (const name of vanishedBetween(before, next)) this.#vanished.add(name);
      for (const name of this.#vanished) if (next.executables.has(name)) this.#vanished.delete(name);
    } catch (error) {
      const { events, log } = this.#options;
      const message = `The tools could not be refreshed; the session keeps the previous ones: ${errorMessage(error)}`;
      log.error(message, { error: toError(error) });
      events.append(info, { infoType: "tool_refresh", message });
      if (before === undefined) throw error;
      this.#isStale = false;
      return;
    }
    this.#announce();
    this.#emitNotices();
  }

  #announce(): void {
    if (this.#isClosed || !this.#options.events.wants(updated)) return;
    const { signature } = this.#catalog!;
    if (signature === this.#announcedSignature) return;
    this.#announcedSignature = signature;
    this.#version++;
    this.#emitUpdated();
  }

  #emitUpdated(): void {
    const { events, model } = this.#options;
    events.append(updated, { model: model() ?? "", version: this.#version });
  }

  #emitNotices(): void {
    const { events, log } = this.#options;
    if (!this.#isReady || this.#isStale) return;
    for (const { key, name, problem, message } of this.#catalog!.notices) {
      if (!this.#loggedNotices.has(key)) log.info(message, { name, problem });
      this.#loggedNotices.add(key);
      if (this.#announcedNotices.has(key) || !events.wants(info)) continue;
      this.#announcedNotices.add(key);
      events.append(info, { infoType: "tool_filter", message });
    }
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

/** The scope of the session's own conversation. A class, because servers create one for each call that they pass on. */
class ConversationScope implements AgentScope {
  readonly disclosure: DiscoveredTools;
  declare readonly turnId?: string;
  declare readonly signal?: AbortSignal;
  declare readonly answers?: AskHandlers;
  declare readonly onProgress?: ProgressListener;
  readonly #catalog: SessionCatalog;

  constructor(catalog: SessionCatalog, disclosure: DiscoveredTools, { turnId, signal, answers, onProgress }: ScopeOptions) {
    this.#catalog = catalog;
    this.disclosure = disclosure;
    if (turnId !== undefined) this.turnId = turnId;
    if (signal !== undefined) this.signal = signal;
    if (answers !== undefined) this.answers = answers;
    if (onProgress !== undefined) this.onProgress = onProgress;
  }

  get catalog(): ToolCatalog {
    return this.#catalog.current;
  }

  hasVanished(name: string): boolean {
    return this.#catalog.hasVanished(name);
  }
}
