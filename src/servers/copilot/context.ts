import type { Logger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";
import type { Client } from "./clients/client.ts";
import type { WireStreams } from "./connection/wire.ts";
import type { CopilotServerOptions } from "./copilot-options.ts";
import type { PluginLibrary } from "./plugins/plugin-library.ts";
import type { CopilotSession, CopilotSessionObserver } from "./sessions/copilot-session.ts";
import type { McpConfigFile } from "./sessions/mcp-config-file.ts";

/** What the methods of the protocol may use of the server. It exists so that no file of a method imports the server. */
export interface ServerContext extends CopilotSessionObserver {
  readonly options: CopilotServerOptions;
  readonly clients: Set<Client>;
  readonly sessions: Map<string, CopilotSession>;
  /** The folders that clients said are trusted, while the server runs. */
  readonly trustedFolders: Set<string>;
  /** Texts that clients want in no log. */
  readonly secrets: Set<string>;
  /** Ends a session that has lost its last client, unless one comes in time. */
  readonly timers: { scheduleOrphanEnd(session: CopilotSession): void };
  /** Folders of plugins that a client brings for all sessions. */
  builtinPlugins: readonly string[];
  readonly pluginDirectories: readonly string[];
  readonly log: Logger;
  /** The host, if it was needed before. */
  readonly openedHost: Promise<Host> | undefined;
  /** The host, which is opened when it is first needed. @throws HostError `HOST_CLOSED`. */
  host(): Promise<Host>;
  /** Loads in the background what the first session of a client needs. */
  warmUp(): void;
  /** Takes a client on: until it is admitted it may only introduce itself. */
  accept(streams: WireStreams): Client;
  /** Whether a client may call that gives this token, or none. */
  accepts(token?: string): boolean;
  /** The MCP servers that this user configured through a client. @throws HostError `MCP_CONFIG`. */
  mcpConfig(): Promise<McpConfigFile>;
  /** The plugins that this user installed through a client. @throws HostError `PLUGIN_LIBRARY`. */
  pluginLibrary(): Promise<PluginLibrary>;
  /** Notifies every client that a session began, changed or is gone. */
  notifyLifecycle(type: "session.created" | "session.updated" | "session.deleted", sessionId: string, session?: CopilotSession): void;
  /** Ends a session for all of its clients. */
  end(session: CopilotSession): Promise<void>;
  /** Ends all sessions, and stops waiting for them after a while. */
  endSessions(): Promise<void>;
  /** Whether code that was found in a folder may run. */
  mayRun(path: string): Promise<boolean>;
  /** Whether the user trusts a folder, or a client has said so. */
  isTrusted(path: string): Promise<boolean>;
  requestShutdown(): void;
}
