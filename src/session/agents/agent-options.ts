import { isRecord } from "../../base/json.ts";
import { type FieldReaders, fieldsReader, mustBe, readFields, readFlag, readText, readTexts } from "../../base/read-fields.ts";
import type { ModelToolOptions, ModelToolTable, ToolSearchOptions } from "../catalog/model-tool-options.ts";
import { readSystemMessage } from "../prompt/customize-prompt.ts";
import type { AgentSelection, CustomAgentOptions, DefaultAgentOptions } from "./agent-profiles.ts";

/** The options of a session that say which agents there are, and how a model comes to know its tools. */
export interface AgentOptions extends AgentSelection {
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
