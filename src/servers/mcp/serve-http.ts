import { createServer, type IncomingMessage, type Server as NodeServer } from "node:http";
import type { AddressInfo } from "node:net";
import { classifyInboundRequest, createMcpHandler, isJsonContentType } from "@modelcontextprotocol/server";
import { HostError } from "../../base/errors.ts";
import { hasTooManyValues, isNestedTooDeep, isRecord, maxJsonDepth, maxJsonValues } from "../../base/json.ts";
import type { Logger } from "../../base/logger.ts";
import { onAbort } from "../../base/wait.ts";
import { ConnectionGate, createConnectionToken, isLoopback } from "../../io/net/connection-gate.ts";
import { createMcpServer } from "./create-mcp-server.ts";
import type { McpEndpoint, OpenEndpoint } from "./endpoint.ts";
import { disagreeingHeader } from "./handlers/call-tool.ts";
import { allowOrigin, answerPreflight, createHttpGuard, createOriginCheck, isPreflight } from "./http-guard.ts";
import { isPlainRequest } from "./json-rpc-message.ts";
import { type LegacySessionLimits, LegacySessions } from "./legacy-sessions.ts";
import { type AnsweredError, answerError, createNodeBridge, type NodeBridgeOptions, refuse } from "./node-bridge.ts";
import { ListenedResourceSubscriptions } from "./server-resource-subscriptions.ts";

export interface HttpOptions {
  /** 0: any free port. Default: 3333. */
  readonly port?: number | undefined;
  /** Default: 127.0.0.1, which is reachable only from this machine. */
  readonly host?: string | undefined;
  /** Default: `/mcp`. */
  readonly path?: string | undefined;
  /** The token that every request must have as `Authorization: Bearer …`. Default: a generated one. False: none, which requires a loopback address. */
  readonly token?: string | false | undefined;
  /** Host names besides those of the loopback that clients may use. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Hosts besides those of the loopback whose web pages may send requests. */
  readonly allowedOrigins?: readonly string[] | undefined;
  /** Longer bodies are refused. Default: 4 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** The limit of requests per address in ten seconds, without refused ones. Default: 10,000. */
  readonly maxRequests?: number | undefined;
  /** The limit of open sessions of clients up to revision 2025-11-25. Default: 100. */
  readonly maxSessions?: number | undefined;
  /** Milliseconds after which such a session is ended when it is not used. Default: 30 minutes. */
  readonly sessionIdleMs?: number | undefined;
}

/** An MCP server that listens for HTTP requests. */
export interface McpHttpServer extends AsyncDisposable {
  readonly url: string;
  /** The token that requests must have. Undefined: none. */
  readonly token: string | undefined;
}

/**
 * Serves over Streamable HTTP: revision 2026-07-28 without sessions, earlier ones with them.
 * @throws HostError `HTTP_LISTEN` when the port is in use or the address does not belong to this machine; `HTTP_TOKEN` when other
 * machines could send requests without a token.
 */
export async function serveHttp(endpoint: McpEndpoint, options: HttpOptions, log: Logger): Promise<McpHttpServer> {
  const { host = "127.0.0.1", port = 3333, path = "/mcp", maxBodyBytes = 4 * 1024 * 1024 } = options;
  const token = tokenOf(options.token, host);
  const allowsOrigin = createOriginCheck(options.allowedOrigins ?? []);
  const guard = createHttpGuard({
    host,
    token,
    allowedHosts: options.allowedHosts ?? [],
    allowsOrigin,
    maxRequests: options.maxRequests ?? 10_000,
  });
  const { maxSessions = 100, sessionIdleMs = 1_800_000 } = options;
  const routes = await createHttpRoutes(endpoint, { maxSessions, idleMs: sessionIdleMs }, log);
  const onError = (error: Error): void => log.warning("A request of an MCP client failed.", { error });
  const handle = createNodeBridge(routes.fetch, { maxBodyBytes, receive: routes.receive, onError });
  const gate = new ConnectionGate(connectionLimits);
  const server = createServer(serverLimits, (request, response) => {
    const refusal = guard(request);
    const { origin } = request.headers;
    // A page must be able to read a refusal as well.
    if (origin !== undefined && allowsOrigin(origin)) allowOrigin(origin, response);
    if (refusal !== undefined) return refuse(response, refusal);
    if (isPreflight(request)) return answerPreflight(request, response);
    gate.admit(request.socket);
    if (request.url !== path && pathOf(request) !== path) refuse(response, { status: 404, message: `The MCP endpoint is ${path}.` });
    else void handle(request, response);
  });
  server.on("connection", (socket) => gate.add(socket));
  try {
    await listen(server, host, port);
  } catch (error) {
    await routes[Symbol.asyncDispose]();
    throw error;
  }
  const { port: actual } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host.replace(/^\[|\]$/g, "")}]` : host}:${actual}${path}`,
    token,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      await routes[Symbol.asyncDispose]();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** @throws HostError `HTTP_TOKEN` */
function tokenOf(token: string | false | undefined, host: string): string | undefined {
  if (token !== false) return token || createConnectionToken();
  if (isLoopback(host)) return undefined;
  throw new HostError(
    "HTTP_TOKEN",
    `Without a token the server can listen only on 127.0.0.1 and ::1, not on ${host}. Set a token, or let skillhost generate one.`,
  );
}

// The first allowed request admits a connection.
const connectionLimits = { maxConnections: 512, admissionMs: 5_000 };
// Limits only how long a client takes to send a request, not how long the answer takes.
const serverLimits = { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 5_000, maxHeaderSize: 16_384 };

