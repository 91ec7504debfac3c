import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Json } from "../../base/json.ts";
import type { Logger } from "../../base/logger.ts";
import type { Asks, ToolContext } from "../../tools/tool.ts";
import type { ServerAuth } from "../oauth/credentials.ts";
import type { FrameListener } from "./frame-log.ts";

/** Whether a server speaks the stateless protocol (2026-07-28 and later) or the one with a handshake. */
export type ProtocolEra = "modern" | "legacy";

/** Why a connection is over. */
export interface ConnectionEnd {
  /** `closed`: by us. `exited`: its process ended. `lost`: the stream broke or answered what is no protocol. */
  readonly reason: "closed" | "exited" | "lost";
  /** For people: what happened, such as the exit code. */
  readonly message: string;
}

export interface RequestOptions {
  /** Cancels the request; the server is told. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without an answer or progress. */
  readonly timeout?: number | undefined;
  /** Sent as the request's `_meta`. */
  readonly meta?: Json | undefined;
}

export interface CallRequestOptions extends RequestOptions {
  readonly onProgress?: ((update: { readonly progress: number; readonly total?: number; readonly message?: string }) => void) | undefined;
  /** The call that this request is made for: what the server asks meanwhile is asked through it. */
  readonly context?: ToolContext | undefined;
  /** The definition that the call was made by, for servers that have arguments mirrored in headers. */
  readonly definition?: Json | undefined;
}

/** The lists whose changes a server may announce. */
export type ServerList = "tools" | "prompts" | "resources";

/**
 * One live connection to an MCP server. It connects once and ends once; who wants another, connects again. What the
 * server sends is given as it came, checked only for being what the protocol calls it.
 *
 * Every request rejects with HostError `MCP_…`: `MCP_TIMEOUT`, `MCP_CANCELLED`, `MCP_CLOSED` when the connection is
 * over, `MCP_ANSWER` for an answer that is none, `MCP_ERROR` for an error that the server answered (its text is the
 * server's own), `MCP_UNAUTHORIZED`. `MCP_NOT_RUN`: the server certainly did not take it up, since the connection was over
 * before, nobody could be reached, or the server has forgotten the session; the connection is over, and the request can be
 * made again on another. Of an `MCP_ERROR` the cause has the server's `code` and `data`.
 *
 * A tool call without a timeout waits for its answer until its signal fires; other requests give up after 60,000 ms.
 */
export interface McpConnection extends AsyncDisposable {
  readonly era: ProtocolEra;
  readonly protocolVersion: string;
  readonly serverInfo: { readonly name: string; readonly version: string; readonly title?: string } | undefined;
  readonly capabilities: Json;
  /** What the server says about its use. */
  readonly instructions: string | undefined;
  /** Of a local server. */
  readonly pid: number | undefined;
  /** Settles when the connection is over, however that came. Never rejects. */
  readonly ended: Promise<ConnectionEnd>;
  /** All pages. An empty list from a server that offers none. */
  listTools(options?: RequestOptions): Promise<readonly Json[]>;
  listPrompts(options?: RequestOptions): Promise<readonly Json[]>;
  listResources(options?: RequestOptions): Promise<readonly Json[]>;
  listResourceTemplates(options?: RequestOptions): Promise<readonly Json[]>;
  /** The `CallToolResult` as it came; what the server asks in between is answered first. */
  callTool(name: string, args: Json, options?: CallRequestOptions): Promise<Json>;
  getPrompt(name: string, args: Readonly<Record<string, string>>, options?: CallRequestOptions): Promise<Json>;
  readResource(uri: string, options?: CallRequestOptions): Promise<Json>;
  complete(params: Json, options?: RequestOptions): Promise<Json>;
  /** Any other request, such as one of an extension; its result as it came. */
  request(method: string, params: Json, options?: RequestOptions): Promise<Json>;
  /** Called for each announcement that a list changed: a server may announce one change many times. */
  onListChanged(listener: (list: ServerList) => void): Disposable;
  /** Hears that a resource changed, from now until it is disposed of. */
  watchResource(uri: string, listener: () => void): Promise<AsyncDisposable>;
}

/** What servers may ask for. `deny`: refused, and sampling is not even offered. `ask`: whoever is attached to the session decides. */
export interface ServerRequestPolicy {
  /** Default: `ask`. */
  readonly elicitation?: "deny" | "ask" | undefined;
  /** Default: `deny`. `allow`: as `ask`; who is asked answers without a person. */
  readonly sampling?: "deny" | "ask" | "allow" | undefined;
}

/** Who answers what a server asks outside of any call. Without it such questions are declined. */
export interface ServerAnswers {
  elicitation?(data: Asks["elicitation"]["data"]): Promise<Asks["elicitation"]["answer"]>;
  sampling?(data: Asks["sampling"]["data"]): Promise<Asks["sampling"]["answer"]>;
}

export interface ConnectOptions {
  /** Where relative paths of the configuration start, and the one root that the server is told. */
  readonly workingDirectory: string;
  readonly log: Logger;
  /** Gives up connecting; what was started for it is ended before the promise rejects. Later it has no effect. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for connecting. Default: the configuration's timeout, else 60,000. */
  readonly timeout?: number | undefined;
  /** What an earlier connection found out: `legacy` spares the question, `modern` waits for its answer however long that takes. */
  readonly prior?: { readonly era: ProtocolEra } | undefined;
  /** What a local server writes to stderr, as it arrives, without what looks like a credential. */
  readonly onStderr?: ((text: string) => void) | undefined;
  /** Hears of each message. With the log at `debug` they are logged as well. */
  readonly onFrame?: FrameListener | undefined;
  /** Hears what is wrong with what the server offers and does not keep it from being used. */
  readonly onDiagnostic?: ((diagnostic: Diagnostic) => void) | undefined;
  /** How requests to a remote server are authorized. */
  readonly auth?: ServerAuth | undefined;
  readonly requests?: ServerRequestPolicy | undefined;
  readonly answers?: ServerAnswers | undefined;
  /** Declared to the server as extensions that we speak: identifier → settings. */
  readonly extensions?: Readonly<Record<string, object>> | undefined;
  /** Of one message from the server. Default: 32 MiB. */
  readonly maxMessageBytes?: number | undefined;
}

export const defaultMessageBytes: number = 32 * 1024 * 1024;
export const defaultConnectTimeout = 60_000;
