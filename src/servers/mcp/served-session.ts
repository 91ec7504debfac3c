import { Emitter } from "../../base/emitter.ts";
import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { ToolCatalog } from "../../session/catalog/tool-catalog.ts";
import type { Session } from "../../session/session.ts";
import { toWireTool, type WireTool } from "./wire-tool.ts";

/** The lists whose changes clients are told of. */
export type ServedList = "tools" | "prompts" | "resources";

/** The answer to `tools/list`; one object for as long as nothing changes. */
export interface ToolList {
  readonly tools: readonly WireTool[];
}

/** What one session offers to MCP clients, in the words of the protocol, and the news of it. */
export class ServedSession implements AsyncDisposable {
  readonly session: Session;
  readonly #news: Emitter<{ changed: ServedList }>;
  readonly #log: Logger;
  readonly #isOwned: boolean;
  readonly #subscriptions: readonly Disposable[];
  #catalog: ToolCatalog | undefined;
  #toolList: ToolList = { tools: [] };
  #starting: Promise<void> | undefined;
  #isStarted = false;
  #told: readonly WireTool[];

  /** `isOwned`: the session ends with it. */
  constructor(session: Session, log: Logger, isOwned: boolean) {
    this.session = session;
    this.#log = log;
    this.#isOwned = isOwned;
    this.#news = new Emitter((error) => log.error("A listener for changed lists failed.", { error }));
    this.#told = this.toolList.tools;
    this.#subscriptions = [session.onChanged(() => this.#compareTools()), session.onOffersChanged((change) => this.#tellOffers(change))];
  }

  get toolList(): ToolList {
    const { catalog } = this.session;
    if (catalog !== this.#catalog) {
      this.#toolList = Object.freeze({ tools: Object.freeze(catalog.advertised.map(toWireTool)) });
      this.#catalog = catalog;
    }
    return this.#toolList;
  }

  /**
   * Settles when the session's own MCP servers were tried once: many clients ask for a list only once. Undefined: they
   * were. Never rejects.
   */
  get starting(): Promise<void> | undefined {
    if (this.#isStarted) return undefined;
    this.#starting ??= this.session
      .ready()
      .catch((error: unknown) => this.#log.warning("What the session offers is not loaded yet.", { error: toError(error) }))
      .then(() => {
        this.#isStarted = true;
      });
    return this.#starting;
  }

  /** Gives a list, once the session's servers were tried. */
  whenStarted<T>(list: () => T): T | Promise<T> {
    const { starting } = this;
    return starting === undefined ? list() : starting.then(list);
  }

  /** Tells of every list that is another one now. */
  onChanged(listener: (list: ServedList) => void): Disposable {
    return this.#news.on("changed", listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]();
    this.#news.clear();
    if (this.#isOwned) await this.session.disconnect();
  }

  #compareTools(): void {
    try {
      const { tools } = this.toolList;
      if (areEqual(tools, this.#told)) return;
      this.#told = tools;
    } catch (error) {
      // The session keeps its tools from before, and so do the clients.
      this.#log.warning("The tools could not be compared with those from before.", { error: toError(error) });
      return;
    }
    this.#news.emit("changed", "tools");
  }

  #tellOffers({ prompts, resources, resourceTemplates }: { prompts: boolean; resources: boolean; resourceTemplates: boolean }): void {
    if (prompts) this.#news.emit("changed", "prompts");
    if (resources || resourceTemplates) this.#news.emit("changed", "resources");
  }
}

function areEqual(some: readonly WireTool[], others: readonly WireTool[]): boolean {
  return some.length === others.length && some.every((tool, index) => isEqual(tool, others[index]!));
}

function isEqual(tool: WireTool, other: WireTool): boolean {
  return tool === other || JSON.stringify(tool) === JSON.stringify(other);
}
