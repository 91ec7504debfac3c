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

/** One entry of a host's list of plugins: which generation of it serves, and what became of the latest attempt to load another. */
export interface PluginEntry {
  readonly use: PluginUse;
  /** The module that it is loaded from, where it comes by one. */
  readonly specifier: string | undefined;
  readonly isBundled: boolean;
  /** Its specifier until anything tells another. */
  name: string;
  version: string | undefined;
  /** `waiting`: nothing was tried yet. `unknown`: it failed, and not even its name is known. */
  state: "waiting" | "active" | "failed" | "unknown" | "disposed";
  /** Of the latest attempt. */
  diagnostics: Diagnostic[];
  /** The latest attempt failed, and an earlier generation serves. */
  isStale: boolean;
  /** It was kept from activation by another plugin: when that changes, it is tried again. */
  isHeldBack: boolean;
  generation: number;
  active: ActivePlugin | undefined;
  /** What the latest attempt was made of, whatever came of it. */
  attempted: ReadonlySet<string>;
}

/** One generation of a plugin, while it serves and until its calls have ended. */
export interface ActivePlugin {
  /** Rises with each first activation: they end in the opposite order. */
  readonly sequence: number;
  readonly requires: readonly Requirement[];
  /** Absent: it is code. */
  readonly bundle: Bundle | undefined;
  readonly contributions: Contributions;
  readonly published: readonly PublishedSource[];
  /** In the order in which they are disposed of. */
  readonly scopes: readonly OwnedScope[];
  readonly place: PluginPlace;
  /** Absent: it is never replaced, so nobody needs to know. */
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

/** Whether a slot's plugin can become another while the process lives. */
export function isReloadable({ specifier, isBundled }: PluginEntry): boolean {
  return specifier !== undefined && !isBundled;
}

/** A plugin as a host lists it, with what it added. */
export interface PluginInfo {
  /** Its specifier when nothing could be loaded. */
  readonly name: string;
  readonly version?: string;
  /** The module that it was loaded from, where it came by one. */
  readonly specifier?: string;
  /** It comes with skillhost: its tools are built-in ones. */
  readonly isBundled: boolean;
  readonly state: "active" | "failed" | "disposed";
  /** True: its files hold a fault, and the generation that worked last serves. */
  readonly stale: boolean;
  /** Counts its activations, from 1; 0 when there was none. */
  readonly generation: number;
  /** Absent: it is code. Else the folder that it was read from, and whose manifest that has. */
  readonly bundle?: BundleInfo;
  /** The plugins that it requires, with the ranges of versions. */
  readonly requires: Readonly<Record<string, string>>;
  /** Names, also of those in tool sources, as they are now. */
  readonly tools: readonly string[];
  readonly toolSources: readonly string[];
  /** Extensions of the files they read. */
  readonly toolRunners: readonly string[];
  readonly skillDirectories: readonly string[];
  readonly hooks: readonly HookKind[];
  readonly agents: readonly string[];
  readonly commands: readonly { readonly name: string; readonly description?: string }[];
  readonly modelProviders: readonly string[];
  readonly mcpServers: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/** What a host tells of a plugin that is a folder without code. */
export interface BundleInfo {
  readonly dialect: BundleDialect;
  readonly folder: string;
  /** Absent: the folder has none. */
  readonly manifestFile?: string;
  /** Names of the skill folders, as they were when it was read. */
  readonly skills: readonly string[];
}

export function describePlugin(slot: PluginEntry): PluginInfo {
  const { name, version, specifier, isBundled, state, isStale, generation, diagnostics, active } = slot;
  return Object.freeze({
    name,
    ...(version !== undefined && { version }),
    ...(specifier !== undefined && { specifier }),
    isBundled,
    state: state === "active" || state === "disposed" ? state : "failed",
    stale: isStale,
    generation,
    ...(active?.bundle !== undefined && { bundle: describeBundle(active.bundle) }),
    requires: Object.fromEntries((active?.requires ?? []).map(({ name: required, range }) => [required, range])),
    ...(active === undefined ? nothing : describeContributions(active)),
    diagnostics: [...diagnostics],
  });
}

function describeBundle({ dialect, folder, manifestFile, skills }: Bundle): BundleInfo {
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

function describeContributions({ contributions, published }: ActivePlugin): Added {
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
