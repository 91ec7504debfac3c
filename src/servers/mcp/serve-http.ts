import { createServer, type IncomingMessage, type Server as NodeServer } from "node:http";
import type { AddressInfo } from "node:net";
import { HostError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import { ConnectionGate, createConnectionToken, isLoopback } from "../../io/net/connection-gate.ts";
import { refuse } from "../http/http-exchange.ts";
import { createHttpGuard } from "../http/http-guard.ts";
import type { McpEndpoint } from "./endpoint.ts";
import { createHttpRoutes } from "./http-routes.ts";
import { createNodeBridge } from "./node-bridge.ts";
import { defaultMaxBodyBytes, type HttpOptions, sessionLimits } from "./serving-options.ts";

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
  const { host = "127.0.0.1", port = 3333, path = "/mcp", maxBodyBytes = defaultMaxBodyBytes } = options;
  const token = tokenOf(options.token, host);
  const { allowedHosts = [], allowedOrigins = [], maxRequests = 10_000 } = options;
  const guard = createHttpGuard({ host, token, allowedHosts, allowedOrigins, maxRequests });
  const routes = await createHttpRoutes(endpoint, sessionLimits(options), log);
  const onError = (error: Error): void => log.warning("A request of an MCP client failed.", { error });
  const handle = createNodeBridge(routes.fetch, { maxBodyBytes, receive: routes.receive, onError });
  const gate = new ConnectionGate(connectionLimits);
  const server = createServer(serverLimits, (request, response) => {
    if (guard(request, response)) return;
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
