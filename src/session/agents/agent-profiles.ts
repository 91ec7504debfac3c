import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { type FieldReaders, fieldsReader, mustBe, readFields, readFlag, readText, readTexts } from "../../base/read-fields.ts";
import type { ModelToolOptions, ModelToolTable, ToolSearchOptions } from "../catalog/model-tool-options.ts";
import type { SessionEvents } from "../history/events.ts";
import { readSystemMessage } from "../prompt/customize-prompt.ts";

/**
 * An agent with a prompt, tools and a model of its own: selected by `agent`, or started by the model with the task tool.
 *
 * @example
 * ```ts
 * const agent: CustomAgentOptions = { name: "reviewer", description: "Reviews changes.", prompt: "Be strict.", tools: ["read_file"] };
 * ```
 */
export interface CustomAgentOptions {
  /** Its name, for `agent` and for the model. */
  readonly name: string;
  /** A name for people. Default: its name. */
  readonly displayName?: string | undefined;
  /** What it is good at. The model chooses by it. */
  readonly description?: string | undefined;
  /** Its instructions. Default: none. */
  readonly prompt?: string | undefined;
  /**
   * The tools it may use, as names or patterns; the session's own come on top, those that start further agents only with `task` or
   * `agent`. Null, absent or `["*"]`: all.
   */
  readonly tools?: readonly string[] | null | undefined;
  /** MCP servers that only this agent has. */
  readonly mcpServers?: Readonly<Record<string, unknown>> | undefined;
  /** Skills whose instructions it has from the start. */
  readonly skills?: readonly string[] | undefined;
  /** Default: the session's. */
  readonly model?: string | undefined;
  /** As the endpoint calls it. Default: the session's. */
  readonly reasoningEffort?: string | undefined;
  /** False: the model is not offered to start it. Default: true. */
  readonly infer?: boolean | undefined;
}

/**
 * What a session's own agent leaves to other agents.
 *
 * @example
 * ```ts
 * const options: DefaultAgentOptions = { excludedTools: ["edit"] };
 * ```
 */
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
  readonly isFromPlugin: boolean;
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

interface AgentSelection {
  readonly customAgents?: readonly CustomAgentOptions[] | undefined;
  readonly agent?: string | undefined;
  /** Built-in agents that are not there. */
  readonly excludedBuiltinAgents?: readonly string[] | undefined;
}

/**
 * Combines a session's agents with those of its host's plugins. If two have the same name, the session's own is used.
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

function toProfile(options: CustomAgentOptions, isFromPlugin: boolean): AgentProfile {
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
    isFromPlugin,
  });
}

function select(name: string, custom: readonly AgentProfile[]): AgentProfile {
  const found = custom.find((profile) => profile.name === name);
  if (found !== undefined) return found;
  const known = custom.length === 0 ? "there are none" : `these are ${custom.map((profile) => `"${profile.name}"`).join(", ")}`;
  throw new HostError("SESSION_OPTIONS", `agent: ${JSON.stringify(name)} is not one of the customAgents (${known}).`);
}

const selectedType = "subagent.selected";

/** Announces which custom agent a session's conversation belongs to. */
export interface AgentChanges {
  /** Announces the initial selection, unless that was done before. */
  begin(): void;
  /** Announces what an update changed. */
  changed(before: SessionAgents, now: SessionAgents): void;
}

/** The initial selection is announced when the first listener was added, or when the first turn begins. */
export function createAgentChanges(events: SessionEvents, initial: AgentProfile | undefined): AgentChanges {
  let pending = initial;
  const begin = (): void => {
    if (pending !== undefined) emitSelected(events, pending);
    pending = undefined;
  };
  events.onSinkAdded((type) => {
    if (type === undefined || type === selectedType) queueMicrotask(begin);
  });
  return {
    begin,
    changed(before, now) {
      begin();
      if (!isSameAgents(before.custom, now.custom)) emitAgents(events, now);
      if (before.selected?.name === now.selected?.name) return;
      if (now.selected !== undefined) emitSelected(events, now.selected);
      else events.append("subagent.deselected", {});
    },
  };
}

function emitSelected(events: SessionEvents, { name, displayName, tools }: AgentProfile): void {
  events.append(selectedType, { agentName: name, agentDisplayName: displayName, tools: tools ?? null });
}

function emitAgents(events: SessionEvents, { custom }: SessionAgents): void {
  events.append("session.custom_agents_updated", () => ({
    agents: custom.map(({ name, displayName, description, tools, model, isFromPlugin }) => ({
      id: name,
      name,
      displayName,
      description,
      source: isFromPlugin ? "plugin" : "custom",
      tools: tools ?? null,
      userInvocable: true,
      ...(model !== undefined && { model }),
    })),
    errors: [],
    warnings: [],
  }));
}

function isSameAgents(before: readonly AgentProfile[], now: readonly AgentProfile[]): boolean {
  return before.length === now.length && JSON.stringify(before) === JSON.stringify(now);
}

const common = {
  tools: undefined,
  mcpServers: {},
  skills: [],
  model: undefined,
  reasoningEffort: undefined,
  infer: true,
  isFromPlugin: false,
};
const readers = ["view", "grep", "glob", "bash", "read_bash", "stop_bash", "list_bash", "web_fetch"];
const report =
  "You run unattended: decide for yourself where you can, and end with one message that contains everything you were asked for.";

