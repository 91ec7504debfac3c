import type { VariableLookup } from "../mcp/expand-variables.ts";
import { parseServerSpec } from "../mcp/parse-server-spec.ts";
import { toServerConfig } from "../mcp/server-config.ts";
import { isJsonObject, type JsonObject } from "../text/json-fields.ts";
import type { AgentReport } from "./agent-file.ts";

interface ServerReading {
  readonly report: AgentReport;
  readonly variables: VariableLookup | undefined;
  readonly file: string;
}

const maxServers = 100;

/** Reads an agent's own MCP servers, with their variables filled in, into what a session takes. */
export function readAgentServers(data: JsonObject, reading: ServerReading): Readonly<Record<string, unknown>> | undefined {
  const key = ["mcp-servers", "mcpServers"].find((candidate) => data[candidate] != null);
  if (key === undefined) return undefined;
  const servers: Record<string, unknown> = Object.create(null);
  for (const [name, value] of entriesOf(data[key], key, reading).slice(0, maxServers)) {
    const { server, diagnostics } = parseServerSpec(name, value, { dialect: "agent", variables: reading.variables });
    for (const { severity, code, message } of diagnostics) reading.report(severity === "error" ? "warning" : severity, code, message, key);
    if (server.state === "ready") servers[name] = toServerConfig(server.spec);
    else if (server.state === "unconfigured")
      reading.report("warning", "MCP_UNCONFIGURED", `MCP server ${JSON.stringify(name)} needs configuration. ${server.server.reason}`, key);
  }
  return servers;
}

/** A map by name; or a list of such maps and of names of servers that there are anyway. */
function entriesOf(value: unknown, key: string, { report }: ServerReading): readonly (readonly [string, unknown])[] {
  if (isJsonObject(value)) return Object.entries(value);
  if (!Array.isArray(value)) {
    report("warning", "AGENT_FIELD_TYPE", `\`${key}\` must be a mapping of names to servers and is left out.`, key);
    return [];
  }
  return value.flatMap((item: unknown) => {
    if (isJsonObject(item)) return Object.entries(item);
    if (typeof item === "string")
      report("info", "AGENT_SERVER_NAMED", `The server ${JSON.stringify(item.slice(0, 100))} is there if the session has it.`, key);
    return [];
  });
}
