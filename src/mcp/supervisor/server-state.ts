import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { McpConnection, ProtocolEra } from "../connection/connection.ts";

/**
 * The states of a server:
 * - `idle`: not started yet, since it was not needed.
 * - `starting`: connecting, or waiting for the next attempt, also after a crash.
 * - `ready`: connected, with its lists.
 * - `failed`: given up after several attempts. After a while, a call or a new user tries once more.
 * - `needs-auth`: the user must sign in.
 * - `needs-configuration`: its configuration lacks something, so it cannot be started.
 * - `disabled`: switched off, or its tools are all filtered out. It is not started.
 * - `stopped`: ended by request, or because the host closes.
 */
export type ServerState = "idle" | "starting" | "ready" | "failed" | "needs-auth" | "needs-configuration" | "disabled" | "stopped";

/** What went wrong with a server, for people. */
export interface ServerError {
  /** Stable, such as `MCP_CLOSED`. */
  readonly code: string;
  readonly message: string;
}

/** The status of a server at the time of the request. */
export interface SharedServerStatus {
  readonly name: string;
  /** The same for all users of one connection. Undefined: it cannot be started. */
  readonly id: string | undefined;
  readonly type: McpServerSpec["type"] | undefined;
  readonly state: ServerState;
  /** When it entered the state, in milliseconds since the epoch. */
  readonly since: number;
  /** Failed attempts since it last worked for some time. */
  readonly failures: number;
  /** The last error, until it is resolved; for `disabled` and `needs-configuration`, the reason. */
  readonly error: ServerError | undefined;
  /** When the next attempt is due or, once it has failed, when a call may try again. */
  readonly retryAt: number | undefined;
  /** The end of what its latest process wrote to stderr. */
  readonly stderrTail: string;
  readonly pid: number | undefined;
  readonly era: ProtocolEra | undefined;
  readonly protocolVersion: string | undefined;
  readonly serverInfo: McpConnection["serverInfo"];
  /** Milliseconds that the last successful start took, including the lists. */
  readonly startedIn: number | undefined;
  /** The number of its users. */
  readonly users: number;
}
