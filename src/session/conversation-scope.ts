import type { AskHandlers } from "./asks/asks.ts";
import type { AgentScope, ProgressListener } from "./calls/pipeline-types.ts";
import type { CatalogKeeper } from "./catalog/catalog-keeper.ts";
import type { Disclosure } from "./catalog/deferral.ts";

/** What is particular to some calls of a session's own conversation. */
export type ScopeOptions = Pick<AgentScope, "turnId" | "signal" | "answers" | "onProgress">;

/** The session's own conversation. A class, since servers make one for each call that they pass on. */
export class ConversationScope implements AgentScope {
  readonly disclosure: Disclosure;
  declare readonly turnId?: string;
  declare readonly signal?: AbortSignal;
  declare readonly answers?: AskHandlers;
  declare readonly onProgress?: ProgressListener;
  readonly #keeper: CatalogKeeper;

  constructor(keeper: CatalogKeeper, disclosure: Disclosure, { turnId, signal, answers, onProgress }: ScopeOptions) {
    this.#keeper = keeper;
    this.disclosure = disclosure;
    if (turnId !== undefined) this.turnId = turnId;
    if (signal !== undefined) this.signal = signal;
    if (answers !== undefined) this.answers = answers;
    if (onProgress !== undefined) this.onProgress = onProgress;
  }

  get catalog(): AgentScope["catalog"] {
    return this.#keeper.current;
  }

  hasVanished(name: string): boolean {
    return this.#keeper.hasVanished(name);
  }
}
