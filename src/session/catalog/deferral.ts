import type { Tool, ToolDefinition, ToolKind, ToolResult } from "../../tools/tool.ts";
import type { RunningCall } from "../calls/running-call.ts";
import type { SessionEvent, SessionEvents } from "../records/events.ts";
import { toolSearch } from "../tools/tool-search.ts";
import type { ToolCatalog } from "./tool-catalog.ts";

export interface ToolSearchOptions {
  /** False: every tool is advertised, however many there are. Default: true. */
  readonly enabled?: boolean | undefined;
  /** With more tools than this, those of MCP servers, clients and skills are found by searching. Default: 30. */
  readonly deferThreshold?: number | undefined;
}

export interface ToolSearchSettings {
  readonly enabled: boolean;
  readonly deferThreshold: number;
}

/** What of a catalog is deferred, and what finds it. */
export interface Deferral {
  /** Whether a tool may be called but is not advertised. */
  isDeferred(tool: Tool): boolean;
  /** The tool that finds them, unless somebody provides one of their own. */
  readonly search: Tool | undefined;
}

/** The names that the search has: a client's tool of one of them, with `overridesBuiltInTool`, takes its place. */
export const toolSearchNames: readonly string[] = Object.freeze([toolSearch.definition.name, "tool_search_tool"]);

/** Fills in what the options leave open. */
export function resolveToolSearch({ enabled = true, deferThreshold = 30 }: ToolSearchOptions = {}): ToolSearchSettings {
  return Object.freeze({ enabled, deferThreshold });
}

/**
 * Decides which tools a model is not told of from the start. Nothing is deferred that could never be found: where a
 * filter takes the search away, every tool is advertised.
 */
export function chooseDeferral(
  visible: readonly Tool[],
  { enabled, deferThreshold }: ToolSearchSettings,
  isHidden: (tool: Tool) => boolean,
): Deferral {
  if (!enabled || visible.length <= deferThreshold) return nothing;
  const hasOwn = visible.some(isSearch);
  if (!hasOwn && isHidden(toolSearch)) return nothing;
  return visible.some(isDeferred) ? { isDeferred, search: hasOwn ? undefined : toolSearch } : nothing;
}

const nothing: Deferral = Object.freeze({ isDeferred: () => false, search: undefined });

function isSearch({ definition }: Tool): boolean {
  return toolSearchNames.includes(definition.name);
}

// The kinds that come in numbers nobody chose. Built-in tools and plugins are chosen one by one.
const deferrableKinds: ReadonlySet<ToolKind> = new Set(["mcp", "external", "skill"]);

function isDeferred(tool: Tool): boolean {
  return deferrableKinds.has(tool.origin.kind) && tool.definition.defer !== "never" && !isSearch(tool);
}

/** What the model of one conversation has been shown of the tools that are deferred. */
export interface Disclosure {
  /** What a catalog advertises, and after it what was shown, in the order in which it was: so a prompt cache holds. */
  advertised(catalog: ToolCatalog): readonly ToolDefinition[];
  /** Shows tools from now on. Gives the names that were deferred and not shown before; others are passed over. */
  show(catalog: ToolCatalog, names: readonly unknown[]): readonly string[];
  /** Takes over what the same conversation was shown in an earlier process, oldest first. */
  restore(names: readonly string[]): void;
}

export function createDisclosure(): Disclosure {
  return new ShownTools();
}

/** The tools that the model of a session's own conversation was shown, by its events. */
export function toolsShownIn(events: readonly SessionEvent[]): readonly string[] {
  return events.flatMap(({ type, data: { toolNames }, agentId }) => {
    if (type !== searchActivated || agentId !== undefined || !Array.isArray(toolNames)) return [];
    return toolNames.filter((name): name is string => typeof name === "string");
  });
}

/** What a result of the tool search means for its conversation: the tools that it refers to are advertised from now on. */
export function showFoundTools(run: RunningCall, { toolReferences = [] }: ToolResult, events: SessionEvents): void {
  const { agent, call, catalog, tool } = run;
  if (!toolSearchNames.includes(call.name) || agent.disclosure === undefined) return;
  const toolNames = agent.disclosure.show(catalog, toolReferences);
  if (toolNames.length === 0 || !events.wants(searchActivated)) return;
  events.append(searchActivated, { strategy: tool === toolSearch ? "regex" : "custom", toolNames }, agent.agentId);
}

const searchActivated = "tool_search.activated";

class ShownTools implements Disclosure {
  readonly #shown = new Set<string>();
  #of: ToolCatalog | undefined;
  #advertised: readonly ToolDefinition[] = [];

  advertised(catalog: ToolCatalog): readonly ToolDefinition[] {
    if (this.#shown.size === 0 || catalog.deferred.size === 0) return catalog.advertised;
    if (this.#of === catalog) return this.#advertised;
    this.#of = catalog;
    // A name may be gone for a while, or be advertised to all by now.
    const found = [...this.#shown].filter((name) => catalog.deferred.has(name));
    this.#advertised = Object.freeze([...catalog.advertised, ...found.map((name) => catalog.executables.get(name)!.definition)]);
    return this.#advertised;
  }

  show({ deferred }: ToolCatalog, names: readonly unknown[]): readonly string[] {
    const added: string[] = [];
    for (const name of names) {
      if (typeof name !== "string" || !deferred.has(name) || this.#shown.has(name)) continue;
      this.#shown.add(name);
      added.push(name);
    }
    if (added.length > 0) this.#of = undefined;
    return added;
  }

  restore(names: readonly string[]): void {
    for (const name of names) this.#shown.add(name);
    this.#of = undefined;
  }
}
