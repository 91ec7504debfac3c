import type { Tool } from "../../tools/tool.ts";
import { isSessionTool } from "../session-tool.ts";
import { createMatcher, type FilterPattern, type FilterVerdict, parsePatterns } from "./tool-filter.ts";

/** Whose tools a catalog shows: a custom agent's, a sub-agent's, or without a name those of the session's own agent. */
export interface AgentView {
  readonly name: string;
  /** Undefined: all. */
  readonly tools: readonly string[] | undefined;
}

export interface AgentFilterOptions {
  readonly agent?: AgentView | undefined;
  /** What the session's own agent goes without. */
  readonly defaultExcludedTools?: readonly string[] | undefined;
  readonly availableTools?: readonly string[] | undefined;
}

/** What an agent does without, of the tools that its session's filter lets through. */
export interface AgentFilter {
  /** Undefined: the tool passes. */
  hides(tool: Tool): FilterVerdict | undefined;
  readonly patterns: readonly FilterPattern[];
}

/**
 * An agent's list of tools, with the session's own tools always on top of it. Without an agent: what
 * `defaultAgent.excludedTools` names goes, unless the session says by `availableTools` which tools there are.
 * @throws HostError `SESSION_OPTIONS` naming the element that is not a tool pattern.
 */
export function createAgentFilter({ agent, defaultExcludedTools = [], availableTools }: AgentFilterOptions): AgentFilter {
  if (agent !== undefined) return agent.tools === undefined ? everything : onlyThese(agent.tools);
  const excluded = parsePatterns("defaultAgent.excludedTools", defaultExcludedTools);
  return availableTools !== undefined || excluded.length === 0 ? everything : allBut(excluded);
}

const everything: AgentFilter = Object.freeze({ hides: () => undefined, patterns: [] });

function onlyThese(tools: readonly string[]): AgentFilter {
  if (tools.includes("*")) return everything;
  const patterns = parsePatterns("agent.tools", tools);
  const names = createMatcher(patterns);
  return { patterns, hides: (tool) => (isSessionTool(tool) || names(tool) !== undefined ? undefined : notNamed) };
}

const notNamed: FilterVerdict = Object.freeze({ filter: "agent.tools" });

function allBut(patterns: ReturnType<typeof parsePatterns>): AgentFilter {
  const names = createMatcher(patterns);
  return {
    patterns,
    hides(tool) {
      const pattern = names(tool);
      return pattern === undefined ? undefined : { filter: "defaultAgent.excludedTools", pattern };
    },
  };
}
