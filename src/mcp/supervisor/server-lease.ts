import type { Json } from "../../base/json.ts";
import type { McpServerSpec, UnconfiguredServer } from "../../formats/mcp/mcp-server-spec.ts";
import type { CallRequestOptions, RequestOptions } from "../connection/connection.ts";
import type { ServerLists } from "./server-lists.ts";
import type { ServerState, SharedServerStatus } from "./server-state.ts";

/** A server as one user sees it: under the user's name and configuration, over a connection that others may share. */
export interface SupervisedServer {
  readonly name: string;
  readonly spec: McpServerSpec | UnconfiguredServer;
  /** The same with the folder that a local one runs in. Undefined: it is never started. */
  readonly resolvedSpec?: McpServerSpec | undefined;
  readonly state: ServerState;
  readonly status: SharedServerStatus;
  /**
   * What it offers; the same object until that changes. Undefined: it never told, or it is disabled, stopped or not
   * configured. A server that is starting anew, has failed or needs somebody to sign in keeps what it offered last.
   */
  readonly lists: ServerLists | undefined;
  /**
   * Requests start the server if it must be, wait while it is being connected to, and are sent again once when it is
   * certain that the server did not run them. They reject as those of `McpConnection` do, and with `MCP_UNAVAILABLE` when
   * there is no connection to be had: at once, when the server has failed.
   */
  callTool(name: string, args: Json, options?: CallRequestOptions): Promise<Json>;
  getPrompt(name: string, args: Readonly<Record<string, string>>, options?: CallRequestOptions): Promise<Json>;
  readResource(uri: string, options?: CallRequestOptions): Promise<Json>;
  complete(params: Json, options?: RequestOptions): Promise<Json>;
  request(method: string, params: Json, options?: RequestOptions): Promise<Json>;
  /** Also over reconnects: after one the listener is told, since nobody knows what happened meanwhile. */
  watchResource(uri: string, listener: () => void): Promise<AsyncDisposable>;
  /** Starts it in the background, whatever kept it from it: it had failed, was stopped, or wanted somebody to sign in. */
  start(): void;
  /** Ends the process or connection, for all who share it, until somebody starts it. What it offers is withdrawn. */
  stop(): Promise<void>;
  /** Ends it for all who share it, and starts it anew. Settles when that was tried. */
  restart(): Promise<void>;
}

export interface ServerChange {
  readonly server: SupervisedServer;
  readonly kind: "state" | "lists";
}

export interface ReadyOptions {
  /** Milliseconds to wait at most; what comes later is told to subscribers. */
  readonly waitMs?: number | undefined;
  /** Waits also for servers whose lists are known from the last time. */
  readonly fresh?: boolean | undefined;
}

/** One user's hold on a set of servers. Disposing lets go of them: a connection that nobody holds ends after a short while. */
export interface ServerLease extends Disposable {
  /** In the order given. The same array until `update`. */
  readonly servers: readonly SupervisedServer[];
  /** Starts all of them in the background, and those that an update brings. */
  start(): void;
  /**
   * Starts all and settles when each had its first try, or when the wait is over: with what is there. Rejects with the
   * signal's reason only.
   */
  ready(signal: AbortSignal, options?: ReadyOptions): Promise<void>;
  /**
   * Replaces the set. A server that is configured as before is the same object; one with the same connection, but say
   * another filter, keeps that.
   */
  update(servers: readonly (McpServerSpec | UnconfiguredServer)[]): void;
  /** Hears of each change, after it; one at a time. */
  subscribe(listener: (change: ServerChange) => void): Disposable;
}
