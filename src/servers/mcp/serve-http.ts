import { createServer, type IncomingMessage, type Server as NodeServer } from "node:http";
import type { AddressInfo } from "node:net";
import { HostError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import { ConnectionGate, createConnectionToken, isLoopback } from "../../io/net/connection-gate.ts";
import { allowOrigin, answerPreflight, isPreflight } from "./cors.ts";
import type { Face } from "./face.ts";
import { createHttpGuard, createOriginCheck } from "./http-guard.ts";
import { createHttpRoutes } from "./http-routes.ts";
import { createNodeBridge, refuse } from "./node-bridge.ts";

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
export interface McpHttpFace extends AsyncDisposable {
  readonly url: string;
  /** What requests must carry. Undefined: nothing. */
  readonly token: string | undefined;
}

/**
 * Serves over Streamable HTTP: revision 2026-07-28 without sessions, earlier ones with them.
 * @throws HostError `HTTP_LISTEN` when the port is taken or the address is none of this machine; `HTTP_TOKEN` when others
 * than this machine could call without a token.
 */
export async function serveHttp(face: Face, options: HttpOptions, log: Logger): Promise<McpHttpFace> {
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
  const onError = (error: Error): void => log.warning("A request of an MCP client went wrong.", { error });
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
    if (pathOf(request) !== path) refuse(response, { status: 404, message: `MCP is served at ${path}.` });
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
    `Without a token only 127.0.0.1 and ::1 can be listened on, not ${host}. Leave the token to skillhost.`,
  );
}

// A connection is admitted by its first request that is not refused.
const connectionLimits = { maxConnections: 512, admissionMs: 5_000 };
// How long a client may take to send its request; what is answered may take as long as it needs.
const serverLimits = { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 5_000, maxHeaderSize: 16_384 };

function listen(server: NodeServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error): void => {
      const message = `MCP cannot be served at ${host}:${port} (${cause.message}). Choose another port or address.`;
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
