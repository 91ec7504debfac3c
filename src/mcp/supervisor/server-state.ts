import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { McpConnection, ProtocolEra } from "../connection/connection.ts";

/**
 * Where a server stands:
 * - `idle`: nobody needed it yet, so it was not started.
 * - `starting`: being connected to, or waiting for the next try; after a crash, too.
 * - `ready`: connected, and its lists are there.
 * - `failed`: given up after several tries. A call or a new user tries once more, when some time has passed.
 * - `needs-auth`: it wants somebody to sign in.
 * - `needs-configuration`: its configuration lacks something, so it cannot be started.
 * - `disabled`: switched off, or none of its tools is wanted. It is not started.
 * - `stopped`: ended by request, or because everything ends.
 */
export type ServerState = "idle" | "starting" | "ready" | "failed" | "needs-auth" | "needs-configuration" | "disabled" | "stopped";

/** What went wrong with a server, for people. */
export interface ServerTrouble {
  /** Stable, such as `MCP_CLOSED`. */
  readonly code: string;
  readonly message: string;
}

/** How a server is doing, as of when it was asked for. */
export interface ServerStatus {
  readonly name: string;
  /** The same for all who use one connection. Undefined: it has none, since it cannot be started. */
  readonly id: string | undefined;
  readonly type: McpServerSpec["type"] | undefined;
  readonly state: ServerState;
  /** When it came to that, in milliseconds since the epoch. */
  readonly since: number;
  /** Tries that failed since it last worked for some time. */
  readonly failures: number;
  /** What went wrong last, while it is not mended; of `disabled` and `needs-configuration`, why. */
  readonly error: ServerTrouble | undefined;
  /** When the next try is due, or, of a failed one, when a call may try again. */
  readonly retryAt: number | undefined;
  /** The end of what it wrote to stderr, of the last process that it had. */
  readonly stderrTail: string;
  readonly pid: number | undefined;
  readonly era: ProtocolEra | undefined;
  readonly protocolVersion: string | undefined;
  readonly serverInfo: McpConnection["serverInfo"];
  /** Milliseconds that the last successful start took, up to having the lists. */
  readonly startedIn: number | undefined;
  /** How many users it has. */
  readonly users: number;
}
