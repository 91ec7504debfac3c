import type { ServerInfo } from "../../../session/servers/session-servers.ts";

/** An MCP server as clients list it. */
export function describeServer(info: ServerInfo): object {
  const { name, status, transport, error, origin } = info;
  return {
    name,
    status,
    ...(transport !== undefined && { transport }),
    source: sourceOf(info),
    ...(origin.kind === "plugin" && origin.source !== undefined && { sourcePlugin: origin.source }),
    ...(error !== undefined && status !== "disabled" && status !== "stopped" && { error }),
  };
}

/** Where its configuration comes from, in the Copilot SDK's words. */
export function sourceOf({ origin }: ServerInfo): "user" | "workspace" | "plugin" {
  switch (origin.kind) {
    case "skill":
    case "plugin":
      return "plugin";
    case "host":
      return "workspace";
    default:
      return "user";
  }
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
