import { join, relative, resolve, sep } from "node:path";
import type { VariableLookup } from "../../formats/mcp/expand-variables.ts";
import { parseMcpConfig } from "../../formats/mcp/mcp-config.ts";
import type { LocalServerSpec, McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { type ParsedServer, toServerConfig } from "../../formats/mcp/parse-server-spec.ts";
import { parseAgentPluginsMcp } from "../../formats/plugins/agent-plugins-mcp.ts";
import { manifestRulesOf } from "../../formats/plugins/plugin-dialects.ts";
import type { JsonPath } from "../../formats/text/json-document.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { confinePath, isInside } from "../../io/confine-path.ts";
import type { BundleData, BundleFiles, Sources } from "./bundle.ts";

export interface ServerPlaces {
  readonly variables: VariableLookup;
  readonly data: BundleData;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const usualFiles: Readonly<Record<string, readonly string[]>> = {
  claude: [".mcp.json"],
  copilot: [".mcp.json", ".github/mcp.json"],
  codex: [".mcp.json"],
  cursor: ["mcp.json", ".mcp.json"],
};

/** Reads the MCP servers of a bundle, by name, as a session takes them. Of one name the last counts. */
export function loadServers(files: BundleFiles, sources: Sources, places: ServerPlaces): ReadonlyMap<string, object> {
  const servers = new Map<string, object>();
  const isStandard = sources.dialect === "agent-plugins";
  for (const server of isStandard ? standardServers(files, places) : dialectServers(files, sources, places)) {
    const checked = server.state === "ready" ? confine(files, server, isStandard, places) : server;
    const config = checked && toConfig(checked, sources, files, places);
    if (config !== undefined) servers.set(server.name, config);
  }
  return servers;
}

function standardServers(files: BundleFiles, { variables }: ServerPlaces): readonly ParsedServer[] {
  const file = files.find("mcp.json");
  const text = file === undefined ? undefined : files.read(file, maxJsonBytes);
  if (file === undefined || text === undefined) return [];
  const { servers, diagnostics } = parseAgentPluginsMcp(text, { file, variables, folder: files.root });
  diagnostics.forEach((found) => void files.report(found));
  return servers;
}

function dialectServers(files: BundleFiles, sources: Sources, { variables }: ServerPlaces): readonly ParsedServer[] {
  const { dialect, given } = sources;
  const read = (file: string, text: string, at?: JsonPath): readonly ParsedServer[] => {
    const options = { file, dialect: manifestRulesOf(dialect).servers, variables, folder: files.root };
    const { servers, diagnostics } = parseMcpConfig(text, { ...options, ...(at && { at }) });
    diagnostics.forEach((found) => void files.report(found));
    return servers;
  };
  const readFile = (file: string): readonly ParsedServer[] => {
    const text = files.read(file, maxJsonBytes);
    return text === undefined ? [] : read(file, text);
  };
  // Claude Code takes what the manifest names on top of the usual file; everybody else, instead of it.
  const places = dialect === "claude" || given.mcpServers === undefined ? (usualFiles[dialect] ?? []) : [];
  const usual = places.filter((path) => files.has(path, "file")).slice(0, 1);
  const named = (given.mcpServers ?? []).flatMap((source) => {
    if (source.kind === "inline") return read(source.file, source.text, wrapperOf(source.value, source.at));
    const file = files.find(source.path, source);
    return file === undefined || usual.some((path) => join(files.root, path) === file) ? [] : readFile(file);
  });
  return [...usual.flatMap((path) => readFile(join(files.root, path))), ...named];
}

/** Some wrap the servers once more, as in a file of their own. */
function wrapperOf(value: Readonly<Record<string, unknown>>, at: JsonPath): JsonPath {
  const inner = Object.hasOwn(value, "mcpServers") ? "mcpServers" : Object.hasOwn(value, "servers") ? "servers" : undefined;
  return inner === undefined ? at : [...at, inner];
}

type ReadyServer = Extract<ParsedServer, { state: "ready" }>;

/** Paths of the bundle's own programs and folders stay inside, also where links lead. */
function confine(files: BundleFiles, server: ReadyServer, isStandard: boolean, places: ServerPlaces): ReadyServer | undefined {
  const { spec, name } = server;
  if (spec.type !== "stdio") return server;
  const problem = commandFault(files, spec) ?? (isStandard ? folderFault(files, spec, places) : undefined);
  if (problem !== undefined) {
    const message = `MCP server ${JSON.stringify(name)}: ${problem} The server is ignored.`;
    files.report({ severity: "error", code: "BUNDLE_PATH", message, file: files.root });
    return undefined;
  }
  const command = /^\.\.?[\\/]/.test(spec.command) ? resolve(files.root, spec.command) : spec.command;
  return { ...server, spec: { ...spec, command } };
}

function commandFault(files: BundleFiles, { command }: LocalServerSpec): string | undefined {
  const isOwn = /^\.\.?[\\/]/.test(command) || isInside(files.root, command);
  if (!isOwn) return undefined;
  const confined = confinePath(files.root, relative(files.root, resolve(files.root, command)).split(sep).join("/"));
  return confined.ok ? undefined : `the command points out of the plugin. ${confined.message}`;
}

function folderFault(files: BundleFiles, { cwd }: LocalServerSpec, { data }: ServerPlaces): string | undefined {
  if (cwd === undefined) return undefined;
  const root = [files.root, data.path].find((folder) => isInside(folder, cwd));
  const confined = root === undefined ? undefined : confinePath(root, relative(root, cwd).split(sep).join("/") || ".");
  return confined?.ok ? undefined : "its working directory points out of the plugin.";
}

function toConfig(server: ParsedServer, sources: Sources, files: BundleFiles, places: ServerPlaces): object | undefined {
  if (server.state === "unconfigured") return server.server;
  if (server.state === "refused") return undefined;
  return toServerConfig(withEnvironment(server.spec, sources, files, places));
}

/** What a plugin's programs are told of the plugin by their environment, as each client does it. */
function withEnvironment(spec: McpServerSpec, { dialect, variables }: Sources, files: BundleFiles, places: ServerPlaces): McpServerSpec {
  if (spec.type !== "stdio" || spec.isDisabled) return spec;
  const asked = variables.flatMap((name) => {
    const value = places.environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const env = { ...Object.fromEntries(asked), ...spec.env, ...placesOf(dialect, files.root, places.data) };
  return { ...spec, env };
}

function placesOf(dialect: Sources["dialect"], root: string, data: BundleData): Readonly<Record<string, string>> {
  if (dialect === "agent-plugins" || dialect === "codex") return { PLUGIN_ROOT: root, PLUGIN_DATA: data.ensure() };
  if (dialect === "claude") return { CLAUDE_PLUGIN_ROOT: root, CLAUDE_PLUGIN_DATA: data.ensure() };
  if (dialect === "copilot") return { PLUGIN_ROOT: root, CLAUDE_PLUGIN_ROOT: root };
  return {};
}
