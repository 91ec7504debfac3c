import { randomUUID } from "node:crypto";
import {
  DEFAULT_NEGOTIATED_PROTOCOL_VERSION,
  isInitializeRequest,
  type JSONRPCMessage,
  type RequestId,
  SUPPORTED_PROTOCOL_VERSIONS,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/server";
import { type AnsweredError, answerError, type HttpExchange, type RequestHead, type ResponseSink } from "../http/http-exchange.ts";
import { EventStream, eventText } from "./event-stream.ts";
import { readMessage } from "./json-rpc-message.ts";
import { ReplayStore } from "./replay-store.ts";

/** A stream that answers requests. It outlives its response, so that a client can resume it. */
interface AnswerStream {
  readonly id: string;
  /** The requests of the stream that have no answer yet. */
  readonly unanswered: Set<RequestId>;
  readonly requests: readonly RequestId[];
}

/** The delay after which clients resume an interrupted stream. */
const retryMs = 1_000;
const maxBatch = 100;
/** The stream of messages that belong to no request. */
const standaloneId = "standalone";
/** Clients of earlier revisions expect data in every event. */
const firstWithEmptyEvents = "2025-11-25";
const sessionNotFound: AnsweredError = { status: 404, code: -32001, message: "Session not found" };

/**
 * The server's side of one Streamable HTTP session of protocol revisions up to 2025-11-25. It writes to the
 * response itself, and answers as the SDK's transport does: requests with a stream of events that can be resumed, other messages with 202.
 */
export class HttpSessionTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  sessionId?: string;
  readonly #onOpened: (sessionId: string) => void;
  readonly #events = new ReplayStore();
  /** The connected streams. */
  readonly #connected = new Map<string, EventStream>();
  readonly #answers = new Map<RequestId, AnswerStream>();
  #versions: readonly string[] = SUPPORTED_PROTOCOL_VERSIONS;
  #headers: Readonly<Record<string, string>> = {};
  #streamCount = 0;
  #isClosed = false;

  /** `onOpened` is called when a client has initialized the session. */
  constructor(onOpened: (sessionId: string) => void) {
    this.#onOpened = onOpened;
  }

  async start(): Promise<void> {
    // Each request has its own connection.
  }

  setSupportedProtocolVersions(versions: string[]): void {
    this.#versions = versions;
  }

  /** Answers a request. Its Content-Type must have been checked. */
  handle(exchange: HttpExchange): void {
    const refusal = this.#isClosed ? sessionNotFound : this.#take(exchange);
    if (refusal === undefined) return;
    this.onerror?.(new Error(refusal.message));
    answerError(exchange.outgoing, refusal);
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const isAnswer = !("method" in message);
    const requestId = isAnswer ? message.id : options?.relatedRequestId;
    if (requestId !== undefined) return this.#sendOn(this.#answersTo(requestId), message, isAnswer ? requestId : undefined);
    if (isAnswer) throw new Error("An answer without the id of its request cannot be sent.");
    const data = JSON.stringify(message);
    const event = eventText(this.#events.add(standaloneId, data), data);
    this.#connected.get(standaloneId)?.write(event);
  }

  /** Sends a comment on the connected streams, so that proxies do not close them. */
  keepAlive(): void {
    for (const stream of this.#connected.values()) stream.write(": keepalive\n\n");
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const stream of this.#connected.values()) stream.end();
    this.#connected.clear();
    this.#answers.clear();
    this.onclose?.();
  }

  #take(exchange: HttpExchange): AnsweredError | undefined {
    switch (exchange.incoming.method) {
      case "POST":
        return this.#post(exchange);
      case "GET":
        return this.#get(exchange);
      case "DELETE":
        return this.#delete(exchange);
      default:
        return { status: 405, message: "Method not allowed.", headers: { Allow: "GET, POST, DELETE" } };
    }
  }

  #post(exchange: HttpExchange): AnsweredError | undefined {
    const { incoming, outgoing, body } = exchange;
    const { accept } = incoming.headers;
    if (!accept?.includes("application/json") || !accept.includes("text/event-stream"))
      return notAcceptable("both application/json and text/event-stream");
    const messages = readMessages(body);
    if ("status" in messages) return messages;
    const initialize = messages.find(isInitialize);
    const refusal = initialize === undefined ? this.#checkHeaders(incoming) : this.#open(messages.length);
    if (refusal !== undefined) return refusal;
    const requests = messages.flatMap((message) => ("method" in message && "id" in message ? [message.id] : []));
    if (requests.length > 0) this.#stream(outgoing, requests, versionOf(initialize, incoming));
    for (const message of messages) this.onmessage?.(message);
    if (requests.length === 0) outgoing.writeHead(202).end();
    return undefined;
  }

  /** Begins the stream of the answers to requests. */
  #stream(outgoing: ResponseSink, requests: readonly RequestId[], version: string): void {
    const stream: AnswerStream = { id: String(++this.#streamCount), requests, unanswered: new Set(requests) };
    for (const id of stream.requests) {
      // A stream does not wait for a request whose id its client has used again.
      this.#answers.get(id)?.unanswered.delete(id);
      this.#answers.set(id, stream);
    }
    const isPrimed = version >= firstWithEmptyEvents && this.#versions.includes(version);
    this.#connect(stream.id, outgoing, isPrimed ? `id: ${this.#events.add(stream.id, "")}\nretry: ${retryMs}\ndata: \n\n` : "");
  }

  #get({ incoming, outgoing }: HttpExchange): AnsweredError | undefined {
    if (!incoming.headers.accept?.includes("text/event-stream")) return notAcceptable("text/event-stream");
    const refusal = this.#checkHeaders(incoming);
    if (refusal !== undefined) return refusal;
    const lastEventId = incoming.headers["last-event-id"];
    if (typeof lastEventId === "string" && lastEventId !== "") return this.#resume(lastEventId, outgoing);
    if (this.#connected.has(standaloneId)) return conflict("Only one SSE stream is allowed per session");
    this.#connect(standaloneId, outgoing);
    return undefined;
  }

  #resume(lastEventId: string, outgoing: ResponseSink): AnsweredError | undefined {
    const streamId = this.#events.streamOf(lastEventId);
    if (streamId === undefined) return { status: 400, message: "Invalid event ID format" };
    if (this.#connected.has(streamId)) return conflict("Stream already has an active connection");
    const stream = this.#connect(streamId, outgoing);
    for (const { id, data } of this.#events.after(lastEventId)) stream.write(eventText(id, data));
    const isOpen = streamId === standaloneId || [...this.#answers.values()].some(({ id }) => id === streamId);
    if (!isOpen) this.#end(streamId);
    return undefined;
  }

  #delete({ incoming, outgoing }: HttpExchange): AnsweredError | undefined {
    const refusal = this.#checkHeaders(incoming);
    if (refusal !== undefined) return refusal;
    outgoing.writeHead(200).end();
    void this.close();
    return undefined;
  }

  #open(messageCount: number): AnsweredError | undefined {
    if (this.sessionId !== undefined) return { status: 400, code: -32600, message: "Invalid Request: Server already initialized" };
    if (messageCount > 1) return { status: 400, code: -32600, message: "Invalid Request: Only one initialization request is allowed" };
    this.sessionId = randomUUID();
    this.#headers = {
      "Content-Type": "text/event-stream",
      "Cache-Control": "no-cache, no-transform",
      "X-Accel-Buffering": "no",
      "Mcp-Session-Id": this.sessionId,
    };
    this.#onOpened(this.sessionId);
    return undefined;
  }

  #checkHeaders({ headers }: RequestHead): AnsweredError | undefined {
    if (this.sessionId === undefined) return { status: 400, message: "Bad Request: Server not initialized" };
    if (headers["mcp-session-id"] !== this.sessionId) return sessionNotFound;
    const version = headers["mcp-protocol-version"];
    if (version === undefined || this.#versions.includes(String(version))) return undefined;
    const message = `Bad Request: Unsupported protocol version: ${version} (supported versions: ${this.#versions.join(", ")})`;
    return { status: 400, message };
  }

  #connect(streamId: string, outgoing: ResponseSink, opening?: string): EventStream {
    const stream = new EventStream(outgoing, this.#headers, opening);
    this.#connected.set(streamId, stream);
    outgoing.on("close", () => {
      if (this.#connected.get(streamId) === stream) this.#connected.delete(streamId);
    });
    return stream;
  }

  #answersTo(requestId: RequestId): AnswerStream {
    const stream = this.#answers.get(requestId);
    if (stream === undefined) throw new Error(`No stream waits for messages about the request ${requestId}.`);
    return stream;
  }

  #sendOn(stream: AnswerStream, message: JSONRPCMessage, answered: RequestId | undefined): void {
    const data = JSON.stringify(message);
    const event = eventText(this.#events.add(stream.id, data), data);
    if (answered !== undefined) stream.unanswered.delete(answered);
    if (answered === undefined || stream.unanswered.size > 0) {
      this.#connected.get(stream.id)?.write(event);
      return;
    }
    for (const id of stream.requests) if (this.#answers.get(id) === stream) this.#answers.delete(id);
    this.#end(stream.id, event);
  }

  #end(streamId: string, text?: string): void {
    this.#connected.get(streamId)?.end(text);
    this.#connected.delete(streamId);
  }
}

