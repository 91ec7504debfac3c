import type { Logger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";

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
  /** Where this user keeps extensions for every project. Undefined: only projects have some. */
  readonly extensionsDirectory?: string | undefined;
  /** Says whether code of a folder may run that nobody named. Absent: all may. */
  readonly mayRun?: ((path: string) => Promise<boolean>) | undefined;
  /** What the log does not show: see `hideSecrets`. Clients add to it. */
  readonly secrets?: Set<string> | undefined;
  /** Folders of plugins that every session has. */
  readonly pluginDirectories?: readonly string[] | undefined;
  /** Holds the plugins that users install through clients. */
  readonly pluginLibraryDirectory: string;
  /** Where plugins keep what is to last. */
  readonly pluginDataDirectory: string;
  /** The host is made as soon as a client has connected, so that its first session waits for less. Default: when it is needed. */
  readonly warmsUp?: boolean | undefined;
  /** Every call is allowed that no rule denies. */
  readonly allowsAll?: boolean | undefined;
  /** Called once, when a session has come to rest after a turn for the first time: there is work to do. */
  readonly onFirstTurnOver?: (() => void) | undefined;
  /** Milliseconds after which a session in which nothing happens is ended. Undefined: never. */
  readonly idleTimeout?: number | undefined;
  /** Milliseconds that a session without clients is kept, so that they can come back. Default: 30,000. */
  readonly orphanTimeout?: number | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;
