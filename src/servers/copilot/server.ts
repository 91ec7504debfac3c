import { timingSafeEqual } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { HostError, toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";
import { Client } from "./client.ts";
import type { McpConfigFile } from "./mcp-config-file.ts";
import { answerRequest } from "./methods/dispatch.ts";
import type { Environment } from "./model-endpoint.ts";
import { SessionTimers } from "./session-timers.ts";
import type { WireStreams } from "./wire.ts";
import type { WireSession } from "./wire-session.ts";

export interface CopilotServerOptions {
  /** Makes the host. Called once, when the first client needs it: a ping does not. */
  openHost(): Promise<Host>;
  readonly log: Logger;
  readonly environment: Environment;
  /** What clients must say before anything else. Undefined: nothing. */
  readonly token?: string | undefined;
  /** What model endpoints are signed in to with, unless a session says otherwise. */
  readonly gitHubToken?: string | undefined;
  /** Where the host keeps its sessions; beside what happened there, their workspaces. */
  readonly sessionsDirectory: string;
  /** Where the MCP servers of this user are kept. */
  readonly mcpConfigFile: string;
  /** What the log does not show: see `hideSecrets`. Clients add to it. */
  readonly secrets?: Set<string> | undefined;
  /** Every call is allowed that no rule denies. */
  readonly allowsAll?: boolean | undefined;
  /** Milliseconds after which a session in which nothing happens is ended. Undefined: never. */
  readonly idleTimeout?: number | undefined;
  /** Milliseconds that a session without clients is kept, so that they can come back. Default: 30,000. */
  readonly orphanTimeout?: number | undefined;
}

/**
 * A runtime for clients of the Copilot SDK: any number of them, on any number of lines, over one host. Sessions belong to
 * the server, and clients come and go.
 */
export class CopilotServer implements AsyncDisposable {
  readonly options: CopilotServerOptions;
  readonly clients: Set<Client> = new Set();
  readonly sessions: Map<string, WireSession> = new Map();
  /** The folders that clients said are trusted, while the server runs. */
  readonly trustedFolders: Set<string> = new Set();
  /** Texts that clients want in no log. */
  readonly secrets: Set<string>;
  readonly timers: SessionTimers;
  /** Folders of plugins that a client brings for all of its sessions. */
  pluginDirectories: readonly string[] = [];
  #mcpConfig: McpConfigFile | undefined;
  /** Settles when a client wanted the server to end. */
  readonly shutdown: Promise<void>;
  #requestShutdown: () => void = () => {};
  #host: Promise<Host> | undefined;
  #closed: Promise<void> | undefined;
  readonly #news = new Set<WireSession>();

  constructor(options: CopilotServerOptions) {
    this.options = options;
    this.secrets = options.secrets ?? new Set();
    this.timers = new SessionTimers(this);
    this.shutdown = new Promise((resolve) => {
      this.#requestShutdown = resolve;
    });
  }

  get log(): Logger {
    return this.options.log;
  }

  /** Takes a client on. It is let go when its line is closed. */
  accept(streams: WireStreams): Client {
    const client = new Client(streams, (from) => answerRequest(this, from), this.log);
    client.isAuthenticated = this.options.token === undefined;
    this.clients.add(client);
    void client.wire.closed.then(() => this.#release(client)).catch((error) => this.#report(error));
    return client;
  }

  host(): Promise<Host> {
    if (this.#closed !== undefined) return Promise.reject(new HostError("HOST_CLOSED", "The server is ending."));
    this.#host ??= this.options.openHost();
    // One that could not be made is tried again by the next who needs it.
    this.#host.catch(() => {
      this.#host = undefined;
    });
    return this.#host;
  }

  /** The MCP servers that this user configured through a client. @throws HostError `MCP_CONFIG`. */
  async mcpConfig(): Promise<McpConfigFile> {
    const { McpConfigFile: File } = await import("./mcp-config-file.ts");
    this.#mcpConfig ??= new File(this.options.mcpConfigFile);
    return this.#mcpConfig;
  }

  /** The host if anybody has needed it so far. */
  get openedHost(): Promise<Host> | undefined {
    return this.#host;
  }

  accepts(token: string | undefined): boolean {
    const wanted = this.options.token;
    if (wanted === undefined) return true;
    const [given, known] = [Buffer.from(token ?? ""), Buffer.from(wanted)];
    return given.length === known.length && timingSafeEqual(given, known);
  }

  /** Tells every client that a session began, changed or is gone. */
  tellLifecycle(type: "session.created" | "session.updated" | "session.deleted", sessionId: string, session?: WireSession): void {
    const times = session && { startTime: session.createdAt.toISOString(), modifiedTime: session.modifiedAt.toISOString() };
    const json = JSON.stringify({ type, sessionId, ...(times && { metadata: times }) });
    for (const { wire, isAuthenticated } of this.clients) if (isAuthenticated) wire.notify("session.lifecycle", json);
  }

  /** Tells of changes once for all that happen in one turn of the event loop. */
  onChanged(session: WireSession): void {
    if (this.#news.size === 0) void this.#tellNews();
    this.#news.add(session);
  }

  async #tellNews(): Promise<void> {
    await nextTurn();
    const changed = [...this.#news];
    this.#news.clear();
    for (const session of changed)
      if (this.sessions.get(session.id) === session) this.tellLifecycle("session.updated", session.id, session);
  }

  /** Ends a session, whoever is in it. */
  async end(session: WireSession): Promise<void> {
    this.sessions.delete(session.id);
    await session.close();
  }

  requestShutdown(): void {
    this.#requestShutdown();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.timers[Symbol.dispose]();
    for (const client of this.clients) client.wire.close();
    await Promise.all([...this.sessions.values()].map((session) => this.end(session)));
    await (await this.#host?.catch(() => undefined))?.close();
    this.#requestShutdown();
  }

  async #release(client: Client): Promise<void> {
    this.clients.delete(client);
    if (this.#closed !== undefined) return;
    const { dropClient } = await import("./sessions.ts");
    await dropClient(this, client);
  }

  #report(error: unknown): void {
    this.log.error("A client could not be let go of properly.", { error: toError(error) });
  }
}
