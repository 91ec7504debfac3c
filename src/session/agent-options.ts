import { type FieldReaders, isPlainRecord, mustBe, readFields, readFlag, readText, readTexts } from "../base/read-fields.ts";
import type { AgentSelection, CustomAgentOptions, DefaultAgentOptions } from "./agents.ts";
import type { ToolSearchOptions } from "./deferral.ts";
import type { ModelToolOptions, ModelToolTable } from "./model-tools.ts";
import { readSystemMessage } from "./system-message.ts";

/** The options of a session that say which agents there are, and how a model comes to know its tools. */
export interface AgentOptions extends AgentSelection {
  readonly defaultAgent?: DefaultAgentOptions | undefined;
  /** Whether, and from how many tools on, a model has to search for tools. */
  readonly toolSearch?: ToolSearchOptions | undefined;
  /** What is different for some models, by name or pattern. */
  readonly modelTools?: ModelToolTable | undefined;
}

type Readers = { readonly [K in keyof AgentOptions]-?: (value: unknown, field: string) => Exclude<AgentOptions[K], undefined> };

/** Readers for each option. @throws HostError `SESSION_OPTIONS`. */
export const agentReaders: Readers = {
  customAgents: checked((value, path) => {
    if (!Array.isArray(value)) return mustBe(path, "a list of agents");
    return Object.freeze(value.map((agent: unknown, index) => readAgent(agent, `${path}[${index}]`)));
  }),
  agent: checked(readText),
  excludedBuiltinAgents: checked(readTexts),
  defaultAgent: checked((value, path) => fieldsAt<DefaultAgentOptions>(value, path, { excludedTools: readTexts })),
  toolSearch: checked(readToolSearch),
  modelTools: checked(readModelTools),
};

function readAgent(value: unknown, path: string): CustomAgentOptions {
  const agent = fieldsAt<CustomAgentOptions>(value, path, {
    name: readText,
    displayName: readText,
    description: readAnyText,
    prompt: readAnyText,
    tools: (tools, at) => (tools === null ? null : readTexts(tools, at)),
    mcpServers: (servers, at) => (isPlainRecord(servers) ? servers : mustBe(at, "an object of servers by name")),
    skills: readTexts,
    model: readText,
    reasoningEffort: readText,
    infer: readFlag,
  });
  return agent.name === undefined ? mustBe(`${path}.name`, "a text that is not empty") : agent;
}

function readToolSearch(value: unknown, path: string): ToolSearchOptions {
  return fieldsAt<ToolSearchOptions>(value, path, {
    enabled: readFlag,
    deferThreshold: (count, at) => (Number.isInteger(count) && (count as number) >= 0 ? (count as number) : mustBe(at, "a whole number")),
  });
}

function readModelTools(value: unknown, path: string): ModelToolTable {
  if (!isPlainRecord(value)) return mustBe(path, "an object of options by model");
  const readers: FieldReaders<ModelToolOptions> = {
    availableTools: readTexts,
    excludedTools: readTexts,
    toolSearch: readToolSearch,
    editingStyle: readText,
    systemMessage: readSystemMessage,
  };
  return Object.freeze(
    Object.fromEntries(Object.keys(value).map((model) => [model, fieldsAt(value[model], `${path}["${model}"]`, readers)])),
  );
}

/** Unlike a name, it may be empty, and may hold anything that can be shown to a model. */
function readAnyText(value: unknown, path: string): string {
  return typeof value === "string" ? value : mustBe(path, "a text");
}

/** The fields of an object within others, each complaint with the way to it. */
function fieldsAt<T extends object>(value: unknown, path: string, readers: FieldReaders<T>): T {
  if (!isPlainRecord(value)) return mustBe(path, "an object");
  const read: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (!Object.hasOwn(readers, key)) return mustBe(`${path}.${key}`, `left out: the fields here are ${Object.keys(readers).join(", ")}`);
    const field = value[key];
    read[key] = field === undefined ? undefined : readers[key as keyof T](field, `${path}.${key}`);
  }
  return Object.freeze(read) as T;
}

/** A reader whose complaints come as `SESSION_OPTIONS`. */
function checked<T>(read: (value: unknown, path: string) => T): (value: unknown, field: string) => T {
  return (value, field) => {
    const readers: FieldReaders<Record<string, unknown>> = { [field]: read };
    return readFields<Record<string, unknown>>({ [field]: value }, "session options", "SESSION_OPTIONS", readers)[field] as T;
  };
}
