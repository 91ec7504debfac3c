import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Json } from "../../base/json.ts";
import type { Logger } from "../../base/logger.ts";
import type { Asks, ToolContext } from "../../tools/tool.ts";
import type { ServerAuth } from "../oauth/credentials.ts";
import type { FrameListener } from "./frame-log.ts";

/** Whether a server speaks the stateless protocol (2026-07-28 and later) or the one with a handshake. */
export type ProtocolEra = "modern" | "legacy";

/** Why a connection ended. */
export interface ConnectionEnd {
  /** `closed`: by the host. `exited`: its process ended. `lost`: the stream broke or violated the protocol. */
  readonly reason: "closed" | "exited" | "lost";
  /** For people: what happened, such as the exit code. */
  readonly message: string;
}

export interface RequestOptions {
  /** Cancels the request; the server is notified. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without an answer or progress. */
  readonly timeout?: number | undefined;
  /** Sent as the request's `_meta`. */
  readonly meta?: Json | undefined;
}

export interface CallRequestOptions extends RequestOptions {
  readonly onProgress?: ((update: { readonly progress: number; readonly total?: number; readonly message?: string }) => void) | undefined;
  /** The call that this request is made for: requests of the server in the meantime go through it. */
  readonly context?: ToolContext | undefined;
  /** The definition that the call was made with, for servers that mirror arguments in headers. */
  readonly definition?: Json | undefined;
}

/** The lists whose changes a server may announce. */
export type ServerList = "tools" | "prompts" | "resources";

/**
 * One live connection to an MCP server. It connects once and ends once; reconnecting takes another connection. Results are
 * returned as the server sent them; only their outer shape is checked.
 *
 * Every request rejects with HostError `MCP_…`: `MCP_TIMEOUT`, `MCP_CANCELLED`, `MCP_CLOSED` when the connection has
 * ended, `MCP_ANSWER` for an invalid answer, `MCP_ERROR` for an error that the server returned (with the server's own
 * text), `MCP_UNAUTHORIZED`. `MCP_NOT_RUN`: the server certainly did not run the request, since the connection had ended
 * before, the server could not be reached, or it does not know the session any more; the connection is over, and the
 * request can be repeated on another. The cause of an `MCP_ERROR` has the server's `code` and `data`.
 *
 * A tool call without a timeout waits for its answer until its signal fires; other requests time out after 60,000 ms.
 */
export interface McpConnection extends AsyncDisposable {
  readonly era: ProtocolEra;
  readonly protocolVersion: string;
  readonly serverInfo: { readonly name: string; readonly version: string; readonly title?: string } | undefined;
  readonly capabilities: Json;
  /** The server's description of how to use it. */
  readonly instructions: string | undefined;
  /** Of a local server. */
  readonly pid: number | undefined;
  /** Settles when the connection has ended, for whatever reason. Never rejects. */
  readonly ended: Promise<ConnectionEnd>;
  /** All pages; empty for a server without this capability. */
  listTools(options?: RequestOptions): Promise<readonly Json[]>;
  listPrompts(options?: RequestOptions): Promise<readonly Json[]>;
  listResources(options?: RequestOptions): Promise<readonly Json[]>;
  listResourceTemplates(options?: RequestOptions): Promise<readonly Json[]>;
  /** The `CallToolResult` as it came; input that the server requires first is provided. */
  callTool(name: string, args: Json, options?: CallRequestOptions): Promise<Json>;
  getPrompt(name: string, args: Readonly<Record<string, string>>, options?: CallRequestOptions): Promise<Json>;
  readResource(uri: string, options?: CallRequestOptions): Promise<Json>;
  complete(params: Json, options?: RequestOptions): Promise<Json>;
  /** Any other request, such as one of an extension. Returns its result as it came. */
  request(method: string, params: Json, options?: RequestOptions): Promise<Json>;
  /** Called for each announcement that a list changed: a server may announce one change many times. */
  onListChanged(listener: (list: ServerList) => void): Disposable;
  /** Calls the listener whenever the resource changed, until it is disposed of. */
  watchResource(uri: string, listener: () => void): Promise<AsyncDisposable>;
}

/** What servers may ask for. `deny`: refused; sampling is not declared either. `ask`: the clients of the session decide. */
export interface ServerRequestPolicy {
  /** Default: `ask`. */
  readonly elicitation?: "deny" | "ask" | undefined;
  /** Default: `deny`. `allow`: like `ask`, but the client answers without asking the user. */
  readonly sampling?: "deny" | "ask" | "allow" | undefined;
}

/** Answers what a server asks outside of calls. Without it such requests are declined. */
export interface ServerAnswers {
  elicitation?(data: Asks["elicitation"]["data"]): Promise<Asks["elicitation"]["answer"]>;
  sampling?(data: Asks["sampling"]["data"]): Promise<Asks["sampling"]["answer"]>;
}

export interface ConnectOptions {
  /** Where relative paths of the configuration start. Also the only root that the server sees. */
  readonly workingDirectory: string;
  readonly log: Logger;
  /** Cancels connecting; everything that was started has ended when the promise rejects. No effect once connected. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for connecting. Default: the configuration's timeout, else 60,000. */
  readonly timeout?: number | undefined;
  /**
   * The result of an earlier connection: `legacy` skips the request for the protocol, `modern` waits for its answer
   * without a limit of its own.
   */
  readonly prior?: { readonly era: ProtocolEra } | undefined;
  /** Receives what a local server writes to stderr, with credentials redacted. */
  readonly onStderr?: ((text: string) => void) | undefined;
  /** Receives each message, with its secrets. At log level `debug` messages are logged too, without. */
  readonly onMessage?: FrameListener | undefined;
  /** Receives faults in what the server offers that do not keep it from being used. */
  readonly onDiagnostic?: ((diagnostic: Diagnostic) => void) | undefined;
  /** How requests to a remote server are authorized. */
  readonly auth?: ServerAuth | undefined;
  readonly requests?: ServerRequestPolicy | undefined;
  readonly answers?: ServerAnswers | undefined;
  /** Extensions that are declared to the server: identifier → settings. */
  readonly extensions?: Readonly<Record<string, object>> | undefined;
  /** Limit for one message from the server. Default: 32 MiB. */
  readonly maxMessageBytes?: number | undefined;
}

export const defaultMessageBytes: number = 32 * 1024 * 1024;
export const defaultConnectTimeout = 60_000;
