import { isInitializeRequest, type Server } from "@modelcontextprotocol/server";
import { HostError, toError } from "../../base/errors.ts";
import { Lifetime } from "../../base/lifetime.ts";
import type { Logger } from "../../base/logger.ts";
import { type AnsweredError, answerError, type HttpExchange } from "../http/http-exchange.ts";
import { HttpSessionTransport } from "./http-session-transport.ts";

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

/** Shorter than the time after which common proxies close a silent connection. */
const keepAliveMs = 15_000;

interface Entry {
  readonly transport: HttpSessionTransport;
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
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #life = new Lifetime(() => new HostError("HOST_CLOSED", "The server is shutting down."));
  /** The number of sessions that are being created. */
  #beginning = 0;

  constructor(connect: () => Promise<ServedConnection>, limits: LegacySessionLimits, log: Logger) {
    this.#connect = connect;
    this.#limits = limits;
    this.#log = log;
    const sweeper = setInterval(() => this.#sweep(), Math.max(1_000, limits.idleMs / 10));
    const keepAlive = setInterval(() => this.#keepAlive(), keepAliveMs);
    this.#timers = [sweeper.unref(), keepAlive.unref()];
  }

  /** Answers a request of protocol revisions up to 2025-11-25. */
  async handle(exchange: HttpExchange): Promise<void> {
    const id = exchange.incoming.headers["mcp-session-id"];
    if (id === undefined) return isInitializeRequest(exchange.body) ? this.#begin(exchange) : answerError(exchange.outgoing, noSession);
    const entry = this.#entries.get(String(id));
    if (entry === undefined) answerError(exchange.outgoing, unknownSession);
    else this.#answer(entry, exchange);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#life.end();
    await Promise.all([...this.#entries.keys()].map((id) => this.#end(id)));
  }

  async #begin(exchange: HttpExchange): Promise<void> {
    if (this.#beginning >= this.#limits.maxSessions) return answerError(exchange.outgoing, tooManyBeginning);
    this.#beginning++;
    try {
      const begin = async (): Promise<void> => this.#open(await this.#connect(), exchange);
      // `#open` itself ends a session that is created after the shutdown has begun.
      await this.#life.open(begin, () => {});
    } catch (error) {
      if (!this.#life.isOver) throw error;
      if (!exchange.outgoing.headersSent) answerError(exchange.outgoing, shuttingDown);
    } finally {
      this.#beginning--;
    }
  }

  async #open(connection: ServedConnection, exchange: HttpExchange): Promise<void> {
    const transport = new HttpSessionTransport((id) => void this.#entries.set(id, entry));
    const entry: Entry = { transport, connection, usedAt: Date.now(), open: 0 };
    await connection.server.connect(transport);
    const { onclose } = transport;
    transport.onclose = () => {
      onclose?.();
      if (transport.sessionId !== undefined) this.#entries.delete(transport.sessionId);
      void connection.end().catch((error) => this.#log.warning("A session could not be closed properly.", { error: toError(error) }));
    };
    try {
      // No client knows the session if its client has disconnected meanwhile.
      if (!this.#life.isOver && !exchange.outgoing.destroyed) this.#answer(entry, exchange);
    } finally {
      // A refused request has no session.
      if (transport.sessionId === undefined || this.#life.isOver) await transport.close();
      else this.#makeRoom();
    }
  }

  #answer(entry: Entry, exchange: HttpExchange): void {
    entry.open++;
    exchange.outgoing.on("close", () => {
      entry.open--;
      entry.usedAt = Date.now();
    });
    entry.transport.handle(exchange);
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

  #keepAlive(): void {
    for (const { transport } of this.#entries.values()) transport.keepAlive();
  }

  async #end(id: string): Promise<void> {
    const entry = this.#entries.get(id);
    this.#entries.delete(id);
    await entry?.transport.close();
  }
}

const noSession: AnsweredError = { status: 400, message: "Mcp-Session-Id is missing. Send initialize first." };
// Status 404 makes a client start a new session.
const unknownSession: AnsweredError = {
  status: 404,
  code: -32001,
  message: "The session does not exist or has ended. Send initialize again.",
};
const tooManyBeginning: AnsweredError = { status: 503, message: "Too many sessions are starting at the same time. Try again." };
const shuttingDown: AnsweredError = { status: 503, message: "The server is shutting down." };
