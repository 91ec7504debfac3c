import type { Readable } from "node:stream";
import { silentLogger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";
import type { Session } from "../../session/session.ts";
import type { McpHttpServer } from "./serve-http.ts";
import type { LineOutput, McpStdioServer } from "./serve-stdio.ts";
import { endpointOptions, type HttpOptions, type McpCommonOptions } from "./serving-options.ts";

export type { McpHttpServer, McpStdioServer };

/**
 * Options of `serveMcp` over standard input and output.
 *
 * @example
 * ```ts
 * const options: McpStdioOptions = { transport: "stdio" };
 * ```
 */
export interface McpStdioOptions extends McpCommonOptions {
  /** Over standard input and output, for one client. */
  readonly transport: "stdio";
  /** Default: stdin and stdout of the process, which nothing else may use then. */
  readonly input?: Readable | undefined;
  /** Default: stdout of the process. */
  readonly output?: LineOutput | undefined;
}

/**
 * Options of `serveMcp` over HTTP.
 *
 * @example
 * ```ts
 * const options: McpHttpOptions = { transport: "http", port: 3333, token: process.env["TOKEN"] };
 * ```
 */
export interface McpHttpOptions extends McpCommonOptions, HttpOptions {
  /** Over HTTP, for several clients. */
  readonly transport: "http";
}

/**
 * Serves the tools, prompts, resources and skills of sessions to MCP clients, in protocol revisions 2025-11-25 and earlier, and
 * 2026-07-28. Saved changes update the lists. Hooks and permissions apply to calls; when no rule allows a call, a client that can
 * show forms is asked. With a host, every client has its own session, except that those of revision 2026-07-28 over HTTP share
 * one. All clients share a given session, which is not ended.
 * @throws HostError `HTTP_LISTEN` when the address cannot be listened on; those of `createSession`.
 */
export function serveMcp(source: Host | Session, options: McpStdioOptions): Promise<McpStdioServer>;
export function serveMcp(source: Host | Session, options: McpHttpOptions): Promise<McpHttpServer>;
export async function serveMcp(source: Host | Session, options: McpStdioOptions | McpHttpOptions): Promise<McpStdioServer | McpHttpServer> {
  const { logger = silentLogger } = options;
  // Loaded on demand, since the SDK takes a quarter of a second to load.
  const { createEndpoint } = await import("./endpoint.ts");
  const endpoint = createEndpoint(source, endpointOptions(options), logger);
  if (options.transport === "http") return (await import("./serve-http.ts")).serveHttp(endpoint, options, logger);
  const { input = process.stdin, output = processOutput() } = options;
  return (await import("./serve-stdio.ts")).serveStdio(endpoint, { input, output }, logger);
}

/** Ends the connection when stdout is closed. */
function processOutput(): LineOutput {
  const { stdin, stdout } = process;
  stdout.on("error", () => stdin.destroy());
  return { write: (text) => void stdout.write(text) };
}
