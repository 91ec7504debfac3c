import type { Diagnostic } from "../base/diagnostic.ts";
import type { BundleDialect } from "../formats/plugins/plugin-dialects.ts";
import type { OwnedScope } from "../io/scope.ts";
import type { HookKind } from "../session/hooks/hook-kinds.ts";
import type { CallsInFlight } from "../skills/load/calls-in-flight.ts";
import { isBundledSpecifier } from "./bundled.ts";
import type { Bundle } from "./bundles/bundle.ts";
import type { Contributions, PluginPlace } from "./contributions.ts";
import type { PluginUse, Requirement } from "./prepare-plugin.ts";
import type { PublishedSource } from "./published-source.ts";

/** One entry of a host's list of plugins: the active generation, and the outcome of the latest attempt to load another. */
export interface PluginEntry {
  readonly use: PluginUse;
  /** The specifier of its module. Undefined: a program passed the plugin itself. */
  readonly specifier: string | undefined;
  readonly isBundled: boolean;
  /** Its specifier until its name is known. */
  name: string;
  version: string | undefined;
  /** `waiting`: not tried yet. `unknown`: it failed before its name was known. */
  state: "waiting" | "active" | "failed" | "unknown" | "disposed";
  /** The diagnostics of the latest attempt. */
  diagnostics: Diagnostic[];
  /** Whether the latest attempt failed while an earlier generation is active. */
  isStale: boolean;
  /** Whether another plugin prevented its activation. It is tried again when that plugin changes. */
  isHeldBack: boolean;
  generation: number;
  active: ActivePlugin | undefined;
  /** The files of the latest attempt, even of a failed one. */
  attempted: ReadonlySet<string>;
}

/** One generation of a plugin, until its last call has ended. */
export interface ActivePlugin {
  /** Increases with each first activation. Plugins are disposed of in the reverse order. */
  readonly sequence: number;
  readonly requires: readonly Requirement[];
  /** Undefined: the plugin is code. */
  readonly bundle: Bundle | undefined;
  readonly contributions: Contributions;
  readonly published: readonly PublishedSource[];
  /** In the order of disposal. */
  readonly scopes: readonly OwnedScope[];
  readonly place: PluginPlace;
  /** Undefined: the plugin is never replaced, so its calls need not be counted. */
  readonly calls: CallsInFlight | undefined;
  readonly files: ReadonlySet<string>;
}

export function createEntry(use: PluginUse): PluginEntry {
  const specifier = typeof use.use === "string" ? use.use : undefined;
  return {
    use,
    specifier,
    isBundled: specifier !== undefined && isBundledSpecifier(specifier),
    name: typeof use.use === "string" ? use.use : use.use.name,
    version: undefined,
    state: "waiting",
    diagnostics: [],
    isStale: false,
    isHeldBack: false,
    generation: 0,
    active: undefined,
    attempted: new Set(),
  };
}

/** Whether a plugin can be replaced while the process runs. */
export function isReloadable({ specifier, isBundled }: PluginEntry): boolean {
  return specifier !== undefined && !isBundled;
}

/** A plugin of a host and its contributions. */
export interface PluginInfo {
  /** Its specifier if it could not be loaded. */
  readonly name: string;
  readonly version?: string;
  /** The specifier of its module. Absent: a program passed the plugin itself. */
  readonly specifier?: string;
  /** Whether it is part of skillhost. Its tools count as built-in ones. */
  readonly isBundled: boolean;
  readonly state: "active" | "failed" | "disposed";
  /** Whether its files have an error and the last working version keeps running. */
  readonly stale: boolean;
  /** The number of its activations. */
  readonly generation: number;
  /** The folder of a plugin without code. Absent: the plugin is code. */
  readonly bundle?: BundleInfo;
  /** The plugins that it requires: ranges of versions by name. */
  readonly requires: Readonly<Record<string, string>>;
  /** The current names of its tools, including those of tool sources. */
  readonly tools: readonly string[];
  readonly toolSources: readonly string[];
  /** The file extensions that they read. */
  readonly toolRunners: readonly string[];
  readonly skillDirectories: readonly string[];
  readonly hooks: readonly HookKind[];
  readonly agents: readonly string[];
  readonly commands: readonly { readonly name: string; readonly description?: string }[];
  readonly modelProviders: readonly string[];
  readonly mcpServers: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/** A plugin that is a folder without code. */
export interface BundleInfo {
  readonly dialect: BundleDialect;
  readonly folder: string;
  /** Absent: the folder has no manifest. */
  readonly manifestFile?: string;
  /** The names of its skills when it was read. */
  readonly skills: readonly string[];
}

export function describePlugin(entry: PluginEntry): PluginInfo {
  const { name, version, specifier, isBundled, state, isStale, generation, active } = entry;
  return Object.freeze({
    name,
    ...(version !== undefined && { version }),
    ...(specifier !== undefined && { specifier }),
    isBundled,
    state: state === "active" || state === "disposed" ? state : "failed",
    stale: isStale,
    generation,
    ...(active?.bundle !== undefined && { bundle: toBundleInfo(active.bundle) }),
    requires: Object.fromEntries((active?.requires ?? []).map(({ name: required, range }) => [required, range])),
    ...(active === undefined ? nothing : namesOfContributions(active)),
    diagnostics: diagnosticsOf(entry),
  });
}

/** The diagnostics of its latest attempt, and what its tool sources report now. */
export function diagnosticsOf({ diagnostics, active }: PluginEntry): readonly Diagnostic[] {
  return [...diagnostics, ...(active?.published ?? []).flatMap(({ snapshot }) => snapshot.diagnostics)];
}

function toBundleInfo({ dialect, folder, manifestFile, skills }: Bundle): BundleInfo {
  return { dialect, folder, ...(manifestFile !== undefined && { manifestFile }), skills };
}

type Own = "name" | "version" | "specifier" | "isBundled" | "state" | "stale" | "generation" | "requires" | "bundle" | "diagnostics";
type Added = Omit<PluginInfo, Own>;

const nothing: Added = Object.freeze({
  tools: [],
  toolSources: [],
  toolRunners: [],
  skillDirectories: [],
  hooks: [],
  agents: [],
  commands: [],
  modelProviders: [],
  mcpServers: [],
});

function namesOfContributions({ contributions, published }: ActivePlugin): Added {
  const { tools, toolRunners, skillDirectories, hooks, agents, commands, modelProviders, mcpServers } = contributions;
  const all = [...tools, ...published.flatMap(({ snapshot }) => snapshot.tools)];
  return {
    tools: all.map(({ definition }) => definition.name),
    toolSources: published.map(({ source }) => source.id),
    toolRunners: toolRunners.flatMap(({ extensions }) => extensions),
    skillDirectories,
    hooks: [...new Set(hooks.flatMap((kinds) => (Object.keys(kinds) as HookKind[]).filter((kind) => kinds[kind].length > 0)))],
    agents: [...agents.keys()],
    commands: Array.from(commands.values(), ({ name, description }) => ({ name, ...(description !== undefined && { description }) })),
    modelProviders: [...modelProviders.keys()],
    mcpServers: [...mcpServers.keys()],
  };
}
