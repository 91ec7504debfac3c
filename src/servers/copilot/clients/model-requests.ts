import { randomUUID } from "node:crypto";
import { toError } from "../../../base/errors.ts";
import { onAbort } from "../../../base/wait-for.ts";
import type { ModelFetch } from "../../../models/http.ts";
import type { Wire } from "../connection/wire.ts";

type FetchRequest = Parameters<ModelFetch>[1];
type FetchResponse = Awaited<ReturnType<ModelFetch>>;

/** The headers of the wire: every name may have several values. */
export type WireHeaders = Readonly<Record<string, unknown>>;

const cancelMs = 10_000;

interface Exchange {
  begin(status: number, headers: WireHeaders): void;
  receive(chunk: Uint8Array | undefined, isEnd: boolean): void;
  fail(error: Error): void;
}

/** Requests to models that a client carries in the place of this process. */
export class ModelRequests {
  readonly #wire: Wire;
  readonly #exchanges = new Map<string, Exchange>();

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** What takes the place of `fetch` for one session's model. */
  fetchFor(sessionId: string): ModelFetch {
    return (url, request) => this.#send(sessionId, url, request);
  }

  /** The answer begins. False: nobody waits for it. */
  begin(requestId: string, status: number, headers: WireHeaders): boolean {
    const exchange = this.#exchanges.get(requestId);
    exchange?.begin(status, headers);
    return exchange !== undefined;
  }

  /** A piece of the answer. False: nobody waits for it. */
  receive(requestId: string, chunk: Uint8Array | undefined, isEnd: boolean): boolean {
    const exchange = this.#exchanges.get(requestId);
    exchange?.receive(chunk, isEnd);
    return exchange !== undefined;
  }

  /** The client has gone: nobody answers what is open. */
  close(): void {
    for (const exchange of [...this.#exchanges.values()])
      exchange.fail(new Error("The client that sends model requests has disconnected."));
  }

  fail(requestId: string, message: string): boolean {
    const exchange = this.#exchanges.get(requestId);
    exchange?.fail(new Error(message));
    return exchange !== undefined;
  }

  #send(sessionId: string, url: string, { method, headers, body, signal, origin }: FetchRequest): Promise<FetchResponse> {
    const requestId = randomUUID();
    const answer = this.#await(requestId, signal);
    const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
    const start = { requestId, sessionId, method, url, headers: lists, transport: "http", ...describeOrigin(origin, sessionId) };
    // Not waited for: the answer may come, or fail, before the client has taken all of the request.
    this.#write(start, body ?? "", signal).catch((error: unknown) => this.#exchanges.get(requestId)?.fail(toError(error)));
    return answer;
  }

  async #write(start: { readonly requestId: string }, data: string, signal: AbortSignal): Promise<void> {
    const wire = this.#wire;
    await wire.request("llmInference.httpRequestStart", start, signal);
    await wire.request("llmInference.httpRequestChunk", { requestId: start.requestId, data, binary: false, end: true }, signal);
  }

  #await(requestId: string, signal: AbortSignal): Promise<FetchResponse> {
    return new Promise((resolve, reject) => {
      const body = new Pieces();
      const end = (): void => {
        this.#exchanges.delete(requestId);
        listening[Symbol.dispose]();
      };
      const fail = (error: Error): void => {
        end();
        reject(error);
        body.fail(error);
      };
      this.#exchanges.set(requestId, {
        begin: (status, headers) => resolve({ status, headers: { get: (name) => headerOf(headers, name) }, body }),
        receive: (chunk, isEnd) => {
          if (chunk !== undefined && chunk.length > 0) body.add(chunk);
          if (!isEnd) return;
          end();
          body.end();
        },
        fail,
      });
      const listening = onAbort(signal, () => {
        if (this.#wire.isOpen && this.#exchanges.has(requestId)) void this.#cancel(requestId);
        fail(signal.reason instanceof Error ? signal.reason : new Error("The request was cancelled."));
      });
    });
  }

  async #cancel(requestId: string): Promise<void> {
    try {
      const params = { requestId, data: "", end: true, cancel: true };
      await this.#wire.request("llmInference.httpRequestChunk", params, AbortSignal.timeout(cancelMs));
    } catch {
      // It is over here, whatever the client makes of that.
    }
  }
}

/** A session's own agent goes by the session's id: its events have no other. */
function describeOrigin(origin: FetchRequest["origin"], sessionId: string): object {
  if (origin === undefined) return {};
  const { kind, agentId, parentAgentId = sessionId, interactionId } = origin;
  return {
    agentId: agentId ?? sessionId,
    ...(agentId !== undefined && { parentAgentId }),
    ...(interactionId !== undefined && { agentInvocationId: interactionId }),
    interactionType: interactionTypes[kind],
  };
}

const interactionTypes = {
  agent: "conversation-agent",
  subagent: "conversation-subagent",
  sampling: "conversation-sampling",
  compaction: "conversation-compaction",
  aside: "conversation-background",
} as const;

function headerOf(headers: WireHeaders, name: string): string | null {
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1];
  if (Array.isArray(found)) return found.map(String).join(", ");
  return typeof found === "string" ? found : null;
}

/** Pieces of an answer, read as they come. */
class Pieces implements AsyncIterable<Uint8Array> {
  readonly #waiting: Uint8Array[] = [];
  #error: Error | undefined;
  #hasEnded = false;
  #wake: () => void = () => {};

  add(piece: Uint8Array): void {
    this.#waiting.push(piece);
    this.#wake();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  fail(error: Error): void {
    this.#error = error;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = this.#waiting.shift();
      if (piece !== undefined) yield piece;
      else if (this.#error !== undefined) throw this.#error;
      else if (this.#hasEnded) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
