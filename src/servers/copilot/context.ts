import type { Logger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";
import type { Client } from "./clients/client.ts";
import type { WireStreams } from "./connection/wire.ts";
import type { CopilotServerOptions } from "./copilot-options.ts";
import type { PluginLibrary } from "./plugins/plugin-library.ts";
import type { CopilotSession, CopilotSessionObserver } from "./sessions/copilot-session.ts";
import type { McpConfigFile } from "./sessions/mcp-config-file.ts";
import type { TelemetryFile } from "./telemetry/telemetry-file.ts";

/** The part of the server that the protocol's methods use. As an interface, since the server imports the methods. */
export interface ServerContext extends CopilotSessionObserver {
  readonly options: CopilotServerOptions;
  readonly clients: Set<Client>;
  readonly sessions: Map<string, CopilotSession>;
  /** The folders that clients marked as trusted, until the server ends. */
  readonly trustedFolders: Set<string>;
  /** Texts that the log must not contain. */
  readonly secrets: Set<string>;
  /** Ends a session without clients, unless a client joins in time. */
  readonly timers: { scheduleOrphanEnd(session: CopilotSession): void };
  /** Folders of plugins that a client set for all sessions. */
  builtinPlugins: readonly string[];
  readonly pluginDirectories: readonly string[];
  readonly log: Logger;
  /** The host, if it was opened. */
  readonly openedHost: Promise<Host> | undefined;
  /** Opens the host on first use. @throws HostError `HOST_CLOSED`. */
  host(): Promise<Host>;
  /** Loads what a client's first session needs, in the background. */
  warmUp(): void;
  /** Adds a client. Until it is admitted, it may only call `connect`. */
  accept(streams: WireStreams): Client;
  /** Whether a client with this token (or without one) may connect. */
  accepts(token?: string): boolean;
  /** The MCP servers that the user configured through a client. @throws HostError `MCP_CONFIG`. */
  mcpConfig(): Promise<McpConfigFile>;
  /** The plugins that the user installed through a client. @throws HostError `PLUGIN_LIBRARY`. */
  pluginLibrary(): Promise<PluginLibrary>;
  /** Where spans of sessions are exported. Undefined: nowhere. */
  telemetry(): Promise<TelemetryFile | undefined>;
  /** Notifies every client that a session was created, updated or deleted. */
  notifyLifecycle(type: "session.created" | "session.updated" | "session.deleted", sessionId: string, session?: CopilotSession): void;
  /** Ends a session for all of its clients. */
  end(session: CopilotSession): Promise<void>;
  /** Ends all sessions, and waits for them no longer than a fixed time. */
  endSessions(): Promise<void>;
  /** Whether code in a folder may run. */
  mayRun(path: string): Promise<boolean>;
  /** Whether the user or a client trusts a folder. */
  isTrusted(path: string): Promise<boolean>;
  requestShutdown(): void;
}
