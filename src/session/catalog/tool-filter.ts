import { HostError } from "../../base/errors.ts";
import type { Tool, ToolKind } from "../../tools/tool.ts";
import { agentToolNames, isSessionTool } from "./session-tool.ts";

/** Which list wins for a tool that both name. */
export type FilterPrecedence = "excluded" | "available";

export interface ToolFilterOptions {
  /** Only these; an empty list: none. Absent: all. */
  readonly availableTools?: readonly string[] | undefined;
  /** All but these. */
  readonly excludedTools?: readonly string[] | undefined;
  readonly toolFilterPrecedence?: FilterPrecedence | undefined;
}

/** The lists that name tools: those of the session, that of the agent, and what the agent without a name goes without. */
type FilterList = "availableTools" | "excludedTools" | "agent.tools" | "defaultAgent.excludedTools";

/** Which list keeps a tool out, and the pattern that did; without a pattern, no pattern of the list that allows names it. */
export interface FilterVerdict {
  readonly filter: FilterList | "editingStyle";
  readonly pattern?: string;
}

/** The two lists of a session, parsed once. */
export interface ToolFilter {
  /** Undefined: the tool passes. */
  hides(tool: Tool): FilterVerdict | undefined;
  /** The patterns, each with the list it stands in, in order. */
  readonly patterns: readonly FilterPattern[];
}

export interface FilterPattern {
  readonly filter: FilterList;
  readonly text: string;
  /** False for those that fit a whole kind: there may be none of it at the moment. */
  readonly namesSomething: boolean;
  /** It fits the one tool of that name. */
  readonly isPlainName: boolean;
  matches(tool: Tool): boolean;
}

const patternForms =
  'a tool name ("grep"), "server/tool", "server/*", "skill:<skill>", and "builtin:", "mcp:", "plugin:" or "custom:" followed by a name or "*"';

/**
 * Parses both lists.
 * @throws HostError `SESSION_OPTIONS` naming the element that is not a pattern.
 */
export function parseToolFilter(options: ToolFilterOptions): ToolFilter {
  const available = options.availableTools && parsePatterns("availableTools", options.availableTools);
  const excluded = parsePatterns("excludedTools", options.excludedTools ?? []);
  const allowed = available && createMatcher(available);
  const removed = createMatcher(excluded);
  const allowListWins = options.toolFilterPrecedence === "available" && allowed !== undefined;
  return {
    patterns: [...(available ?? []), ...excluded],
    hides(tool) {
      if (allowed && allowed(tool) === undefined) return notAllowed;
      if (allowListWins) return undefined;
      const pattern = removed(tool);
      return pattern === undefined ? undefined : { filter: "excludedTools", pattern };
    },
  };
}

/** `server/tool`, `skill/tool` or `plugin/tool`; undefined for tools that have no such name. */
export function namespacedName({ origin }: Tool): string | undefined {
  return axesOf[origin.kind].isNamespaced ? `${origin.source}/${origin.nativeName}` : undefined;
}

const notAllowed: FilterVerdict = Object.freeze({ filter: "availableTools" });

const kindOfPrefix: ReadonlyMap<string, ToolKind> = new Map([
  ["builtin", "builtin"],
  ["mcp", "mcp"],
  ["skill", "skill"],
  ["plugin", "plugin"],
  ["custom", "external"],
]);

/** What a pattern looks at, and the value it wants there. */
interface PatternKey {
  readonly axis: Axis;
  readonly value: string;
}

type Axis = "name" | "path" | "all of" | "kind" | `tool ${ToolKind}` | `source ${ToolKind}`;

type ParsedPattern = FilterPattern & { readonly keys: readonly PatternKey[] };

/** @throws HostError `SESSION_OPTIONS` naming the element that is not a pattern. */
function parsePatterns(filter: FilterList, texts: readonly string[]): readonly ParsedPattern[] {
  if (!Array.isArray(texts)) throw notAPattern(filter, texts);
  return texts.map((text: unknown, index) => {
    const keys = typeof text === "string" ? keysOf(text) : undefined;
    if (keys === undefined) throw notAPattern(`${filter}[${index}]`, text);
    const pattern = {
      filter,
      text: text as string,
      namesSomething: !(text as string).endsWith(":*"),
      isPlainName: keys[0]?.axis === "name",
      keys,
    };
    const find = createMatcher([pattern]);
    return { ...pattern, matches: (tool) => find(tool) !== undefined };
  });
}

