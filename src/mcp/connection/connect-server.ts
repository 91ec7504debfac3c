import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { connectLocal } from "./connect-local.ts";
import type { ConnectOptions } from "./connect-options.ts";
import { connectRemote } from "./connect-remote.ts";
import type { McpConnection } from "./connection.ts";

export type { ConnectOptions } from "./connect-options.ts";

/**
 * Connects to an MCP server, in whichever of the protocol's two eras it speaks. Disposing of the connection ends it, and
 * the whole process group of a local server with it, in bounded time.
 *
 * @throws HostError `MCP_NOT_STARTED` when trying again cannot help: there is no such command, folder or address.
 * @throws HostError `MCP_UNAUTHORIZED` when somebody must sign in.
 * @throws HostError `MCP_TIMEOUT`, `MCP_CANCELLED`, `MCP_CLOSED`, `MCP_ANSWER` or `MCP_ERROR` for whatever else keeps the
 * connection from coming about. The message is for people; of a process that ended it has the exit code and the last line
 * that it wrote to stderr. Nothing is left of what was started.
 */
export function connectServer(spec: McpServerSpec, options: ConnectOptions): Promise<McpConnection> {
  return spec.type === "stdio" ? connectLocal(spec, options) : connectRemote(spec, options);
}
