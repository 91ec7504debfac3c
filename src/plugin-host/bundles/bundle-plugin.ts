import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { hookOptions, type SessionHooks } from "../../session/hooks/hook-kinds.ts";
import type { SessionOptions } from "../../session/session-config.ts";
import { definePlugin, type Plugin } from "../define-plugin.ts";
import type { PluginApi } from "../plugin-api.ts";
import { type Bundle, type BundleOptions, type ListedEntry, rememberBundle } from "./bundle.ts";
import { createBundleHooks } from "./hooks/run-hook.ts";
import { loadBundle } from "./load-bundle.ts";

/** The configuration of a bundle. */
interface BundleConfig {
  /** False: its hooks do not run. */
  readonly hooks: boolean;
  /** The values that the bundle's own client would ask the user for, by name. */
  readonly settings: Readonly<Record<string, string>>;
}

const configSchema = {
  type: "object",
  properties: {
    hooks: { type: "boolean", default: true },
    settings: { type: "object", additionalProperties: { type: "string" }, default: {} },
  },
  additionalProperties: false,
} as const;

/** Creates a plugin that adds the components of a bundle. */
export function bundlePlugin(bundle: Bundle, options: BundleOptions): Plugin {
  const plugin = definePlugin({
    name: bundle.name,
    ...(bundle.version !== undefined && { version: bundle.version }),
    configSchema,
    activate(api) {
      const { hooks, settings } = api.config as unknown as BundleConfig;
      const hasSettings = Object.keys(settings).length > 0;
      activate(hasSettings ? loadBundle(bundle.folder, { ...options, settings }) : bundle, hooks, api);
    },
  });
  rememberBundle(plugin, bundle);
  return plugin;
}

function activate(bundle: Bundle, withHooks: boolean, api: PluginApi): void {
  const { skillDirectories, agents, commands, mcpServers, hooks, folder, data } = bundle;
  for (const directory of skillDirectories) api.addSkillDirectory(directory);
  for (const agent of agents) api.addAgent(agent);
  for (const command of commands) api.addCommand(command);
  for (const [name, config] of mcpServers) api.addMcpServer(name, config);
  const place = { folder, data, workingDirectory: api.workingDirectory, signal: api.signal, log: api.log };
  if (withHooks && hooks.length > 0) api.addHooks(createBundleHooks(hooks, place));
  const context = contextHooks(bundle);
  if (context !== undefined) api.addHooks(context);
}

/** Hooks that add a bundle's context files to each new conversation. A resumed one has them in its history. */
function contextHooks({ context, name }: Bundle): SessionHooks | undefined {
  if (context.length === 0) return undefined;
  const additionalContext = context
    .map(({ path, text }) => `<plugin_context plugin="${name}" file="${path}">\n${text}\n</plugin_context>`)
    .join("\n\n");
  return { onSessionStart: ({ source }) => (source === "resume" ? undefined : { additionalContext }) };
}

/** The bundles of one session. */
export interface SessionBundles {
  readonly bundles: readonly Bundle[];
  readonly diagnostics: readonly Diagnostic[];
  /** Adds the components of the bundles to session options. The options themselves take precedence. */
  addTo(options: SessionOptions): SessionOptions;
}

export interface SessionBundleOptions extends BundleOptions {
  /** Ends running hooks. */
  readonly signal: AbortSignal;
  /** Entries of marketplaces, by the given folders. */
  readonly entries?: ReadonlyMap<string, ListedEntry> | undefined;
}

/** Reads the bundles of a session. Relative folders start at the working directory. Never throws. */
export function loadSessionBundles(directories: readonly string[], options: SessionBundleOptions): SessionBundles {
  const { entries, ...shared } = options;
  const bundles = [...new Set(directories)].map((directory) => {
    return loadBundle(absolute(directory, options.workingDirectory), { ...shared, listed: entries?.get(directory) });
  });
  return {
    bundles,
    diagnostics: bundles.flatMap(({ diagnostics }) => diagnostics),
    addTo: (given) => addTo(given, bundles, options),
  };
}

function absolute(directory: string, workingDirectory: string): string {
  return /^~[/\\]/.test(directory) ? join(homedir(), directory.slice(2)) : resolve(workingDirectory, directory);
}

function addTo(given: SessionOptions, bundles: readonly Bundle[], options: SessionBundleOptions): SessionOptions {
  const usable = bundles.filter(({ isRefused }) => !isRefused);
  const names = new Set(given.customAgents?.map(({ name }) => name));
  const agents = usable.flatMap(({ agents: own }) => own).filter(({ name }) => !names.has(name) && names.add(name));
  const servers = Object.fromEntries(usable.flatMap(({ mcpServers }) => [...mcpServers]));
  const skillDirectories = [...usable.flatMap((bundle) => bundle.skillDirectories), ...(given.skillDirectories ?? [])];
  const hooks = [...usable.flatMap((bundle) => hooksOf(bundle, options)), ...(given.hooks === undefined ? [] : [given.hooks])];
  return {
    ...given,
    ...(skillDirectories.length > 0 && { skillDirectories }),
    ...(agents.length > 0 && { customAgents: [...(given.customAgents ?? []), ...agents] }),
    ...(Object.keys(servers).length > 0 && { mcpServers: { ...servers, ...given.mcpServers } }),
    ...(hooks.length > 0 && { hooks: joined(hooks) }),
  };
}

function hooksOf(bundle: Bundle, { workingDirectory, signal, log }: SessionBundleOptions): readonly SessionHooks[] {
  const { hooks, folder, data } = bundle;
  const own = hooks.length === 0 ? [] : [createBundleHooks(hooks, { folder, data, workingDirectory, signal, log })];
  const context = contextHooks(bundle);
  return context === undefined ? own : [...own, context];
}

function joined(sets: readonly SessionHooks[]): SessionHooks {
  const options = Object.values(hookOptions);
  const entries = options.map((option) => [option, sets.flatMap((hooks): readonly unknown[] => [hooks[option] ?? []].flat())] as const);
  return Object.fromEntries(entries.filter(([, hooks]) => hooks.length > 0)) as SessionHooks;
}
