import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { hookOptions, type SessionHooks } from "../../session/hooks/hook-kinds.ts";
import type { SessionOptions } from "../../session/session-config.ts";
import type { Bundle, BundleOptions, ListedEntry } from "./bundle.ts";
import { contextHooks } from "./bundle-plugin.ts";
import { createBundleHooks } from "./hooks/run-hook.ts";
import { loadBundle } from "./load-bundle.ts";

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
