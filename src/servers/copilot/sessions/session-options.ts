import { isPlainRecord } from "../../../base/read-fields.ts";
import type { SessionOptions } from "../../../session/session-config.ts";
import type { Params } from "../framing/params.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Fields = Readonly<Record<string, unknown>>;

/** Options that mean the same there and here, and are checked by the session. */
const same = [
  "model",
  "reasoningEffort",
  "workingDirectory",
  "additionalDirectories",
  "availableTools",
  "excludedTools",
  "toolFilterPrecedence",
  "skillDirectories",
  "disabledSkills",
  "mcpServers",
  "disabledMcpServers",
  "envValueMode",
  "githubMcpToolConfig",
  "excludedBuiltinAgents",
  "agent",
  "modelCapabilities",
  "streaming",
] as const satisfies readonly (keyof SessionOptions)[];

/** Objects of which a client may know more fields than a session does. */
const parts = {
  toolSearch: ["enabled", "deferThreshold"],
  largeOutput: ["enabled", "maxSizeBytes", "outputDir"],
  defaultAgent: ["excludedTools"],
  infiniteSessions: ["enabled", "backgroundCompactionThreshold", "bufferExhaustionThreshold"],
} as const;

const agentFields = [
  "name",
  "displayName",
  "description",
  "prompt",
  "tools",
  "mcpServers",
  "skills",
  "model",
  "reasoningEffort",
  "infer",
] as const;

/**
 * The options of a session as `session.create`, `session.resume` and `session.options.update` name them. What is left
 * open is absent; what is wrong is the session's to refuse.
 */
export function toSessionOptions(params: Params): SessionOptions {
  const options: Record<string, unknown> = {};
  for (const key of same) if (params.get(key) !== undefined) options[key] = params.get(key);
  for (const [key, fields] of Object.entries(parts)) {
    const value = params.get(key);
    if (value !== undefined) options[key] = isPlainRecord(value) ? pick(value, fields) : value;
  }
  const variant = params.optionalText("askUserVariant");
  // Forms are for clients that show them; the others go on with questions.
  if (variant !== undefined && params.flag("requestElicitation")) options["askUserVariant"] = variant;
  if (params.optionalFlag("enableSkills") === false) options["disabledSkills"] = ["*"];
  const agents = params.get("customAgents");
  if (agents !== undefined) options["customAgents"] = Array.isArray(agents) ? agents.map(toAgent) : agents;
  return options as Mutable<SessionOptions>;
}

/** The tools that a client declares; it answers their calls. */
export function toDeclarations(params: Params, key = "tools"): readonly Fields[] {
  return params.records(key).map((tool) => pick(tool, toolFields));
}

const toolFields = [
  "name",
  "title",
  "description",
  "parameters",
  "overridesBuiltInTool",
  "skipPermission",
  "defer",
  "isTerminal",
  "metadata",
] as const;

function toAgent(agent: unknown): unknown {
  if (!isPlainRecord(agent)) return agent;
  const { tools } = agent;
  // Null is no list, and that means all tools; absent means the same.
  return { ...pick(agent, agentFields), ...(tools === null && { tools }) };
}

/** Own fields that are neither null nor undefined. */
export function pick(value: Fields, keys: readonly string[]): Fields {
  const known = keys.filter((key) => Object.hasOwn(value, key) && value[key] !== null && value[key] !== undefined);
  return Object.fromEntries(known.map((key) => [key, value[key]]));
}