/** The messages of a body, or why it has none. */
function readMessages(body: unknown): readonly JSONRPCMessage[] | AnsweredError {
  if (!Array.isArray(body)) return readAll([body]);
  if (body.length <= maxBatch) return readAll(body);
  return { status: 400, code: -32600, message: `Invalid Request: Batch must not exceed ${maxBatch} messages` };
}

function readAll(values: readonly unknown[]): readonly JSONRPCMessage[] | AnsweredError {
  try {
    return values.map(readMessage);
  } catch {
    return { status: 400, code: -32700, message: "Parse error: Invalid JSON-RPC message" };
  }
}

function isInitialize(message: JSONRPCMessage): boolean {
  return "method" in message && message.method === "initialize" && isInitializeRequest(message);
}

/** The revision that a client speaks: that of its handshake, or of the header. */
function versionOf(initialize: JSONRPCMessage | undefined, { headers }: RequestHead): string {
  if (initialize === undefined) return String(headers["mcp-protocol-version"] ?? DEFAULT_NEGOTIATED_PROTOCOL_VERSION);
  return String((initialize as { readonly params?: { readonly protocolVersion?: unknown } }).params?.protocolVersion);
}

function notAcceptable(types: string): AnsweredError {
  return { status: 406, message: `Not Acceptable: Client must accept ${types}` };
}

function conflict(why: string): AnsweredError {
  return { status: 409, message: `Conflict: ${why}` };
}
