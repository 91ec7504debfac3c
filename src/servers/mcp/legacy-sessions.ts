import { randomUUID } from "node:crypto";
import {
  type EventStore,
  isInitializeRequest,
  type JSONRPCMessage,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { HostError, toError } from "../../base/errors.ts";
import { Lifetime } from "../../base/lifetime.ts";
import type { Logger } from "../../base/logger.ts";

export interface LegacySessionLimits {
  /** The limit of open sessions. Beyond it, the least recently used one is ended. */
  readonly maxSessions: number;
  /** Milliseconds after which an unused session is ended. */
  readonly idleMs: number;
}

/** A connected server. `end` ends its session. */
export interface ServedConnection {
  readonly server: Server;
  end(): Promise<void>;
}

/** The delay after which clients resume an interrupted stream. */
const retryMs = 1_000;

interface Entry {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly connection: ServedConnection;
  usedAt: number;
  /** The number of running requests and open streams. */
  open: number;
}

/** The Streamable HTTP sessions of protocol revisions up to 2025-11-25. Each has its own server. */
export class LegacySessions implements AsyncDisposable {
  readonly #connect: () => Promise<ServedConnection>;
  readonly #limits: LegacySessionLimits;
  readonly #log: Logger;
  readonly #entries = new Map<string, Entry>();
  readonly #sweeper: NodeJS.Timeout;
  readonly #life = new Lifetime(() => new HostError("HOST_CLOSED", "The server is shutting down."));
  /** The number of sessions that are being created. */
  #beginning = 0;

  constructor(connect: () => Promise<ServedConnection>, limits: LegacySessionLimits, log: Logger) {
    this.#connect = connect;
    this.#limits = limits;
    this.#log = log;
    this.#sweeper = setInterval(() => this.#sweep(), Math.max(1_000, limits.idleMs / 10));
    this.#sweeper.unref();
  }

  async fetch(request: Request, parsedBody: unknown): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    if (id === null)
      return isInitializeRequest(parsedBody)
        ? this.#begin(request, parsedBody)
        : refuse(400, -32000, "Mcp-Session-Id is missing. Send initialize first.");
    const entry = this.#entries.get(id);
    // Status 404 makes a client start a new session.
    if (entry === undefined) return refuse(404, -32001, "The session does not exist or has ended. Send initialize again.");
    return this.#answer(entry, request, parsedBody);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#sweeper);
    await this.#life.end();
    await Promise.all([...this.#entries.keys()].map((id) => this.#end(id)));
  }

  async #begin(request: Request, parsedBody: unknown): Promise<Response> {
    if (this.#beginning >= this.#limits.maxSessions)
      return refuse(503, -32000, "Too many sessions are starting at the same time. Try again.");
    this.#beginning++;
    try {
      const begin = async (): Promise<Response> => this.#open(await this.#connect(), request, parsedBody);
      // `#open` itself ends a session that is created after the shutdown has begun.
      return await this.#life.open(begin, () => {});
    } catch (error) {
      if (!this.#life.isOver) throw error;
      return refuse(503, -32000, "The server is shutting down.");
    } finally {
      this.#beginning--;
    }
  }

  async #open(connection: ServedConnection, request: Request, parsedBody: unknown): Promise<Response> {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      // Streams begin with an event that has an id and no data, so that clients can resume an interrupted one (SEP-1699).
      eventStore: new ReplayStore(),
      retryInterval: retryMs,
      onsessioninitialized: (id) => void this.#entries.set(id, entry),
    });
    const entry: Entry = { transport, connection, usedAt: Date.now(), open: 0 };
    await connection.server.connect(transport);
    const { onclose } = transport;
    transport.onclose = () => {
      onclose?.();
      if (transport.sessionId !== undefined) this.#entries.delete(transport.sessionId);
      void connection.end().catch((error) => this.#log.warning("A session could not be closed properly.", { error: toError(error) }));
    };
    try {
      return await this.#answer(entry, request, parsedBody);
    } finally {
      // A refused request has no session.
      if (transport.sessionId === undefined || this.#life.isOver) await transport.close();
      else this.#makeRoom();
    }
  }

  async #answer(entry: Entry, request: Request, parsedBody: unknown): Promise<Response> {
    entry.open++;
    const done = (): void => {
      entry.open--;
      entry.usedAt = Date.now();
    };
    try {
      const response = await entry.transport.handleRequest(request, { parsedBody });
      return whenSent(response, done);
    } catch (error) {
      done();
      throw error;
    }
  }

  #makeRoom(): void {
    if (this.#entries.size <= this.#limits.maxSessions) return;
    const byUse = [...this.#entries].sort(([, a], [, b]) => Number(a.open > 0) - Number(b.open > 0) || a.usedAt - b.usedAt);
    const [oldest] = byUse;
    if (oldest !== undefined) void this.#end(oldest[0]);
  }

  #sweep(): void {
    const since = Date.now() - this.#limits.idleMs;
    for (const [id, { usedAt, open }] of this.#entries) if (open === 0 && usedAt < since) void this.#end(id);
  }

  async #end(id: string): Promise<void> {
    const entry = this.#entries.get(id);
    this.#entries.delete(id);
    await entry?.transport.close();
  }
}

/** Calls `done` when a response has been sent, has failed, or its reader has disconnected. */
function whenSent(response: Response, done: () => void): Response {
  if (response.body === null) {
    done();
    return response;
  }
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done: isOver, value } = await reader.read().catch((error) => {
        done();
        throw error;
      });
      if (!isOver) return controller.enqueue(value);
      done();
      controller.close();
    },
    async cancel(reason) {
      done();
      await reader.cancel(reason);
    },
  });
  return new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers });
}

function refuse(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", id: null, error: { code, message } }, { status });
}

interface StoredEvent {
  readonly streamId: string;
  readonly message: JSONRPCMessage;
  readonly size: number;
}

/** The limits of the events that each session stores for clients that reconnect. */
const maxEvents = 256;
const maxCharacters = 512 * 1024;

/**
 * The newest events of one session, for clients that resume a stream with `Last-Event-ID`. The oldest events are dropped.
 * @internal
 */
export class ReplayStore implements EventStore {
  /** Oldest first. */
  readonly #events = new Map<string, StoredEvent>();
  #characters = 0;
  #count = 0;

  async storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    const id = String(++this.#count);
    const size = JSON.stringify(message).length;
    this.#events.set(id, { streamId, message, size });
    this.#characters += size;
    for (const [oldest, { size: freed }] of this.#events) {
      // The newest event is kept regardless of its size, since its client could not get it otherwise.
      if (oldest === id || (this.#events.size <= maxEvents && this.#characters <= maxCharacters)) break;
      this.#events.delete(oldest);
      this.#characters -= freed;
    }
    return id;
  }

  async getStreamIdForEventId(eventId: string): Promise<string | undefined> {
    return this.#events.get(eventId)?.streamId;
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send(eventId: string, message: JSONRPCMessage): Promise<void> },
  ): Promise<string> {
    const last = this.#events.get(lastEventId);
    if (last === undefined) throw new Error("The event is no longer stored.");
    const position = Number(lastEventId);
    for (const [id, { streamId, message }] of [...this.#events]) {
      if (Number(id) > position && streamId === last.streamId && "jsonrpc" in message) await send(id, message);
    }
    return last.streamId;
  }
}
