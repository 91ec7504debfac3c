import { randomUUID } from "node:crypto";
import type { Asks } from "../../tools/tool.ts";
import { type AskKind, type AskKindRow, type AskOutcome, askKinds } from "./ask-kinds.ts";
import type { AskHandlers } from "./asks.ts";

/** A question that is open. */
export interface Ask<K extends AskKind = AskKind> {
  readonly id: string;
  readonly kind: K;
  readonly data: Asks[K]["data"];
  readonly toolCallId?: string;
  readonly agentId?: string;
}

/** What whoever answers is told of a question beside its data. */
export interface AskInvocation {
  readonly sessionId: string;
  /** The call that asks, where one does. */
  readonly toolCallId?: string;
  /** The sub-agent that the call belongs to. */
  readonly agentId?: string;
  /** What the answer is filed under where several are asked for at once. */
  readonly key?: string;
  /** Fires when the question is withdrawn: its call was ended, or somebody else answered. */
  readonly signal: AbortSignal;
}

export interface AskOptions {
  readonly toolCallId?: string | undefined;
  readonly agentId?: string | undefined;
  /** Only these may answer, and nobody who comes later. Absent: all who answer this kind. */
  readonly from?: readonly string[] | undefined;
  /** Somebody who could answer may still come: the question stays open though nobody is there. */
  readonly waits?: boolean;
  /** Ends the question with `cancelled`. Read only when the question stays open. */
  readonly signal?: (() => AbortSignal) | undefined;
  /** Whoever made the call that asks: asked before all others, who are asked only when they leave it. */
  readonly caller?: AskHandlers | undefined;
  readonly key?: string | undefined;
  /** The MCP server that wants it asked. */
  readonly serverName?: string | undefined;
}

/** A question on its way: who was told of it, and what it came to. */
export class OpenAsk<K extends AskKind = AskKind> implements Ask<K> {
  readonly kind: K;
  readonly data: Asks[K]["data"];
  readonly options: AskOptions;
  readonly candidates: Set<string> = new Set();
  /** Only its caller is asked so far. */
  isCallers = false;
  outcome: AskOutcome<K> | undefined;
  settled: ((outcome: AskOutcome<K>) => void) | undefined;
  /** What its handlers were told. */
  readonly #told = new Map<string, Invocation>();
  #id: string | undefined;

  constructor(kind: K, data: Asks[K]["data"], options: AskOptions) {
    this.kind = kind;
    this.data = data;
    this.options = options;
  }

  /** Made when it is first read: most questions are answered at once by a callback, and nobody sees their id. */
  get id(): string {
    this.#id ??= randomUUID();
    return this.#id;
  }

  get row(): AskKindRow<K> {
    return askKinds[this.kind] as AskKindRow<K>;
  }

  tell(answerer: string, sessionId: string): AskInvocation {
    const invocation = new Invocation(sessionId, this.options);
    this.#told.set(answerer, invocation);
    return invocation;
  }

  /** Tells the handlers whose answer is not wanted any more. */
  withdraw(outcome: AskOutcome<K>): void {
    const answeredBy = outcome.kind === "ended" ? undefined : outcome.from;
    for (const [answerer, invocation] of this.#told) if (answerer !== answeredBy) invocation.withdraw();
  }
}

class Invocation implements AskInvocation {
  readonly sessionId: string;
  declare readonly toolCallId?: string;
  declare readonly agentId?: string;
  declare readonly key?: string;
  #controller: AbortController | undefined;
  #isWithdrawn = false;

  constructor(sessionId: string, { toolCallId, agentId, key }: AskOptions) {
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
