import { homedir } from "node:os";
import { join, sep } from "node:path";
import { createVariableLookup } from "../../formats/mcp/expand-variables.ts";
import { parseMcpConfig } from "../../formats/mcp/mcp-config.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import type { Host } from "../../host/host.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import type { ServerInfo } from "../../session/servers/session-servers.ts";
import type { CommandContext } from "../command-context.ts";
import { readConfiguredServers } from "../configured-servers.ts";
import { type ListedServer, withFiles } from "../describe-server.ts";

/** A server with its configuration, as far as that can be had here. */
export interface GatheredServer {
  readonly info: ListedServer;
  /** Absent: it needs configuration, or a plugin keeps its configuration to itself. */
  readonly spec?: McpServerSpec;
}

/** The servers that every session of a host has. */
export function gatherServers(context: CommandContext, host: Host): readonly GatheredServer[] {
  const configured = readConfiguredServers(context);
  const byName = new Map(configured.all.map(({ server }) => [server.name, server]));
  return withFiles(host.listServers(), configured).map((info) => {
    if (info.origin.kind === "skill") return ofSkill(info, context, host);
    const parsed = info.origin.kind === "host" ? byName.get(info.name) : undefined;
    return parsed?.state === "ready" ? { info, spec: parsed.spec } : { info };
  });
}

function ofSkill(info: ServerInfo, { io }: CommandContext, host: Host): GatheredServer {
  const skill = host.skills.find(({ name, state }) => name === info.origin.source && state === "active");
  if (skill === undefined) return { info };
  const { folder } = skill;
  const file = join(folder, "skill.json");
  const text = readTextFile(file, maxJsonBytes);
  if (!text.ok) return { info };
  const places = { folder, workspace: host.workingDirectory, home: homedir(), separator: sep };
  const variables = createVariableLookup({ environment: io.env, places });
  const read = parseMcpConfig(text.text, { file, dialect: "skill", folder, variables, at: ["mcpServers"] });
  const server = read.servers.find(({ name }) => name === info.name);
  const start = read.places.get(info.name);
  const listed = { ...info, file, ...(start && { range: { start } }) };
  return server?.state === "ready" ? { info: listed, spec: server.spec } : { info: listed };
}
