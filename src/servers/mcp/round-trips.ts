import { randomBytes, randomUUID } from "node:crypto";
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createRequestStateCodec,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import { noResult } from "../../session/asks/ask-kinds.ts";
import { Conversation, type ConversationOptions, type Converse, type ConversedRequest } from "./conversation.ts";
import { RoundTripCall } from "./round-trip-call.ts";

export interface RoundTripLimits {
  /** Calls that may wait for answers at the same time; beyond it the one that waits longest is ended. */
  readonly maxWaiting: number;
  /** How long a call waits for its answers, in milliseconds. */
  readonly waitMs: number;
}

const defaultLimits: RoundTripLimits = { maxWaiting: 256, waitMs: 600_000 };

/** What a client sends back with its answers: a number of its own for each round, and signed. */
interface Ticket {
  readonly id: string;
}

interface WaitingCall {
  readonly call: RoundTripCall<object>;
  /** Of the request that began it; the later ones must be the same. */
  readonly digest: string;
  readonly timer: NodeJS.Timeout;
}

/**
 * Conversations as protocol revision 2026-07-28 has them: a request that needs answers ends with what is asked, and the
 * client sends it again with the answers. The work itself is not done twice; it waits in this process meanwhile.
 */
export class RoundTrips implements Disposable {
  readonly #options: ConversationOptions;
  readonly #limits: RoundTripLimits;
  readonly #waiting = new Map<string, WaitingCall>();
  readonly #codec;

  constructor(options: ConversationOptions, limits: Partial<RoundTripLimits> = {}) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...limits };
    this.#codec = createRequestStateCodec<Ticket>({
      // The calls wait in this process, so that a key that outlives it would open nothing.
      key: randomBytes(32),
      ttlSeconds: Math.ceil(this.#limits.waitMs / 1000),
      bind: ({ mcpReq, http }) => `${mcpReq.method}\0${http?.authInfo?.clientId ?? ""}`,
    });
  }

  /** Bound, so that it can be handed on. Rejects with the error that clients expect for a state that is not (any more) of use. */
  readonly converse: Converse = async (request, context, work) => {
    const state = context.mcpReq.requestState();
    const declared = declaredIn(context);
    // Most of what a call costs here is there for questions, and this client can be asked none.
    if (state === undefined && !canBeAsked(declared)) return work(new DeafConversation(context, declared, this.#options));
    const call = state === undefined ? new RoundTripCall<object>(this.#options, work) : await this.#resume(state, request, context);
    const outcome = await call.round(context, declared);
    if (outcome.kind === "done") return outcome.result as never;
    const { inputRequests } = outcome;
    const next: Ticket = { id: randomUUID() };
    const requestState = await this.#codec.mint(next, context);
    this.#park(next, { call, digest: digestOf(request) });
    return { resultType: "input_required", inputRequests, requestState } as never;
  };

  /** Ends all that wait. */
  [Symbol.dispose](): void {
    for (const id of [...this.#waiting.keys()]) this.#forget(id)?.abort();
  }

  /** Each ticket opens its call once: a second request with it would answer questions that are answered. */
  async #resume(state: unknown, request: ConversedRequest, context: ServerContext): Promise<RoundTripCall<object>> {
    const { id } = await this.#verify(state, context);
    const waiting = this.#waiting.get(id);
    if (waiting === undefined || waiting.digest !== digestOf(request)) throw staleState();
    this.#forget(id);
    return waiting.call;
  }

  async #verify(state: unknown, context: ServerContext): Promise<Ticket> {
    if (typeof state !== "string") throw staleState();
    try {
      return await this.#codec.verify(state, context);
    } catch {
      // Tampered with, expired, or of another request: which of them is nobody's business.
      throw staleState();
    }
  }

  #park({ id }: Ticket, { call, digest }: Omit<WaitingCall, "timer">): void {
    const timer = setTimeout(() => this.#forget(id)?.abort(), this.#limits.waitMs);
    timer.unref();
    this.#waiting.set(id, { call, digest, timer });
    const [longest] = this.#waiting.keys();
    if (this.#waiting.size > this.#limits.maxWaiting && longest !== undefined) this.#forget(longest)?.abort();
  }

  #forget(id: string): RoundTripCall<object> | undefined {
    const waiting = this.#waiting.get(id);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(id);
    return waiting?.call;
  }
}

/** Says that a request needs something of the client that it has not declared. */
export function missingCapability(missing: Readonly<Record<string, unknown>>): ProtocolError {
  return new MissingRequiredClientCapabilityError({ requiredCapabilities: missing as ClientCapabilities });
}

const askable = ["elicitation", "sampling", "roots"];

function canBeAsked(declared: Readonly<Record<string, unknown>>): boolean {
  return askable.some((name) => Object.hasOwn(declared, name));
}

/** With a client that answers nothing: what it lacks is noted. */
class DeafConversation extends Conversation {
  protected readonly context: ServerContext;
  protected readonly capabilities: Readonly<Record<string, unknown>>;

  constructor(context: ServerContext, capabilities: Readonly<Record<string, unknown>>, options: ConversationOptions) {
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

function digestOf({ method, name, arguments: args }: ConversedRequest): string {
  return sha256(canonicalJson([method, name, args ?? null]));
}

function staleState(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "Invalid or expired requestState", { reason: "invalid_request_state" });
}
