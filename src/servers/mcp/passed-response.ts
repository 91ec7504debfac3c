import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { isRecord } from "../../base/json.ts";
import { onAbort } from "../../base/wait.ts";
import type { PassedRequest, PassedResponse } from "../../plugin-host/mcp-peers.ts";
import type { HttpExchange, RequestHead, ResponseSink } from "../http/http-exchange.ts";

/** A client that leaves more unread is disconnected. */
const maxUnreadBytes = 16 * 1024 * 1024;

/** What another server needs of a request. Its secrets and what is about the connection stay here. */
export function toPassedRequest({ incoming, body }: HttpExchange): PassedRequest {
  return {
    method: incoming.method ?? "GET",
    headers: passedHeaders(incoming.headers),
    body: body === undefined ? "" : JSON.stringify(body),
  };
}

function passedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const passed = Object.entries(headers).filter(([name, value]) => isPassed(name) && typeof value === "string");
  return Object.fromEntries(passed) as Record<string, string>;
}

function isPassed(name: string): boolean {
  return name === "accept" || name === "content-type" || name === "last-event-id" || name === "user-agent" || name.startsWith("mcp-");
}

/** The response to a client here, as another server writes it. */
export class ClientResponse implements PassedResponse {
  readonly #exchange: HttpExchange;
  readonly #gone = new AbortController();
  #isStream = false;

  constructor(exchange: HttpExchange) {
    this.#exchange = exchange;
    exchange.outgoing.on("close", () => this.#gone.abort());
  }

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    const { outgoing } = this.#exchange;
    if (outgoing.destroyed) return;
    this.#isStream = headers["Content-Type"] === "text/event-stream" || headers["content-type"] === "text/event-stream";
    outgoing.writeHead(status, { ...headers });
    // The first text is sent together with the headers.
    queueMicrotask(() => {
      if (!outgoing.headersSent && !outgoing.destroyed) outgoing.flushHeaders();
    });
  }

  write(text: string): void {
    const { outgoing } = this.#exchange;
    if (outgoing.destroyed) return;
    if (outgoing.writableLength > maxUnreadBytes) outgoing.destroy();
    else outgoing.write(text);
  }

  end(): void {
    const { outgoing } = this.#exchange;
    if (!outgoing.destroyed) outgoing.end();
  }

  abandon(): void {
    this.#exchange.outgoing.destroy();
  }

  refuse(): void {
    // Nothing has been written: what passed the request decides.
  }

  /** The server that was to answer is lost: each request of the client gets an error, so that none of them waits for ever. */
  endLost(): void {
    const { outgoing, body } = this.#exchange;
    if (outgoing.destroyed) return;
    const answers = requestIds(body).map(lostAnswer);
    if (!outgoing.headersSent && answers.length > 0) {
      const text = JSON.stringify(answers.length === 1 ? answers[0] : answers);
      outgoing.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) }).end(text);
    } else if (this.#isStream) outgoing.end(lostEvents(answers));
    else outgoing.destroy();
  }
}

/** The ids of the requests in a body. */
function requestIds(body: unknown): readonly (string | number)[] {
  return [body].flat().flatMap((message) => {
    const id = isRecord(message) && typeof message["method"] === "string" ? message["id"] : undefined;
    return typeof id === "string" || typeof id === "number" ? [id] : [];
  });
}

/** The error for a request whose server is lost. */
export function lostAnswer(id: string | number): object {
  const message = "The server that handled this request is gone. The outcome is unknown: it may or may not have taken effect.";
  return { jsonrpc: "2.0", id, error: { code: -32603, message } };
}

export function lostEvents(answers: readonly object[]): string {
  return answers.map((answer) => `event: message\ndata: ${JSON.stringify(answer)}\n\n`).join("");
}

/** A response that is written here and sent by the server that passed the request. */
export class PassedSink implements ResponseSink {
  readonly writableLength: number = 0;
  readonly #response: PassedResponse;
  readonly #listeners: (() => void)[] = [];
  #headers: Record<string, string> = {};
  #status = 200;
  destroyed: boolean = false;
  headersSent: boolean = false;

  constructor(response: PassedResponse) {
    this.#response = response;
    onAbort(response.signal, () => this.#finish());
  }

  setHeader(name: string, value: string): void {
    this.#headers[name] = value;
  }

  writeHead(status: number, headers: OutgoingHttpHeaders = {}): this {
    this.#status = status;
    // Connections are the business of the server that the client is connected to.
    for (const [name, value] of Object.entries(headers)) if (name !== "Connection") this.#headers[name] = String(value);
    return this;
  }

  flushHeaders(): void {
    if (this.headersSent || this.destroyed) return;
    this.headersSent = true;
    this.#response.begin(this.#status, this.#headers);
  }

  write(text: string): void {
    if (this.destroyed) return;
    this.flushHeaders();
    this.#response.write(text);
  }

  end(text = ""): void {
    if (this.destroyed) return;
    this.flushHeaders();
    if (text !== "") this.#response.write(text);
    this.#response.end();
    this.#finish();
  }

  destroy(): void {
    if (this.destroyed) return;
    this.#response.abandon();
    this.#finish();
  }

  on(_event: "close", listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Nothing is done with the request. */
  refuse(): void {
    if (this.destroyed || this.headersSent) return;
    this.#response.refuse();
    this.#finish();
  }

  #finish(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    for (const listener of this.#listeners) listener();
  }
}

/** A passed request as the code reads it that answers those of Node. */
export function headOf({ method, headers }: PassedRequest): RequestHead {
  return { method, headers };
}

/** Sends a web response. */
export async function sendTo(sink: ResponseSink, { status, headers, body }: Response): Promise<void> {
  sink.writeHead(status, Object.fromEntries(headers));
  if (body === null) return void sink.end();
  sink.flushHeaders();
  const reader = body.pipeThrough(new TextDecoderStream() as never).getReader() as ReadableStreamDefaultReader<string>;
  sink.on("close", () => void reader.cancel().catch(() => {}));
  for (let read = await reader.read(); !read.done; read = await reader.read()) sink.write(read.value);
  sink.end();
}
