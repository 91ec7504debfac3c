import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Json } from "../../base/json.ts";
import type { McpServerSpec, UnconfiguredServer } from "../../formats/mcp/mcp-server-spec.ts";
import type { CallRequestOptions, McpConnection, RequestOptions } from "../connection/connection.ts";
import type { ServerState, SharedServerStatus } from "./server-state.ts";

/** A server as one user sees it: under the user's name and configuration, over a connection that may be shared. */
export interface SupervisedServer {
  readonly name: string;
  readonly spec: McpServerSpec | UnconfiguredServer;
  /** The spec with the folder that a local server runs in. Undefined: it is never started. */
  readonly resolvedSpec?: McpServerSpec | undefined;
  readonly state: ServerState;
  readonly status: SharedServerStatus;
  /**
   * What it offers; the same object until that changes. Undefined: it has not answered yet, or is disabled, stopped or not
   * configured. A server that is restarting, has failed or needs sign-in keeps what it offered last.
   */
  readonly lists: ServerLists | undefined;
  /**
   * Requests start the server if necessary, wait while it connects, and are repeated once when the server certainly did
   * not run them. They reject like those of `McpConnection`, and with `MCP_UNAVAILABLE` without a connection: at once, if
   * the server has failed.
   */
  callTool(name: string, args: Json, options?: CallRequestOptions): Promise<Json>;
  getPrompt(name: string, args: Readonly<Record<string, string>>, options?: CallRequestOptions): Promise<Json>;
  readResource(uri: string, options?: CallRequestOptions): Promise<Json>;
  complete(params: Json, options?: RequestOptions): Promise<Json>;
  request(method: string, params: Json, options?: RequestOptions): Promise<Json>;
  /** Lasts over reconnects. After each the listener is called, since changes in between are unknown. */
  watchResource(uri: string, listener: () => void): Promise<AsyncDisposable>;
  /** Starts it in the background, even if it had failed, was stopped or needed sign-in. */
  start(): void;
  /** Ends the process or connection for all users until it is started again. What it offers is withdrawn. */
  stop(): Promise<void>;
  /** Restarts it for all users. Settles after the attempt. */
  restart(): Promise<void>;
}

export interface ServerChange {
  readonly server: SupervisedServer;
  readonly kind: "state" | "lists";
}

export interface ReadyOptions {
  /** Milliseconds to wait at most; later changes go to subscribers. */
  readonly waitMs?: number | undefined;
  /** Also waits for servers whose lists are known from the cache. */
  readonly fresh?: boolean | undefined;
}

/** One user's hold on a set of servers. Disposing releases them; a connection without users ends soon after. */
export interface ServerLease extends Disposable {
  /** In the order given. The same array until `update`. */
  readonly servers: readonly SupervisedServer[];
  /** Starts all of them in the background, and those that an update adds. */
  start(): void;
  /** Starts all, and settles when each had its first attempt or when the wait is over. Rejects only with the signal's reason. */
  ready(signal: AbortSignal, options?: ReadyOptions): Promise<void>;
  /**
   * Replaces the set. A server with an unchanged configuration stays the same object; one whose filter changed, for
   * example, keeps its connection.
   */
  update(servers: readonly (McpServerSpec | UnconfiguredServer)[]): void;
  /** Calls the listener after each change. */
  subscribe(listener: (change: ServerChange) => void): Disposable;
}

export type ListName = "tools" | "prompts" | "resources" | "resourceTemplates" | "skills";

export const listNames: readonly ListName[] = ["tools", "prompts", "resources", "resourceTemplates", "skills"];

/** What a server offers, as it came: entries are only known to be objects. Immutable, replaced as a whole. */
export interface ServerLists extends Readonly<Record<ListName, readonly Json[]>> {
  /** `cache`: from an earlier run; the server has not answered yet. */
  readonly from: "server" | "cache";
  readonly capabilities: Json;
  readonly serverInfo: McpConnection["serverInfo"];
  readonly instructions: string | undefined;
  readonly tools: readonly Json[];
  readonly prompts: readonly Json[];
  readonly resources: readonly Json[];
  readonly resourceTemplates: readonly Json[];
  /** Entries of `skills/list`, of a server with the extension `io.modelcontextprotocol/skills`. */
  readonly skills: readonly Json[];
  /** Lists that could not be fetched; their previous content stays. */
  readonly diagnostics: readonly Diagnostic[];
}
