import type { IncomingMessage, ServerResponse } from "node:http";
import { createTokenCheck, isLoopback } from "../../io/net/connection-gate.ts";

interface HttpGuardOptions {
  /** The address on which the server listens. */
  readonly host: string;
  /** The token that every request must have. Undefined: none, which is allowed only for loopback addresses. */
  readonly token: string | undefined;
  /** Host names that are allowed in `Host` besides those of the loopback. */
  readonly allowedHosts: readonly string[];
  /** Whether web pages of an origin may send requests. */
  readonly allowsOrigin: (origin: string) => boolean;
  /** The limit of requests per address in ten seconds, without refused ones. */
  readonly maxRequests: number;
  /** The limit of refused requests per address in ten seconds that get a reason. Further ones get only 429. Default: 100. */
  readonly maxRefusals?: number;
  /** Returns the time in milliseconds. */
  readonly now?: () => number;
}

/** The response to a refused request. */
interface Refusal {
  readonly status: 401 | 403 | 429;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Checks a request before its body is read. Undefined: it is allowed. */
type HttpGuard = (request: Pick<IncomingMessage, "method" | "headers" | "socket">) => Refusal | undefined;

const loopbackNames = ["localhost", "127.0.0.1", "[::1]"];
const windowMs = 10_000;
const maxAddresses = 10_000;

/**
 * Refuses web pages, requests without the token, and floods. A page that uses DNS rebinding is recognized by `Host` or `Origin`.
 */
export function createHttpGuard(options: HttpGuardOptions): HttpGuard {
  const hosts = new Set([...loopbackNames, ...options.allowedHosts.map(lower)]);
  // Outside the loopback, the names of a server are unknown, and the token protects it from web pages.
  const checksHost = isLoopback(options.host) || options.allowedHosts.length > 0;
  // Clients repeat the same header in each request, and parsing it takes longer than all other checks.
  let [lastHost, isLastAllowed]: [string | undefined, boolean] = [undefined, false];
  const allowsHost = (host: string | undefined): boolean => {
    if (host !== lastHost || host === undefined) [lastHost, isLastAllowed] = [host, hosts.has(hostnameOf(host) ?? "")];
    return isLastAllowed;
  };
  const isToken = options.token === undefined ? undefined : createTokenCheck(options.token);
  const { maxRequests, maxRefusals = 100, now = Date.now } = options;
  // Separate limits, so that refused requests and preflights do not use up those of a client at the same address.
  const [isFlood, isStorm] = [createFloodGate(maxRequests, now), createFloodGate(maxRefusals, now)];
  const isRush = createFloodGate(maxRefusals, now);
  const refusalOf = (request: Pick<IncomingMessage, "method" | "headers">): Refusal | undefined => {
    const { host, origin, authorization } = request.headers;
    if (checksHost && !allowsHost(host))
      return { status: 403, message: "This Host header is not allowed. Allow the host name with --allow-host." };
    if (origin !== undefined && !options.allowsOrigin(origin))
      return { status: 403, message: "This Origin is not allowed. Allow it with --allow-origin." };
    return isToken && !isPreflight(request) ? checkToken(authorization, isToken) : undefined;
  };
  return (request) => {
    const { remoteAddress: address = "" } = request.socket;
    const refusal = refusalOf(request);
    if (refusal !== undefined) return isStorm(address) ? flooded : refusal;
    return (isPreflight(request) ? isRush(address) : isFlood(address)) ? flooded : undefined;
  };
}

/** Creates a check that allows the origins of the loopback and of the given hosts. */
export function createOriginCheck(allowedOrigins: readonly string[]): (origin: string) => boolean {
  const hosts = new Set([...loopbackNames, ...allowedOrigins.map(lower)]);
  return (origin) => hosts.has(originHostOf(origin) ?? "");
}

function checkToken(authorization: string | undefined, isToken: (given: string) => boolean): Refusal | undefined {
  const given = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
  if (given !== undefined && isToken(given)) return undefined;
  const reason = given === undefined ? "" : ', error="invalid_token"';
  return { status: 401, message: "A bearer token is required.", headers: { "WWW-Authenticate": `Bearer realm="skillhost"${reason}` } };
}

const flooded: Refusal = { status: 429, message: "Too many requests.", headers: { "Retry-After": String(windowMs / 1000) } };

function createFloodGate(limit: number, now: () => number): (address: string) => boolean {
  let windowEnd = 0;
  let counts = new Map<string, number>();
  return (address) => {
    if (now() >= windowEnd || counts.size > maxAddresses) {
      windowEnd = now() + windowMs;
      counts = new Map();
    }
    const count = (counts.get(address) ?? 0) + 1;
    counts.set(address, count);
    return count > limit;
  };
}

function hostnameOf(host: string | undefined): string | undefined {
  if (host === undefined || /[\s/@?#\\]/.test(host)) return undefined;
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : undefined;
}

function originHostOf(origin: string): string | undefined {
  return /^https?:\/\//i.test(origin) && URL.canParse(origin) ? new URL(origin).hostname : undefined;
}

function lower(name: string): string {
  return name.toLowerCase();
}

// The headers of the transport that browsers allow only with permission, except those of parameters.
const requestHeaders = new Set([
  "accept",
  "authorization",
  "content-type",
  "last-event-id",
  "mcp-method",
  "mcp-name",
  "mcp-protocol-version",
  "mcp-session-id",
]);
const exposedHeaders = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After";

/** Whether a request is a CORS preflight. Browsers send it without a token. */
export function isPreflight({ method, headers }: Pick<IncomingMessage, "method" | "headers">): boolean {
  return method === "OPTIONS" && headers.origin !== undefined && headers["access-control-request-method"] !== undefined;
}

/** Lets a page read the response. Its origin must have been checked. */
export function allowOrigin(origin: string, response: ServerResponse): void {
  response.setHeader("Access-Control-Allow-Origin", origin);
  response.setHeader("Access-Control-Expose-Headers", exposedHeaders);
  response.setHeader("Vary", "Origin");
}

/** Answers a preflight request. Its origin must have been checked. */
export function answerPreflight({ headers }: IncomingMessage, response: ServerResponse): void {
  const asked = (headers["access-control-request-headers"] ?? "").toLowerCase().split(/\s*,\s*/);
  const allowed = asked.filter((name) => requestHeaders.has(name) || /^mcp-param-[!#$%&'*+.^_`|~\w-]+$/.test(name));
  response.setHeader("Access-Control-Allow-Methods", "GET, POST, DELETE");
  if (allowed.length > 0) response.setHeader("Access-Control-Allow-Headers", allowed.join(", "));
  // Browsers require this before a public page may access a server on this machine or its network.
  if (headers["access-control-request-private-network"] === "true") response.setHeader("Access-Control-Allow-Private-Network", "true");
  response.setHeader("Access-Control-Max-Age", "600");
  response.writeHead(204).end();
}
