import type { IncomingMessage, ServerResponse } from "node:http";

// What the transport sends besides headers that need no permission; those of parameters have names of their own.
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

/** Whether a browser asks, before it sends a request, whether a page may send it. It never carries a token. */
export function isPreflight({ method, headers }: Pick<IncomingMessage, "method" | "headers">): boolean {
  return method === "OPTIONS" && headers.origin !== undefined && headers["access-control-request-method"] !== undefined;
}

/** Lets a page read the answer, whatever that is going to be. Its origin must have been checked. */
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
  // Browsers ask this before a page of the web may call a server of this machine or its network.
  if (headers["access-control-request-private-network"] === "true") response.setHeader("Access-Control-Allow-Private-Network", "true");
  response.setHeader("Access-Control-Max-Age", "600");
  response.writeHead(204).end();
}
