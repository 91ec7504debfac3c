import type { Logger } from "../../base/logger.ts";
import { packageVersion } from "../../base/package-root.ts";
import type { EndpointOptions } from "./endpoint.ts";
import type { LegacySessionLimits } from "./legacy-sessions.ts";

/** Options of all transports. */
export interface McpCommonOptions extends Omit<EndpointOptions, "identity"> {
  /** The name of the server. Default: `skillhost`. */
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly version?: string | undefined;
  /** Default: nothing is logged. */
  readonly logger?: Logger | undefined;
}

/** Options of an endpoint, whichever server it belongs to. */
export interface HttpEndpointOptions {
  /** Host names besides those of the loopback that clients may use. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Hosts besides those of the loopback whose web pages may send requests. */
  readonly allowedOrigins?: readonly string[] | undefined;
  /** Longer bodies are refused. Default: 4 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** The limit of open sessions of clients up to revision 2025-11-25. Default: 100. */
  readonly maxSessions?: number | undefined;
  /** Milliseconds after which such a session is ended when it is not used. Default: 30 minutes. */
  readonly sessionIdleMs?: number | undefined;
}

export interface HttpOptions extends HttpEndpointOptions {
  /** 0: any free port. Default: 3333. */
  readonly port?: number | undefined;
  /** Default: 127.0.0.1, which is reachable only from this machine. */
  readonly host?: string | undefined;
  /** Default: `/mcp`. */
  readonly path?: string | undefined;
  /** The token that every request must have as `Authorization: Bearer …`. Default: a generated one. False: none, which requires a loopback address. */
  readonly token?: string | false | undefined;
  /** The limit of requests per address in ten seconds, without refused ones. Default: 10,000. */
  readonly maxRequests?: number | undefined;
}

export const defaultMaxBodyBytes: number = 4 * 1024 * 1024;

export function endpointOptions(options: McpCommonOptions): EndpointOptions {
  const { name = "skillhost", title, version = packageVersion, session, asksPermission, instructions } = options;
  return { session, asksPermission, instructions, identity: { name, title, version } };
}

export function sessionLimits({ maxSessions = 100, sessionIdleMs = 1_800_000 }: HttpEndpointOptions): LegacySessionLimits {
  return { maxSessions, idleMs: sessionIdleMs };
}
