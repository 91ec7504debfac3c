import type { InputRequests, ServerContext } from "@modelcontextprotocol/server";
import { HostError } from "../../base/errors.ts";
import { onAbort } from "../../base/wait-for.ts";
import type { ClientCapabilities } from "./client-questions.ts";
import { type AskedQuestion, Conversation, type ConversationOptions } from "./conversation.ts";

/** What one request of the client came to: the end of the work, or what must be answered first. */
export type Round<T> = { readonly kind: "done"; readonly result: T } | { readonly kind: "open"; readonly inputRequests: InputRequests };

interface OpenQuestion {
  readonly asked: AskedQuestion;
  settle(answer: unknown): void;
}

/**
 * Work that goes on over several requests of a client: while it waits for answers no request is open, and the next one
 * brings them. Questions that are open at the same moment go out together.
 */
export class RoundTripCall<T extends object> extends Conversation {
  readonly #open = new Map<string, OpenQuestion>();
  /** What the client sent, by key, until a question of that key takes it. */
  readonly #given = new Map<string, unknown>();
  readonly #counts = new Map<string, number>();
  readonly #end = new AbortController();
  readonly #work: (conversation: Conversation) => Promise<T>;
  #done: Promise<Round<T>> | undefined;
  #ready: ((round: Round<T>) => void) | undefined;
  protected context: ServerContext | undefined;
  protected capabilities: ClientCapabilities = {};

  /** Nothing is done before the first round. */
  constructor(options: ConversationOptions, work: (conversation: Conversation) => Promise<T>) {
    super(options);
    this.#work = work;
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Goes on with the work until it is done or waits for the client. Rejects as the work does. */
  async round(context: ServerContext, capabilities: ClientCapabilities): Promise<Round<T>> {
    this.context = context;
    this.capabilities = capabilities;
    const { signal, inputResponses = {} } = context.mcpReq;
    const leaving = onAbort(signal, () => this.abort());
    try {
      return await new Promise<Round<T>>((resolve, reject) => {
        this.#ready = resolve;
        this.#take(inputResponses);
        this.#done ??= this.#begin();
        this.#done.then(resolve, reject);
        this.#lookAround();
      });
    } finally {
      leaving[Symbol.dispose]();
      this.#ready = undefined;
      this.context = undefined;
    }
  }

  /** Ends the work by its signal; open questions stay unanswered. */
  abort(): void {
    this.#end.abort(new HostError("REQUEST_ENDED", "The client has ended its request, or did not come back with its answers."));
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
      this.#lookAround();
    });
  }

  async #begin(): Promise<Round<T>> {
    return { kind: "done", result: await this.#work(this) };
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

  /** What cannot be read as the answer leaves the question open, so that it is asked again. */
  #answer(key: string): void {
    const open = this.#open.get(key);
    if (open === undefined || !this.#given.has(key)) return;
    const answer = open.asked.question.read(this.#given.get(key));
    this.#given.delete(key);
    if (answer !== undefined) open.settle(answer);
  }

  /** Whatever is asked in the same turn of the event loop is asked together. */
  #lookAround(): void {
    if (this.#open.size === 0) return;
    setImmediate(() => {
      if (this.#open.size === 0) return;
      const requests = Array.from(this.#open, ([key, { asked }]) => [key, toInputRequest(asked)] as const);
      this.#ready?.({ kind: "open", inputRequests: Object.fromEntries(requests) });
    });
  }
}

function toInputRequest({ question: { request } }: AskedQuestion): InputRequests[string] {
  // Revision 2026-07-28 has no ids for questions at an address any more.
  const { elicitationId: _id, ...params } = request.params;
  return { method: request.method, params } as unknown as InputRequests[string];
}
