import { randomUUID } from "node:crypto";
import { errorMessage, HostError, toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import { isThenable } from "../../base/wait.ts";
import type { Asks } from "../../tools/tool.ts";
import type { SessionEvents } from "../history/events.ts";
import { type AskEnd, type AskFacts, type AskKind, type AskKindRow, type AskOutcome, askKinds, readAnswer } from "./request-kinds.ts";

/** Answers one kind of question in this process; `noResult` leaves it to another client. */
export type AskHandler<K extends AskKind> = (data: Asks[K]["data"], invocation: AskInvocation) => unknown;

/** The answers of a client to the questions of a session, by kind of question. */
export type AskHandlers = { readonly [K in AskKind]?: AskHandler<K> };

/** A client that may be asked: by callbacks in this process, or by the events and `answer`. */
interface Answerer {
  readonly id: string;
  readonly answers: ReadonlySet<AskKind>;
  readonly handlers: AskHandlers;
}

const callerId = "caller";

/** Everything that a session asks anybody: one table, the first answer wins. */
export class ClientRequests {
  readonly #sessionId: string;
  readonly #events: SessionEvents;
  readonly #log: Logger;
  readonly #open = new Set<PendingRequest>();
  readonly #answerers = new Map<string, Answerer>();
  #closed = false;

  constructor(sessionId: string, events: SessionEvents, log: Logger) {
    this.#sessionId = sessionId;
    this.#events = events;
    this.#log = log;
  }

  /** The questions that are open, oldest first. */
  get pending(): readonly ClientRequest[] {
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

  /** Asks, and gives the outcome at once when a callback answered at once. Never rejects. */
  open<K extends AskKind>(kind: K, data: Asks[K]["data"], options: OpenAskOptions): AskOutcome<K> | Promise<AskOutcome<K>> {
    if (this.#closed) return { kind: "ended", reason: "closed" };
    const ask = new PendingRequest(kind, data, options);
    const anyAsk = ask as unknown as PendingRequest;
    this.#open.add(anyAsk);
    if (options.caller?.[kind] === undefined) this.#offerToAttached(anyAsk);
    else {
      const handlers = options.caller;
      anyAsk.isCallers = true;
      anyAsk.candidates.add(callerId);
      this.#announce(anyAsk);
      this.#offer(anyAsk, { id: callerId, answers: noKinds, handlers });
    }
    return ask.outcome ?? this.#outcomeOf(ask, options.signal?.());
  }

  #offerToAttached(ask: PendingRequest): void {
    for (const answerer of this.#answerers.values()) if (mayAnswer(answerer, ask)) ask.candidates.add(answerer.id);
    if (!ask.isCallers) this.#announce(ask);
    ask.isCallers = false;
    for (const id of [...ask.candidates]) this.#offer(ask, this.#answerers.get(id));
    if (ask.candidates.size === 0 && !ask.options.waits) this.#end(ask, "unavailable");
  }

  /**
   * Answers a question on behalf of a client. False: it is closed already, or this client may not answer it.
   * @throws HostError `ANSWER_INVALID` when it is not an answer of that kind, except for a permission, which is then denied.
   */
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

  /** Ends the questions that only this one could answer. */
  detach(id: string): void {
    this.#answerers.delete(id);
    for (const ask of [...this.#open]) {
      if (ask.candidates.delete(id) && ask.candidates.size === 0 && !ask.options.waits) this.#end(ask, "detached");
    }
  }

  /** Ends every question with `closed`; later ones end at once. */
  close(): void {
    this.#closed = true;
    for (const ask of [...this.#open]) this.#end(ask, "closed");
    this.#answerers.clear();
  }

  #outcomeOf<K extends AskKind>(ask: PendingRequest<K>, signal: AbortSignal | undefined): Promise<AskOutcome<K>> {
    return new Promise((resolve) => {
      const onAbort = (): void => this.#end(ask as unknown as PendingRequest, "cancelled");
      ask.settled = (outcome) => {
        signal?.removeEventListener("abort", onAbort);
        resolve(outcome);
      };
      if (signal?.aborted) onAbort();
      else signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  #announce<K extends AskKind>(ask: PendingRequest<K>): void {
    const { requested, toRequested } = ask.row;
    this.#events.append(requested, () => toRequested(ask.data, this.#facts(ask)), ask.options.agentId);
  }

  /** Calls a client's callback with the question, if there is one. */
  #offer(ask: PendingRequest, answerer: Answerer | undefined): void {
    if (ask.outcome !== undefined || answerer === undefined) return;
    const handler = answerer.handlers[ask.kind] as AskHandler<AskKind> | undefined;
    if (handler === undefined) return;
    try {
      const returned = handler(ask.data, ask.createInvocation(answerer.id, this.#sessionId));
      if (!isThenable(returned)) this.#received(ask, returned, answerer.id);
      else
        returned.then(
          (answer) => this.#received(ask, answer, answerer.id),
          (error) => this.#failed(ask, error, answerer.id),
        );
    } catch (error) {
      this.#failed(ask, error, answerer.id);
    }
  }

  #received(ask: PendingRequest, answer: unknown, from: string): void {
    if (ask.outcome !== undefined || this.#reply(ask, answer, from)) return;
    this.#log.warning(`A callback returned a value that is not an answer to a question of kind "${ask.kind}".`, {
      sessionId: this.#sessionId,
    });
    this.#withdraw(ask, from, false);
  }

  #failed(ask: PendingRequest, error: unknown, from: string): void {
    this.#log.error(`The callback for questions of kind "${ask.kind}" failed.`, { sessionId: this.#sessionId, error: toError(error) });
    // The caller is waiting for this tool: its provider's failure is the answer.
    if (ask.kind === "tool") this.#reply(ask, { error: errorMessage(error) }, from);
    else this.#withdraw(ask, from, false);
  }

  /** False: not an answer of this kind. */
  #reply(ask: PendingRequest, answer: unknown, from: string): boolean {
    const parsed = readAnswer(ask.kind, answer);
    if (parsed === "left") this.#withdraw(ask, from, ask.options.waits === true);
    else if (parsed === "unable") this.#withdraw(ask, from, false);
    else if (parsed !== undefined) this.#settle(ask, { kind: "answered", answer: parsed, from });
    else if (ask.kind === "permission") this.#settle(ask, { kind: "unclear", from });
    else return false;
    return true;
  }

  /** A client does not answer. That ends the question when no other can, unless it waits for clients that may still attach. */
  #withdraw(ask: PendingRequest, from: string, waits: boolean): void {
    ask.candidates.delete(from);
    if (ask.isCallers) this.#offerToAttached(ask);
    else if (ask.candidates.size === 0 && !waits) this.#end(ask, "unavailable");
  }

  #end(ask: PendingRequest, reason: AskEnd): void {
    this.#settle(ask, { kind: "ended", reason });
  }

  #settle<K extends AskKind>(ask: PendingRequest<K>, outcome: AskOutcome<K>): void {
    if (ask.outcome !== undefined) return;
    ask.outcome = outcome;
    this.#open.delete(ask as unknown as PendingRequest);
    ask.withdraw(outcome);
    const { completed, toCompleted } = ask.row;
    this.#events.append(completed, () => toCompleted(outcome, this.#facts(ask)), ask.options.agentId);
    ask.settled?.(outcome);
  }

  #facts({ id: requestId, options: { toolCallId, serverName } }: Pick<PendingRequest, "id" | "options">): AskFacts {
    return { requestId, sessionId: this.#sessionId, toolCallId, serverName };
  }
}

/** A client that the question is addressed to may answer it, whatever other kinds it answers. */
function mayAnswer(answerer: Answerer, { kind, options }: PendingRequest): boolean {
  return options.from === undefined ? answerer.answers.has(kind) : options.from.includes(answerer.id);
}

const noKinds: ReadonlySet<AskKind> = new Set();

/** A question that is open. */
export interface ClientRequest<K extends AskKind = AskKind> {
  readonly id: string;
  readonly kind: K;
  readonly data: Asks[K]["data"];
  readonly toolCallId?: string;
  readonly agentId?: string;
}

/** What a callback receives beside the data of a question. */
export interface AskInvocation {
  readonly sessionId: string;
  /** The call that asks, where one does. */
  readonly toolCallId?: string;
  /** The sub-agent that the call belongs to. */
  readonly agentId?: string;
  /** What the answer is filed under where several are asked for at once. */
  readonly key?: string;
  /** Fires when the question is withdrawn: its call was ended, or another client answered. */
  readonly signal: AbortSignal;
}

interface OpenAskOptions {
  readonly toolCallId?: string | undefined;
  readonly agentId?: string | undefined;
  /** Only these may answer, and no client that attaches later. Absent: all that answer this kind. */
  readonly from?: readonly string[] | undefined;
  /** A client that can answer may still attach: the question stays open without one. */
  readonly waits?: boolean;
  /** Ends the question with `cancelled`. Read only when the question stays open. */
  readonly signal?: (() => AbortSignal) | undefined;
  /** Handlers of the caller: asked before the attached clients, which are asked only when the caller passes. */
  readonly caller?: AskHandlers | undefined;
  readonly key?: string | undefined;
  /** The MCP server that wants it asked. */
  readonly serverName?: string | undefined;
}

/** An open question: which handlers received it, and its outcome. */
class PendingRequest<K extends AskKind = AskKind> implements ClientRequest<K> {
  readonly kind: K;
  readonly data: Asks[K]["data"];
  readonly options: OpenAskOptions;
  readonly candidates: Set<string> = new Set();
  /** Only its caller is asked so far. */
  isCallers = false;
  outcome: AskOutcome<K> | undefined;
  settled: ((outcome: AskOutcome<K>) => void) | undefined;
  /** What its handlers received, by client. */
  readonly #invocations = new Map<string, Invocation>();
  #id: string | undefined;

  constructor(kind: K, data: Asks[K]["data"], options: OpenAskOptions) {
    this.kind = kind;
    this.data = data;
    this.options = options;
  }

  /** Created when it is first read: most questions are answered at once by a callback and never need an id. */
  get id(): string {
    this.#id ??= randomUUID();
    return this.#id;
  }

  get row(): AskKindRow<K> {
    return askKinds[this.kind] as AskKindRow<K>;
  }

  createInvocation(answerer: string, sessionId: string): AskInvocation {
    const invocation = new Invocation(sessionId, this.options);
    this.#invocations.set(answerer, invocation);
    return invocation;
  }

  /** Aborts the handlers whose answer is not needed any more. */
  withdraw(outcome: AskOutcome<K>): void {
    const answeredBy = outcome.kind === "ended" ? undefined : outcome.from;
    for (const [answerer, invocation] of this.#invocations) if (answerer !== answeredBy) invocation.withdraw();
  }
}

class Invocation implements AskInvocation {
  readonly sessionId: string;
  declare readonly toolCallId?: string;
  declare readonly agentId?: string;
  declare readonly key?: string;
  #controller: AbortController | undefined;
  #isWithdrawn = false;

  constructor(sessionId: string, { toolCallId, agentId, key }: OpenAskOptions) {
    this.sessionId = sessionId;
    if (toolCallId !== undefined) this.toolCallId = toolCallId;
    if (agentId !== undefined) this.agentId = agentId;
    if (key !== undefined) this.key = key;
  }

  /** Made when it is first read: few handlers do. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isWithdrawn) this.#controller.abort(withdrawn());
    return this.#controller.signal;
  }

  withdraw(): void {
    this.#isWithdrawn = true;
    this.#controller?.abort(withdrawn());
  }
}

function withdrawn(): Error {
  return new DOMException("The question was withdrawn.", "AbortError");
}
