import type { Client, RequestOptions as SdkRequestOptions } from "@modelcontextprotocol/client";
import { errorMessage, HostError } from "../../base/errors.ts";
import { isRecord, type Json } from "../../base/json.ts";
import type { Logger, LogLevel } from "../../base/logger.ts";
import { afterWaiting } from "../../base/wait.ts";
import { ChangeFeed } from "./change-feed.ts";
import type {
  CallRequestOptions,
  ConnectionEnd,
  ConnectOptions,
  McpConnection,
  ProtocolEra,
  RequestOptions,
  ServerList,
} from "./connection.ts";
import { httpStatusOf, isUnreachable, toConnectionError } from "./connection-errors.ts";
import { listPages } from "./list-pages.ts";
import { faultOfMirrors, mirroredHeaders } from "./mirrored-headers.ts";
import {
  faultOfAnswer,
  type InFlight,
  longestTimeout,
  type ObservedTransport,
  PendingRequest,
  type RequestStop,
} from "./request-transport.ts";
import { anything, type Sdk, type ServerLink } from "./server-link.ts";

interface ClientParts extends Omit<ExchangeParts, "meta"> {
  readonly options: ConnectOptions;
}

// For requests without a deadline. Tool calls end by their signal.
const defaultTimeout = 60_000;
const headerMismatch = -32020;

/** A connection whose handshake is done. */
export class ClientConnection implements McpConnection {
  readonly era: ProtocolEra;
  readonly protocolVersion: string;
  readonly serverInfo: McpConnection["serverInfo"];
  readonly capabilities: Json;
  readonly instructions: string | undefined;
  readonly #parts: ClientParts;
  readonly #exchange: Exchange;
  readonly #feed: ChangeFeed;
  readonly #hasHeaders: boolean;

  constructor(parts: ClientParts) {
    const { client, link, options, sdk, serverName } = parts;
    this.#parts = parts;
    this.era = client.getProtocolEra() ?? "legacy";
    this.protocolVersion = client.getNegotiatedProtocolVersion() ?? "";
    this.serverInfo = infoOf(client.getServerVersion());
    this.capabilities = (client.getServerCapabilities() ?? {}) as Json;
    this.instructions = client.getInstructions();
    this.#hasHeaders = this.era === "modern" && link.pid === undefined;
    const wantsLog = this.era === "modern" && this.capabilities["logging"] !== undefined;
    this.#exchange = new Exchange({ ...parts, meta: wantsLog ? { [sdk.LOG_LEVEL_META_KEY]: wantedLevel(options.log) } : {} });
    const request = (method: string, params: Json): Promise<Json> => this.request(method, params);
    this.#feed = new ChangeFeed({ sdk, serverName, client, era: this.era, capabilities: this.capabilities, log: options.log, request });
    this.#listen(client);
    if (this.era === "legacy" && this.capabilities["logging"] !== undefined) void this.#setLogLevel();
  }

  get pid(): number | undefined {
    return this.#parts.link.pid;
  }

  get ended(): Promise<ConnectionEnd> {
    return this.#parts.link.ended;
  }

  async listTools(options: RequestOptions = {}): Promise<readonly Json[]> {
    const tools = await this.#list("tools/list", "tools", options);
    return this.#hasHeaders ? tools.filter((tool) => this.#isMirrorable(tool)) : tools;
  }

  listPrompts(options: RequestOptions = {}): Promise<readonly Json[]> {
    return this.#list("prompts/list", "prompts", options);
  }

  listResources(options: RequestOptions = {}): Promise<readonly Json[]> {
    return this.#list("resources/list", "resources", options);
  }

  listResourceTemplates(options: RequestOptions = {}): Promise<readonly Json[]> {
    return this.#list("resources/templates/list", "resourceTemplates", options);
  }

