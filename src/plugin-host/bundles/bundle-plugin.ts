import type { SessionHooks } from "../../session/hooks/hook-kinds.ts";
import { definePlugin, type Plugin } from "../define-plugin.ts";
import type { PluginApi } from "../plugin-api.ts";
import type { Bundle, BundleOptions } from "./bundle.ts";
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

const bundles = new WeakMap<Plugin, Bundle>();

/** The bundle from which a plugin was created. */
export function bundleOf(plugin: Plugin): Bundle | undefined {
  return bundles.get(plugin);
}

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
  bundles.set(plugin, bundle);
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
export function contextHooks({ context, name }: Bundle): SessionHooks | undefined {
  if (context.length === 0) return undefined;
  const additionalContext = context
    .map(({ path, text }) => `<plugin_context plugin="${name}" file="${path}">\n${text}\n</plugin_context>`)
    .join("\n\n");
  return { onSessionStart: ({ source }) => (source === "resume" ? undefined : { additionalContext }) };
}
