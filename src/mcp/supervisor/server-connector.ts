import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { McpConnection, ProtocolEra } from "../connection/connection.ts";

/** What an earlier connection found out about the protocol that a server speaks. */
export interface EraVerdict {
  readonly era: ProtocolEra;
  readonly protocolVersion: string;
}

export interface ConnectRequest {
  /** Whose roots and relative paths count. The `cwd` of a local server's spec is absolute already. */
  readonly workingDirectory: string;
  /** Ends the try: what was started for it is ended before the promise rejects. */
  readonly signal: AbortSignal;
  /** Milliseconds for connecting. */
  readonly timeout: number;
  /** Spares finding out what the server speaks. A wrong one makes the try fail; the next one goes without. */
  readonly prior: EraVerdict | undefined;
  /** What a local server writes to stderr, as it arrives. */
  onStderr(text: string): void;
}

/**
 * Connects to a server once. Rejects with HostError: `MCP_UNAUTHORIZED` when somebody must sign in, `MCP_NOT_STARTED` when
 * trying again cannot help (such as a command that does not exist), any other code when it may. The message is for people
 * and names the exit code where there is one. Disposing of the connection ends the server's whole process group, in
 * bounded time.
 *
 * A request of the connection rejects with `MCP_NOT_RUN` when it is certain that the server did not take it up, because
 * the connection was over or its session unknown (HTTP 404): then it is made anew, and the request sent again.
 */
export type ServerConnector = (spec: McpServerSpec, request: ConnectRequest) => Promise<McpConnection>;
