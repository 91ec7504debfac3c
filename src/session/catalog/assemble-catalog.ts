import { sha256 } from "../../base/canonical-json.ts";
import type { Diagnostic, Severity } from "../../base/diagnostic.ts";
import { LruMap } from "../../base/lru-map.ts";
import { checkToolName, type JsonSchema, type Tool, type ToolDefinition, type ToolKind } from "../../tools/tool.ts";
import type { CatalogView } from "./catalog-view.ts";
import {
  type CatalogSource,
  type FilterNotice,
  type HiddenTool,
  kindsByRank,
  type LosingTool,
  type LossRule,
  noticesOf,
  type ToolCatalog,
} from "./tool-catalog.ts";
import { type FilterVerdict, namespacedName } from "./tool-filter.ts";
import { chooseDeferral, type Deferral, toolSearchNames } from "./tool-search.ts";

/** Makes a catalog of what the sources provide and a session's view of it. Pure. */
export function assembleCatalog(sources: readonly CatalogSource[], view: CatalogView): ToolCatalog {
  const contest = resolveNames(sourcesOf(sources, view), view);
  const visible: Tool[] = [];
  const hidden = new Map<string, HiddenTool>();
  for (const tool of inStableOrder(contest.winners)) {
    const verdict = view.filter.hides(tool) ?? view.agentFilter.hides(tool) ?? hiddenByStyle(tool, view);
    if (verdict === undefined) visible.push(tool);
    else hidden.set(tool.definition.name, { tool, ...verdict });
  }
  const deferral = chooseDeferral(visible, view.toolSearch, (tool) => view.filter.hides(tool)?.filter === "excludedTools");
  return new AssembledCatalog(contest, offer(visible, deferral), hidden, view);
}

/** What may be called, split into what a model sees and what it has to search for. */
interface Offer {
  readonly executables: ReadonlyMap<string, Tool>;
  readonly advertised: readonly ToolDefinition[];
  readonly deferred: ReadonlySet<string>;
}

function offer(visible: readonly Tool[], { isDeferred, search }: Deferral): Offer {
  const executables = new Map<string, Tool>();
  const advertised: ToolDefinition[] = [];
  const deferred = new Set<string>();
  for (const tool of search === undefined ? visible : withTool(visible, search)) {
    const { definition } = tool;
    executables.set(definition.name, tool);
    if (isDeferred(tool)) deferred.add(definition.name);
    else advertised.push(definition);
  }
  return { executables, advertised: Object.freeze(advertised), deferred };
}

/** The tools that a session brings itself come first; those of other agents do not come at all. */
function sourcesOf(sources: readonly CatalogSource[], { agent, sessionTools }: CatalogView): readonly CatalogSource[] {
  const own = sources.filter(({ forAgents }) => {
    if (forAgents === undefined) return true;
    return agent !== undefined && (forAgents === "any" || forAgents.includes(agent));
  });
  return sessionTools.length === 0 ? own : [{ kind: "builtin", id: "session", tools: sessionTools }, ...own];
}

function hiddenByStyle({ definition: { metadata } }: Tool, { editingStyle }: CatalogView): FilterVerdict | undefined {
  const style = metadata?.["editingStyle"];
  return typeof style !== "string" || style === editingStyle ? undefined : otherStyle;
}

const otherStyle: FilterVerdict = Object.freeze({ filter: "editingStyle" });

/** In the place that its kind and name give it. */
function withTool(ordered: readonly Tool[], tool: Tool): readonly Tool[] {
  const rank = rankOf[tool.origin.kind];
  const place = ordered.findIndex(({ definition, origin }) => {
    const otherRank = rankOf[origin.kind];
    return otherRank > rank || (otherRank === rank && definition.name > tool.definition.name);
  });
  return ordered.toSpliced(place < 0 ? ordered.length : place, 0, tool);
}

class AssembledCatalog implements ToolCatalog {
  readonly candidates: readonly Tool[];
  readonly executables: ReadonlyMap<string, Tool>;
  readonly advertised: readonly ToolDefinition[];
  readonly deferred: ReadonlySet<string>;
  readonly hidden: ReadonlyMap<string, HiddenTool>;
  readonly losers: readonly LosingTool[];
  readonly builtinNames: ReadonlySet<string>;
  readonly notices: readonly FilterNotice[];
  readonly diagnostics: readonly Diagnostic[];
  readonly #model: string | undefined;
  #signature: string | undefined;
  #byNamespacedName: ReadonlyMap<string, Tool> | undefined;

