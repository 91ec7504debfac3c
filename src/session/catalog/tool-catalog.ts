import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Tool, ToolDefinition, ToolKind } from "../../tools/tool.ts";
import type { FilterNotice } from "./filter-notices.ts";
import type { FilterVerdict } from "./tool-filter.ts";

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
