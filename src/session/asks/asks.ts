import { errorMessage, HostError, toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import { isThenable } from "../../base/thenable.ts";
import type { Asks } from "../../tools/tool.ts";
import type { SessionEvents } from "../records/events.ts";
import { type AskEnd, type AskFacts, type AskKind, type AskOutcome, readAnswer } from "./ask-kinds.ts";
import { type Ask, type AskInvocation, type AskOptions, OpenAsk } from "./open-ask.ts";

/** Answers one kind of ask in this process; `noResult` leaves it to somebody else. */
export type AskHandler<K extends AskKind> = (data: Asks[K]["data"], invocation: AskInvocation) => unknown;

export type AskHandlers = { readonly [K in AskKind]?: AskHandler<K> };

/** Somebody who may be asked: by callbacks in this process, or by the events and `answer`. */
interface Answerer {
  readonly id: string;
  readonly answers: ReadonlySet<AskKind>;
  readonly handlers: AskHandlers;
}

/** Everything that a session asks anybody: one table, the first answer wins. */
export interface SessionAsks {
  /** The questions that are open, oldest first. */
  readonly pending: readonly Ask[];
  /** Asks, and gives the outcome at once when a callback answered at once. Never rejects. */
  open<K extends AskKind>(kind: K, data: Asks[K]["data"], options: AskOptions): AskOutcome<K> | Promise<AskOutcome<K>>;
  /**
   * Answers a question on behalf of somebody attached. False: it is not open any more, or not theirs to answer.
   * @throws HostError `ANSWER_INVALID` when it is not an answer of that kind, except for a permission, which is then denied.
   */
  answer(id: string, answer: unknown, from: string): boolean;
  attach(answerer: Answerer): void;
  /** Ends the questions that only this one could answer. */
  detach(id: string): void;
  /** Ends every question with `closed`; later ones end at once. */
  close(): void;
}

export function createAsks(sessionId: string, events: SessionEvents, log: Logger): SessionAsks {
  return new AskTable(sessionId, events, log);
}

const callerId = "caller";

class AskTable implements SessionAsks {
  readonly #sessionId: string;
  readonly #events: SessionEvents;
  readonly #log: Logger;
  readonly #open = new Set<OpenAsk>();
  readonly #answerers = new Map<string, Answerer>();
  #closed = false;

  constructor(sessionId: string, events: SessionEvents, log: Logger) {
    this.#sessionId = sessionId;
    this.#events = events;
    this.#log = log;
  }

  get pending(): readonly Ask[] {
    return Array.from(this.#open, ({ id, kind, data, options: { toolCallId, agentId } }) =>
      Object.freeze({
        id,
        kind,
        data,
        ...(toolCallId === undefined ? {} : { toolCallId }),
        ...(agentId === undefined ? {} : { agentId }),
      }),
    );
  }

  open<K extends AskKind>(kind: K, data: Asks[K]["data"], options: AskOptions): AskOutcome<K> | Promise<AskOutcome<K>> {
    if (this.#closed) return { kind: "ended", reason: "closed" };
    const ask = new OpenAsk(kind, data, options);
    const anyAsk = ask as unknown as OpenAsk;
    this.#open.add(anyAsk);
    if (options.caller?.[kind] === undefined) this.#offerToAttached(anyAsk);
    else this.#offerToCaller(anyAsk, options.caller);
    return ask.outcome ?? this.#outcomeOf(ask, options.signal?.());
  }

  #offerToCaller(ask: OpenAsk, handlers: AskHandlers): void {
    ask.isCallers = true;
    ask.candidates.add(callerId);
    this.#announce(ask);
    this.#offer(ask, { id: callerId, answers: noKinds, handlers });
  }

  #offerToAttached(ask: OpenAsk): void {
    for (const answerer of this.#answerers.values()) if (mayAnswer(answerer, ask)) ask.candidates.add(answerer.id);
    if (!ask.isCallers) this.#announce(ask);
    ask.isCallers = false;
    for (const id of [...ask.candidates]) this.#offer(ask, this.#answerers.get(id));
    if (ask.candidates.size === 0 && !ask.options.waits) this.#end(ask, "nobody");
  }

  answer(id: string, answer: unknown, from: string): boolean {
    const ask = [...this.#open].find((open) => open.id === id);
    if (!ask?.candidates.has(from)) return false;
    if (this.#reply(ask, answer, from)) return true;
    throw new HostError("ANSWER_INVALID", `This is not an answer to a question of kind "${ask.kind}". The question stays open.`);
  }

  attach(answerer: Answerer): void {
    this.#answerers.set(answerer.id, answerer);
    for (const ask of [...this.#open]) {
      if (ask.isCallers || !mayAnswer(answerer, ask)) continue;
      ask.candidates.add(answerer.id);
      this.#offer(ask, answerer);
    }
  }

  detach(id: string): void {
    this.#answerers.delete(id);
    for (const ask of [...this.#open]) {
      if (ask.candidates.delete(id) && ask.candidates.size === 0 && !ask.options.waits) this.#end(ask, "detached");
    }
  }

  close(): void {
    this.#closed = true;
    for (const ask of [...this.#open]) this.#end(ask, "closed");
    this.#answerers.clear();
  }

  #outcomeOf<K extends AskKind>(ask: OpenAsk<K>, signal: AbortSignal | undefined): Promise<AskOutcome<K>> {
    return new Promise((resolve) => {
      const onAbort = (): void => this.#end(ask as unknown as OpenAsk, "cancelled");
      ask.settled = (outcome) => {
        signal?.removeEventListener("abort", onAbort);
        resolve(outcome);
      };
      if (signal?.aborted) onAbort();
      else signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  #announce(ask: OpenAsk): void {
    const { requested, toRequested } = ask.row;
    if (this.#events.wants(requested)) this.#events.append(requested, toRequested(ask.data, this.#facts(ask)), ask.options.agentId);
  }

  /** Hands the question to somebody's callback, where there is one. */
  #offer(ask: OpenAsk, answerer: Answerer | undefined): void {
    if (ask.outcome !== undefined || answerer === undefined) return;
    const handler = answerer.handlers[ask.kind] as AskHandler<AskKind> | undefined;
    if (handler === undefined) return;
    try {
      const returned = handler(ask.data, ask.tell(answerer.id, this.#sessionId));
      if (!isThenable(returned)) this.#heard(ask, returned, answerer.id);
      else
        returned.then(
          (answer) => this.#heard(ask, answer, answerer.id),
          (error) => this.#failed(ask, error, answerer.id),
        );
    } catch (error) {
      this.#failed(ask, error, answerer.id);
    }
  }

  #heard(ask: OpenAsk, answer: unknown, from: string): void {
    if (ask.outcome !== undefined || this.#reply(ask, answer, from)) return;
    this.#log.warning(`A callback gave something that is not an answer to a question of kind "${ask.kind}".`, {
      sessionId: this.#sessionId,
    });
    this.#withdraw(ask, from, false);
  }

  #failed(ask: OpenAsk, error: unknown, from: string): void {
    this.#log.error(`The callback for questions of kind "${ask.kind}" failed.`, { sessionId: this.#sessionId, error: toError(error) });
    // The caller is waiting for this tool: its provider's failure is the answer.
    if (ask.kind === "tool") this.#reply(ask, { error: errorMessage(error) }, from);
    else this.#withdraw(ask, from, false);
  }

  /** False: not an answer of this kind. */
  #reply(ask: OpenAsk, answer: unknown, from: string): boolean {
    const parsed = readAnswer(ask.kind, answer);
    if (parsed === "left") this.#withdraw(ask, from, ask.options.waits === true);
    else if (parsed === "unable") this.#withdraw(ask, from, false);
    else if (parsed !== undefined) this.#settle(ask, { kind: "answered", answer: parsed, from });
    else if (ask.kind === "permission") this.#settle(ask, { kind: "unclear", from });
    else return false;
    return true;
  }

  /** Somebody does not answer: that ends it when no other can, unless it waits for who may still come. */
  #withdraw(ask: OpenAsk, from: string, waits: boolean): void {
    ask.candidates.delete(from);
    if (ask.isCallers) this.#offerToAttached(ask);
    else if (ask.candidates.size === 0 && !waits) this.#end(ask, "nobody");
  }

  #end(ask: OpenAsk, reason: AskEnd): void {
    this.#settle(ask, { kind: "ended", reason });
  }

  #settle(ask: OpenAsk, outcome: AskOutcome): void {
    if (ask.outcome !== undefined) return;
    ask.outcome = outcome;
    this.#open.delete(ask);
    ask.withdraw(outcome);
    const { completed, toCompleted } = ask.row;
    if (this.#events.wants(completed)) this.#events.append(completed, toCompleted(outcome, this.#facts(ask)), ask.options.agentId);
    ask.settled?.(outcome);
  }

  #facts({ id: requestId, options: { toolCallId, serverName } }: OpenAsk): AskFacts {
    return { requestId, sessionId: this.#sessionId, toolCallId, serverName };
  }
}

/** Whoever a question is for may answer it, whatever else they answer. */
function mayAnswer(answerer: Answerer, { kind, options }: OpenAsk): boolean {
  return options.from === undefined ? answerer.answers.has(kind) : options.from.includes(answerer.id);
}

const noKinds: ReadonlySet<AskKind> = new Set();
