import { join, relative, resolve, sep } from "node:path";
import { parseMcpConfig } from "../../formats/mcp/mcp-config.ts";
import type { VariableLookup } from "../../formats/mcp/mcp-dialects.ts";
import type { LocalServerSpec, McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { type ParsedServer, toServerConfig } from "../../formats/mcp/parse-server-spec.ts";
import { parseAgentPluginsMcp } from "../../formats/plugins/agent-plugins-mcp.ts";
import { manifestRulesOf } from "../../formats/plugins/plugin-dialects.ts";
import type { JsonPath } from "../../formats/text/json-document.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { confinePath, isInside } from "../../io/confine-path.ts";
import type { BundleData, BundleFiles, Sources } from "./bundle.ts";
import { usualPlaces } from "./component-paths.ts";

export interface ServerPlaces {
  readonly variables: VariableLookup;
  readonly data: BundleData;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Reads the MCP servers of a bundle, by name, in the form of session options. Of several with the same name the last is used. */
export function loadServers(files: BundleFiles, sources: Sources, places: ServerPlaces): ReadonlyMap<string, object> {
  const servers = new Map<string, object>();
  const isStandard = sources.dialect === "agent-plugins";
  for (const server of isStandard ? standardServers(files, places) : dialectServers(files, sources, places)) {
    const checked = server.state === "ready" ? confine(files, server, isStandard, places) : server;
    if (checked?.state === "unconfigured") servers.set(server.name, checked.server);
    if (checked?.state === "ready") servers.set(server.name, toServerConfig(withEnvironment(checked.spec, sources, files, places)));
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
  const usual = usualPlaces(sources, "mcpServers")
    .filter((path) => files.has(path, "file"))
    .slice(0, 1);
  const named = (given.mcpServers ?? []).flatMap((source) => {
    if (source.kind === "inline") {
      // Some manifests nest the servers in one more object, as a file of their own does.
      const wrapper = ["mcpServers", "servers"].find((key) => Object.hasOwn(source.value, key));
      return read(source.file, source.text, wrapper === undefined ? source.at : [...source.at, wrapper]);
    }
    const file = files.find(source.path, source);
    return file === undefined || usual.some((path) => join(files.root, path) === file) ? [] : readFile(file);
  });
  return [...usual.flatMap((path) => readFile(join(files.root, path))), ...named];
}

type ReadyServer = Extract<ParsedServer, { state: "ready" }>;

/** Refuses a server whose own program or folder lies outside the bundle, also through a link. */
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

/** Adds the environment variables with which the dialect's client describes the plugin to its programs. */
function withEnvironment(spec: McpServerSpec, { dialect, variables }: Sources, files: BundleFiles, places: ServerPlaces): McpServerSpec {
  if (spec.type !== "stdio" || spec.isDisabled) return spec;
  const requested = variables.flatMap((name) => {
    const value = places.environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const env = { ...Object.fromEntries(requested), ...spec.env, ...placesOf(dialect, files.root, places.data) };
  return { ...spec, env };
}

function placesOf(dialect: Sources["dialect"], root: string, data: BundleData): Readonly<Record<string, string>> {
  if (dialect === "agent-plugins" || dialect === "codex") return { PLUGIN_ROOT: root, PLUGIN_DATA: data.ensure() };
  if (dialect === "claude") return { CLAUDE_PLUGIN_ROOT: root, CLAUDE_PLUGIN_DATA: data.ensure() };
  if (dialect === "copilot") return { PLUGIN_ROOT: root, CLAUDE_PLUGIN_ROOT: root };
  return {};
}
