import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join, sep } from "node:path";
import { type ParsedAgent, parseAgentFile } from "../../../formats/agents/agent-file.ts";
import { parseMcpConfig } from "../../../formats/mcp/mcp-config.ts";
import { createVariableLookup, type VariableLookup } from "../../../formats/mcp/mcp-dialects.ts";
import { toServerConfig } from "../../../formats/mcp/parse-server-spec.ts";
import { decodeText } from "../../../formats/text/decode-text.ts";
import { maxDocumentBytes, maxJsonBytes } from "../../../formats/text/limits.ts";
import { confinePath } from "../../../io/confine-path.ts";
import { readTextFile } from "../../../io/read-bounded.ts";
import type { SessionOptions } from "../../../session/session-config.ts";
import { clientSkillFolders } from "../../../skills/store/client-skill-folders.ts";
import { trustRootOf, untrustedFolder } from "../../../trust/folder-trust.ts";
import type { ServerContext } from "../context.ts";
import type { DiscoveredConfiguration } from "./discovered-options.ts";

/** The files that configure MCP servers of a project; the first server of a name wins. */
const serverFiles = [".mcp.json", ".vscode/mcp.json", ".github/mcp.json"];
/** The first is the one for new agents; the first agent of a name wins. */
export const agentFolders: readonly string[] = [".github/agents", ".claude/agents"];

/**
 * Finds MCP servers, skills and agents in the folder of a project. Of a folder that is not trusted only the skills are used, since
 * their code is withheld by the host; servers and agents are neither read nor started.
 */
export async function discoverConfiguration(server: ServerContext, folder: string): Promise<DiscoveredConfiguration> {
  const problems: string[] = [];
  const present = (paths: readonly string[]): readonly string[] => paths.filter((path) => isPresent(folder, path, problems));
  const skillDirectories = present(clientSkillFolders).map((path) => join(folder, path));
  const [servers, agents] = [present(serverFiles), present(agentFolders)];
  if (servers.length + agents.length > 0 && !(await server.mayRun(folder))) {
    const { message } = untrustedFolder(trustRootOf(folder, folder));
    problems.push(`${[...servers, ...agents].join(", ")}: ${message}`);
    return { options: { skillDirectories }, problems };
  }
  const variables = variablesOf(server, folder);
  const mcpServers = Object.assign(Object.create(null), ...servers.map((path) => readServers(folder, path, variables, problems)).reverse());
  return { options: { skillDirectories, mcpServers, customAgents: readAgents(folder, agents, variables, problems) }, problems };
}

function variablesOf({ options: { environment } }: ServerContext, folder: string): VariableLookup {
  return createVariableLookup({ environment, places: { folder, workspace: folder, home: homedir(), separator: sep } });
}

/** Whether a path exists and stays in the folder. */
function isPresent(folder: string, path: string, problems: string[]): boolean {
  const confined = confinePath(folder, path);
  if (confined.ok) return existsSync(join(folder, path));
  problems.push(confined.message);
  return false;
}

function readServers(folder: string, path: string, variables: VariableLookup, problems: string[]): Readonly<Record<string, unknown>> {
  const file = join(folder, path);
  const read = readTextFile(file, maxJsonBytes);
  if (!read.ok) {
    problems.push(`${path}: ${read.diagnostic.message}`);
    return {};
  }
  const found = parseMcpConfig(decodeText(read.bytes, file).text, { file, folder, variables });
  for (const { severity, message } of found.diagnostics) if (severity === "error") problems.push(`${path}: ${message}`);
  const ready = found.servers.flatMap((one) => (one.state === "ready" ? [[one.name, toServerConfig(one.spec)] as const] : []));
  return Object.fromEntries(ready);
}

type Agents = NonNullable<SessionOptions["customAgents"]>;

/** The agents of a project. Those that need tools excluded are left out, since a session excludes tools only as a whole. */
function readAgents(folder: string, folders: readonly string[], variables: VariableLookup, problems: string[]): Agents {
  const byName = new Map<string, Agents[number]>();
  for (const path of folders.flatMap((name) => agentFilesIn(folder, name, problems))) {
    const { agent, excludedTools, diagnostics } = readAgent(join(folder, path), variables);
    for (const { severity, message } of diagnostics) if (severity === "error") problems.push(`${path}: ${message}`);
    if (agent === undefined || byName.has(agent.name)) continue;
    if (excludedTools.length === 0) byName.set(agent.name, agent);
    else problems.push(`${path}: disallowedTools works only for the agent that is run. List its tools in "tools" instead.`);
  }
  return [...byName.values()];
}

function readAgent(file: string, variables: VariableLookup): ParsedAgent {
  const read = readTextFile(file, maxDocumentBytes);
  if (!read.ok) return { excludedTools: [], userInvocable: false, diagnostics: [read.diagnostic] };
  return parseAgentFile(decodeText(read.bytes, file).text, file, { variables });
}

/** More files than this are not a folder of agents. */
const mostAgents = 500;

function agentFilesIn(folder: string, name: string, problems: string[]): readonly string[] {
  const files = entriesOf(join(folder, name)).filter((entry) => /\.md$/i.test(entry));
  return files.slice(0, mostAgents).flatMap((file) => {
    const path = `${name}/${file}`;
    return isPresent(folder, path, problems) ? [path] : [];
  });
}

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    // Not a folder, or not readable: it holds no agents.
    return [];
  }
}
