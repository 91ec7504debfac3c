import { BlockList, isIP, isIPv6 } from "node:net";
import type { FetchLike } from "@modelcontextprotocol/client";
import { errorMessage, HostError } from "../../base/errors.ts";
import { redactText } from "../../base/logger.ts";
import { boundedFetch } from "../../io/net/bounded-fetch.ts";

interface AuthFetchOptions {
  /** The configured MCP server. Every other address comes from answers of servers. */
  readonly serverUrl: URL;
  /** Configured for the MCP server. They are not sent to any other origin. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * The fetch for authorization: answers of limited size and time; no redirects to another origin; no addresses on this
 * machine or in a private network, unless the MCP server itself is there; https except for loopback. The addresses come
 * from servers, which could otherwise make the host send requests to services that only it can reach.
 */
export function createAuthFetch({ serverUrl, headers, signal }: AuthFetchOptions): FetchLike {
  return async (target, init = {}) => {
    const url = new URL(target);
    if (!mayContact(url, serverUrl)) throw new RefusedAddress(refusal(url));
    const own = url.origin === serverUrl.origin ? headers : {};
    const outcome = await boundedFetch({
      url: url.href,
      method: init.method ?? "GET",
      headers: { ...own, ...Object.fromEntries(new Headers(init.headers)) },
      ...(init.body === undefined || init.body === null ? {} : { body: String(init.body) }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      maxBytes,
    });
    signal.throwIfAborted();
    // A TypeError, like fetch: the SDK takes any other error for a missing document.
    if (outcome.kind === "failed") throw new TypeError(outcome.message);
    if (outcome.truncated) throw new TypeError(`${url.host} answered with more than ${maxBytes} bytes.`);
    const body = withoutBody.has(outcome.status) ? null : Buffer.from(outcome.bytes);
    return new Response(body, { status: outcome.status, headers: outcome.headers });
  };
}

/** Whether an address from a server may be contacted, or opened in the user's browser. */
export function mayContact(url: URL, server: URL): boolean {
  if (url.protocol !== "https:" && url.protocol !== "http:") return false;
  if (url.origin === server.origin) return true;
  const reach = reachOf(url.hostname);
  if (url.protocol === "http:" && reach !== "machine") return false;
  return ranks[reach] <= ranks[reachOf(server.hostname)];
}

const timeoutMs = 30_000;
const maxBytes = 1024 * 1024;
const withoutBody: ReadonlySet<number> = new Set([204, 205, 304]);

class RefusedAddress extends TypeError {}

function refusal(url: URL): string {
  return `${url.origin} is not contacted for signing in: it must use https, and must not be on this machine or in a private network.`;
}

/** From where an address can be reached. Names are not resolved: only literal addresses and localhost count as private. */
type Reach = "world" | "network" | "machine";

const ranks: Readonly<Record<Reach, number>> = { world: 0, network: 1, machine: 2 };

function reachOf(hostname: string): Reach {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (host === "localhost" || host.endsWith(".localhost")) return "machine";
  if (isIP(host) === 0) return "world";
  const family = isIPv6(host) ? "ipv6" : "ipv4";
  if (machine.check(host, family)) return "machine";
  return network.check(host, family) ? "network" : "world";
}

const machine = blockList(["127.0.0.0", 8], ["0.0.0.0", 8], ["::1", 128], ["::", 128]);
const network = blockList(
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["169.254.0.0", 16],
  ["100.64.0.0", 10],
  ["fc00::", 7],
  ["fe80::", 10],
);

function blockList(...subnets: readonly (readonly [address: string, prefix: number])[]): BlockList {
  const list = new BlockList();
  for (const [address, prefix] of subnets) list.addSubnet(address, prefix, isIPv6(address) ? "ipv6" : "ipv4");
  return list;
}

/** The error for a request that is not authorized, with the reason and the remedy. */
export function unauthorized(serverName: string, why: string, remedy = `Run "skillhost login ${serverName}".`): HostError {
  return new HostError("MCP_UNAUTHORIZED", `Not signed in to MCP server "${serverName}": ${sentence(why)} ${remedy}`);
}

/**
 * Why signing in or renewing failed, for people. Errors of the SDK quote whole answers, which may contain tokens, so those
 * texts are left out.
 */
export async function explain(error: unknown): Promise<string> {
  const { IssuerMismatchError, OAuthError, RegistrationRejectedError } = await import("@modelcontextprotocol/client");
  if (error instanceof RegistrationRejectedError) {
    return `the authorization server does not support automatic client registration (HTTP ${error.status}); register a client there and configure oauth.clientId`;
  }
  if (error instanceof IssuerMismatchError) {
    const what = error.kind === "metadata" ? "the metadata of the authorization server" : "the authorization response";
    const issuer = error.received === undefined ? "none" : oneLine(error.received);
    return `${what} must be from the issuer ${error.expected}, but the response names ${issuer}`;
  }
  if (!(error instanceof OAuthError)) return oneLine(errorMessage(error));
  if (error.message.includes("Raw body:")) return "the authorization server answered with an error without an explanation";
  const description = error.message === error.code ? "" : ` (${oneLine(error.message)})`;
  return `the authorization server answered "${oneLine(error.code)}"${description}`;
}

function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a server's text must not control a terminal.
  const line = redactText(text.replace(/[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, " ")).trim();
  return line.length > 300 ? `${line.slice(0, 299)}…` : line;
}

function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
