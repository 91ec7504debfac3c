import { randomUUID } from "node:crypto";
import { toError } from "../../../base/errors.ts";
import { onAbort } from "../../../base/wait.ts";
import type { ModelFetch } from "../../../models/http.ts";
import type { ConnectSocket, ModelSocket } from "../../../models/model-socket.ts";
import { SocketMessages } from "../../../models/socket-messages.ts";
import type { Wire } from "../connection/wire.ts";

type FetchRequest = Parameters<ModelFetch>[1];
type FetchResponse = Awaited<ReturnType<ModelFetch>>;

/** Headers in the form of the protocol: a name may have several values. */
export type WireHeaders = Readonly<Record<string, unknown>>;

const cancelMs = 10_000;

interface Exchange {
  begin(status: number, headers: WireHeaders): void;
  receive(chunk: Uint8Array | undefined, isEnd: boolean): void;
  fail(error: Error): void;
}

/** Model requests that a client sends for this process. */
export class ModelRequests {
  readonly #wire: Wire;
  readonly #exchanges = new Map<string, Exchange>();

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** The replacement of `fetch` for one session's model. */
  fetchFor(sessionId: string): ModelFetch {
    return (url, { method, headers, body, signal, origin }) => {
      const requestId = randomUUID();
      const answer = this.#waitForAnswer(requestId, signal);
      const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
      const start = { requestId, sessionId, method, url, headers: lists, transport: "http", ...describeOrigin(origin, sessionId) };
      // Not awaited: the answer may arrive or fail before the client has taken the whole request.
      this.#write(start, body ?? "", signal).catch((error: unknown) => this.#exchanges.get(requestId)?.fail(toError(error)));
      return answer;
    };
  }

  /** Opens WebSocket connections through the client, for one session's model. */
  socketFor(sessionId: string): ConnectSocket {
    return (url, { headers, signal, origin }) =>
      new Promise((resolve, reject) => {
        const requestId = randomUUID();
        const messages = new SocketMessages();
        const body = new ChunkStream();
        let socket: ModelSocket | undefined;
        const opening = onAbort(signal, () => {
          this.#end(requestId);
          reject(signal.reason);
        });
        const fail = (error: Error): void => {
          this.#exchanges.delete(requestId);
          opening[Symbol.dispose]();
          messages.end(error);
          body.fail(error);
          reject(error);
        };
        this.#exchanges.set(requestId, {
          begin: (status, given) => {
            opening[Symbol.dispose]();
            if (status !== 101) {
              resolve({ kind: "refused", answer: { status, headers: { get: (name) => headerOf(given, name) }, body } });
              return;
            }
            socket = this.#createSocket(requestId, messages, fail);
            resolve({ kind: "open", socket });
          },
          receive: (chunk, isEnd) => {
            if (chunk !== undefined && chunk.length > 0 && socket === undefined) body.add(chunk);
            else if (chunk !== undefined && chunk.length > 0) messages.add(Buffer.from(chunk).toString());
            if (!isEnd) return;
            this.#exchanges.delete(requestId);
            messages.end();
            body.end();
          },
          fail,
        });
        const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
        const start = { requestId, sessionId, method: "GET", url, headers: lists, transport: "websocket" };
        this.#wire
          .request("llmInference.httpRequestStart", { ...start, ...describeOrigin(origin, sessionId) }, signal)
          .catch((error: unknown) => this.#exchanges.get(requestId)?.fail(toError(error)));
      });
  }

  #createSocket(requestId: string, messages: SocketMessages, fail: (error: Error) => void): ModelSocket {
    const isOpen = (): boolean => this.#wire.isOpen && this.#exchanges.has(requestId);
    return {
      get isOpen() {
        return isOpen();
      },
      send: (data) => {
        const chunk = { requestId, data, binary: false, end: false };
        this.#wire.request("llmInference.httpRequestChunk", chunk).catch((error: unknown) => fail(toError(error)));
      },
      receive: () => messages.next(),
      // The connection to the client decides how long the process runs.
      hold: () => {},
      close: () => {
        this.#end(requestId);
        messages.end();
      },
    };
  }

  /** Has the client end an exchange, unless it has ended. */
  #end(requestId: string): void {
    if (this.#exchanges.delete(requestId) && this.#wire.isOpen) void this.#cancel(requestId);
  }

  /** Takes the head of an answer. False: nothing waits for it. */
  begin(requestId: string, status: number, headers: WireHeaders): boolean {
    const exchange = this.#exchanges.get(requestId);
    exchange?.begin(status, headers);
    return exchange !== undefined;
  }

  /** Takes a chunk of an answer. False: nothing waits for it. */
  receive(requestId: string, chunk: Uint8Array | undefined, isEnd: boolean): boolean {
    const exchange = this.#exchanges.get(requestId);
    exchange?.receive(chunk, isEnd);
    return exchange !== undefined;
  }

  /** Fails all open requests after the client has disconnected. */
  close(): void {
    for (const exchange of [...this.#exchanges.values()])
      exchange.fail(new Error("The client that sends model requests has disconnected."));
  }

  fail(requestId: string, message: string): boolean {
    const exchange = this.#exchanges.get(requestId);
    exchange?.fail(new Error(message));
    return exchange !== undefined;
  }

  async #write(start: { readonly requestId: string }, data: string, signal: AbortSignal): Promise<void> {
    const wire = this.#wire;
    await wire.request("llmInference.httpRequestStart", start, signal);
    await wire.request("llmInference.httpRequestChunk", { requestId: start.requestId, data, binary: false, end: true }, signal);
  }

  #waitForAnswer(requestId: string, signal: AbortSignal): Promise<FetchResponse> {
    return new Promise((resolve, reject) => {
      const body = new ChunkStream();
      let listening: Disposable | undefined;
      const end = (): void => {
        this.#exchanges.delete(requestId);
        listening?.[Symbol.dispose]();
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
      listening = onAbort(signal, () => {
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
      // The request has ended here, whether or not the client could cancel it.
    }
  }
}

/** The main agent of a session has the session's id. */
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

/** The chunks of an answer, as an iterable that waits for the next one. */
class ChunkStream implements AsyncIterable<Uint8Array> {
  readonly #waiting: Uint8Array[] = [];
  #error: Error | undefined;
  #hasEnded = false;
  #wake: () => void = () => {};

  add(chunk: Uint8Array): void {
    this.#waiting.push(chunk);
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
      const chunk = this.#waiting.shift();
      if (chunk !== undefined) yield chunk;
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
