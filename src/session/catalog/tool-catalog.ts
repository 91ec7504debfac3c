import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Tool, ToolDefinition, ToolKind } from "../../tools/tool.ts";
import type { RecordedEvent } from "../history/events.ts";
import type { CatalogView } from "./catalog-view.ts";
import { sessionToolNames } from "./session-tool.ts";
import type { FilterPattern, FilterVerdict } from "./tool-filter.ts";

/** Of two sources with the same name for something, the one of the later kind wins: for tools, prompts and resources alike. */
export const kindsByRank: readonly ToolKind[] = ["builtin", "mcp", "skill", "plugin", "external"];

/**
 * What a session can call and what its model sees: immutable, assembled as a whole, shared by all sessions with the
 * same sources and view. Its order depends on kinds and names alone, so that a reload moves nothing.
 */
export interface ToolCatalog {
  /** Every tool of every source, whatever became of it. */
  readonly candidates: readonly Tool[];
  /** Name to tool, for every tool that may be called. */
  readonly executables: ReadonlyMap<string, Tool>;
  /** What a model sees: data, no callbacks. */
  readonly advertised: readonly ToolDefinition[];
  /** Callable but not advertised: the model finds them by searching. */
  readonly deferred: ReadonlySet<string>;
  /** `server/tool`, `skill/tool` or `plugin/tool` to tool. */
  readonly byNamespacedName: ReadonlyMap<string, Tool>;
  /** Which list of the view keeps a tool out. */
  readonly hidden: ReadonlyMap<string, HiddenTool>;
  readonly losers: readonly LosingTool[];
  /** Names of the tools that the host brings; to take one of them takes `overridesBuiltInTool`. */
  readonly builtinNames: ReadonlySet<string>;
  /** Names in the filters that fit nothing, or nothing that is enabled; each once. */
  readonly notices: readonly FilterNotice[];
  readonly diagnostics: readonly Diagnostic[];
  /** Changes when the model, the order, a tool's contract or what is deferred changes. */
  readonly signature: string;
}

/** One provider of tools, as the assembly sees it. Of one kind, a later source takes a name from an earlier; of pushed ones, the earlier keeps it. */
export interface CatalogSource {
  readonly kind: ToolKind;
  /** Unique among the sources of its kind. */
  readonly id: string;
  readonly tools: readonly Tool[];
  readonly diagnostics?: readonly Diagnostic[];
  /** Only these custom agents have its tools, selected or as sub-agents; `any`: every one of them, but not the session's own agent. */
  readonly forAgents?: readonly string[] | "any";
}

/** Why a tool that a source provides is not the one that is called by its name. */
export type LossRule =
  | "higher-kind"
  | "later-source"
  | "earlier-client"
  | "same-source-twice"
  | "builtin-name-without-flag"
  | "illegal-name";

export interface LosingTool {
  readonly tool: Tool;
  readonly rule: LossRule;
  /** The tool that has the name; undefined when no tool could have it. */
  readonly winner: Tool | undefined;
}

export interface HiddenTool extends FilterVerdict {
  readonly tool: Tool;
}

/** A name in a filter that does not do what its author may expect. */
export interface FilterNotice {
  /** Equal for one name in one list, so that it is said once. */
  readonly key: string;
  readonly filter: FilterPattern["filter"];
  readonly name: string;
  readonly problem: "unknown" | "disabled";
  readonly message: string;
}

type Hidden = ReadonlyMap<string, FilterVerdict & { readonly tool: Tool }>;

/** Checks the filters' names against what there is: callable tools, and those that a filter keeps out. */
export function noticesOf(view: CatalogView, executables: ReadonlyMap<string, Tool>, hidden: Hidden): readonly FilterNotice[] {
  const notices = new Map<string, FilterNotice>();
  for (const pattern of [...view.filter.patterns, ...view.agentFilter.patterns]) {
    if (!pattern.namesSomething) continue;
    const notice = noticeOf(pattern, view, executables, hidden);
    if (notice !== undefined && !notices.has(notice.key)) notices.set(notice.key, notice);
  }
  return [...notices.values()];
}