  async callTool(name: string, args: Json, options: CallRequestOptions = {}): Promise<Json> {
    const call = { method: "tools/call", params: { name, arguments: args }, options, timeout: options.timeout };
    if (!this.#hasHeaders) return await this.#exchange.request(call);
    try {
      return await this.#exchange.request({ ...call, headers: mirroredHeaders(options.definition?.["inputSchema"], args) });
    } catch (error) {
      if (!isHeaderMismatch(error)) throw error;
      // The server has replaced the definition that the call was made with.
      const current = (await this.listTools(options)).find((tool) => tool["name"] === name);
      return await this.#exchange.request({ ...call, headers: mirroredHeaders(current?.["inputSchema"], args) });
    }
  }

  getPrompt(name: string, args: Readonly<Record<string, string>>, options: CallRequestOptions = {}): Promise<Json> {
    return this.request("prompts/get", { name, arguments: args }, options);
  }

  readResource(uri: string, options: CallRequestOptions = {}): Promise<Json> {
    return this.request("resources/read", { uri }, options);
  }

  complete(params: Json, options: RequestOptions = {}): Promise<Json> {
    return this.request("completion/complete", params, options);
  }

  request(method: string, params: Json, options: RequestOptions = {}): Promise<Json> {
    return this.#exchange.request({ method, params, options, timeout: options.timeout ?? defaultTimeout });
  }

  onListChanged(listener: (list: ServerList) => void): Disposable {
    return this.#feed.onListChanged(listener);
  }

  watchResource(uri: string, listener: () => void): Promise<AsyncDisposable> {
    return this.#feed.watchResource(uri, listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.link.close();
    await this.#feed[Symbol.asyncDispose]();
  }

  async #list(method: string, key: ServerList | "resourceTemplates", options: RequestOptions): Promise<readonly Json[]> {
    if (this.capabilities[key === "resourceTemplates" ? "resources" : key] === undefined) return [];
    const { items, fault } = await listPages(key, (cursor) => this.request(method, cursor === undefined ? {} : { cursor }, options));
    if (fault !== undefined) this.#warn("MCP_LIST_INVALID", `The MCP server ${this.#parts.serverName} answered ${method}, but ${fault}.`);
    return items;
  }

  #isMirrorable(tool: Json): boolean {
    const fault = faultOfMirrors(tool["inputSchema"]);
    if (fault === undefined) return true;
    const name = String(tool["name"]).slice(0, 100);
    this.#warn("MCP_TOOL_HEADER_INVALID", `Tool ${name} of the MCP server ${this.#parts.serverName} is ignored: ${fault}.`);
    return false;
  }

  #listen(client: Client): void {
    const { sdk, serverName, link, options, inFlight } = this.#parts;
    client.setNotificationHandler("notifications/message", ({ params }) => logServerMessage(serverName, params, options.log));
    client.onerror = (error: unknown) => {
      options.log.debug(`MCP server ${serverName}: ${toConnectionError(error, sdk, serverName).message}`);
      if (error instanceof sdk.SseError) link.lose(`The event stream of the MCP server ${serverName} ended.`);
      // Requests in flight learn from their own errors what happened to the server, and what that means for them.
      else if (link.pid === undefined && inFlight.isEmpty) this.#exchange.loseIfGone(error);
    };
  }

  async #setLogLevel(): Promise<void> {
    const { options, serverName } = this.#parts;
    try {
      await this.request("logging/setLevel", { level: wantedLevel(options.log) });
    } catch (error) {
      options.log.debug(`The MCP server ${serverName} rejected the log level: ${errorMessage(error)}`);
    }
  }

  #warn(code: string, message: string): void {
    const { options, serverName } = this.#parts;
    options.log.warning(message);
    options.onDiagnostic?.({ severity: "warning", code, message, source: serverName });
  }
}

function isHeaderMismatch(error: unknown): boolean {
  const cause = error instanceof HostError ? (error.cause as { readonly code?: unknown } | undefined) : undefined;
  return cause?.code === headerMismatch;
}

function infoOf(info: unknown): McpConnection["serverInfo"] {
  if (!isRecord(info)) return undefined;
  const { name, version, title } = info;
  if (typeof name !== "string" || typeof version !== "string") return undefined;
  return { name, version, ...(typeof title === "string" && { title }) };
}

interface ExchangeParts {
  readonly sdk: Sdk;
  readonly serverName: string;
  readonly client: Client;
  readonly link: ServerLink;
  readonly transport: ObservedTransport;
  readonly inFlight: InFlight;
  /** Sent with every request as part of its `_meta`. */
  readonly meta: Json;
}

/** One request and what goes with it. */
interface ExchangeRequest {
  readonly method: string;
  readonly params: Json;
  readonly options: CallRequestOptions;
  /** Milliseconds without an answer or progress; undefined: only the signal ends it. */
  readonly timeout: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Sends requests through the SDK's client and returns the results. */
class Exchange {
  readonly #parts: ExchangeParts;
  #tokens = 0;
  /** Why the connection cannot be used any more. It is ended once the requests in flight have failed or completed. */
  #gone: string | undefined;
  #grace: Disposable | undefined;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
    void parts.link.ended.then(() => this.#grace?.[Symbol.dispose]());
  }

