import type { Readable } from "node:stream";
import { type Logger, silentLogger } from "../../base/logger.ts";
import { packageVersion } from "../../base/package-version.ts";
import type { Host } from "../../host/host.ts";
import type { Session } from "../../session/session.ts";
import type { EndpointOptions } from "./endpoint.ts";
import type { HttpOptions, McpHttpServer } from "./serve-http.ts";
import type { LineOutput, McpStdioServer } from "./serve-stdio.ts";

export type { McpHttpServer, McpStdioServer };

/** Options of both transports. */
interface CommonOptions extends Omit<EndpointOptions, "identity"> {
  /** What the server calls itself. Default: `skillhost`. */
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly version?: string | undefined;
  /** Default: nothing is logged. */
  readonly logger?: Logger | undefined;
}

export interface McpStdioOptions extends CommonOptions {
  readonly transport: "stdio";
  /** Default: the process's own, which nothing else may use then. */
  readonly input?: Readable | undefined;
  readonly output?: LineOutput | undefined;
}

export interface McpHttpOptions extends CommonOptions, HttpOptions {
  readonly transport: "http";
}

/**
 * Serves what sessions of a host offer to MCP clients: tools, prompts, resources and skills, in protocol revisions
 * 2025-11-25 and earlier, and 2026-07-28. Lists follow what is saved. Calls go through hooks and permissions as any; a
 * client that can show a form is asked for what no rule allows. With a host every client has a session of its own, but
 * those of revision 2026-07-28 over HTTP share one; a session that is given is shared by all, and not ended.
 * @throws HostError `HTTP_LISTEN` when the address cannot be listened on; those of `createSession`.
 */
export function serveMcp(source: Host | Session, options: McpStdioOptions): Promise<McpStdioServer>;
export function serveMcp(source: Host | Session, options: McpHttpOptions): Promise<McpHttpServer>;
export async function serveMcp(source: Host | Session, options: McpStdioOptions | McpHttpOptions): Promise<McpStdioServer | McpHttpServer> {
  const { name = "skillhost", title, version = packageVersion, logger = silentLogger, session, asksPermission, instructions } = options;
  // The protocol's library takes a quarter of a second to load; who serves nothing does not pay for it.
  const { createEndpoint } = await import("./endpoint.ts");
  const face = createEndpoint(source, { session, asksPermission, instructions, identity: { name, title, version } }, logger);
  if (options.transport === "http") return (await import("./serve-http.ts")).serveHttp(face, options, logger);
  const { input = process.stdin, output = processOutput() } = options;
  return (await import("./serve-stdio.ts")).serveStdio(face, { input, output }, logger);
}

/** Where nobody reads any more, there is nobody to serve either. */
function processOutput(): LineOutput {
  const { stdin, stdout } = process;
  stdout.on("error", () => stdin.destroy());
  return { write: (text) => void stdout.write(text) };
}
