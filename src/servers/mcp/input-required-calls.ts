import { randomBytes, randomUUID } from "node:crypto";
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createRequestStateCodec,
  type InputRequests,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { onAbort } from "../../base/wait.ts";
import { noResult } from "../../session/clients/request-kinds.ts";
import { type AskedQuestion, ClientChannel, type ClientChannelOptions, type IncomingRequest, type WithClient } from "./client-channel.ts";
import type { DeclaredCapabilities } from "./client-questions.ts";

interface InputRequiredLimits {
  /** The limit of calls that wait for answers. Beyond it, the one that has waited longest is ended. */
  readonly maxWaiting: number;
  /** How long a call waits for its answers, in milliseconds. */
  readonly waitMs: number;
}

const defaultLimits: InputRequiredLimits = { maxWaiting: 256, waitMs: 600_000 };

/** The signed state that a client sends back with its answers. Each round has a new id. */
interface RequestState {
  readonly id: string;
}

interface WaitingCall {
  readonly call: SuspendedCall<object>;
  /** The digest of the first request. Later requests must have the same. */
  readonly digest: string;
  readonly timer: NodeJS.Timeout;
}

/**
 * Channels of protocol revision 2026-07-28: a request that needs answers ends with the questions, and the client sends it again
 * with the answers. The work is not repeated; it waits in this process.
 */
export class InputRequiredCalls implements Disposable {
  readonly #options: ClientChannelOptions;
  readonly #place: string;
  readonly #limits: InputRequiredLimits;
  readonly #waiting = new Map<string, WaitingCall>();
  readonly #codec;