function listen(server: NodeServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error): void => {
      const message = `Cannot serve MCP at ${host}:${port} (${cause.message}). Choose another port or address.`;
      reject(new HostError("HTTP_LISTEN", message, { cause }));
    };
    server.once("error", fail).listen(port, host.replace(/^\[|\]$/g, ""), () => {
      server.off("error", fail);
      resolve();
    });
  });
}

function pathOf({ url = "/" }: IncomingMessage): string {
  return url.split("?", 1)[0]!.replace(/(?<=.)\/$/, "");
}

/** Answers requests that the guard allowed. */
interface HttpRoutes extends AsyncDisposable {
  /** Answers invalid requests and those of sessions. */
  readonly receive: NonNullable<NodeBridgeOptions["receive"]>;
  /** Answers requests of revision 2026-07-28. */
  readonly fetch: (request: Request, body: unknown) => Promise<Response>;
}

/**
 * Serves both eras of the protocol at one URL: requests of revision 2026-07-28 share a session of the host, and earlier clients
 * start their own with `initialize`.
 */
async function createHttpRoutes(endpoint: McpEndpoint, limits: LegacySessionLimits, log: Logger): Promise<HttpRoutes> {
  const shared = await endpoint.open({ isShared: true });
  const { notify, fetch, close } = createMcpHandler(() => createMcpServer(shared.parts, "modern"), {
    legacy: "reject",
    onerror: (error) => log.debug("A request of an MCP client was rejected.", { error }),
  });
  const notifiers = { tools: notify.toolsChanged, prompts: notify.promptsChanged, resources: notify.resourcesChanged };
  const listChanges = shared.served.onChanged((list) => notifiers[list]());
  const listened = new ListenedResourceSubscriptions(shared.watches, notify.resourceUpdated);
  const sessions = new LegacySessions(() => endpoint.connect(), limits, log);
  return {
    async receive(incoming, outgoing, bytes) {
      const read = readBody(incoming, bytes);
      if (isFault(read)) answerError(outgoing, read);
      else if (isLegacy(incoming, read.body)) await sessions.handle({ incoming, outgoing, body: read.body });
      else return read;
      return undefined;
    },
    async fetch(request, body) {
      const header = parameterFault(body, request.headers, shared);
      if (header !== undefined) return refuseHeader(header, body);
      const listening = listened.add(body);
      if (listening !== undefined) onAbort(request.signal, () => listening[Symbol.dispose]());
      return fetch(request, { parsedBody: body });
    },
    async [Symbol.asyncDispose]() {
      listChanges[Symbol.dispose]();
      await Promise.all([close(), sessions[Symbol.asyncDispose]()]);
      await shared[Symbol.asyncDispose]();
    },
  };
}

interface ParsedBody {
  /** Undefined: the request has no body. */
  readonly body: unknown;
}

function readBody({ method, headers }: IncomingMessage, bytes: Buffer): ParsedBody | AnsweredError {
  if (method !== "POST") return { body: undefined };
  const type = headers["content-type"] ?? null;
  if (type !== "application/json" && !isJsonContentType(type)) return { status: 415, message: "Content-Type must be application/json." };
  if (hasTooManyValues(bytes)) return { status: 413, code: -32600, message: `Invalid Request: it has more than ${maxJsonValues} values.` };
  try {
    const body: unknown = JSON.parse(bytes.toString("utf8"));
    if (!isNestedTooDeep(body)) return { body };
  } catch {
    return { status: 400, code: -32700, message: "Parse error: the body is not valid JSON." };
  }
  return { status: 400, code: -32600, message: `Invalid Request: it is nested more than ${maxJsonDepth} levels deep.` };
}

function isFault(read: ParsedBody | AnsweredError): read is AnsweredError {
  return "status" in read;
}

const firstModernVersion = "2026-07-28";

/** Whether a request belongs to protocol revisions up to 2025-11-25. */
function isLegacy({ method = "", headers }: IncomingMessage, body: unknown): boolean {
  const version = textOrUndefined(headers["mcp-protocol-version"]);
  if (method === "POST" && isPlainRequest(body)) return version === undefined || version < firstModernVersion;
  const [mcpMethodHeader, mcpNameHeader] = [textOrUndefined(headers["mcp-method"]), textOrUndefined(headers["mcp-name"])];
  const classified = classifyInboundRequest({
    httpMethod: method,
    ...(version !== undefined && { protocolVersionHeader: version }),
    ...(mcpMethodHeader !== undefined && { mcpMethodHeader }),
    ...(mcpNameHeader !== undefined && { mcpNameHeader }),
    ...(body !== undefined && { body }),
  });
  return classified.kind === "legacy";
}

function textOrUndefined(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === "string" ? header : undefined;
}

function parameterFault(body: unknown, headers: Headers, { served }: OpenEndpoint): string | undefined {
  if (!isRecord(body) || body["method"] !== "tools/call" || !isRecord(body["params"])) return undefined;
  const { name, arguments: args } = body["params"];
  const tool = typeof name === "string" ? served.session.catalog.executables.get(name) : undefined;
  return tool?.definition.parameters && disagreeingHeader(tool.definition.parameters, args, headers);
}

function refuseHeader(header: string, body: unknown): Response {
  const id = isRecord(body) && (typeof body["id"] === "string" || typeof body["id"] === "number") ? body["id"] : null;
  const error = { code: -32020, message: `The header ${header} differs from the arguments.` };
  return Response.json({ jsonrpc: "2.0", id, error }, { status: 400 });
}
