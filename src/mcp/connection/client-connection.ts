import type { Client } from "@modelcontextprotocol/client";
import { errorMessage, HostError } from "../../base/errors.ts";
import { isPlainRecord } from "../../base/read-fields.ts";
import { ChangeFeed } from "./change-feed.ts";
import type { ConnectOptions } from "./connect-options.ts";
import type { CallRequestOptions, ConnectionEnd, McpConnection, ProtocolEra, RequestOptions, ServerList } from "./connection.ts";
import { toConnectionError } from "./connection-errors.ts";
import { Exchange, type ExchangeParts } from "./exchange.ts";
import { listPages } from "./list-pages.ts";
import { faultOfMirrors, mirroredHeaders } from "./mirrored-headers.ts";
import { logServerMessage, wantedLevel } from "./server-log.ts";

type Json = Readonly<Record<string, unknown>>;

export interface ClientParts extends Omit<ExchangeParts, "meta"> {
  readonly options: ConnectOptions;
}

// For requests that come with no deadline. Tool calls have one of their own: their signal.
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
    const { client, link, options, sdk } = parts;
    this.#parts = parts;
    this.era = client.getProtocolEra() ?? "legacy";
    this.protocolVersion = client.getNegotiatedProtocolVersion() ?? "";
    this.serverInfo = infoOf(client.getServerVersion());
    this.capabilities = (client.getServerCapabilities() ?? {}) as Json;
    this.instructions = client.getInstructions();
    this.#hasHeaders = this.era === "modern" && link.pid === undefined;
    const wantsLog = this.era === "modern" && this.capabilities["logging"] !== undefined;
    this.#exchange = new Exchange({ ...parts, meta: wantsLog ? { [sdk.LOG_LEVEL_META_KEY]: wantedLevel(options.log) } : {} });
    this.#feed = this.#createFeed();
    this.#hear(client);
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
      // The definition that the call was made by is no longer the server's.
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
    if (fault !== undefined)
      this.#complain("MCP_LIST_INVALID", `The MCP server ${this.#parts.serverName} answered ${method}, but ${fault}.`);
    return items;
  }

  #isMirrorable(tool: Json): boolean {
    const fault = faultOfMirrors(tool["inputSchema"]);
    if (fault === undefined) return true;
    const name = String(tool["name"]).slice(0, 100);
    this.#complain("MCP_TOOL_HEADER_INVALID", `The tool ${name} of the MCP server ${this.#parts.serverName} is left out: ${fault}.`);
    return false;
  }

  #createFeed(): ChangeFeed {
    const { sdk, serverName, client, options } = this.#parts;
    const request = (method: string, params: Json): Promise<Json> => this.request(method, params);
    return new ChangeFeed({ sdk, serverName, client, era: this.era, capabilities: this.capabilities, log: options.log, request });
  }

  #hear(client: Client): void {
    const { sdk, serverName, link, options, inFlight } = this.#parts;
    client.setNotificationHandler("notifications/message", ({ params }) => logServerMessage(serverName, params, options.log));
    client.onerror = (error: unknown) => {
      options.log.debug(`MCP server ${serverName}: ${toConnectionError(error, sdk, serverName).message}`);
      if (error instanceof sdk.SseError) link.lose(`The event stream of the MCP server ${serverName} ended.`);
      // Requests that are under way hear themselves what became of the server, and know best what it means for them.
      else if (link.pid === undefined && inFlight.isEmpty) this.#exchange.loseIfGone(error);
    };
  }

  async #setLogLevel(): Promise<void> {
    const { options, serverName } = this.#parts;
    try {
      await this.request("logging/setLevel", { level: wantedLevel(options.log) });
    } catch (error) {
      options.log.debug(`The MCP server ${serverName} does not take a log level: ${errorMessage(error)}`);
    }
  }

  #complain(code: string, message: string): void {
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
  if (!isPlainRecord(info)) return undefined;
  const { name, version, title } = info;
  if (typeof name !== "string" || typeof version !== "string") return undefined;
  return { name, version, ...(typeof title === "string" && { title }) };
}
