import { createHash } from "node:crypto";
import { isRecord, textOf } from "../base/json.ts";
import { onAbort } from "../base/wait.ts";
import type { ModelFetch, ModelFetchRequest, ModelFetchResponse } from "./http.ts";
import type { ConnectSocket, ModelSocket, OpenedSocket } from "./model-socket.ts";

interface ResponsesSocketOptions {
  readonly connect: ConnectSocket;
  /** Sends all other requests, and those that no connection answers. */
  readonly fetch: ModelFetch;
  /** Whether a message says who has caused the request, as the header does for one over HTTP. */
  readonly tellsInitiator: boolean;
}

/**
 * Sends requests to `/responses` over WebSocket connections, and everything else by `fetch`. Connections are kept for the next requests:
 * one that continues the last response of its connection contains only what was added since. An answer is passed on as a stream of
 * server-sent events, so limits, retries and errors are those of HTTP. An endpoint that opens no connection is asked over HTTP from then on.
 */
export function createResponsesSocket({ connect, fetch, tellsInitiator }: ResponsesSocketOptions): ModelFetch {
  const connections = new Connections(connect);
  let isRefused = false;
  return async (url, request) => {
    const body = isRefused || request.method !== "POST" || !isResponses(url) ? undefined : readBody(request.body);
    if (body === undefined) return fetch(url, request);
    const initiator = tellsInitiator ? request.headers["x-initiator"] : undefined;
    const answer = await connections.ask(url, { ...body, ...(initiator !== undefined && { initiator }) }, request);
    if (answer.kind === "answered") return answer.response;
    isRefused ||= answer.kind === "refused";
    return fetch(url, request);
  };
}

type Body = Readonly<Record<string, unknown>>;

type Answer =
  | { readonly kind: "answered"; readonly response: ModelFetchResponse }
  /** No connection can be opened. */
  | { readonly kind: "refused" }
  /** The endpoint has closed a new connection instead of answering. */
  | { readonly kind: "unanswered" };

/** A few agents of a session may ask the model at the same time. */
const mostIdle = 4;

class Connections {
  readonly #connect: ConnectSocket;
  readonly #idle = new Set<Connection>();

  constructor(connect: ConnectSocket) {
    this.#connect = connect;
  }

  async ask(url: string, body: Body, request: ModelFetchRequest): Promise<Answer> {
    const key = keyOf(url, body, request);
    const kept = this.#findKept(key, body);
    if (kept !== undefined) {
      this.#idle.delete(kept);
      const response = await this.#askAt(kept, body, request.signal);
      if (response !== "unanswered") return { kind: "answered", response };
    }
    const opened = await this.#open(url, request);
    if (opened === undefined) return { kind: "refused" };
    if (opened.kind === "refused") return { kind: "answered", response: opened.answer };
    const response = await this.#askAt(new Connection(opened.socket, key), body, request.signal);
    return response === "unanswered" ? { kind: "unanswered" } : { kind: "answered", response };
  }

  /** Undefined: there is no connection, for a reason that need not concern HTTP. */
  async #open(url: string, { headers, signal, origin }: ModelFetchRequest): Promise<OpenedSocket | undefined> {
    try {
      const opened = await this.#connect(toSocketUrl(url), { headers: toHandshake(headers), signal, origin });
      // A wrong key and too many requests are answers.
      return opened.kind === "refused" && ![401, 429].includes(opened.answer.status) ? undefined : opened;
    } catch (error) {
      if (signal.aborted) throw error;
      return undefined;
    }
  }

  #findKept(key: string, body: Body): Connection | undefined {
    const fitting = [...this.#idle].filter((one) => one.key === key && one.isUsable);
    return fitting.find((one) => one.continues(body)) ?? fitting[0];
  }

  #askAt(connection: Connection, body: Body, signal: AbortSignal): Promise<ModelFetchResponse | "unanswered"> {
    return connection.ask(body, signal, () => this.#keep(connection));
  }

  #keep(connection: Connection): void {
    this.#idle.add(connection);
    connection.rest(() => this.#idle.delete(connection));
    for (const oldest of this.#idle) {
      if (this.#idle.size <= mostIdle) break;
      this.#idle.delete(oldest);
      oldest.close();
    }
  }
}

