import { HostError } from "../../base/errors.ts";
import { onAbort, waitFor } from "../../base/wait-for.ts";
import type { ModelReply } from "../../models/model.ts";
import type { ToolDefinition } from "../../tools/tool.ts";
import type { History } from "../records/history.ts";
import { type Compaction, type CompactionRequest, type CompactionTrigger, type ContextUse, compact } from "./compaction.ts";
import { assembleMessages } from "./conversation.ts";
import type { TurnModel } from "./turn-model.ts";
import type { TurnConfig } from "./turn-options.ts";
import type { ContextLimit, RequestParts, TurnHost } from "./turn-types.ts";
import { contextUse } from "./turn-usage.ts";

export interface ContextKeeperHost extends TurnHost {
  readonly config: { readonly turn: TurnConfig };
  readonly history: History;
}

interface Running {
  readonly trigger: CompactionTrigger;
  readonly stop: AbortController;
  readonly ended: Promise<Compaction>;
}

/** Keeps the conversation of a session within what its model takes, by summaries in the place of what was said. */
export class ContextKeeper implements ContextLimit, Disposable {
  readonly #host: ContextKeeperHost;
  #parts: RequestParts | undefined;
  #running: Running | undefined;
  /** How many tokens the endpoint counts where one is estimated. */
  #ratio = 1;
  #estimated = 0;
  /** How long the conversation was when it last could not be made shorter: trying again at once would not help. */
  #hopelessAt = 0;
  #closed = false;

  constructor(host: ContextKeeperHost) {
    this.#host = host;
  }

  /** Before a request: makes room if there is little, meanwhile while there is enough for a while. Rejects when the signal fires. */
  async makeRoom(parts: RequestParts, signal: AbortSignal): Promise<void> {
    this.#parts = parts;
    const use = this.use()!;
    this.#estimated = use.currentTokens;
    const { infinite } = this.#host.config.turn;
    if (infinite === undefined) return;
    const full = (use.currentTokens * this.#ratio) / use.tokenLimit;
    if (full < infinite.backgroundThreshold || !this.#isWorthwhile(use)) return;
    const running = this.#running ?? this.#start("threshold", use);
    if (full >= infinite.exhaustionThreshold) await untilEnded(running, signal);
  }

  /** After a request that was too long. False: it can be made no shorter. */
  async makeRoomAnyway(signal: AbortSignal): Promise<boolean> {
    const use = this.use();
    if (this.#host.config.turn.infinite === undefined || use === undefined || !this.#isWorthwhile(use)) return false;
    const end = await untilEnded(this.#running ?? this.#start("context_limit_retry", use), signal);
    return end.kind === "done";
  }

  /** What an answer took by the endpoint's own count. */
  learn({ usage }: ModelReply): void {
    if (usage === undefined || usage.inputTokens <= 0 || this.#estimated <= 0) return;
    // A strange count must neither hide that the window is full nor have it summarised again and again.
    this.#ratio = Math.min(4, Math.max(0.5, usage.inputTokens / this.#estimated));
  }

  /** How full the context was at the last request, with what was said since; undefined: there was none. */
  use(): ContextUse | undefined {
    if (this.#parts === undefined) return undefined;
    const { model, system, tools } = this.#parts;
    return contextUse({ model, tools, messages: assembleMessages(system, this.#host.history, model.seesImages) });
  }

  /** Makes the conversation shorter because somebody wants it so. @throws HostError `COMPACTION`. */
  async compactNow(model: TurnModel, customInstructions: string | undefined, signal: AbortSignal): Promise<Compaction> {
    if (this.#running !== undefined) throw new HostError("COMPACTION", "The conversation is being made shorter already.");
    this.#parts ??= { model, system: "", tools: [] };
    const use = this.use()!;
    return untilEnded(this.#start("manual", use, customInstructions), signal, true);
  }

  /** Stops what runs, if somebody wanted it, or if nobody did. False: nothing of the kind runs. */
  cancel(which: "manual" | "background"): boolean {
    const running = this.#running;
    if (running === undefined || (running.trigger === "manual") !== (which === "manual")) return false;
    running.stop.abort();
    return true;
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.#running?.stop.abort();
  }

  #start(trigger: CompactionTrigger, use: ContextUse, customInstructions?: string): Running {
    const messages = this.#host.history.messages();
    const request: CompactionRequest = { trigger, model: this.#parts!.model, use, messages, customInstructions };
    const stop = new AbortController();
    if (this.#closed) stop.abort();
    const ended = compact(request, this.#host, stop.signal).then((end) => {
      this.#running = undefined;
      this.#hopelessAt = this.#host.history.messages().length;
      return end;
    });
    this.#running = { trigger, stop, ended };
    return this.#running;
  }

  /** What the tools and the instructions take cannot be summarised. */
  #isWorthwhile({ conversationTokens, tokenLimit }: ContextUse): boolean {
    const { length } = this.#host.history.messages();
    const isNew = this.#hopelessAt === 0 || length < this.#hopelessAt || length >= this.#hopelessAt + fewMessages;
    // Who wants a conversation kept that small means it.
    const threshold = this.#host.config.turn.infinite?.backgroundThreshold ?? 1;
    const [fewest, share] = threshold < smallShare ? [fewMessages - 1, threshold / 10] : [fewMessages, smallShare];
    return this.#running !== undefined || (isNew && length >= fewest && conversationTokens * this.#ratio >= tokenLimit * share);
  }
}

const fewMessages = 3;
const smallShare = 0.1;

async function untilEnded({ ended, stop }: Running, signal: AbortSignal, stopsIt = false): Promise<Compaction> {
  const stopping = onAbort(signal, () => {
    if (stopsIt) stop.abort();
  });
  try {
    return await waitFor(ended, { signal });
  } finally {
    stopping[Symbol.dispose]();
  }
}
