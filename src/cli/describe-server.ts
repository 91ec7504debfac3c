import type { Position } from "../base/diagnostic.ts";
import type { ServerInfo, ServerStatus } from "../session/servers/session-servers.ts";
import type { ConfiguredServers } from "./configured-servers.ts";
import type { Output } from "./output.ts";
import { visibleLine } from "./visible-text.ts";

/** A server as the command line lists it. */
export interface ListedServer extends ServerInfo {
  /** The file that configures it, where the command line read that. */
  readonly file?: string;
  readonly range?: { readonly start: Position };
}

/** Adds the files that the command line read the servers from. */
export function withFiles(servers: readonly ServerInfo[], { all }: ConfiguredServers): readonly ListedServer[] {
  const read = new Map(all.map((one) => [one.server.name, one]));
  return servers.map((info) => {
    const found = info.origin.kind === "host" ? read.get(info.name) : undefined;
    if (found === undefined) return info;
    const { server, file, start } = found;
    // What could not be started was not given to the host with its transport.
    const transport = info.transport ?? (server.state === "unconfigured" ? server.server.type : undefined);
    return { ...info, ...(transport !== undefined && { transport }), file, ...(start && { range: { start } }) };
  });
}

const words: Readonly<Record<ServerStatus, string>> = {
  connected: "connected",
  pending: "not started",
  failed: "failed",
  "needs-auth": "requires sign-in",
  disabled: "disabled",
  stopped: "stopped",
  not_configured: "needs configuration",
};

/** `name  stdio  not started  .mcp.json` */
export function serverHeading(server: ListedServer, { style, path }: Output): string {
  const { name, transport, status, origin, file } = server;
  const color = { connected: style.green, pending: style.green, failed: style.red }[status as string] ?? style.yellow;
  const from = file === undefined ? [origin.kind, origin.source].filter((part) => part !== undefined).join(" ") : path(file);
  const parts = [style.bold(visibleLine(name)), transport ?? "", color(words[status]), style.dim(visibleLine(from))];
  return parts.filter((part) => part !== "").join("  ");
}