const idleMs = 5 * 60_000;
/** Endpoints close a connection after an hour. */
const longestUseMs = 55 * 60_000;

/** One connection, which answers one request at a time. */
class Connection {
  /** Requests with the same key may use the connection. */
  readonly key: string;
  readonly #socket: ModelSocket;
  readonly #openedAt = Date.now();
  #last: Exchange | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: ModelSocket, key: string) {
    this.#socket = socket;
    this.key = key;
  }

  get isUsable(): boolean {
    return this.#socket.isOpen && Date.now() - this.#openedAt < longestUseMs;
  }

  /** Whether a request begins with everything that was said over this connection. */
  continues(body: Body): boolean {
    return this.#last !== undefined && additionsTo(this.#last, body) !== undefined;
  }

  /** "unanswered": the endpoint has closed the connection instead of answering, or does not answer over it any more. */
  async ask(body: Body, signal: AbortSignal, release: () => void): Promise<ModelFetchResponse | "unanswered"> {
    clearTimeout(this.#timer);
    const aborting = onAbort(signal, () => this.close());
    this.#socket.hold(true);
    let first: string | undefined;
    try {
      first = await this.#begin(body);
    } catch (error) {
      if (!isClosing(error)) throw error;
    } finally {
      if (first === undefined) {
        aborting[Symbol.dispose]();
        this.close();
      }
    }
    signal.throwIfAborted();
    if (first === undefined) return "unanswered";
    const refused = refusalIn(parse(first));
    const end = (): void => {
      aborting[Symbol.dispose]();
      if (this.isUsable) release();
      else this.close();
    };
    if (refused === undefined) return { status: 200, headers: eventStream, body: this.#events(first, body, end), isFromSocket: true };
    end();
    return refused;
  }

  /** Sends a request, and gives the first message of the answer. */
  async #begin(body: Body): Promise<string | undefined> {
    const last = this.#last;
    this.#last = undefined;
    const input = last && additionsTo(last, body);
    this.#send(input === undefined ? body : { ...body, previous_response_id: last!.responseId, input });
    const first = await this.#socket.receive();
    const code = first === undefined ? "" : errorCode(parse(first));
    if (code === "websocket_connection_limit_reached") return undefined;
    if (input === undefined || code !== "previous_response_not_found") return first;
    this.#send(body);
    return this.#socket.receive();
  }

  // A response over a connection is always a stream.
  #send({ stream: _stream, ...body }: Body): void {
    this.#socket.send(JSON.stringify({ type: "response.create", ...body }));
  }

  async *#events(first: string, body: Body, end: () => void): AsyncGenerator<Uint8Array> {
    let isComplete = false;
    try {
      for (let message: string | undefined = first; message !== undefined; message = await this.#socket.receive()) {
        const event = parse(message);
        const last = lastResponse(event);
        isComplete = last !== undefined;
        if (last !== undefined && last["status"] === "completed") this.#last = toExchange(body, last);
        // A line break is white space in JSON, and would end the event.
        yield encoder.encode(`data: ${message.replaceAll(/[\r\n]+/g, " ")}\n\n`);
        if (isComplete || errorCode(event) !== undefined) return;
      }
    } finally {
      // A caller that does not read to the end does not want the rest.
      if (!isComplete) this.close();
      end();
    }
  }

  /** Waits for the next request, for a while and without keeping the process running. */
  rest(onEnd: () => void): void {
    this.#socket.hold(false);
    this.#timer = setTimeout(() => {
      onEnd();
      this.close();
    }, idleMs).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#socket.close();
  }
}

const encoder = new TextEncoder();
const eventStream = new Map([["content-type", "text/event-stream"]]);

/** What was said over a connection. */
interface Exchange {
  readonly inputCount: number;
  /** Of the input, which may be long. */
  readonly digest: string;
  readonly responseId: string;
  readonly output: string;
}

