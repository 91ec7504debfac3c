import { homedir } from "node:os";
import { basename, dirname, resolve, sep } from "node:path";
import type { Diagnostic, Position } from "../base/diagnostic.ts";
import { type McpConfig, parseMcpConfig } from "../formats/mcp/mcp-config.ts";
import { createVariableLookup, type VariableLookup } from "../formats/mcp/mcp-dialects.ts";
import { type ParsedServer, toServerConfig } from "../formats/mcp/parse-server-spec.ts";
import { decodeText } from "../formats/text/decode-text.ts";
import { maxJsonBytes } from "../formats/text/limits.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { untrustedFolder } from "../trust/folder-trust.ts";
import { CliError } from "./cli-error.ts";
import { type CommandContext, countsAsNamed } from "./command-context.ts";

/** An MCP server with the file that configures it. */
export interface ConfiguredServer {
  readonly server: ParsedServer;
  readonly file: string;
  /** The start of its entry. */
  readonly start: Position | undefined;
}

export interface CommandServers {
  /** Names are unique: the last server of a name wins. */
  readonly all: readonly ConfiguredServer[];
  readonly diagnostics: readonly Diagnostic[];
}

const read = new WeakMap<CommandContext, CommandServers>();

/**
 * Reads the MCP servers of the configuration, then those of each `--mcp-config`. An unreadable file ends the command; an unusable server
 * does not affect the others.
 * @throws CliError `MCP_CONFIG`
 */
export function readConfiguredServers(context: CommandContext): CommandServers {
  const known = read.get(context) ?? readAll(context);
  read.set(context, known);
  return known;
}

function readAll(context: CommandContext): CommandServers {
  const { io, options, config } = context;
  const byName = new Map<string, ConfiguredServer>();
  const diagnostics: Diagnostic[] = [];
  const add = (file: string, found: McpConfig): void => {
    diagnostics.push(...found.diagnostics);
    for (const server of found.servers) {
      const before = byName.get(server.name);
      if (before !== undefined) diagnostics.push(replaced(server.name, before.file, file, found.places.get(server.name)));
      // Deleting first moves the entry to the end of the map.
      byName.delete(server.name);
      byName.set(server.name, { server, file, start: found.places.get(server.name) });
    }
  };
  if (config.serversIn !== undefined) {
    const found = readFile(config.serversIn.file, io.env, io.cwd, config.serversIn.at);
    add(config.serversIn.file, countsAsNamed(context) ? found : withheld(found, context.consent.folder, config.serversIn.file));
  }
  for (const name of options.mcpConfig ?? []) add(resolve(io.cwd, name), readFile(resolve(io.cwd, name), io.env, io.cwd));
  return { all: [...byName.values()], diagnostics };
}

/** The servers of an untrusted project, reduced to their names so that none can be started. */
function withheld({ servers, diagnostics, ...rest }: McpConfig, folder: string, file: string): McpConfig {
  const { code, message } = untrustedFolder(folder);
  const refused = servers.map(({ name }): ParsedServer => ({ state: "refused", name }));
  const why = servers.map(({ name }): Diagnostic => {
    const start = rest.places.get(name);
    return { severity: "error", code, message, file, ...(start && { range: { start } }), source: name };
  });
  return { ...rest, servers: refused, diagnostics: [...diagnostics, ...why] };
}

function replaced(name: string, before: string, file: string, start: Position | undefined): Diagnostic {
  const message = `MCP server ${JSON.stringify(name)} of ${before} is replaced by the one in this file.`;
  return { severity: "info", code: "MCP_NAME_TAKEN", message, file, ...(start && { range: { start } }), source: name };
}

type Environment = Readonly<Record<string, string | undefined>>;

function readFile(file: string, environment: Environment, cwd: string, at?: readonly string[]): McpConfig {
  const text = readTextFile(file, maxJsonBytes);
  if (!text.ok) return refuse(file, [text.diagnostic]);
  // Editors and clients keep their files in their own folder within the project.
  const folder: string = isInProjectFolder(file) ? dirname(dirname(file)) : dirname(file);
  const found = parseMcpConfig(decodeText(text.bytes, file).text, {
    file,
    folder,
    variables: variablesOf(environment, folder, isInProjectFolder(file) ? folder : cwd),
    ...(at && { at, dialect: "skillhost" as const }),
  });
  // A file with errors and no server ends the command; otherwise errors are reported where the servers are listed.
  const isUnusable = found.servers.length === 0 && found.diagnostics.some(({ severity }) => severity === "error");
  return isUnusable ? refuse(file, found.diagnostics) : found;
}

function variablesOf(environment: Environment, folder: string, workspace: string): VariableLookup {
  return createVariableLookup({ environment, places: { folder, workspace, home: homedir(), separator: sep } });
}

function isInProjectFolder(file: string): boolean {
  return /^\.(?:vscode|cursor|gemini|codex|copilot|github|claude)(?:-plugin)?$/.test(basename(dirname(file)));
}

function refuse(file: string, diagnostics: readonly Diagnostic[]): never {
  throw new CliError(
    "MCP_CONFIG",
    `No MCP servers can be read from ${file}. Fix the problems below, or choose another file.`,
    2,
    diagnostics,
  );
}

/** Converts the servers to host options, with literal values. A refused server carries its reason. */
export function toHostServers({ all, diagnostics }: CommandServers): Readonly<Record<string, unknown>> {
  const servers: Record<string, unknown> = Object.create(null);
  for (const { server } of all) servers[server.name] = toHostServer(server, diagnostics);
  return servers;
}

function toHostServer(server: ParsedServer, diagnostics: readonly Diagnostic[]): unknown {
  if (server.state === "ready") return toServerConfig(server.spec);
  if (server.state === "unconfigured") return server.server;
  const why = diagnostics.filter(({ severity, source }) => severity === "error" && source === server.name);
  return { name: server.name, reason: why.map(({ message }) => message).join(" ") || "Its entry is not valid." };
}
