import type { IncomingMessage, ServerResponse } from "node:http";
import { HostError, toError } from "../../base/errors.ts";
import { Lifetime } from "../../base/lifetime.ts";
import { type Logger, silentLogger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";
import type { Session } from "../../session/session.ts";
import { type AnsweredError, answerError } from "../http/http-exchange.ts";
import type { NodeHandler } from "./node-bridge.ts";
import { defaultMaxBodyBytes, endpointOptions, type HttpEndpointOptions, type McpCommonOptions, sessionLimits } from "./serving-options.ts";
import { WebResponse } from "./web-response.ts";

/**
 * Options of `createMcpHandler`.
 *
 * @example
 * ```ts
 * const options: McpHandlerOptions = { token: process.env["TOKEN"] };
 * ```
 */
export interface McpHandlerOptions extends McpCommonOptions, HttpEndpointOptions {
  /** The token that every request must have as `Authorization: Bearer …`. Default: none, because the application decides. */
  readonly token?: string | undefined;
}

/** An MCP endpoint for an existing server. It answers requests of every path that the server gives to it. */
export interface McpHandler extends AsyncDisposable {
  /** Answers a web request, with Hono, Next.js and others. Never rejects. */
  (request: Request): Promise<Response>;
  /**
   * Answers a request of Node's HTTP server, with Express, Fastify and others. Settles when the response has been sent or the
   * client has disconnected. Never rejects. `parsedBody` is the body if the framework has read it, by default `request.body`; a
   * function, such as `next` of Express, is ignored.
   */
  readonly node: (request: IncomingMessage, response: ServerResponse, parsedBody?: unknown) => Promise<void>;
  /**
   * Opens the session that clients of revision 2026-07-28 share, which the first request does otherwise.
   * @throws HostError those of `createSession`; `HOST_CLOSED` after the handler has been disposed of.
   */
  ready(): Promise<void>;
}

/**
 * Creates an MCP endpoint that is mounted in an existing HTTP server. It serves what `serveMcp` with `transport: "http"` serves,
 * without a port and a generated token: the application decides which requests reach it. Requests of web pages are refused
 * unless their origin is the loopback or one of `allowedOrigins`. Disposing of the handler ends its sessions, and further
 * requests get status 503; the host or the given session remains open.
 *
 * ```ts
 * const handler = createMcpHandler(host);
 * app.all("/mcp", (context) => handler(context.req.raw)); // Hono
 * app.all("/mcp", handler.node); // Express
 * ```
 */
export function createMcpHandler(source: Host | Session, options: McpHandlerOptions = {}): McpHandler {
  const mount = new Mount(source, options);
  return Object.assign((request: Request) => mount.answer(request), {
    node: (request: IncomingMessage, response: ServerResponse, parsedBody?: unknown) => mount.answerNode(request, response, parsedBody),
    ready: async () => void (await mount.start()),
    [Symbol.asyncDispose]: () => mount[Symbol.asyncDispose](),
  });
}

interface Bridges extends AsyncDisposable {
  readonly web: (request: Request) => Promise<Response>;
  readonly node: NodeHandler;
}

const shuttingDown: AnsweredError = { status: 503, message: "The server is shutting down." };
const failed: AnsweredError = { status: 500, message: "Internal error.", code: -32603 };

/** The bridges of a handler, which are created when they are needed. */
class Mount implements AsyncDisposable {
  readonly #source: Host | Session;
  readonly #options: McpHandlerOptions;
  readonly #log: Logger;
  readonly #life = new Lifetime(() => new HostError("HOST_CLOSED", "The MCP handler has been disposed of."));
  #bridges: Promise<Bridges> | undefined;

  constructor(source: Host | Session, options: McpHandlerOptions) {
    this.#source = source;
    this.#options = options;
    this.#log = options.logger ?? silentLogger;
  }

  /** A failed start is repeated by the next request. */
  async start(): Promise<Bridges> {
    this.#life.assertOpen();
    this.#bridges ??= this.#life.open(
      () => this.#create(),
      (late) => late[Symbol.asyncDispose](),
    );
    const bridges = this.#bridges;
    try {
      return await bridges;
    } catch (error) {
      // Another request may have started again already.
      if (this.#bridges === bridges) this.#bridges = undefined;
      throw error;
    }
  }

  async answer(request: Request): Promise<Response> {
    const bridges = await this.#open();
    if (!("status" in bridges)) return bridges.web(request);
    const outgoing = new WebResponse();
    answerError(outgoing, bridges);
    return outgoing.response;
  }

  async answerNode(request: IncomingMessage, response: ServerResponse, parsedBody: unknown): Promise<void> {
    const bridges = await this.#open();
    if ("status" in bridges) answerError(response, bridges);
    else await bridges.node(request, response, parsedBodyOf(request, parsedBody));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#life.end();
    await (await this.#bridges?.catch(() => undefined))?.[Symbol.asyncDispose]();
  }

  async #open(): Promise<Bridges | AnsweredError> {
    try {
      return await this.start();
    } catch (error) {
      if (this.#life.isOver) return shuttingDown;
      this.#log.error("The session for MCP clients cannot be opened.", { error: toError(error) });
      return failed;
    }
  }

  async #create(): Promise<Bridges> {
    const { token, allowedHosts = [], allowedOrigins = [], maxBodyBytes = defaultMaxBodyBytes } = this.#options;
    // Loaded on demand, as for `serveMcp`.
    const [{ createEndpoint }, { createHttpRoutes }, { createHttpGuard }, { createNodeBridge }, { createWebBridge }] = await Promise.all([
      import("./endpoint.ts"),
      import("./http-routes.ts"),
      import("../http/http-guard.ts"),
      import("./node-bridge.ts"),
      import("./web-bridge.ts"),
    ]);
    const endpoint = createEndpoint(this.#source, endpointOptions(this.#options), this.#log);
    const routes = await createHttpRoutes(endpoint, sessionLimits(this.#options), this.#log);
    // Floods are the business of the server, which knows the addresses of clients.
    const limits = { maxRequests: Number.POSITIVE_INFINITY, maxRefusals: Number.POSITIVE_INFINITY };
    const guard = createHttpGuard({ token, allowedHosts, allowedOrigins, ...limits });
    const onError = (error: Error): void => this.#log.warning("A request of an MCP client failed.", { error });
    const bridge = createNodeBridge(routes.fetch, { maxBodyBytes, receive: routes.receive, onError });
    return {
      web: createWebBridge(routes, { guard, maxBodyBytes, onError }),
      async node(incoming, outgoing, parsedBody) {
        if (!guard(incoming, outgoing)) await bridge(incoming, outgoing, parsedBody);
      },
      [Symbol.asyncDispose]: () => routes[Symbol.asyncDispose](),
    };
  }
}

/** The body that a framework has read. Undefined: it is unread. */
function parsedBodyOf(request: IncomingMessage & { readonly body?: unknown }, given: unknown): unknown {
  if (given !== undefined && typeof given !== "function") return given;
  return request.readableEnded ? request.body : undefined;
}
