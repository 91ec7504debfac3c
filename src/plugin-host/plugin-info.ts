import type { Diagnostic } from "../base/diagnostic.ts";
import type { OwnedScope } from "../io/scope.ts";
import type { HookKind } from "../session/hooks/hook-kinds.ts";
import type { Contributions, PluginPlace } from "./contributions.ts";
import type { PublishedSource } from "./published-source.ts";

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

/** What a plugin host knows of a plugin. `unknown`: its module could not be loaded, so not even its name is known. */
export interface PluginRecord {
  readonly name: string;
  readonly version: string | undefined;
  readonly specifier: string | undefined;
  readonly isBundled: boolean;
  state: "active" | "failed" | "unknown" | "disposed";
  readonly diagnostics: Diagnostic[];
  /** While it is active. */
  active: ActivePlugin | undefined;
}

export interface ActivePlugin {
  readonly contributions: Contributions;
  readonly published: readonly PublishedSource[];
  /** In the order in which they are disposed of. */
  readonly scopes: readonly OwnedScope[];
  readonly place: PluginPlace;
}

/** The record of a plugin that could not be loaded. */
export function unknownPlugin(specifier: string, isBundled: boolean, diagnostics: Diagnostic[]): PluginRecord {
  return { name: specifier, version: undefined, specifier, isBundled, state: "unknown", diagnostics, active: undefined };
}

export function describePlugin({ name, version, specifier, isBundled, state, diagnostics, active }: PluginRecord): PluginInfo {
  return Object.freeze({
    name,
    ...(version !== undefined && { version }),
    ...(specifier !== undefined && { specifier }),
    isBundled,
    state: state === "unknown" ? "failed" : state,
    ...(active === undefined ? nothing : describeContributions(active)),
    diagnostics: [...diagnostics],
  });
}

type Added = Omit<PluginInfo, "name" | "version" | "specifier" | "isBundled" | "state" | "diagnostics">;

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
