import { isAbsolute, resolve } from "node:path";
import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { readOneOf, readText, readTexts } from "../../base/read-fields.ts";
import { adviseServers, createVariableLookup } from "../../formats/mcp/mcp-dialects.ts";
import type { McpServerSpec, UnconfiguredServer } from "../../formats/mcp/mcp-server-spec.ts";
import { parseServerSpec, type ServerSpecOptions } from "../../formats/mcp/parse-server-spec.ts";
import { type GithubMcpToolConfig, readGithubMcpToolConfig } from "../../mcp/connection/github-tools.ts";
import { readServerMap, type SessionAgents } from "../agents/agent-profiles.ts";

/**
 * The options of a session that say which MCP servers it has.
 *
 * @example
 * ```ts
 * const options: ServerOptions = { mcpServers: { files: { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "."] } } };
 * ```
 */
export interface ServerOptions {
  /**
   * MCP servers by name, configured as in the Copilot SDK: `{ command, args?, env?, cwd?, tools?, timeout? }`, or
   * `{ type: "http" | "sse", url, headers?, tools?, timeout? }`. All values are literal. They take precedence over those of
   * agents, plugins, skills and the host. A wrong one is reported by `session.info` and does not affect the others. Given when a
   * session is resumed or updated, it takes the place of the whole map from before.
   */
  readonly mcpServers?: Readonly<Record<string, unknown>> | undefined;
  /** Servers that are not started, by name, wherever they are configured. */
  readonly disabledMcpServers?: readonly string[] | undefined;
  /** `indirect`: values in `env` are names of variables in the host's environment. Default: `direct`, they are the values. */
  readonly envValueMode?: "direct" | "indirect" | undefined;
  /** Which tools GitHub's MCP server is asked for, where there is one. */
  readonly githubMcpToolConfig?: GithubMcpToolConfig | undefined;
  /**
   * Who signs in to the session's own remote servers: sessions with another owner share neither tokens nor connections with
   * it, and its tokens are requested from the attached clients and not kept. Default: all share what this machine's user signed in to.
   */
  readonly mcpTokenOwner?: string | undefined;
}

/** A server that can be started, or one that is only known by name. */
export type SessionServer = McpServerSpec | UnconfiguredServer;

/** The servers that a session itself brings, checked. */
export interface ResolvedServers {
  readonly own: readonly SessionServer[];
  /** Those that only one agent has, by its name. */
  readonly ofAgents: ReadonlyMap<string, readonly SessionServer[]>;
  readonly disabled: ReadonlySet<string>;
  readonly github: GithubMcpToolConfig | undefined;
  /** Whose tokens they are signed in to with, where they are not everybody's. */
  readonly owner: string | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** Equal for equal servers. Holds no value of them. */
  readonly key: string;
}

type Readers = { readonly [K in keyof ServerOptions]-?: (value: unknown, field: string) => Exclude<ServerOptions[K], undefined> };

/** Readers for each option. */
export const serverReaders: Readers = {
  mcpServers: readServerMap,
  disabledMcpServers: readTexts,
  envValueMode: readOneOf(["direct", "indirect"]),
  githubMcpToolConfig: readGithubMcpToolConfig,
  mcpTokenOwner: readText,
};

/** Reads the servers of a session and its agents. What is wrong with one is a diagnostic, and it is listed with the reason. */
export function resolveServers(given: ServerOptions, { custom }: SessionAgents, workingDirectory: string): ResolvedServers {
  const { mcpServers = {}, disabledMcpServers = [], envValueMode = "direct", githubMcpToolConfig: github } = given;
  const variables = envValueMode === "indirect" ? createVariableLookup({ environment: process.env }) : undefined;
  const options: ServerSpecOptions = { dialect: "session", envValueMode, variables };
  const read = (map: Readonly<Record<string, unknown>>): ServersRead =>
    ownedBy(given.mcpTokenOwner, readServers(map, options, workingDirectory));
  const own = read(mcpServers);
  const agents = custom.map(({ name, mcpServers: local }) => ({ name, ...read(local) }));
  const ofAgents = new Map(agents.filter(({ servers }) => servers.length > 0).map(({ name, servers }) => [name, servers]));
  const disabled = new Set(disabledMcpServers);
  const hasAny = own.servers.length > 0 || ofAgents.size > 0 || disabled.size > 0 || github !== undefined;
  return Object.freeze({
    own: own.servers,
    ofAgents,
    disabled,
    github,
    owner: given.mcpTokenOwner,
    diagnostics: Object.freeze([own, ...agents].flatMap(({ servers, diagnostics }) => [...diagnostics, ...adviceOn(servers)])),
    key: hasAny ? sha256(canonicalJson([own.servers, [...ofAgents], [...disabled].sort(), github ?? null])) : "",
  });
}

function ownedBy(owner: string | undefined, { servers, diagnostics }: ServersRead): ServersRead {
  if (owner === undefined) return { servers, diagnostics };
  const owned = servers.map((server) =>
    isStartable(server) && server.type !== "stdio"
      ? Object.freeze({ ...server, oauth: Object.freeze({ ...server.oauth, owner }) })
      : server,
  );
  return { servers: Object.freeze(owned), diagnostics };
}

function adviceOn(servers: readonly SessionServer[]): readonly Diagnostic[] {
  return servers.length === 0 ? [] : adviseServers(servers.filter(isStartable), process.env);
}

export interface ServersRead {
  readonly servers: readonly SessionServer[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads a map of servers; programs start in `workingDirectory`, unless they say otherwise. */
export function readServers(map: Readonly<Record<string, unknown>>, options: ServerSpecOptions, workingDirectory: string): ServersRead {
  const servers: SessionServer[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const name of Object.keys(map)) {
    const read = parseServerSpec(name, map[name], options);
    diagnostics.push(...read.diagnostics);
    if (read.server.state === "ready") servers.push(startingIn(read.server.spec, workingDirectory));
    else if (read.server.state === "unconfigured") servers.push(read.server.server);
    else servers.push(Object.freeze({ name, reason: read.diagnostics.map(({ message }) => message).join(" ") }));
  }
  return { servers: Object.freeze(servers), diagnostics };
}

function startingIn(spec: McpServerSpec, workingDirectory: string): McpServerSpec {
  if (spec.type !== "stdio" || (spec.cwd !== undefined && isAbsolute(spec.cwd))) return spec;
  return Object.freeze({ ...spec, cwd: resolve(workingDirectory, spec.cwd ?? "") });
}

export function isStartable(server: SessionServer): server is McpServerSpec {
  return "tools" in server;
}
