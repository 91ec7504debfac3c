import { randomBytes, randomUUID } from "node:crypto";
import {
  DEFAULT_NEGOTIATED_PROTOCOL_VERSION,
  isInitializeRequest,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type RequestId,
  SUPPORTED_PROTOCOL_VERSIONS,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/server";
import { type AnsweredError, answerError, type HttpExchange, type RequestHead, type ResponseSink } from "../http/http-exchange.ts";
import { EventStream, eventText } from "./event-stream.ts";
import { readMessage } from "./json-rpc-message.ts";
import { lostAnswer, lostEvents } from "./passed-response.ts";
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
/** Characters of the ids of requests in the id of an event. */
const maxStreamId = 400;
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
  readonly #onOpened: (sessionId: string) => Promise<void> | undefined;
  /** Until it settles, the client does not get to know the session. */
  #opening: Promise<void> | undefined;
  /** Undefined: this process alone knows the session. */
  readonly #incarnation: string | undefined;
  readonly #events: ReplayStore;
  /** The connected streams. */
  readonly #connected = new Map<string, EventStream>();
  readonly #answers = new Map<RequestId, AnswerStream>();
  #versions: readonly string[] = SUPPORTED_PROTOCOL_VERSIONS;
  #headers: Readonly<Record<string, string>> = {};
  #streamCount = 0;
  #isClosed = false;
  /** A request of the past whose answer no client waits for. */
  #restoring: { readonly id: RequestId; readonly done: () => void } | undefined;
  #isRestored = false;

  /** `onOpened` is called when a client has initialized the session. `isShared`: another process may continue it. */
  constructor(onOpened: (sessionId: string) => Promise<void> | undefined, isShared = false) {
    this.#onOpened = onOpened;
    // Ids that no other process gives: a client that resumes a stream may have got them from any.
    const incarnation = isShared ? randomBytes(6).toString("hex") : undefined;
    this.#incarnation = incarnation;
    this.#events = new ReplayStore(incarnation === undefined ? undefined : (count, stream) => `${incarnation}.${count}.${stream}`);
  }

  /** Continues a session that another process had, by its requests that changed it. Their answers were sent there. */
  async restore(sessionId: string, requests: readonly JSONRPCRequest[]): Promise<void> {
    this.#isRestored = true;
    this.#begin(sessionId);
    for (const [index, request] of requests.entries()) {
      const id = `restored-${index}`;
      await new Promise<void>((resolve) => {
        this.#restoring = { id, done: resolve };
        this.onmessage?.({ ...request, id });
      });
    }
    this.#restoring = undefined;
    this.onmessage?.({ jsonrpc: "2.0", method: "notifications/initialized" });
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
    if (requestId !== undefined && requestId === this.#restoring?.id) return isAnswer ? this.#restoring.done() : undefined;
    if (this.#opening !== undefined) await this.#opening;
    this.#opening = undefined;
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
    const stream: AnswerStream = { id: this.#streamId(requests), requests, unanswered: new Set(requests) };
    for (const id of stream.requests) {
      // A stream does not wait for a request whose id its client has used again.
      this.#answers.get(id)?.unanswered.delete(id);
      this.#answers.set(id, stream);
    }
    const isPrimed = version >= firstWithEmptyEvents && this.#versions.includes(version);
    this.#connect(stream.id, outgoing, isPrimed ? `id: ${this.#events.add(stream.id, "")}\nretry: ${retryMs}\ndata: \n\n` : "");
  }

  /** That of a shared session says which requests it answers, for the process that continues the session. */
  #streamId(requests: readonly RequestId[]): string {
    const count = String(++this.#streamCount);
    if (this.#incarnation === undefined) return count;
    const ids = Buffer.from(JSON.stringify(requests)).toString("base64url");
    return ids.length > maxStreamId ? count : `${count}-${ids}`;
  }

  #get({ incoming, outgoing }: HttpExchange): AnsweredError | undefined {
    if (!incoming.headers.accept?.includes("text/event-stream")) return notAcceptable("text/event-stream");
    const refusal = this.#checkHeaders(incoming);
    if (refusal !== undefined) return refusal;
    const lastEventId = incoming.headers["last-event-id"];
    if (typeof lastEventId === "string" && lastEventId !== "") return this.#resume(lastEventId, outgoing);
    return this.#listen(outgoing);
  }

  #listen(outgoing: ResponseSink): AnsweredError | undefined {
    if (this.#connected.has(standaloneId)) return conflict("Only one SSE stream is allowed per session");
    const stream = this.#connect(standaloneId, outgoing);
    // The client had its stream elsewhere, so it has seen nothing of this one.
    if (this.#isRestored) for (const { id, data } of this.#events.all(standaloneId)) stream.write(eventText(id, data));
    return undefined;
  }

  #resume(lastEventId: string, outgoing: ResponseSink): AnsweredError | undefined {
    const streamId = this.#events.streamOf(lastEventId);
    if (streamId === undefined) return this.#resumeLost(lastEventId, outgoing);
    if (this.#connected.has(streamId)) return conflict("Stream already has an active connection");
    const stream = this.#connect(streamId, outgoing);
    for (const { id, data } of this.#events.after(lastEventId)) stream.write(eventText(id, data));
    const isOpen = streamId === standaloneId || [...this.#answers.values()].some(({ id }) => id === streamId);
    if (!isOpen) this.#end(streamId);
    return undefined;
  }

  /** A stream of the process that had the session before. */
  #resumeLost(lastEventId: string, outgoing: ResponseSink): AnsweredError | undefined {
    const invalid: AnsweredError = { status: 400, message: "Invalid event ID format" };
    const [, incarnation, streamId, ids] = /^([\da-f]{12})\.\d+\.(standalone|\d+-([\w-]+))$/.exec(lastEventId) ?? [];
    if (!this.#isRestored || streamId === undefined || incarnation === this.#incarnation) return invalid;
    if (ids === undefined) return this.#listen(outgoing);
    const requests = readIds(ids);
    if (requests === undefined) return invalid;
    outgoing.writeHead(200, this.#headers).end(lostEvents(requests.map(lostAnswer)));
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
    const sessionId = randomUUID();
    this.#begin(sessionId);
    this.#opening = this.#onOpened(sessionId);
    return undefined;
  }

  #begin(sessionId: string): void {
    this.sessionId = sessionId;
    this.#headers = {
      "Content-Type": "text/event-stream",
      "Cache-Control": "no-cache, no-transform",
      "X-Accel-Buffering": "no",
      "Mcp-Session-Id": sessionId,
    };
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

/** The ids in the id of a stream. Undefined: it is not such an id. */
function readIds(text: string): readonly RequestId[] | undefined {
  try {
    const ids: unknown = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
    const isId = (id: unknown): id is RequestId => typeof id === "string" || typeof id === "number";
    return Array.isArray(ids) && ids.every(isId) ? ids : undefined;
  } catch {
    // No process made it.
    return undefined;
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
