import type { Logger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";

export interface CopilotServerOptions {
  /** Opens the host. Called when a request first needs it; a ping does not. */
  openHost(): Promise<Host>;
  readonly log: Logger;
  readonly environment: Environment;
  /** The token that clients must send with `connect`. Undefined: no token is required. */
  readonly token?: string | undefined;
  /** The token for model endpoints, unless a session brings its own. */
  readonly gitHubToken?: string | undefined;
  /** The folder of the host's sessions: their event logs and workspaces. */
  readonly sessionsDirectory: string;
  /** The file with the user's MCP servers. */
  readonly mcpConfigFile: string;
  /** The folder of the user's extensions, which are available in every project. Undefined: only projects have extensions. */
  readonly extensionsDirectory?: string | undefined;
  /** Decides whether code that was found in a folder may run. Absent: all code may run. */
  readonly mayRun?: ((path: string) => Promise<boolean>) | undefined;
  /** Texts that the log must not contain (see `hideSecrets`). Clients can add more. */
  readonly secrets?: Set<string> | undefined;
  /** Plugin folders for every session. */
  readonly pluginDirectories?: readonly string[] | undefined;
  /** The folder of the plugins that users install through clients. */
  readonly pluginLibraryDirectory: string;
  /** The folder in which plugins store data. */
  readonly pluginDataDirectory: string;
  /** Opens the host as soon as a client connects, so that its first session starts sooner. Default: on first use. */
  readonly warmsUp?: boolean | undefined;
  /** Allows every call that no rule denies. */
  readonly allowsAll?: boolean | undefined;
  /** Called once, when the first turn of any session has ended. */
  readonly onFirstTurnOver?: (() => void) | undefined;
  /** Milliseconds after which an idle session is ended. Undefined: never. */
  readonly idleTimeout?: number | undefined;
  /** Milliseconds for which a session without clients stays open, so that they can reconnect. Default: 30,000. */
  readonly orphanTimeout?: number | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;
