import { HostError } from "../../base/errors.ts";
import { builtinAgents } from "./builtin-agents.ts";

/** An agent with a prompt, tools and a model of its own: selected by `agent`, or started by the model with the task tool. */
export interface CustomAgentOptions {
  readonly name: string;
  readonly displayName?: string | undefined;
  /** What it is good at. The model chooses by it. */
  readonly description?: string | undefined;
  readonly prompt?: string | undefined;
  /** The tools it may use, as names or patterns; the session's own come on top. Null, absent or `["*"]`: all. */
  readonly tools?: readonly string[] | null | undefined;
  /** MCP servers that only this agent has. */
  readonly mcpServers?: Readonly<Record<string, unknown>> | undefined;
  /** Skills whose instructions it has from the start. */
  readonly skills?: readonly string[] | undefined;
  /** Default: the session's. */
  readonly model?: string | undefined;
  readonly reasoningEffort?: string | undefined;
  /** False: the model is not offered to start it. Default: true. */
  readonly infer?: boolean | undefined;
}

export interface DefaultAgentOptions {
  /** What the session's own agent goes without, so that it leaves the work to others. Without effect beside `availableTools`. */
  readonly excludedTools?: readonly string[] | undefined;
}

/** An agent, complete. */
export interface AgentProfile {
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  readonly prompt: string;
  /** Undefined: all. */
  readonly tools: readonly string[] | undefined;
  readonly mcpServers: Readonly<Record<string, unknown>>;
  readonly skills: readonly string[];
  readonly model: string | undefined;
  readonly reasoningEffort: string | undefined;
  readonly infer: boolean;
  /** Whether a plugin brings it, and not the session. */
  readonly isPlugins: boolean;
}

/** The agents of a session. */
export interface SessionAgents {
  /** By name; a custom agent takes the place of a built-in one. */
  readonly all: ReadonlyMap<string, AgentProfile>;
  /** Those of plugins, then the session's own. */
  readonly custom: readonly AgentProfile[];
  /** The one whose conversation the session is; undefined: the session's own agent. */
  readonly selected: AgentProfile | undefined;
}

export interface AgentSelection {
  readonly customAgents?: readonly CustomAgentOptions[] | undefined;
  readonly agent?: string | undefined;
  /** Built-in agents that are not there. */
  readonly excludedBuiltinAgents?: readonly string[] | undefined;
}

/**
 * Puts a session's agents together with those that its host's plugins bring; of one name, the session's own counts.
 * @throws HostError `SESSION_OPTIONS` when two agents share a name, or `agent` names none.
 */
export function resolveAgents(
  { customAgents = [], agent, excludedBuiltinAgents = [] }: AgentSelection,
  hostAgents: readonly CustomAgentOptions[] = [],
): SessionAgents {
  const all = new Map<string, AgentProfile>();
  for (const profile of builtinAgents) if (!excludedBuiltinAgents.includes(profile.name)) all.set(profile.name, profile);
  const own = customAgents.map((options) => toProfile(options, false));
  const names = new Set<string>();
  for (const { name } of own) {
    if (names.has(name)) throw new HostError("SESSION_OPTIONS", `customAgents: two agents are named "${name}". Rename one of them.`);
    names.add(name);
  }
  const custom = [...hostAgents.filter(({ name }) => !names.has(name)).map((options) => toProfile(options, true)), ...own];
  for (const profile of custom) all.set(profile.name, profile);
  return Object.freeze({ all, custom: Object.freeze(custom), selected: agent === undefined ? undefined : select(agent, custom) });
}

/** The agents that a model may start. */
export function startableAgents({ all }: SessionAgents): readonly AgentProfile[] {
  return [...all.values()].filter(({ infer }) => infer);
}

function toProfile(options: CustomAgentOptions, isPlugins: boolean): AgentProfile {
  const { name, displayName = name, description = "", prompt = "", tools, mcpServers = {}, skills = [] } = options;
  const { model, reasoningEffort, infer = true } = options;
  return Object.freeze({
    name,
    displayName,
    description,
    prompt,
    tools: tools == null || tools.includes("*") ? undefined : tools,
    mcpServers,
    skills,
    model,
    reasoningEffort,
    infer,
    isPlugins,
  });
}

function select(name: string, custom: readonly AgentProfile[]): AgentProfile {
  const found = custom.find((profile) => profile.name === name);
  if (found !== undefined) return found;
  const known = custom.length === 0 ? "there are none" : `these are ${custom.map((profile) => `"${profile.name}"`).join(", ")}`;
  throw new HostError("SESSION_OPTIONS", `agent: ${JSON.stringify(name)} is not one of the customAgents (${known}).`);
}