/** Undefined: not a pattern. */
function keysOf(text: string): readonly PatternKey[] | undefined {
  const colon = text.indexOf(":");
  const kind = colon < 0 ? undefined : kindOfPrefix.get(text.slice(0, colon));
  if (kind !== undefined) return keysOfPrefixed(kind, text.slice(colon + 1));
  if (text.includes("/")) {
    const whole = text.endsWith("/*") ? text.slice(0, -2) : undefined;
    const value = whole ?? text;
    if (value === "" || value.includes("*") || value.startsWith("/") || value.endsWith("/")) return undefined;
    return [{ axis: whole === undefined ? "path" : "all of", value }];
  }
  return text === "" || colon >= 0 || text.includes("*") ? undefined : [{ axis: "name", value: text }];
}

function keysOfPrefixed(kind: ToolKind, value: string): readonly PatternKey[] | undefined {
  if (value === "*") return [{ axis: "kind", value: kind }];
  if (value === "" || value.includes("*")) return undefined;
  if (kind === "skill") return [{ axis: "source skill", value }];
  const tool: PatternKey = { axis: `tool ${kind}`, value };
  return kind === "plugin" ? [tool, { axis: "source plugin", value }] : [tool];
}

/** Finds the pattern that fits a tool: of several, the one that names it most closely. One map per axis, however long the list. */
function createMatcher(patterns: readonly Omit<ParsedPattern, "matches">[]): (tool: Tool) => string | undefined {
  if (patterns.length === 0) return () => undefined;
  const index = new Map<Axis, Map<string, string>>();
  for (const { keys, text } of patterns) {
    for (const { axis, value } of keys) {
      const values = index.get(axis) ?? new Map<string, string>();
      if (!values.has(value)) values.set(value, text);
      index.set(axis, values);
    }
  }
  const names = index.get("name");
  const paths = index.get("path");
  const wholes = index.get("all of");
  const kinds = index.get("kind");
  return (tool) => {
    const { kind, source } = tool.origin;
    const { name } = tool.definition;
    const axes = axesOf[kind];
    return (
      names?.get(name) ??
      paths?.get(namespacedName(tool) ?? "") ??
      index.get(axes.tool)?.get(name) ??
      index.get(axes.source)?.get(source) ??
      (axes.isNamespaced ? wholes?.get(source) : undefined) ??
      kinds?.get(kind)
    );
  };
}

const axesOf: { readonly [K in ToolKind]: { readonly tool: Axis; readonly source: Axis; readonly isNamespaced: boolean } } = {
  builtin: { tool: "tool builtin", source: "source builtin", isNamespaced: false },
  skill: { tool: "tool skill", source: "source skill", isNamespaced: true },
  mcp: { tool: "tool mcp", source: "source mcp", isNamespaced: true },
  plugin: { tool: "tool plugin", source: "source plugin", isNamespaced: true },
  external: { tool: "tool external", source: "source external", isNamespaced: false },
};

function notAPattern(field: string, value: unknown): HostError {
  const shown = typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : value === null ? "null" : typeof value;
  return new HostError("SESSION_OPTIONS", `${field}: ${shown} is not a tool pattern. Patterns are ${patternForms}.`);
}

/** Whose tools a catalog shows: a custom agent's, a sub-agent's, or without a name those of the session's own agent. */
export interface AgentView {
  readonly name: string;
  /** Undefined: all. */
  readonly tools: readonly string[] | undefined;
}

interface AgentFilterOptions {
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
 * An agent's list of tools, with the session's own tools on top of it; those for further agents only if it names `task` or `agent`. Without an agent: what
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
  const startsAgents = tools.some((pattern) => pattern === agentsAlias || pattern === "task");
  const passes = (tool: Tool): boolean => {
    if (!isSessionTool(tool)) return names(tool) !== undefined;
    return !agentToolNames.has(tool.definition.name) || startsAgents || names(tool) !== undefined;
  };
  return { patterns, hides: (tool) => (passes(tool) ? undefined : notNamed) };
}

/** What lists of tools call the tools for further agents, beside the name of the one that starts them. */
const agentsAlias = "agent";

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