function toExchange(body: Body, response: Body): Exchange | undefined {
  const input = listOf(body["input"]);
  const responseId = textOf(response["id"]);
  if (responseId === "") return undefined;
  return { inputCount: input.length, digest: digestOf(input), responseId, output: describeOutput(listOf(response["output"])) };
}

/** The input of a request after what the endpoint knows from the last exchange. Undefined: the request does not continue it. */
function additionsTo({ inputCount, digest, output }: Exchange, body: Body): readonly Body[] | undefined {
  const input = listOf(body["input"]);
  if (input.length <= inputCount || digestOf(input.slice(0, inputCount)) !== digest) return undefined;
  const rest = input.slice(inputCount);
  const next = rest.findIndex((item) => !isOutput(item));
  if (next === -1) return undefined;
  return describeOutput(rest.slice(0, next)) === output ? rest.slice(next) : undefined;
}

function digestOf(items: readonly Body[]): string {
  return createHash("sha256").update(JSON.stringify(items)).digest("base64");
}

function isOutput({ type, role }: Body): boolean {
  return type === "function_call" || type === "reasoning" || (type === "message" && role === "assistant");
}

/** The text and the calls of a response. Its other parts are the endpoint's own. */
function describeOutput(items: readonly Body[]): string {
  const texts = items.filter(({ type }) => type === "message").map(({ content }) => contentText(content));
  const calls = items.filter(({ type }) => type === "function_call").map(({ call_id, name, arguments: args }) => [call_id, name, args]);
  return JSON.stringify([texts.join(""), calls]);
}

function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return listOf(content)
    .map((part) => textOf(part["text"]) + textOf(part["refusal"]))
    .join("");
}

function listOf(value: unknown): readonly Body[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function parse(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // The reader of the answer reports what is not JSON.
    return undefined;
  }
}

function readBody(text: string | undefined): Body | undefined {
  const body = parse(text);
  return isRecord(body) ? body : undefined;
}

/** The response in an event that ends it. */
function lastResponse(event: unknown): Body | undefined {
  if (!isRecord(event) || !isRecord(event["response"])) return undefined;
  return /^response\.(?:completed|incomplete|failed)$/.test(textOf(event["type"])) ? event["response"] : undefined;
}

/** The code of an error event; undefined for other events. */
function errorCode(event: unknown): string | undefined {
  if (!isRecord(event) || event["type"] !== "error") return undefined;
  return textOf(isRecord(event["error"]) ? event["error"]["code"] : event["code"]);
}

/** An error event in place of an answer, as the response with its status that an HTTP endpoint would send. */
function refusalIn(event: unknown): ModelFetchResponse | undefined {
  if (!isRecord(event) || event["type"] !== "error") return undefined;
  const status = Number(event["status"] ?? event["status_code"]);
  if (!Number.isInteger(status) || status < 400 || status > 599) return undefined;
  const headers = isRecord(event["headers"]) ? event["headers"] : {};
  const error = isRecord(event["error"]) ? event["error"] : event;
  return {
    status,
    headers: { get: (name) => textOf(Object.hasOwn(headers, name) ? headers[name] : undefined) || undefined },
    body: once(encoder.encode(JSON.stringify({ error }))),
  };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function isClosing(error: unknown): boolean {
  return error instanceof Error && "closeCode" in error;
}

function isResponses(url: string): boolean {
  return new URL(url).pathname.endsWith("/responses");
}

function toSocketUrl(url: string): string {
  return url.replace(/^http/, "ws");
}

/** The headers of a request without those of its body. */
function toHandshake({ accept: _accept, "content-type": _type, ...headers }: Record<string, string>): Record<string, string> {
  return headers;
}

/** Other headers, such as who has caused a request, are those of the request that opens the connection. */
function keyOf(url: string, { model }: Body, { headers }: ModelFetchRequest): string {
  return JSON.stringify([url, model, headers["authorization"], headers["api-key"]]);
}
