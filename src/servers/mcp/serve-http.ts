import { createServer, type IncomingMessage, type Server as NodeServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createMcpHandler, isJsonContentType, isLegacyRequest } from "@modelcontextprotocol/server";
import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { hasTooManyValues, isNestedTooDeep, maxJsonDepth, maxJsonValues } from "../../base/json-limits.ts";
import type { Logger } from "../../base/logger.ts";
import { onAbort } from "../../base/wait-for.ts";
import { ConnectionGate, createConnectionToken, isLoopback } from "../../io/net/connection-gate.ts";
import { createMcpServer } from "./create-mcp-server.ts";
import type { McpEndpoint, OpenEndpoint } from "./endpoint.ts";
import { disagreeingHeader } from "./handlers/call-tool.ts";
import { allowOrigin, answerPreflight, createHttpGuard, createOriginCheck, isPreflight } from "./http-guard.ts";
import { type LegacySessionLimits, LegacySessions } from "./legacy-sessions.ts";
import { createNodeBridge, refuse } from "./node-bridge.ts";
import { ListenedResourceSubscriptions } from "./server-resource-subscriptions.ts";

export interface HttpOptions {
  /** 0: any that is free. Default: 3333. */
  readonly port?: number | undefined;
  /** Default: 127.0.0.1, which only this machine can reach. */
  readonly host?: string | undefined;
  /** Default: `/mcp`. */
  readonly path?: string | undefined;
  /** What every request must carry as `Authorization: Bearer …`. Default: one is made up. False, for a loopback address only: none. */
  readonly token?: string | false | undefined;
  /** Names beside those of the loopback that clients may reach the server by. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Hosts beside those of the loopback whose pages may call. */
  readonly allowedOrigins?: readonly string[] | undefined;
  /** Longer bodies are refused. Default: 4 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Requests of one address in ten seconds, those that are refused aside. Default: 10,000. */
  readonly maxRequests?: number | undefined;
  /** Sessions of clients up to revision 2025-11-25 at the same time. Default: 100. */
  readonly maxSessions?: number | undefined;
  /** When such a session ends that nobody uses, in milliseconds. Default: 30 minutes. */
  readonly sessionIdleMs?: number | undefined;
}

/** A face over HTTP that listens. */
export interface McpHttpServer extends AsyncDisposable {
  readonly url: string;
  /** What requests must carry. Undefined: nothing. */
  readonly token: string | undefined;
}

/**
 * Serves over Streamable HTTP: revision 2026-07-28 without sessions, earlier ones with them.
 * @throws HostError `HTTP_LISTEN` when the port is taken or the address is none of this machine; `HTTP_TOKEN` when others
 * than this machine could call without a token.
 */
export async function serveHttp(face: McpEndpoint, options: HttpOptions, log: Logger): Promise<McpHttpServer> {
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
  const routes = await createHttpRoutes(face, { maxSessions, idleMs: sessionIdleMs }, log);
  const onError = (error: Error): void => log.warning("A request of an MCP client failed.", { error });
  const handle = createNodeBridge((request) => routes.fetch(request), { maxBodyBytes, onError });
  const gate = new ConnectionGate(connectionLimits);
  const server = createServer(serverLimits, (request, response) => {
    const refusal = guard(request);
    const { origin } = request.headers;
    // A page must be able to read why it was refused, too.
    if (origin !== undefined && allowsOrigin(origin)) allowOrigin(origin, response);
    if (refusal !== undefined) return refuse(response, refusal);
    if (isPreflight(request)) return answerPreflight(request, response);
    gate.admit(request.socket);
    if (pathOf(request) !== path) refuse(response, { status: 404, message: `The MCP endpoint is ${path}.` });
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

// A connection is admitted by its first request that is not refused.
const connectionLimits = { maxConnections: 512, admissionMs: 5_000 };
// How long a client may take to send its request; what is answered may take as long as it needs.
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

/** Answers what got past the guard. */
interface HttpRoutes extends AsyncDisposable {
  fetch(request: Request): Promise<Response>;
}

/**
 * One address for both eras: requests of revision 2026-07-28 each say what they are and share a session of the host;
 * earlier clients begin one of their own with `initialize`.
 */
async function createHttpRoutes(face: McpEndpoint, limits: LegacySessionLimits, log: Logger): Promise<HttpRoutes> {
  const shared = await face.open({ isShared: true });
  const { notify, fetch, close } = createMcpHandler(() => createMcpServer(shared.parts, "modern"), {
    legacy: "reject",
    onerror: (error) => log.debug("A request of an MCP client was rejected.", { error }),
  });
  const tell = { tools: notify.toolsChanged, prompts: notify.promptsChanged, resources: notify.resourcesChanged };
  const news = shared.served.onChanged((list) => tell[list]());
  const listened = new ListenedResourceSubscriptions(shared.watches, notify.resourceUpdated);
  const sessions = new LegacySessions(() => face.connect(), limits, log);
  return {
    async fetch(request) {
      const body = await readBody(request);
      if (body instanceof Response) return body;
      if (await isLegacyRequest(request, body)) return sessions.fetch(request, body);
      const header = parameterFault(body, request.headers, shared);
      if (header !== undefined) return refuseWith(400, -32020, `The header ${header} differs from the arguments.`, body);
      const listening = listened.add(body);
      if (listening !== undefined) onAbort(request.signal, () => listening[Symbol.dispose]());
      return fetch(request, { parsedBody: body });
    },
    async [Symbol.asyncDispose]() {
      news[Symbol.dispose]();
      await Promise.all([close(), sessions[Symbol.asyncDispose]()]);
      await shared[Symbol.asyncDispose]();
    },
  };
}

/** The parsed body; undefined for requests without one; a response where it cannot be read. */
async function readBody(request: Request): Promise<unknown> {
  if (request.method !== "POST") return undefined;
  if (!isJsonContentType(request.headers.get("content-type"))) return refuseWith(415, -32000, "Content-Type must be application/json.");
  const bytes = Buffer.from(await request.arrayBuffer());
  if (hasTooManyValues(bytes)) return refuseWith(413, -32600, `Invalid Request: it has more than ${maxJsonValues} values.`);
  try {
    const body: unknown = JSON.parse(bytes.toString("utf8"));
    if (!isNestedTooDeep(body)) return body;
  } catch {
    return refuseWith(400, -32700, "Parse error: the body is not valid JSON.");
  }
  return refuseWith(400, -32600, `Invalid Request: it is nested more than ${maxJsonDepth} levels deep.`);
}

function parameterFault(body: unknown, headers: Headers, { served }: OpenEndpoint): string | undefined {
  if (!isRecord(body) || body["method"] !== "tools/call" || !isRecord(body["params"])) return undefined;
  const { name, arguments: args } = body["params"];
  const tool = typeof name === "string" ? served.session.catalog.executables.get(name) : undefined;
  return tool?.definition.parameters && disagreeingHeader(tool.definition.parameters, args, headers);
}

function refuseWith(status: number, code: number, message: string, body?: unknown): Response {
  const id = isRecord(body) && (typeof body["id"] === "string" || typeof body["id"] === "number") ? body["id"] : null;
  return Response.json({ jsonrpc: "2.0", id, error: { code, message } }, { status });
}