  /** `place`: the id of this server among its peers, which get requests for calls that wait here. */
  constructor(
    options: ClientChannelOptions,
    { place, ...limits }: Partial<InputRequiredLimits> & { readonly place?: string | undefined } = {},
  ) {
    this.#options = options;
    this.#place = place === undefined ? "" : `${place}.`;
    this.#limits = { ...defaultLimits, ...limits };
    this.#codec = createRequestStateCodec<RequestState>({
      // The calls wait in this process, so the key need not outlive it.
      key: randomBytes(32),
      ttlSeconds: Math.ceil(this.#limits.waitMs / 1000),
      bind: ({ mcpReq, http }) => `${mcpReq.method}\0${http?.authInfo?.clientId ?? ""}`,
    });
  }

  /** Bound, so that it can be passed on. Rejects with the error that clients expect for an invalid or expired state. */
  readonly withClient: WithClient = async (request, context, work) => {
    const state = context.mcpReq.requestState();
    const declared = declaredIn(context);
    // Skips the costly support of questions for a client that cannot answer any.
    if (state === undefined && !canBeAsked(declared)) return work(new NoClientInput(context, declared, this.#options));
    const call = state === undefined ? new SuspendedCall<object>(this.#options, work) : await this.#resume(state, request, context);
    const outcome = await call.round(context, declared);
    if (outcome.kind === "done") return outcome.result as never;
    const { inputRequests } = outcome;
    const next: RequestState = { id: randomUUID() };
    const requestState = `${this.#place}${await this.#codec.mint(next, context)}`;
    this.#park(next, { call, digest: digestOf(request) });
    return { resultType: "input_required", inputRequests, requestState } as never;
  };

  /** Ends all waiting calls. */
  [Symbol.dispose](): void {
    for (const id of [...this.#waiting.keys()]) this.#forget(id)?.abort();
  }

  /** Each state resumes its call once: a second request with it would answer the same questions again. */
  async #resume(state: unknown, request: IncomingRequest, context: ServerContext): Promise<SuspendedCall<object>> {
    const { id } = await this.#verify(state, context);
    const waiting = this.#waiting.get(id);
    if (waiting === undefined || waiting.digest !== digestOf(request)) throw staleState();
    this.#forget(id);
    return waiting.call;
  }

  async #verify(state: unknown, context: ServerContext): Promise<RequestState> {
    if (typeof state !== "string" || !state.startsWith(this.#place)) throw staleState();
    try {
      return await this.#codec.verify(state.slice(this.#place.length), context);
    } catch {
      // The state was modified, has expired or belongs to another request, which the client need not know.
      throw staleState();
    }
  }

  #park({ id }: RequestState, { call, digest }: Omit<WaitingCall, "timer">): void {
    const timer = setTimeout(() => this.#forget(id)?.abort(), this.#limits.waitMs);
    timer.unref();
    this.#waiting.set(id, { call, digest, timer });
    const [longest] = this.#waiting.keys();
    if (this.#waiting.size > this.#limits.maxWaiting && longest !== undefined) this.#forget(longest)?.abort();
  }

  #forget(id: string): SuspendedCall<object> | undefined {
    const waiting = this.#waiting.get(id);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(id);
    return waiting?.call;
  }
}

/** The server at which the call of a request waits. Undefined: the request continues none. */
export function placeOf(body: unknown): string | undefined {
  const params = isRecord(body) ? body["params"] : undefined;
  const state = isRecord(params) ? params["requestState"] : undefined;
  return typeof state === "string" ? /^([\w-]{8,64})\./.exec(state)?.[1] : undefined;
}

/** The error for a request that needs capabilities which the client has not declared. */
export function missingCapability(missing: Readonly<Record<string, unknown>>): ProtocolError {
  return new MissingRequiredClientCapabilityError({ requiredCapabilities: missing as ClientCapabilities });
}

const askable = ["elicitation", "sampling", "roots"];

function canBeAsked(declared: Readonly<Record<string, unknown>>): boolean {
  return askable.some((name) => Object.hasOwn(declared, name));
}

/** The channel to a client that cannot answer questions. It records the missing capabilities. */
class NoClientInput extends ClientChannel {
  protected readonly context: ServerContext;
  protected readonly capabilities: Readonly<Record<string, unknown>>;

  constructor(context: ServerContext, capabilities: Readonly<Record<string, unknown>>, options: ClientChannelOptions) {
    super(options);
    this.context = context;
    this.capabilities = capabilities;
  }

  get signal(): AbortSignal {
    return this.context.mcpReq.signal;
  }

  protected async ask(): Promise<unknown> {
    return noResult;
  }
}

function declaredIn({ mcpReq }: ServerContext): Readonly<Record<string, unknown>> {
  const envelope: Readonly<Record<string, unknown>> = mcpReq.envelope ?? {};
  return (envelope[CLIENT_CAPABILITIES_META_KEY] as Readonly<Record<string, unknown>> | undefined) ?? {};
}

function digestOf({ method, name, arguments: args }: IncomingRequest): string {
  return sha256(canonicalJson([method, name, args ?? null]));
}

function staleState(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "Invalid or expired requestState", { reason: "invalid_request_state" });
}

/** The outcome of one request: the result of the work, or the questions that must be answered first. */
type Round<T> = { readonly kind: "done"; readonly result: T } | { readonly kind: "open"; readonly inputRequests: InputRequests };

interface OpenQuestion {
  readonly asked: AskedQuestion;
  settle(answer: unknown): void;
}

/**
 * Work that spans several requests of a client: while it waits for answers no request is open, and the next one brings them.
 * Questions that are open at the same time are sent together.
 */
class SuspendedCall<T extends object> extends ClientChannel {
  readonly #open = new Map<string, OpenQuestion>();
  /** Answers of the client by key, until a question with that key uses them. */
  readonly #given = new Map<string, unknown>();
  readonly #counts = new Map<string, number>();
  readonly #end = new AbortController();
  readonly #work: (channel: ClientChannel) => Promise<T>;
  #done: Promise<Round<T>> | undefined;
  #ready: ((round: Round<T>) => void) | undefined;
  protected context: ServerContext | undefined;
  protected capabilities: DeclaredCapabilities = {};

  /** The work begins with the first round. */
  constructor(options: ClientChannelOptions, work: (channel: ClientChannel) => Promise<T>) {
    super(options);
    this.#work = work;
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Continues the work until it is done or waits for the client. Rejects as the work does. */
  async round(context: ServerContext, capabilities: DeclaredCapabilities): Promise<Round<T>> {
    this.context = context;
    this.capabilities = capabilities;
    const { signal, inputResponses = {} } = context.mcpReq;
    const leaving = onAbort(signal, () => this.abort());
    try {
      return await new Promise<Round<T>>((resolve, reject) => {
        this.#ready = resolve;
        this.#take(inputResponses);
        this.#done ??= this.#work(this).then((result) => ({ kind: "done", result }));
        this.#done.then(resolve, reject);
        this.#sendOpenQuestions();
      });
    } finally {
      leaving[Symbol.dispose]();
      this.#ready = undefined;
      this.context = undefined;
    }
  }

  /** Ends the work by its signal; open questions stay unanswered. */
  abort(): void {
    this.#end.abort(new HostError("REQUEST_ENDED", "The client ended its request or did not send its answers."));
  }

  protected ask(asked: AskedQuestion): Promise<unknown> {
    const key = this.#keyOf(asked);
    return new Promise((resolve) => {
      const withdrawal = onAbort(asked.signal, () => this.#open.delete(key));
      const settle = (answer: unknown): void => {
        withdrawal[Symbol.dispose]();
        this.#open.delete(key);
        resolve(answer);
      };
      this.#open.set(key, { asked, settle });
      this.#answer(key);
      this.#sendOpenQuestions();
    });
  }

  #keyOf({ key, kind }: AskedQuestion): string {
    const wanted = key ?? `${kind}-${this.#count(kind)}`;
    return this.#open.has(wanted) ? `${wanted}-${this.#count(wanted)}` : wanted;
  }

  #count(name: string): number {
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    return count;
  }

  #take(responses: Readonly<Record<string, unknown>>): void {
    for (const [key, response] of Object.entries(responses)) this.#given.set(key, response);
    for (const key of [...this.#open.keys()]) this.#answer(key);
  }

  /** An invalid answer leaves the question open, so that it is sent again. */
  #answer(key: string): void {
    const open = this.#open.get(key);
    if (open === undefined || !this.#given.has(key)) return;
    const answer = open.asked.question.read(this.#given.get(key));
    this.#given.delete(key);
    if (answer !== undefined) open.settle(answer);
  }

  /** Ends the round with all questions of this turn of the event loop. */
  #sendOpenQuestions(): void {
    if (this.#open.size === 0) return;
    setImmediate(() => {
      if (this.#open.size === 0) return;
      const requests = Array.from(this.#open, ([key, { asked }]) => [key, toInputRequest(asked)] as const);
      this.#ready?.({ kind: "open", inputRequests: Object.fromEntries(requests) });
    });
  }
}

function toInputRequest({ question: { request } }: AskedQuestion): InputRequests[string] {
  // Revision 2026-07-28 has removed the ids of URL elicitations.
  const { elicitationId: _id, ...params } = request.params;
  return { method: request.method, params } as unknown as InputRequests[string];
}
