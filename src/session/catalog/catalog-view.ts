import { canonicalJson } from "../../base/canonical-json.ts";
import { LruMap } from "../../base/lru-map.ts";
import type { Tool } from "../../tools/tool.ts";
import {
  type ModelToolTable,
  resolveToolSearch,
  type ToolSearchOptions,
  type ToolSearchSettings,
  toolOptionsFor,
} from "./model-tool-options.ts";
import {
  type AgentFilter,
  type AgentView,
  createAgentFilter,
  parseToolFilter,
  type ToolFilter,
  type ToolFilterOptions,
} from "./tool-filter.ts";

export interface CatalogViewOptions extends ToolFilterOptions {
  readonly model?: string | undefined;
  /** Skill folders of this session, after the host's; absolute, in order of precedence. */
  readonly skillDirectories?: readonly string[] | undefined;
  readonly disabledSkills?: readonly string[] | undefined;
  /** Whose tools these are. Absent: the session's own agent's. */
  readonly agent?: AgentView | undefined;
  readonly defaultExcludedTools?: readonly string[] | undefined;
  readonly toolSearch?: ToolSearchOptions | undefined;
  readonly modelTools?: ModelToolTable | undefined;
  /** Equal for sessions that bring equal MCP servers. */
  readonly servers?: string | undefined;
}

/** All of a session's options that its tools depend on. Sessions whose views have equal keys see the same catalog. */
export interface CatalogView {
  readonly key: string;
  readonly filter: ToolFilter;
  readonly availableTools: readonly string[] | undefined;
  readonly agentFilter: AgentFilter;
  /** The custom agent whose tools these are. */
  readonly agent: string | undefined;
  readonly model: string | undefined;
  readonly skillDirectories: readonly string[];
  readonly disabledSkills: readonly string[];
  readonly toolSearch: ToolSearchSettings;
  readonly editingStyle: string;
  /** The tools that the session brings itself. */
  readonly sessionTools: readonly Tool[];
  /** What it was made of, to make one like it. */
  readonly options: CatalogViewOptions;
}

/** @throws HostError `SESSION_OPTIONS` for what is not a tool pattern. */
export function createCatalogView(options: CatalogViewOptions): CatalogView {
  const { model, modelTools, agent, defaultExcludedTools, servers, skillDirectories = [], disabledSkills = [] } = options;
  const ofModel = toolOptionsFor(model, modelTools);
  const { availableTools, excludedTools, editingStyle = "edit", toolSearch } = { ...options, ...ofModel };
  const { toolFilterPrecedence = "excluded" } = options;
  const search = resolveToolSearch(toolSearch);
  const lists = { availableTools, excludedTools, toolFilterPrecedence, agent, defaultExcludedTools };
  return Object.freeze({
    key: canonicalJson({ ...lists, model, search, editingStyle, skillDirectories, disabledSkills, servers }),
    filter: parseToolFilter({ availableTools, excludedTools, toolFilterPrecedence }),
    availableTools,
    agentFilter: createAgentFilter({ agent, defaultExcludedTools, availableTools }),
    agent: agent?.name,
    model,
    skillDirectories,
    disabledSkills,
    toolSearch: search,
    editingStyle,
    sessionTools: [],
    options,
  });
}

const offering = new WeakMap<CatalogView, LruMap<string, CatalogView>>();

/** A view offers few sets of tools at a time; those of agents that were removed are dropped. */
const maxToolSets = 16;

/** The same view with tools that the session brings. The same tools give the same view. */
export function withSessionTools(view: CatalogView, sessionTools: readonly Tool[]): CatalogView {
  if (sessionTools.length === 0) return view;
  const views = offering.get(view) ?? new LruMap<string, CatalogView>(maxToolSets);
  offering.set(view, views);
  const key = `${view.key} ${sessionTools.map((tool) => tool.signature).join(" ")}`;
  return views.getOrCreate(key, () => Object.freeze({ ...view, key, sessionTools }));
}
