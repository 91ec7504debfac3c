import { type ServerInfo, sourceOf } from "../../../session/mcp/server-connections.ts";

/** An MCP server as clients list it. */
export function describeServer(info: ServerInfo): object {
  const { name, status, transport, error, origin } = info;
  return {
    name,
    status,
    ...(transport !== undefined && { transport }),
    source: sourceOf(origin),
    ...(origin.kind === "plugin" && origin.source !== undefined && { sourcePlugin: origin.source }),
    ...(error !== undefined && status !== "disabled" && status !== "stopped" && { error }),
  };
}

export function describeHostState(servers: readonly ServerInfo[]): object {
  const named = (status: ServerInfo["status"]): readonly string[] => servers.filter((one) => one.status === status).map(({ name }) => name);
  const timestamp = Date.now();
  const failed = servers.filter(({ status }) => status === "failed");
  return {
    mcp3pEnabled: true,
    disabledServers: named("disabled"),
    filteredServers: [],
    clients: named("connected"),
    pendingConnections: named("pending"),
    failedServers: Object.fromEntries(failed.map(({ name, error = "It failed." }) => [name, { message: error, timestamp }])),
    needsAuthServers: Object.fromEntries(named("needs-auth").map((name) => [name, { timestamp }])),
  };
}
