import { type Dirent, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve, sep } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { type ParsedAgent, parseAgentFile } from "../formats/agents/agent-file.ts";
import { createVariableLookup, type VariableLookup } from "../formats/mcp/mcp-dialects.ts";
import { decodeText } from "../formats/text/decode-text.ts";
import { maxDocumentBytes } from "../formats/text/limits.ts";
import { confinePath } from "../io/confine-path.ts";
import { readTextFile } from "../io/read-bounded.ts";
import type { SessionOptions } from "../session/session-config.ts";
import { CliError } from "./cli-error.ts";
import type { CommandContext } from "./command-context.ts";
import { didYouMean } from "./did-you-mean.ts";

/** The folders in which clients look for agents of a project; the first agent of a name wins. */
const folders = [".github/agents", ".claude/agents", "agents"];

type AgentOptions = Pick<SessionOptions, "customAgents" | "agent" | "excludedTools">;

export interface ChosenAgent {
  /** Includes the other agents of the project, which it may start. */
  readonly options: AgentOptions;
  readonly diagnostics: readonly Diagnostic[];
}

interface ProjectAgent extends ParsedAgent {
  readonly file: string;
  readonly agent: NonNullable<ParsedAgent["agent"]>;
}

/**
 * Finds a project agent by its name or title, or reads it from the named file.
 * @throws CliError `AGENT_UNKNOWN`; `AGENT_FILE` for a file without an agent; `AGENT_NOT_INVOCABLE` for an agent that only other agents
 * may start.
 */
export function chooseAgent({ io, config, consent }: CommandContext, name: string): ChosenAgent {
  const directory = config.workingDirectory ?? io.cwd;
  const variables = createVariableLookup({
    environment: io.env,
    places: { folder: directory, workspace: directory, home: homedir(), separator: sep },
  });
  const outside = folders.flatMap((folder) => linkOut(directory, folder));
  // Agents may configure MCP servers: of an untrusted project only an agent whose file was named is read.
  const agents = consent.isTrusted ? readProject(directory, variables) : [];
  const isFile = /\.md$/i.test(name) || /[\\/]/.test(name);
  const chosen = isFile ? readOne(resolve(io.cwd, name), variables) : find(name, agents, directory);
  if (!chosen.userInvocable) {
    throw new CliError("AGENT_NOT_INVOCABLE", `Agent "${chosen.agent.name}" can only be started by other agents (${chosen.file}).`, 1);
  }
  const { options, diagnostics } = toOptions(chosen, agents);
  return { options, diagnostics: [...outside, ...diagnostics] };
}

/** The diagnostic for a folder whose agents are not read. */
function linkOut(directory: string, folder: string): readonly Diagnostic[] {
  const confined = confinePath(directory, folder);
  return confined.ok ? [] : [{ severity: "warning", code: "PATH_OUTSIDE", message: confined.message, file: join(directory, folder) }];
}

function toOptions(chosen: ProjectAgent, agents: readonly ProjectAgent[]): ChosenAgent {
  const others = agents.filter(({ agent }) => agent.name !== chosen.agent.name);
  // Tools can be excluded only from a whole session, so only for the main agent.
  const startable = others.filter(({ excludedTools }) => excludedTools.length === 0);
  const leftOut = others.filter(({ excludedTools }) => excludedTools.length > 0).map(leftOutDiagnostic);
  return {
    options: {
      customAgents: [chosen, ...startable].map(({ agent }) => agent),
      agent: chosen.agent.name,
      ...(chosen.excludedTools.length > 0 && { excludedTools: chosen.excludedTools }),
    },
    diagnostics: [...chosen.diagnostics, ...leftOut],
  };
}

function leftOutDiagnostic({ agent, file }: ProjectAgent): Diagnostic {
  const message = `Agent "${agent.name}" cannot be started by another agent, because disallowedTools works only for the agent that is run. List its tools in "tools" instead.`;
  return { severity: "info", code: "AGENT_LEFT_OUT", message, file };
}

function find(name: string, agents: readonly ProjectAgent[], directory: string): ProjectAgent {
  const found =
    agents.find(({ agent }) => agent.name === name) ?? agents.find(({ agent }) => agent.displayName?.toLowerCase() === name.toLowerCase());
  if (found !== undefined) return found;
  const names = agents.flatMap(({ agent }) => [agent.name, ...(agent.displayName === undefined ? [] : [agent.displayName])]);
  const known = names.length === 0 ? ` No agents were found in ${folders.join(", ")} of ${directory}.` : didYouMean(name, names);
  throw new CliError("AGENT_UNKNOWN", `No agent is named "${name}".${known} You can also pass an agent file.`, 1);
}

function readOne(file: string, variables: VariableLookup): ProjectAgent {
  const read = readTextFile(file, maxDocumentBytes);
  if (!read.ok) throw new CliError("AGENT_FILE", `The agent file cannot be read.`, 1, [read.diagnostic]);
  const parsed = parseAgentFile(decodeText(read.bytes, file).text, file, { variables });
  if (parsed.agent === undefined) throw new CliError("AGENT_FILE", `${file} does not define an agent.`, 1, parsed.diagnostics);
  return { ...parsed, agent: parsed.agent, file };
}

function readProject(directory: string, variables: VariableLookup): readonly ProjectAgent[] {
  const byName = new Map<string, ProjectAgent>();
  const inside = folders.filter((folder) => linkOut(directory, folder).length === 0);
  for (const file of inside.flatMap((folder) => filesIn(join(directory, folder), 3))) {
    const read = readTextFile(file, maxDocumentBytes);
    const parsed = read.ok ? parseAgentFile(decodeText(read.bytes, file).text, file, { variables }) : undefined;
    if (parsed?.agent !== undefined && !byName.has(parsed.agent.name))
      byName.set(parsed.agent.name, { ...parsed, agent: parsed.agent, file });
  }
  return [...byName.values()];
}

const mostFiles = 500;

function filesIn(folder: string, depth: number): readonly string[] {
  const entries = entriesOf(folder).sort((a, b) => (a.name < b.name ? -1 : 1));
  const files = entries.filter((entry) => entry.isFile() && /\.md$/i.test(entry.name)).map(({ name }) => join(folder, name));
  const below =
    depth > 0 ? entries.filter((entry) => entry.isDirectory()).flatMap(({ name }) => filesIn(join(folder, name), depth - 1)) : [];
  return [...files, ...below].slice(0, mostFiles);
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // The folder is optional.
    return [];
  }
}