  constructor(contest: Contest, { executables, advertised, deferred }: Offer, hidden: ReadonlyMap<string, HiddenTool>, view: CatalogView) {
    this.candidates = contest.candidates;
    this.executables = executables;
    this.deferred = deferred;
    this.advertised = advertised;
    this.hidden = hidden;
    this.losers = contest.losers;
    this.builtinNames = contest.builtinNames;
    this.notices = noticesOf(view, executables, hidden);
    this.diagnostics = contest.diagnostics;
    this.#model = view.model;
  }

  // Hashing thousands of tools takes ten times as long as assembling them, and most catalogs are never compared.
  get signature(): string {
    this.#signature ??= sha256(
      [this.#model ?? "", ...Array.from(this.executables, ([name, tool]) => `${this.deferred.has(name)} ${tool.signature}`)].join("\n"),
    );
    return this.#signature;
  }

  get byNamespacedName(): ReadonlyMap<string, Tool> {
    this.#byNamespacedName ??= indexNamespaced(this.executables);
    return this.#byNamespacedName;
  }
}

interface Contest {
  readonly candidates: Tool[];
  readonly winners: Map<string, Tool>;
  readonly losers: LosingTool[];
  readonly builtinNames: Set<string>;
  readonly diagnostics: Diagnostic[];
}

const rankOf = Object.fromEntries(kindsByRank.map((kind, rank) => [kind, rank])) as { readonly [K in ToolKind]: number };

/** Decides who has each name. Sources are taken from the lowest kind to the highest, so a later tool always meets what it must beat. */
function resolveNames(sources: readonly CatalogSource[], { toolSearch }: CatalogView): Contest {
  // The search may come with the next tool: its name is taken all along.
  const builtinNames = new Set(toolSearch.enabled ? toolSearchNames : []);
  const contest: Contest = { candidates: [], winners: new Map(), losers: [], builtinNames, diagnostics: [] };
  for (const kind of kindsByRank) {
    for (const source of sources) {
      if (source.kind !== kind) continue;
      if (source.diagnostics) contest.diagnostics.push(...source.diagnostics);
      for (const [index, tool] of source.tools.entries()) enter(contest, tool, source, index);
    }
  }
  return contest;
}

function enter(contest: Contest, tool: Tool, source: CatalogSource, index: number): void {
  const { name } = tool.definition;
  contest.candidates.push(tool);
  const holder = contest.winners.get(name);
  const fault = faultOf(contest, tool, source, holder !== undefined && isBefore(source.tools, index, holder));
  if (fault !== undefined) {
    leaveOut(contest, tool, holder, fault);
    return;
  }
  if (source.kind === "builtin") contest.builtinNames.add(name);
  if (holder !== undefined && source.kind === "external" && holder.origin.kind === "external") {
    contest.losers.push({ tool, rule: "earlier-client", winner: holder });
    return;
  }
  contest.winners.set(name, tool);
  if (holder === undefined) return;
  contest.losers.push({ tool: holder, rule: holder.origin.kind === tool.origin.kind ? "later-source" : "higher-kind", winner: tool });
}

const placesOf = new WeakMap<readonly Tool[], ReadonlyMap<Tool, number>>();

/** Whether a list has a tool before a place. Few names clash: only lists with such names are ever indexed. */
function isBefore(tools: readonly Tool[], index: number, tool: Tool): boolean {
  let places = placesOf.get(tools);
  if (places === undefined) {
    places = new Map(tools.map((each, place) => [each, place]));
    placesOf.set(tools, places);
  }
  return (places.get(tool) ?? index) < index;
}

/** Why a tool cannot take part at all. */
interface Fault {
  readonly rule: LossRule;
  readonly severity: Severity;
  readonly code: string;
  readonly text: string;
}

