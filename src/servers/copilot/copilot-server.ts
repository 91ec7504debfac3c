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
import type { TelemetryFile } from "./telemetry/telemetry-file.ts";

/** A tool that ignores cancellation may never return. */
const endingMs = 2_000;
/** Milliseconds between two notifications about updated sessions. */
const notifyPauseMs = 50;
/** Without these, nothing of telemetry is loaded. */
const telemetryVariables = ["COPILOT_OTEL_ENABLED", "COPILOT_OTEL_FILE_EXPORTER_PATH", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/**
 * The runtime that clients of the Copilot SDK connect to. All of them share one host. Sessions belong to the server, so they
 * outlive the connections of their clients.
 */
export class CopilotServer implements ServerContext, AsyncDisposable {
  readonly options: CopilotServerOptions;
  readonly clients: Set<Client> = new Set();
  readonly sessions: Map<string, CopilotSession> = new Map();
  readonly trustedFolders: Set<string> = new Set();
  readonly secrets: Set<string>;
  readonly timers: SessionTimers;
  builtinPlugins: readonly string[] = [];
  #mcpConfig: McpConfigFile | undefined;
  #pluginLibrary: PluginLibrary | undefined;
  #telemetry: Promise<TelemetryFile | undefined> | undefined;
  /** Settles when a client has requested the shutdown. */
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

  /** Adds the client that started this process and talks over its standard streams. */
  acceptParent(streams: WireStreams): Client {
    const client = this.accept(streams);
    if (this.#isToken === undefined) client.admit();
    return client;
  }

  accept(streams: WireStreams): Client {
    const client = new Client(streams, (from) => answerRequest(this, from), this.log);
    this.clients.add(client);
    void client.wire.closed.then(() => this.#remove(client));
    return client;
  }

  host(): Promise<Host> {
    if (this.#closed !== undefined) return Promise.reject(new HostError("HOST_CLOSED", "The server is shutting down."));
    this.#host ??= this.options.openHost();
    // After a failure, the next request tries again.
    this.#host.catch(() => {
      this.#host = undefined;
    });
    return this.#host;
  }

  warmUp(): void {
    if (this.options.warmsUp !== true || this.#host !== undefined || this.#closed !== undefined) return;
    const load = async (): Promise<void> => {
      const { warmUp } = await import("./warm-up.ts");
      await warmUp(await this.host());
    };
    // After the answer to `connect`. A request that needs what failed here tries again, and reports the error.
    setImmediate(() => void load().catch(() => {}));
  }

  async mcpConfig(): Promise<McpConfigFile> {
    const { McpConfigFile: File } = await import("./sessions/mcp-config-file.ts");
    this.#mcpConfig ??= new File(this.options.mcpConfigFile);
    return this.#mcpConfig;
  }

  async pluginLibrary(): Promise<PluginLibrary> {
    const { PluginLibrary: Library } = await import("./plugins/plugin-library.ts");
    const { pluginLibraryDirectory: directory, pluginDataDirectory: dataDirectory } = this.options;
    this.#pluginLibrary ??= new Library({ directory, dataDirectory, log: this.log });
    return this.#pluginLibrary;
  }

  telemetry(): Promise<TelemetryFile | undefined> {
    const { environment } = this.options;
    const isNamed = telemetryVariables.some((name) => Boolean(environment[name]));
    this.#telemetry ??= isNamed ? this.#openTelemetry() : Promise.resolve(undefined);
    return this.#telemetry;
  }

  async #openTelemetry(): Promise<TelemetryFile | undefined> {
    const { openTelemetryFile } = await import("./telemetry/telemetry-file.ts");
    return openTelemetryFile(this.options.environment, this.log);
  }

  get openedHost(): Promise<Host> | undefined {
    return this.#host;
  }

  accepts(token?: string): boolean {
    return this.#isToken === undefined || (token !== undefined && this.#isToken(token));
  }

  notifyLifecycle(type: "session.created" | "session.updated" | "session.deleted", sessionId: string, session?: CopilotSession): void {
    const times = session && { startTime: session.createdAt.toISOString(), modifiedTime: session.modifiedAt.toISOString() };
    const json = JSON.stringify({ type, sessionId, ...(times && { metadata: times }) });
    for (const { wire, isAdmitted } of this.clients) if (isAdmitted) wire.notify("session.lifecycle", json);
  }

  /** Notifies clients of changes, several at once: a turn causes many. */
  onChanged(session: CopilotSession): void {
    this.#changed.add(session);
    if (!this.#isNotifying) void this.#notifyChanged();
  }

  onTurnOver(): void {
    if (!this.#hasWorked) this.options.onFirstTurnOver?.();
    this.#hasWorked = true;
  }

  onTakenOver(session: CopilotSession): void {
    // The event that says so is sent first.
    setImmediate(() => {
      if (this.sessions.get(session.id) !== session) return;
      this.end(session).catch((error) => this.log.error("A session could not be ended.", { error: toError(error) }));
    });
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

  /** Ends a session for all of its clients. */
  async end(session: CopilotSession): Promise<void> {
    this.sessions.delete(session.id);
    await session.close();
  }

  async endSessions(): Promise<void> {
    const ended = Promise.allSettled([...this.sessions.values()].map((session) => this.end(session)));
    await Promise.race([ended, delay(endingMs, undefined, { ref: false })]);
  }

  async mayRun(path: string): Promise<boolean> {
    return this.options.mayRun === undefined || this.isTrusted(path);
  }

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
    await (await this.#telemetry?.catch(() => undefined))?.close();
    await (await this.#host?.catch(() => undefined))?.close();
    this.#requestShutdown();
  }

  /** Removes a client whose connection was closed. Never rejects. */
  async #remove(client: Client): Promise<void> {
    this.clients.delete(client);
    if (this.#closed !== undefined) return;
    try {
      const { dropClient } = await import("./sessions/session-registry.ts");
      await dropClient(this, client);
    } catch (error) {
      this.log.error("A client could not be detached properly.", { error: toError(error) });
    }
  }
}

const defaultOrphanMs = 30_000;
const maxIdleCheckMs = 30_000;

/** Ends sessions to which no client has returned and, if an idle timeout is set, idle sessions. */
class SessionTimers implements Disposable {
  readonly #server: CopilotServer;
  readonly #orphans = new Map<CopilotSession, NodeJS.Timeout>();
  readonly #idleCheck: NodeJS.Timeout | undefined;

  constructor(server: CopilotServer) {
    this.#server = server;
    const { idleTimeout } = server.options;
    if (idleTimeout === undefined) return;
    const endIdle = (): void => {
      const now = Date.now();
      for (const session of server.sessions.values()) {
        if (!session.isBusy && now - session.touchedAt > idleTimeout) this.#end(session);
      }
    };
    this.#idleCheck = setInterval(endIdle, Math.max(10, Math.min(idleTimeout / 2, maxIdleCheckMs))).unref();
  }

  scheduleOrphanEnd(session: CopilotSession): void {
    clearTimeout(this.#orphans.get(session));
    const end = (): void => {
      this.#orphans.delete(session);
      if (session.participants.length === 0) this.#end(session);
    };
    this.#orphans.set(session, setTimeout(end, this.#server.options.orphanTimeout ?? defaultOrphanMs).unref());
  }

  [Symbol.dispose](): void {
    clearInterval(this.#idleCheck);
    for (const timer of this.#orphans.values()) clearTimeout(timer);
    this.#orphans.clear();
  }

  #end(session: CopilotSession): void {
    if (this.#server.sessions.get(session.id) !== session) return;
    this.#server.end(session).catch((error) => this.#server.log.error("A session could not be ended.", { error: toError(error) }));
  }
}