function noticeOf(
  pattern: FilterPattern,
  view: CatalogView,
  executables: ReadonlyMap<string, Tool>,
  hidden: Hidden,
): FilterNotice | undefined {
  if (pattern.isPlainName && sessionToolNames.has(pattern.text)) return undefined;
  if (fits(pattern, executables, (tool) => tool) !== undefined) return undefined;
  const known = fits(pattern, hidden, ({ tool }) => tool);
  if (known !== undefined) {
    const why = whyDisabled(pattern.filter, known.filter);
    return why === undefined ? undefined : toNotice(pattern, "disabled", why);
  }
  const skill = view.disabledSkills.find((name) => pattern.text === `skill:${name}` || pattern.text.startsWith(`${name}/`));
  if (skill !== undefined) return toNotice(pattern, "disabled", `the skill "${skill}" is disabled`);
  return toNotice(pattern, "unknown", "it matches no tool of this session");
}

/** Why a tool that a list allows is not there; undefined: that is what was wanted. */
function whyDisabled(list: FilterPattern["filter"], hiddenBy: FilterVerdict["filter"]): string | undefined {
  if (list === "availableTools" && hiddenBy === "excludedTools") return "it is also in excludedTools, which wins";
  const isSessions = hiddenBy === "availableTools" || hiddenBy === "excludedTools";
  return list === "agent.tools" && isSessions ? `the session's ${hiddenBy} hides it` : undefined;
}

function toNotice({ filter, text }: FilterPattern, problem: FilterNotice["problem"], why: string): FilterNotice {
  const message = `${problem === "unknown" ? "Unknown" : "Disabled"} tool name in ${filter}: "${text}" (${why}).`;
  return { key: `${filter} ${problem} ${text}`, filter, name: text, problem, message };
}

/** Most patterns are plain names: those cost one look-up, the others a walk. */
function fits<T>(pattern: FilterPattern, map: ReadonlyMap<string, T>, toTool: (value: T) => Tool): T | undefined {
  const named = map.get(pattern.text);
  if (named !== undefined && pattern.matches(toTool(named))) return named;
  if (pattern.isPlainName) return undefined;
  for (const value of map.values()) if (pattern.matches(toTool(value))) return value;
  return undefined;
}

/** The tools that the model of a session's own conversation was shown, by its events. */
export function toolsDiscoveredIn(events: readonly RecordedEvent[]): readonly string[] {
  return events.flatMap(({ type, data: { toolNames }, agentId }) => {
    if (type !== searchActivated || agentId !== undefined || !Array.isArray(toolNames)) return [];
    return toolNames.filter((name): name is string => typeof name === "string");
  });
}

/** What the model of one conversation has been shown of the tools that are deferred. */
export class DiscoveredTools {
  readonly #shown = new Set<string>();
  #of: ToolCatalog | undefined;
  #advertised: readonly ToolDefinition[] = [];

  /** What a catalog advertises, and after it what was shown, in the order in which it was: so a prompt cache holds. */
  advertised(catalog: ToolCatalog): readonly ToolDefinition[] {
    if (this.#shown.size === 0 || catalog.deferred.size === 0) return catalog.advertised;
    if (this.#of === catalog) return this.#advertised;
    this.#of = catalog;
    // A name may be gone for a while, or be advertised to all by now.
    const found = [...this.#shown].filter((name) => catalog.deferred.has(name));
    this.#advertised = Object.freeze([...catalog.advertised, ...found.map((name) => catalog.executables.get(name)!.definition)]);
    return this.#advertised;
  }

  /** Shows tools from now on. Returns the names that were deferred and not shown before; ignores the others. */
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

  /** Takes over what the same conversation was shown in an earlier process, oldest first. */
  restore(names: readonly string[]): void {
    for (const name of names) this.#shown.add(name);
    this.#of = undefined;
  }
}

export const searchActivated = "tool_search.activated";
