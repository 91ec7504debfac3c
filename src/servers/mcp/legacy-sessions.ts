import { isInitializeRequest, type Server } from "@modelcontextprotocol/server";
import { HostError, toError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { Lifetime } from "../../base/lifetime.ts";
import type { Logger } from "../../base/logger.ts";
import type { SharedMcpSession } from "../../plugin-host/mcp-peers.ts";
import { type AnsweredError, answerError, type HttpExchange } from "../http/http-exchange.ts";
import { HttpSessionTransport } from "./http-session-transport.ts";
import { answerOutOfReach, readRequests, type SessionPeers, SharedSession } from "./shared-sessions.ts";

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
  /** Undefined: no other server can continue the session. */
  shared: SharedSession | undefined;
  usedAt: number;
  /** The number of running requests and open streams. */
  open: number;
}

/**
 * The Streamable HTTP sessions of protocol revisions up to 2025-11-25. Each has its own server. With peers, a request may arrive at any of them: the one
 * that has the session answers, and if that one is gone, the one where the request arrived continues the session.
 */
export class LegacySessions implements AsyncDisposable {
  readonly #connect: () => Promise<ServedConnection>;
  readonly #limits: LegacySessionLimits;
  readonly #log: Logger;
  readonly #peers: SessionPeers | undefined;
  /** The sessions that are being continued here. */
  readonly #continuing = new Map<string, Promise<boolean>>();
  readonly #entries = new Map<string, Entry>();
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #life = new Lifetime(() => new HostError("HOST_CLOSED", "The server is shutting down."));
  /** The number of sessions that are being created. */
  #beginning = 0;

  constructor(connect: () => Promise<ServedConnection>, limits: LegacySessionLimits, log: Logger, peers?: SessionPeers) {
    this.#peers = peers;
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
    if (entry !== undefined) this.#answer(entry, exchange);
    else if (this.#peers === undefined) answerError(exchange.outgoing, unknownSession);
    else await this.#answerElsewhere(this.#peers, String(id), exchange);
  }

  /** Answers a request that another server passed. False: its session is not here. */
  handlePassed(exchange: HttpExchange): boolean {
    const entry = this.#entries.get(String(exchange.incoming.headers["mcp-session-id"]));
    if (entry !== undefined) this.#answer(entry, exchange);
    return entry !== undefined;
  }

  /** Another server has the session now. */
  taken(sessionId: string): void {
    void this.#end(sessionId);
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

  async #answerElsewhere(peers: SessionPeers, sessionId: string, exchange: HttpExchange): Promise<void> {
    try {
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const found = await peers.find(sessionId);
        if (found === undefined) return answerError(exchange.outgoing, unknownSession);
        const outcome = found.owner === peers.id ? "absent" : await peers.pass(found.owner, exchange);
        if (outcome === "ended") return;
        // Also after a lost request: the next one is answered here.
        const isHere = await this.#continueOnce(peers, sessionId, found);
        if (outcome === "lost") return;
        const entry = isHere ? this.#entries.get(sessionId) : undefined;
        if (entry !== undefined) return this.#answer(entry, exchange);
      }
    } catch (error) {
      this.#log.warning("A request of an MCP client could not be passed to the server of its session.", { error: toError(error) });
    }
    if (!exchange.outgoing.headersSent) answerOutOfReach(exchange);
  }

  #continueOnce(peers: SessionPeers, sessionId: string, found: SharedMcpSession): Promise<boolean> {
    const running = this.#continuing.get(sessionId);
    if (running !== undefined) return running;
    const continuing = this.#continue(peers, sessionId, found).finally(() => this.#continuing.delete(sessionId));
    this.#continuing.set(sessionId, continuing);
    return continuing;
  }

  /** False: another server was quicker. */
  async #continue(peers: SessionPeers, sessionId: string, found: SharedMcpSession): Promise<boolean> {
    const requests = readRequests(found);
    if (this.#life.isOver || requests === undefined || !(await peers.take(sessionId, found))) return false;
    const { transport, connection } = await this.#create(await this.#connect(), new SharedSession(requests), sessionId);
    await transport.restore(sessionId, requests);
    this.#log.info("A session of an MCP client is continued here.", { owner: found.owner });
    // What has changed since, its client may not have heard.
    const { server } = connection;
    await Promise.all([server.sendToolListChanged(), server.sendPromptListChanged(), server.sendResourceListChanged()]);
    this.#makeRoom();
    return true;
  }

  async #create(connection: ServedConnection, shared: SharedSession | undefined, sessionId?: string): Promise<Entry> {
    const peers = this.#peers;
    const transport: HttpSessionTransport = new HttpSessionTransport((id) => {
      this.#entries.set(id, entry);
      return shared && peers?.keep(id, shared);
    }, peers !== undefined);
    const entry: Entry = { transport, connection, shared, usedAt: Date.now(), open: 0 };
    await connection.server.connect(transport);
    const { onclose } = transport;
    transport.onclose = () => {
      onclose?.();
      const id = transport.sessionId;
      if (id !== undefined && this.#entries.get(id) === entry) {
        this.#entries.delete(id);
        // Others continue the sessions of a server that is being stopped.
        if (!this.#life.isOver) void peers?.forget(id);
      }
      void connection.end().catch((error) => this.#log.warning("A session could not be closed properly.", { error: toError(error) }));
    };
    if (sessionId !== undefined) this.#entries.set(sessionId, entry);
    return entry;
  }

  async #open(connection: ServedConnection, exchange: HttpExchange): Promise<void> {
    const { body } = exchange;
    const shared = this.#peers === undefined || !isInitializeRequest(body) ? undefined : new SharedSession([body as never]);
    const entry = await this.#create(connection, shared);
    const { transport } = entry;
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
    const { shared, transport } = entry;
    if (shared === undefined || transport.sessionId === undefined || !isRecord(exchange.body)) return;
    if (shared.note(exchange.body)) void this.#peers?.keep(transport.sessionId, shared);
  }

  #makeRoom(): void {
    if (this.#entries.size <= this.#limits.maxSessions) return;
    const byUse = [...this.#entries].sort(([, a], [, b]) => Number(a.open > 0) - Number(b.open > 0) || a.usedAt - b.usedAt);
    const [oldest] = byUse;
    if (oldest !== undefined) void this.#expire(oldest[0]);
  }

  #sweep(): void {
    const since = Date.now() - this.#limits.idleMs;
    for (const [id, { usedAt, open, shared }] of this.#entries) {
      if (open === 0 && usedAt < since) void this.#expire(id);
      else if (shared?.isDue === true) void this.#peers?.keep(id, shared);
    }
  }

  async #expire(id: string): Promise<void> {
    await this.#end(id);
    await this.#peers?.forget(id);
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

/** Of a session that is taken by one server after another. */
const maxAttempts = 5;

const noSession: AnsweredError = { status: 400, message: "Mcp-Session-Id is missing. Send initialize first." };
// Status 404 makes a client start a new session.
const unknownSession: AnsweredError = {
  status: 404,
  code: -32001,
  message: "The session does not exist or has ended. Send initialize again.",
};
const tooManyBeginning: AnsweredError = { status: 503, message: "Too many sessions are starting at the same time. Try again." };
const shuttingDown: AnsweredError = { status: 503, message: "The server is shutting down." };