  /** Returns the result as the server sent it, after as many messages as the server needs input. Rejects with HostError. */
  async request({ method, params, options, timeout, headers }: ExchangeRequest): Promise<Json> {
    const { client, link, serverName, inFlight, transport } = this.#parts;
    const over = link.end?.message ?? this.#gone;
    if (over !== undefined) throw new HostError("MCP_NOT_RUN", over);
    if (options.signal?.aborted === true)
      throw new HostError("MCP_CANCELLED", `${method} was cancelled before it was sent to ${serverName}.`);
    const pending = new PendingRequest(method, ++this.#tokens, options, timeout);
    inFlight.add(pending);
    try {
      const own = isRecord(params["_meta"]) ? params["_meta"] : undefined;
      const full = { ...params, _meta: { ...this.#parts.meta, ...own, ...options.meta, progressToken: pending.token } };
      // The SDK's own deadline would count the time in which a user is asked, and ignore progress.
      const sdkOptions: SdkRequestOptions = { signal: pending.signal, timeout: longestTimeout, headers };
      transport.expect(pending);
      await client.request({ method, params: full }, anything, sdkOptions);
      const answer = pending.answer;
      const fault = faultOfAnswer(method, answer);
      if (fault === undefined) return answer as Json;
      throw new HostError("MCP_ANSWER", `The MCP server ${this.#parts.serverName} sent an invalid answer to ${method}: ${fault}.`);
    } catch (error) {
      throw this.#explain(error, pending);
    } finally {
      pending[Symbol.dispose]();
      inFlight.delete(pending);
      transport.forget(pending);
      if (this.#gone !== undefined && inFlight.isEmpty) this.#lose();
    }
  }

  /** Ends the connection if the error means that it cannot be used any more and no request is in flight. */
  loseIfGone(error: unknown): void {
    this.#gone ??= this.#goneBy(error);
    if (this.#gone !== undefined && this.#parts.inFlight.isEmpty) this.#lose();
  }

  /** What an error means for the whole connection; undefined: nothing. */
  #goneBy(error: unknown): string | undefined {
    const { link, serverName, sdk } = this.#parts;
    if (isUnreachable(error)) return `The MCP server ${serverName} cannot be reached.`;
    if (link.sessionId === undefined || httpStatusOf(error, sdk) !== 404) return undefined;
    return `The MCP server ${serverName} no longer knows the session.`;
  }

  #lose(): void {
    this.#grace?.[Symbol.dispose]();
    this.#parts.link.lose(this.#gone!);
  }

  #explain(error: unknown, pending: PendingRequest): HostError {
    const { link, serverName, sdk } = this.#parts;
    if (pending.stop !== undefined) {
      const { why, message } = pending.stop;
      return new HostError(stopCodes[why], `${pending.method} of the MCP server ${serverName} was aborted: ${message}.`);
    }
    if (link.end !== undefined) return new HostError("MCP_CLOSED", link.end.message, { cause: error });
    const gone = this.#goneBy(error);
    if (gone !== undefined) {
      this.#gone ??= gone;
      // Ending the connection would fail all requests in flight alike, but each is about to learn whether the server ran it.
      this.#grace ??= afterWaiting(lastAnswers, () => this.#lose());
      return new HostError(pending.wasAnswered ? "MCP_CLOSED" : "MCP_NOT_RUN", gone, { cause: error });
    }
    return toConnectionError(error, sdk, serverName);
  }
}

/** Milliseconds of waiting that requests in flight may still take after the connection was found to be lost. */
const lastAnswers = 1000;

const stopCodes: Readonly<Record<RequestStop, string>> = {
  timeout: "MCP_TIMEOUT",
  cancelled: "MCP_CANCELLED",
  broken: "MCP_CLOSED",
  unreadable: "MCP_ANSWER",
};

const longestText = 2000;

const levels: ReadonlyMap<unknown, LogLevel> = new Map<unknown, LogLevel>([
  ["debug", "debug"],
  ["info", "info"],
  ["notice", "info"],
  ["warning", "warning"],
  ["error", "error"],
  ["critical", "error"],
  ["alert", "error"],
  ["emergency", "error"],
]);

/** Writes a `notifications/message` of a server to the host's log, at the same level; the log redacts it. */
function logServerMessage(serverName: string, params: unknown, log: Logger): void {
  if (!isRecord(params)) return;
  const level = levels.get(params["level"]) ?? "info";
  if (!log.enabled(level)) return;
  const { logger, data } = params;
  const text = typeof data === "string" ? data : JSON.stringify(data ?? null);
  const who = typeof logger === "string" ? `${serverName}/${logger.slice(0, 100)}` : serverName;
  log[level](`MCP server ${who}: ${text.length > longestText ? `${text.slice(0, longestText)}…` : text}`);
}

/** The lowest level that the host's log accepts. */
function wantedLevel(log: Logger): LogLevel {
  return (["debug", "info", "warning"] as const).find((level) => log.enabled(level)) ?? "error";
}
