import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord, type Json } from "../../base/json.ts";
import type { VariableLookup } from "../mcp/mcp-dialects.ts";
import { type ParsedServer, readServer } from "../mcp/parse-server-spec.ts";
import { createTextReport } from "../skills/text-report.ts";
import { type JsonDocument, parseJson } from "../text/json-document.ts";
import { describe, type JsonComplain } from "../text/json-fields.ts";
import { fileTooLarge, maxJsonBytes } from "../text/limits.ts";
import { agentPluginsSchema } from "./plugin-dialects.ts";

export interface AgentPluginsMcpOptions {
  readonly file: string;
  readonly variables: VariableLookup;
  /** The plugin's folder: the working directory of programs, and the base of relative commands. */
  readonly folder: string;
}

const maxServers = 1_000;

/**
 * Reads the `mcp.json` of an Agent Plugins 1.0.0 package, whose schema is closed: a wrong `$schema`, an unknown top-level key
 * or missing servers disable all servers; an invalid server is disabled alone. Never throws.
 */
export function parseAgentPluginsMcp(
  text: string,
  options: AgentPluginsMcpOptions,
): { servers: readonly ParsedServer[]; diagnostics: readonly Diagnostic[] } {
  const { file } = options;
  if (text.length > maxJsonBytes) return { servers: [], diagnostics: [fileTooLarge(file, text.length, maxJsonBytes)] };
  const report = createTextReport(text, file);
  const { document, faults } = parseJson(text);
  for (const fault of faults) report.add(fault.severity, fault.code, fault.message, fault.offset);
  const servers =
    document === undefined
      ? []
      : readServers(document, options, (severity, code, message, path) => report.add(severity, code, message, document.offsetOf(path)));
  return { servers, diagnostics: report.diagnostics };
}

function readServers({ value }: JsonDocument, options: AgentPluginsMcpOptions, complain: JsonComplain): readonly ParsedServer[] {
  const fault = topLevelFault(value);
  if (fault !== undefined) {
    complain("error", "MCP_CONFIG_INVALID", `${fault.message} None of the plugin's MCP servers is used.`, fault.path);
    return [];
  }
  const servers = Object.entries((value as { readonly mcpServers: Json }).mcpServers);
  return servers.slice(0, maxServers).map(([name, entry]): ParsedServer => {
    const at = ["mcpServers", name];
    const problem = isRecord(entry) ? entryFault(entry) : `must be an object, not ${describe(entry)}`;
    if (problem === undefined) return readOne(name, entry as Json, options, complain);
    complain("error", "MCP_ENTRY_INVALID", `MCP server ${JSON.stringify(name.slice(0, 100))}: it ${problem}. The server is ignored.`, at);
    return { state: "refused", name };
  });
}

function topLevelFault(value: unknown): { readonly message: string; readonly path: readonly string[] } | undefined {
  if (!isRecord(value)) return { message: `This file must contain an object, not ${describe(value)}.`, path: [] };
  if (value["$schema"] !== agentPluginsSchema("mcp"))
    return { message: `"$schema" must be exactly "${agentPluginsSchema("mcp")}", the same version as in plugin.json.`, path: ["$schema"] };
  const other = Object.keys(value).find((key) => key !== "$schema" && key !== "mcpServers");
  if (other !== undefined) return { message: `${JSON.stringify(other.slice(0, 60))} is not allowed beside "mcpServers".`, path: [other] };
  if (isRecord(value["mcpServers"])) return undefined;
  return { message: `"mcpServers" must be an object of servers by name, not ${describe(value["mcpServers"])}.`, path: ["mcpServers"] };
}

const fields: Readonly<Record<string, readonly string[]>> = {
  stdio: ["type", "command", "args", "env", "cwd"],
  "streamable-http": ["type", "url", "headers"],
  sse: ["type", "url", "headers"],
};

function entryFault(entry: Json): string | undefined {
  const { type } = entry;
  if (typeof type !== "string" || !Object.hasOwn(fields, type)) return 'must have "type": "stdio", "streamable-http" or "sse"';
  const other = Object.keys(entry).find((key) => !fields[type]!.includes(key));
  if (other !== undefined) return `has ${JSON.stringify(other.slice(0, 60))}, which is not allowed for a server of type "${type}"`;
  return type === "stdio" ? localFault(entry) : remoteFault(entry);
}

function localFault({ command, args, env, cwd }: Json): string | undefined {
  if (typeof command !== "string" || command.trim() === "") return 'needs "command", the program that starts it';
  if (/[\\/]|^[a-z]:/i.test(command) && !command.startsWith("./")) return 'has a "command" path that does not begin with "./"';
  if (args !== undefined && !(Array.isArray(args) && args.every((arg) => typeof arg === "string")))
    return 'must have an array of strings as "args"';
  if (env !== undefined && !isTexts(env)) return 'must have an object of strings as "env"';
  const reserved = Object.keys((env as Json | undefined) ?? {}).find((name) => /^PLUGIN_(?:ROOT|DATA)$/i.test(name));
  if (reserved !== undefined) return `sets ${reserved}, which is reserved`;
  if (cwd === undefined || (typeof cwd === "string" && /^(?:\.\/|\$\{PLUGIN_(?:ROOT|DATA)\}(?:\/|$))/.test(cwd))) return undefined;
  return 'must begin its "cwd" with "./", "${PLUGIN_ROOT}" or "${PLUGIN_DATA}"';
}

function remoteFault({ url, headers }: Json): string | undefined {
  if (typeof url !== "string" || !URL.canParse(url)) return 'needs "url", an absolute URL';
  const { protocol, hostname, username, password, hash } = new URL(url);
  if (protocol !== "https:" && !(protocol === "http:" && isLoopback(hostname))) return 'must have a "url" that begins with https://';
  if (username !== "" || password !== "" || hash !== "") return 'has a user name, a password or a fragment in its "url"';
  if (headers === undefined) return undefined;
  if (!isTexts(headers)) return 'must have an object of strings as "headers"';
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(headers)) {
    const shown = JSON.stringify(name.slice(0, 60));
    if (!/^[!#$%&'*+\-.^_`|~\w]+$/.test(name)) return `has ${shown}, which is not a valid header name`;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the ones that a header cannot carry
    if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(value)) return `has a header ${shown} with characters that are not allowed in headers`;
    if (seen.has(name.toLowerCase())) return `has the header ${shown} twice`;
    seen.add(name.toLowerCase());
  }
  return undefined;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

function isTexts(value: unknown): value is Readonly<Record<string, string>> {
  return isRecord(value) && Object.values(value).every((item) => typeof item === "string");
}

function readOne(name: string, entry: Json, { folder, variables }: AgentPluginsMcpOptions, complain: JsonComplain): ParsedServer {
  return readServer(name, entry, {
    dialect: "agent-plugins",
    variables,
    folder,
    complain: (severity, code, message, rest) => complain(severity, code, message, ["mcpServers", name, ...rest]),
  });
}
