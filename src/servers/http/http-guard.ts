import { createTokenCheck, isLoopback } from "../../io/net/connection-gate.ts";
import { type RequestHead, type ResponseSink, refuse } from "./http-exchange.ts";

interface HttpGuardOptions {
  /** The address on which the server listens. Undefined: unknown. */
  readonly host?: string | undefined;
  /** The token that every request must have. Undefined: none, because the address is of the loopback or the program itself decides. */
  readonly token: string | undefined;
  /** Host names that are allowed in `Host` besides those of the loopback. */
  readonly allowedHosts: readonly string[];
  /** Hosts besides those of the loopback whose web pages may send requests. */
  readonly allowedOrigins: readonly string[];
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

/** A request of the address, if that is known. */
type GuardedRequest = RequestHead & { readonly socket?: { readonly remoteAddress?: string | undefined } };

/** Answers a request that is refused or is a CORS preflight, before its body is read. False: the request is allowed. */
export type HttpGuard = (request: GuardedRequest, response: ResponseSink) => boolean;

const loopbackNames = ["localhost", "127.0.0.1", "[::1]"];
const windowMs = 10_000;
const maxAddresses = 10_000;

/**
 * Refuses web pages, requests without the token, and floods. A page that uses DNS rebinding is recognized by `Host` or `Origin`.
 */
export function createHttpGuard(options: HttpGuardOptions): HttpGuard {
  const hosts = new Set([...loopbackNames, ...options.allowedHosts.map(lower)]);
  // Outside the loopback, the names of a server are unknown, and the token protects it from web pages.
  const checksHost = options.allowedHosts.length > 0 || (options.host !== undefined && isLoopback(options.host));
  // Clients repeat the same header in each request, and parsing it takes longer than all other checks.
  let [lastHost, isLastAllowed]: [string | undefined, boolean] = [undefined, false];
  const allowsHost = (host: string | undefined): boolean => {
    if (host !== lastHost || host === undefined) [lastHost, isLastAllowed] = [host, hosts.has(hostnameOf(host) ?? "")];
    return isLastAllowed;
  };
  const allowsOrigin = createOriginCheck(options.allowedOrigins);
  const isToken = options.token === undefined ? undefined : createTokenCheck(options.token);
  const { maxRequests, maxRefusals = 100, now = Date.now } = options;
  // Separate limits, so that refused requests and preflights do not use up those of a client at the same address.
  const [isFlood, isStorm] = [createFloodGate(maxRequests, now), createFloodGate(maxRefusals, now)];
  const isRush = createFloodGate(maxRefusals, now);
  const refusalOf = (request: RequestHead): Refusal | undefined => {
    const { host, origin, authorization } = request.headers;
    if (checksHost && !allowsHost(host))
      return { status: 403, message: "This Host header is not allowed. Allow the host name with allowedHosts (--allow-host)." };
    if (origin !== undefined && !allowsOrigin(origin))
      return { status: 403, message: "This Origin is not allowed. Allow its host with allowedOrigins (--allow-origin)." };
    return isToken && !isPreflight(request) ? checkToken(authorization, isToken) : undefined;
  };
  const check = (request: GuardedRequest): Refusal | undefined => {
    const address = request.socket?.remoteAddress ?? "";
    const refusal = refusalOf(request);
    if (refusal !== undefined) return isStorm(address) ? flooded : refusal;
    return (isPreflight(request) ? isRush(address) : isFlood(address)) ? flooded : undefined;
  };
  return (request, response) => {
    const refusal = check(request);
    const { origin } = request.headers;
    // A page must be able to read a refusal as well.
    if (origin !== undefined && allowsOrigin(origin)) allowOrigin(origin, response);
    if (refusal !== undefined) refuse(response, refusal);
    else if (isPreflight(request)) answerPreflight(request, response);
    else return false;
    return true;
  };
}

/** Creates a check that allows the origins of the loopback and of the given hosts. */
function createOriginCheck(allowedOrigins: readonly string[]): (origin: string) => boolean {
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
function isPreflight({ method, headers }: RequestHead): boolean {
  return method === "OPTIONS" && headers.origin !== undefined && headers["access-control-request-method"] !== undefined;
}

/** Lets a page read the response. Its origin must have been checked. */
function allowOrigin(origin: string, response: ResponseSink): void {
  response.setHeader("Access-Control-Allow-Origin", origin);
  response.setHeader("Access-Control-Expose-Headers", exposedHeaders);
  response.setHeader("Vary", "Origin");
}

/** Answers a preflight request. Its origin must have been checked. */
function answerPreflight({ headers }: RequestHead, response: ResponseSink): void {
  const asked = (headers["access-control-request-headers"] ?? "").toLowerCase().split(/\s*,\s*/);
  const allowed = asked.filter((name) => requestHeaders.has(name) || /^mcp-param-[!#$%&'*+.^_`|~\w-]+$/.test(name));
  response.setHeader("Access-Control-Allow-Methods", "GET, POST, DELETE");
  if (allowed.length > 0) response.setHeader("Access-Control-Allow-Headers", allowed.join(", "));
  // Browsers require this before a public page may access a server on this machine or its network.
  if (headers["access-control-request-private-network"] === "true") response.setHeader("Access-Control-Allow-Private-Network", "true");
  response.setHeader("Access-Control-Max-Age", "600");
  response.writeHead(204).end();
}