function faultOf(contest: Contest, { definition }: Tool, source: CatalogSource, isTwice: boolean): Fault | undefined {
  const { name, overridesBuiltInTool } = definition;
  const legal = checkToolName(name);
  if (!legal.ok) return { rule: "illegal-name", severity: "error", code: "TOOL_NAME_ILLEGAL", text: legal.message };
  if (isTwice) {
    const text = `two tools are named "${name}"; the first is used. Rename one.`;
    return { rule: "same-source-twice", severity: "warning", code: "TOOL_NAME_TWICE", text };
  }
  if (source.kind === "builtin" || overridesBuiltInTool === true || !contest.builtinNames.has(name)) return undefined;
  const text = `"${name}" is the name of a built-in tool. Rename it, or set overridesBuiltInTool: true to take its place.`;
  return { rule: "builtin-name-without-flag", severity: "error", code: "TOOL_NAME_BUILTIN", text };
}

function leaveOut(contest: Contest, tool: Tool, holder: Tool | undefined, { rule, severity, code, text }: Fault): void {
  const { kind, source, file } = tool.origin;
  contest.losers.push({ tool, rule, winner: holder });
  const message = `A tool of ${kind} "${source}" is not available: ${text}`;
  contest.diagnostics.push({ severity, code, message, source, ...(file === undefined ? {} : { file }) });
}

/** By kind, then by name: neither the order of a manifest nor the time of loading shows in it. */
function inStableOrder(winners: ReadonlyMap<string, Tool>): readonly Tool[] {
  // Names are sorted, not tools: that needs no comparison of ours.
  const byRank: string[][] = kindsByRank.map(() => []);
  for (const [name, tool] of winners) byRank[rankOf[tool.origin.kind]]!.push(name);
  return byRank.flatMap((names) => names.sort().map((name) => winners.get(name)!));
}

function indexNamespaced(executables: ReadonlyMap<string, Tool>): ReadonlyMap<string, Tool> {
  const index = new Map<string, Tool>();
  for (const tool of executables.values()) {
    const path = namespacedName(tool);
    if (path !== undefined && !index.has(path)) index.set(path, tool);
  }
  return index;
}

/** Assembles, or gives back what was assembled of the same snapshots for an equal view. */
export type CatalogMemo = (sources: readonly CatalogSource[], view: CatalogView) => ToolCatalog;

// Of one set of snapshots. A host has few different views; sessions that make up new ones again and again lose the oldest.
const maxViews = 64;

/**
 * A memo over the identity of the sources' `tools` and the view's key. It keeps nothing alive: what was assembled goes
 * when one of the snapshots it was assembled of goes.
 */
export function createCatalogMemo(): CatalogMemo {
  const root = createNode();
  return (sources, view) => {
    let node = root;
    let names = "";
    for (const { kind, id, tools, diagnostics } of sources) {
      node = childOf(node, tools);
      if (diagnostics !== undefined && diagnostics.length > 0) node = childOf(node, diagnostics);
      names += `${kind} ${id.length} ${id} `;
    }
    return node.catalogs.getOrCreate(names + view.key, () => assembleCatalog(sources, view));
  };
}

/** The catalogs of the snapshots on the way here, and the way on to sets with one more. */
interface Node {
  readonly next: WeakMap<object, Node>;
  readonly catalogs: LruMap<string, ToolCatalog>;
}

function createNode(): Node {
  return { next: new WeakMap(), catalogs: new LruMap(maxViews) };
}

function childOf(node: Node, snapshot: object): Node {
  const known = node.next.get(snapshot);
  if (known !== undefined) return known;
  const child = createNode();
  node.next.set(snapshot, child);
  return child;
}

/** A tool of a session, described for people and programs. */
export interface ListedTool {
  readonly name: string;
  /** `server/tool`, `skill/tool` or `plugin/tool`. */
  readonly namespacedName?: string;
  readonly description?: string;
  readonly parameters?: JsonSchema;
  readonly source: { readonly kind: ToolKind; readonly name: string };
  /** Callable, but a model must search for it first. */
  readonly deferred: boolean;
  readonly signature: string;
}

/** The callable tools of a catalog, in its order. */
export function listTools({ executables, deferred }: ToolCatalog): readonly ListedTool[] {
  return Array.from(executables.values(), (tool) => {
    const { name, description, parameters } = tool.definition;
    const path = namespacedName(tool);
    return {
      name,
      ...(path !== undefined && { namespacedName: path }),
      ...(description !== undefined && { description }),
      ...(parameters !== undefined && { parameters }),
      source: { kind: tool.origin.kind, name: tool.origin.source },
      deferred: deferred.has(name),
      signature: tool.signature,
    };
  });
}