/** The agents that are there without being configured, by the names that models of the field know. */
const builtinAgents: readonly AgentProfile[] = Object.freeze([
  {
    ...common,
    name: "explore",
    displayName: "Explore Agent",
    description: "Answers questions about the files in the working directory quickly, without changing any.",
    prompt: `You answer questions about the files in the working directory. Search widely, read only what matters, change nothing. Cite the files and lines that your answer is based on. ${report}`,
    tools: ["view", "grep", "glob"],
  },
  {
    ...common,
    name: "task",
    displayName: "Task Agent",
    description: "Runs commands such as builds, tests and linters, and reports the outcome briefly.",
    prompt: `You run commands and report the outcome: one line on success, all relevant error output on failure. Do not fix failures. ${report}`,
    tools: readers,
  },
  {
    ...common,
    name: "general-purpose",
    displayName: "General Purpose Agent",
    description: "Completes any multi-step task on its own, with all tools.",
    prompt: `You are given one task. Complete all of it and do nothing else. ${report}`,
  },
  {
    ...common,
    name: "code-review",
    displayName: "Code Review Agent",
    description: "Reviews changes for bugs that matter, without changing anything.",
    prompt: `You review code. Report bugs, gaps and broken contracts, each with its file and line, why it is wrong and what it causes; leave out matters of style. If you find nothing, say so. Do not change any file. ${report}`,
    tools: readers,
  },
  {
    ...common,
    name: "research",
    displayName: "Research Agent",
    description: "Researches a question thoroughly and reports with sources, without changing anything.",
    prompt: `You research a question. Consider it from several angles, verify what you find at its source, and report what is known, what is likely and what is open, citing the source of each. Do not change any file. ${report}`,
    tools: [...readers, "mcp:*"],
  },
  {
    ...common,
    name: "security-review",
    displayName: "Security Review Agent",
    description: "Reviews code for security vulnerabilities, without changing anything.",
    prompt: `You look for security vulnerabilities: who controls which input, where it flows, and what is not validated on the way. Report only reachable vulnerabilities, with file, line, the attack and the fix, most severe first. Do not change any file. ${report}`,
    tools: readers,
  },
]);

/**
 * The options of a session that say which agents there are, and how a model comes to know its tools.
 *
 * @example
 * ```ts
 * const options: AgentOptions = { customAgents: [{ name: "reviewer", prompt: "Review the change." }], agent: "reviewer" };
 * ```
 */
export interface AgentOptions extends AgentSelection {
  /** What the session's own agent leaves to others. Default: nothing. */
  readonly defaultAgent?: DefaultAgentOptions | undefined;
  /** Whether, and from how many tools on, a model has to search for tools. */
  readonly toolSearch?: ToolSearchOptions | undefined;
  /** What is different for some models, by name or pattern. */
  readonly modelTools?: ModelToolTable | undefined;
}

type Readers = { readonly [K in keyof AgentOptions]-?: (value: unknown, field: string) => Exclude<AgentOptions[K], undefined> };

/** Readers for each option. */
export const agentReaders: Readers = {
  customAgents: (value, path) => {
    if (!Array.isArray(value)) return mustBe(path, "a list of agents");
    return Object.freeze(value.map((agent: unknown, index) => readAgent(agent, `${path}[${index}]`)));
  },
  agent: readText,
  excludedBuiltinAgents: readTexts,
  defaultAgent: fieldsReader<DefaultAgentOptions>({ excludedTools: readTexts }),
  toolSearch: readToolSearch,
  modelTools: readModelTools,
};

/**
 * Reads an agent that is defined elsewhere than in a session's options.
 * @throws HostError `SESSION_OPTIONS` naming the field that is unknown or wrong.
 */
export function readAgentOptions(value: unknown): CustomAgentOptions {
  return readFields<{ agent: CustomAgentOptions }>({ agent: value }, "agents", "SESSION_OPTIONS", { agent: readAgent }).agent;
}

function readAgent(value: unknown, path: string): CustomAgentOptions {
  const agent = fieldsReader<CustomAgentOptions>({
    name: readText,
    displayName: readText,
    description: readAnyText,
    prompt: readAnyText,
    tools: (tools, at) => (tools === null ? null : readTexts(tools, at)),
    mcpServers: readServerMap,
    skills: readTexts,
    model: readText,
    reasoningEffort: readText,
    infer: readFlag,
  })(value, path);
  return agent.name === undefined ? mustBe(`${path}.name`, "a non-empty string") : agent;
}

/** Configurations of MCP servers by name; each is read when the session takes them on, so that a wrong one keeps no other back. */
export function readServerMap(value: unknown, path: string): Readonly<Record<string, unknown>> {
  return isRecord(value) ? Object.freeze({ ...value }) : mustBe(path, "an object of servers by name");
}

function readToolSearch(value: unknown, path: string): ToolSearchOptions {
  return fieldsReader<ToolSearchOptions>({
    enabled: readFlag,
    deferThreshold: (count, at) => (Number.isInteger(count) && (count as number) >= 0 ? (count as number) : mustBe(at, "an integer")),
  })(value, path);
}

function readModelTools(value: unknown, path: string): ModelToolTable {
  if (!isRecord(value)) return mustBe(path, "an object of options by model");
  const readers: FieldReaders<ModelToolOptions> = {
    availableTools: readTexts,
    excludedTools: readTexts,
    toolSearch: readToolSearch,
    editingStyle: readText,
    systemMessage: readSystemMessage,
  };
  return Object.freeze(
    Object.fromEntries(Object.keys(value).map((model) => [model, fieldsReader(readers)(value[model], `${path}["${model}"]`)])),
  );
}

/** Unlike a name, it may be empty, and may hold anything that can be shown to a model. */
function readAnyText(value: unknown, path: string): string {
  return typeof value === "string" ? value : mustBe(path, "a string");
}
