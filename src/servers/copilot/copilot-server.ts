import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { HostError, toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";
import { isInside } from "../../io/confine-path.ts";
import { createTokenCheck } from "../../io/net/connection-gate.ts";
import { Client } from "./clients/client.ts";
import type { WireStreams } from "./connection/wire.ts";
import type { ServerContext } from "./context.ts";
import type { CopilotServerOptions } from "./copilot-options.ts";
import { answerRequest } from "./methods/dispatch.ts";
import type { PluginLibrary } from "./plugins/plugin-library.ts";
import type { CopilotSession } from "./sessions/copilot-session.ts";
import type { McpConfigFile } from "./sessions/mcp-config-file.ts";

/** A tool that ignores that its call was cancelled may run for ever. */
const endingMs = 2_000;
/** Milliseconds that those who list sessions may be behind. */
const notifyPauseMs = 50;

/**
 * A runtime for clients of the Copilot SDK: any number of them, on any number of lines, over one host. Sessions belong to
 * the server, and clients come and go.
 */
export class CopilotServer implements ServerContext, AsyncDisposable {
  readonly options: CopilotServerOptions;
  readonly clients: Set<Client> = new Set();
  readonly sessions: Map<string, CopilotSession> = new Map();
  /** The folders that clients said are trusted, while the server runs. */
  readonly trustedFolders: Set<string> = new Set();
  /** Texts that clients want in no log. */
  readonly secrets: Set<string>;
  readonly timers: SessionTimers;
  /** Folders of plugins that a client brings for all sessions. */
  builtinPlugins: readonly string[] = [];
  #mcpConfig: McpConfigFile | undefined;
  #pluginLibrary: PluginLibrary | undefined;
  /** Settles when a client wanted the server to end. */
  readonly shutdown: Promise<void>;
  #requestShutdown: () => void = () => {};
  #host: Promise<Host> | undefined;
  #closed: Promise<void> | undefined;
  readonly #isToken: ((given: string) => boolean) | undefined;
  readonly #changed = new Set<CopilotSession>();
  #isNotifying = false;
  #hasWorked = false;

  constructor(options: CopilotServerOptions) {
    this.options = options;
    this.secrets = options.secrets ?? new Set();
    this.#isToken = options.token === undefined ? undefined : createTokenCheck(options.token);
    this.timers = new SessionTimers(this);
    this.shutdown = new Promise((resolve) => {
      this.#requestShutdown = resolve;
    });
  }

  get pluginDirectories(): readonly string[] {
    return [...(this.options.pluginDirectories ?? []), ...this.builtinPlugins];
  }

  get log(): Logger {
    return this.options.log;
  }

  /** Takes on the client that started this process, at the other end of its streams. */
  acceptParent(streams: WireStreams): Client {
    const client = this.accept(streams);
    if (this.#isToken === undefined) client.admit();
    return client;
  }

  /** Takes a client on: until it is admitted it may only introduce itself. It is let go when its line is closed. */
  accept(streams: WireStreams): Client {
    const client = new Client(streams, (from) => answerRequest(this, from), this.log);
    this.clients.add(client);
    void client.wire.closed.then(() => this.#release(client)).catch((error) => this.#report(error));
    return client;
  }

  host(): Promise<Host> {
    if (this.#closed !== undefined) return Promise.reject(new HostError("HOST_CLOSED", "The server is shutting down."));
    this.#host ??= this.options.openHost();
    // One that could not be made is tried again by the next who needs it.
    this.#host.catch(() => {
      this.#host = undefined;
    });
    return this.#host;
  }

  /** A client has connected: what its first session needs is loaded meanwhile. */
  warmUp(): void {
    if (this.options.warmsUp !== true || this.#host !== undefined || this.#closed !== undefined) return;
    // After the answer that the client waits for. Whoever needs what failed here tries it again, and hears why.
    setImmediate(() => void this.#warmUp().catch(() => {}));
  }

  async #warmUp(): Promise<void> {
    const { warmUp } = await import("./warm-up.ts");
    await warmUp(await this.host());
  }

  /** The MCP servers that this user configured through a client. @throws HostError `MCP_CONFIG`. */
  async mcpConfig(): Promise<McpConfigFile> {
    const { McpConfigFile: File } = await import("./sessions/mcp-config-file.ts");
    this.#mcpConfig ??= new File(this.options.mcpConfigFile);
    return this.#mcpConfig;
  }

  /** The plugins that this user installed through a client. @throws HostError `PLUGIN_LIBRARY`. */
  async pluginLibrary(): Promise<PluginLibrary> {
    const { PluginLibrary: Library } = await import("./plugins/plugin-library.ts");
    const { pluginLibraryDirectory: directory, pluginDataDirectory: dataDirectory } = this.options;
    this.#pluginLibrary ??= new Library({ directory, dataDirectory, log: this.log });
    return this.#pluginLibrary;
  }

  /** The host if anybody has needed it so far. */
  get openedHost(): Promise<Host> | undefined {
    return this.#host;
  }

  /** Whether a client may call that gives this token, or none. */
  accepts(token?: string): boolean {
    return this.#isToken === undefined || (token !== undefined && this.#isToken(token));
  }

  /** Tells every client that a session began, changed or is gone. */
  notifyLifecycle(type: "session.created" | "session.updated" | "session.deleted", sessionId: string, session?: CopilotSession): void {
    const times = session && { startTime: session.createdAt.toISOString(), modifiedTime: session.modifiedAt.toISOString() };
    const json = JSON.stringify({ type, sessionId, ...(times && { metadata: times }) });
    for (const { wire, isAdmitted } of this.clients) if (isAdmitted) wire.notify("session.lifecycle", json);
  }

  /** Tells of changes, but not of each: in a turn there are many. */
  onChanged(session: CopilotSession): void {
    this.#changed.add(session);
    if (!this.#isNotifying) void this.#notifyChanged();
  }

  onTurnOver(): void {
    if (!this.#hasWorked) this.options.onFirstTurnOver?.();
    this.#hasWorked = true;
  }

  async #notifyChanged(): Promise<void> {
    this.#isNotifying = true;
    await nextTurn();
    while (this.#changed.size > 0) {
      const changed = [...this.#changed];
      this.#changed.clear();
      for (const session of changed)
        if (this.sessions.get(session.id) === session) this.notifyLifecycle("session.updated", session.id, session);
      await delay(notifyPauseMs, undefined, { ref: false });
    }
    this.#isNotifying = false;
  }

  /** Ends a session, whoever is in it. */
  async end(session: CopilotSession): Promise<void> {
    this.sessions.delete(session.id);
    await session.close();
  }

  /** Ends all sessions, as far as that takes no longer than whoever ends the server should wait. */
  async endSessions(): Promise<void> {
    const ended = Promise.allSettled([...this.sessions.values()].map((session) => this.end(session)));
    await Promise.race([ended, delay(endingMs, undefined, { ref: false })]);
  }

  /** Whether code that was found in a folder may run. */
  async mayRun(path: string): Promise<boolean> {
    return this.options.mayRun === undefined || this.isTrusted(path);
  }

  /** Whether the user trusts a folder, or a client has said so. */
  async isTrusted(path: string): Promise<boolean> {
    if ([...this.trustedFolders].some((folder) => isInside(folder, path))) return true;
    return (await this.options.mayRun?.(path)) ?? false;
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
    const { dropClient } = await import("./sessions/session-registry.ts");
    await dropClient(this, client);
  }

  #report(error: unknown): void {
    this.log.error("A client could not be detached properly.", { error: toError(error) });
  }
}

const defaultOrphanMs = 30_000;
const longestLookMs = 30_000;

/** Ends sessions that nobody came back to, and, where that is wanted, those in which nothing happens. */
class SessionTimers implements Disposable {
  readonly #server: CopilotServer;
  readonly #orphans = new Map<CopilotSession, NodeJS.Timeout>();
  readonly #looking: NodeJS.Timeout | undefined;

  constructor(server: CopilotServer) {
    this.#server = server;
    const { idleTimeout } = server.options;
    if (idleTimeout === undefined) return;
    this.#looking = setInterval(() => this.#endIdle(idleTimeout), Math.max(10, Math.min(idleTimeout / 2, longestLookMs))).unref();
  }

  /** Ends a session that has lost its last client, unless one comes in time. */
  scheduleOrphanEnd(session: CopilotSession): void {
    clearTimeout(this.#orphans.get(session));
    const end = (): void => {
      this.#orphans.delete(session);
      if (session.participants.length === 0) this.#end(session);
    };
    this.#orphans.set(session, setTimeout(end, this.#server.options.orphanTimeout ?? defaultOrphanMs).unref());
  }

  [Symbol.dispose](): void {
    clearInterval(this.#looking);
    for (const timer of this.#orphans.values()) clearTimeout(timer);
    this.#orphans.clear();
  }

  #endIdle(idleTimeout: number): void {
    const now = Date.now();
    for (const session of this.#server.sessions.values()) {
      if (!session.isBusy && now - session.touchedAt > idleTimeout) this.#end(session);
    }
  }

  #end(session: CopilotSession): void {
    if (this.#server.sessions.get(session.id) !== session) return;
    this.#server.end(session).catch((error) => this.#server.log.error("A session could not be ended.", { error: toError(error) }));
  }
}
