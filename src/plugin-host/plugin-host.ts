import type { Diagnostic } from "../base/diagnostic.ts";
import { Emitter } from "../base/emitter.ts";
import { HostError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import { packageVersion } from "../base/package-root.ts";
import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import type { WatchBackend } from "../io/watch/watch-tree.ts";
import type { CatalogSource } from "../session/catalog/tool-catalog.ts";
import { joinHooks, type ResolvedHooks } from "../session/hooks/hook-kinds.ts";
import type { PromptAndResourceSource } from "../session/prompts-resources/prompts-and-resources.ts";
import type { SessionStore } from "../session/session-store.ts";
import type { ModelFactory } from "../session/turns/turn-options.ts";
import type { ToolRunner } from "../skills/load/tool-runner.ts";
import type { SkillEntry } from "../tools/tool-source.ts";
import type { SkillTrust } from "../trust/skill-trust.ts";
import type { ImportModule } from "./bundled.ts";
import type { Plugin } from "./define-plugin.ts";
import type { McpPeers } from "./mcp-peers.ts";
import type { PluginAgent, PluginCommand } from "./plugin-api.ts";
import { type ActivePlugin, createEntry, describePlugin, diagnosticsOf, type PluginEntry, type PluginInfo } from "./plugin-entry.ts";
import { activateAll, joinNamed, PluginLifecycle } from "./plugin-lifecycle.ts";
import { PluginReloads, type PluginsChange } from "./plugin-reloads.ts";
import { PluginSessions } from "./plugin-sessions.ts";
import { PluginSkills } from "./plugin-skills.ts";
import type { PluginConsent, PluginUse } from "./prepare-plugin.ts";
import { offersOf, sourcesOf } from "./published-source.ts";

export interface PluginHostOptions {
  /** Plugins, or specifiers of their modules, optionally with a configuration. Activated in this order, unless one requires another. */
  readonly plugins: readonly (Plugin | string | PluginUse)[];
  /** Plugins that are activated after the others, for the first session. */
  readonly latePlugins?: readonly string[] | undefined;
  readonly workingDirectory: string;
  readonly loader: ModuleLoader;
  readonly log: Logger;
  /** Checks plugins inside the folder of a skill. */
  readonly skillTrust?: SkillTrust | undefined;
  /** Holds a folder for each bundle that stores data. Default: `~/.skillhost/plugin-data`. */
  readonly pluginDataDirectory?: string | undefined;
  /** Milliseconds for the activation, and for the disposal, of one plugin. Default: 10,000. */
  readonly activationTimeout?: number | undefined;
  /** Whether the files of plugins are watched. Default: false. */
  readonly watch?: boolean | undefined;
  readonly watchBackend?: WatchBackend | "auto" | undefined;
  /** Imports bundled plugins. */
  readonly importModule?: ImportModule | undefined;
  /** The version that ranges of `engines.skillhost` must include. Default: that of this package. */
  readonly hostVersion?: string | undefined;
  /** Decides which plugins may run. Absent: all that are named. */
  readonly consent?: PluginConsent | undefined;
  /** Called when files cannot be watched. */
  onProblem?(problem: Diagnostic): void;
}

/**
 * The plugins of one host. They are activated one after the other, each after those that it requires, and disposed of in the
 * reverse order. An activation is all or nothing; a failure becomes a diagnostic and affects only the plugins that require the
 * failed one. A plugin whose files change is replaced as a whole, or not at all.
 */
export class PluginHost implements AsyncDisposable {
  readonly sessions: PluginSessions;
  readonly hostSkills: PluginSkills = new PluginSkills();
  /** Called and awaited after active plugins have changed, before replaced ones are disposed of. */
  adapt: () => Promise<void> = async () => {};
  readonly #options: PluginHostOptions;
  readonly #entries: PluginEntry[] = [];
  readonly #life: PluginLifecycle;
  readonly #reloads: PluginReloads;
  readonly #closing = new AbortController();
  readonly #changed: Emitter<{ changed: undefined }>;
  #started: Promise<void> | undefined;
  #late: Promise<void> | undefined;
  #ready: Promise<void> | undefined;
  #closed: Promise<void> | undefined;
  #sources: readonly CatalogSource[] | undefined;
  #skills: readonly SkillEntry[] | undefined;
  #offers: readonly PromptAndResourceSource[] | undefined;
  #hooks: ResolvedHooks | undefined;

  constructor(options: PluginHostOptions) {
    const { log, loader, watch = false, watchBackend, hostVersion = packageVersion } = options;
    this.#options = options;
    this.sessions = new PluginSessions(log);
    this.#changed = new Emitter((error) => log.error("A plugin listener failed.", { error }));
    this.#life = new PluginLifecycle(this.#entries, {
      ...options,
      hostVersion,
      sessions: this.sessions,
      skills: this.hostSkills,
      timeout: options.activationTimeout ?? 10_000,
      closing: this.#closing.signal,
      onChanged: () => this.#forget(),
    });
    this.#reloads = new PluginReloads(this.#entries, {
      life: this.#life,
      loader,
      log,
      watch,
      watchBackend,
      onProblem: (problem) => options.onProblem?.(problem),
      adapt: () => this.adapt(),
    });
  }

  /** Activates all plugins but late ones, once. Never rejects. */
  start(): Promise<void> {
    this.#started ??= this.#activate(this.#options.plugins);
    return this.#started;
  }

  /** Activates late plugins too. Never rejects. */
  startLate(): Promise<void> {
    this.#late ??= this.start().then(() => this.#activate(this.#options.latePlugins ?? []));
    return this.#late;
  }

  get plugins(): readonly PluginInfo[] {
    return this.#entries.filter(({ state }) => state !== "waiting").map(describePlugin);
  }

  get diagnostics(): readonly Diagnostic[] {
    return this.#entries.flatMap(diagnosticsOf);
  }

  /** Whether a problem is one that was logged when the plugin was loaded. What tool sources report is not. */
  hasLogged(problem: Diagnostic): boolean {
    return this.#entries.some(({ diagnostics }) => diagnostics.includes(problem));
  }

  /** The tools for the catalogs of sessions. The same array until something in it changes. */
  get sources(): readonly CatalogSource[] {
    this.#sources ??= this.#active.flatMap(({ contributions: { tools }, published, place }) => sourcesOf({ tools, published, place }));
    return this.#sources;
  }

  /** The prompts and resources of plugins' tool sources. The same array until something in them changes. */
  get offers(): readonly PromptAndResourceSource[] {
    this.#offers ??= this.#active.flatMap((plugin) => offersOf(plugin));
    return this.#offers;
  }

  /** The skills of plugins' tool sources. The same array until something in it changes. */
  get skills(): readonly SkillEntry[] {
    this.#skills ??= this.#active.flatMap(({ published }) => published.flatMap(({ snapshot }) => snapshot.skills));
    return this.#skills;
  }

  /** The hooks of all plugins, in their order. They run before a session's own. */
  get hooks(): ResolvedHooks {
    this.#hooks ??= joinHooks(this.#active.flatMap(({ contributions }) => contributions.hooks));
    return this.#hooks;
  }

  get toolRunners(): readonly ToolRunner[] {
    return this.#active.flatMap(({ contributions }) => contributions.toolRunners);
  }

  get skillDirectories(): readonly string[] {
    return this.#active.flatMap(({ contributions }) => contributions.skillDirectories);
  }

  get agents(): ReadonlyMap<string, PluginAgent> {
    return joinNamed(this.#active, "agents");
  }

  get commands(): ReadonlyMap<string, PluginCommand> {
    return joinNamed(this.#active, "commands");
  }

  get modelProviders(): ReadonlyMap<string, ModelFactory> {
    return joinNamed(this.#active, "modelProviders");
  }

  /** Where the sessions of the host are stored, if a plugin says so: the first one's. */
  get sessionStore(): SessionStore | undefined {
    return this.#active.flatMap(({ contributions }) => contributions.sessionStores)[0];
  }

  /** The peers of the host's MCP servers, if a plugin has any: the first one's. */
  get mcpPeers(): McpPeers | undefined {
    return this.#active.flatMap(({ contributions }) => contributions.mcpPeers)[0];
  }

  get mcpServers(): ReadonlyMap<string, object> {
    return joinNamed(this.#active, "mcpServers");
  }

  /** Settles when the sources of all plugins have their first snapshots. A source that fails or takes too long is reported. */
  ready(): Promise<void> {
    this.#ready ??= this.startLate().then(async () => {
      await Promise.all(this.#entries.map((entry) => this.#life.awaitSources(entry)));
    });
    return this.#ready;
  }

  /** Checks the files of plugins, loads changed plugins, and retries failed ones. */
  async reload(): Promise<void> {
    await this.start();
    await this.#reloads.reload();
  }

  /** Settles when no plugin is being loaded and all files are watched. */
  async idle(): Promise<void> {
    await this.#reloads.idle();
  }

  /** Calls `listener` when contributions of plugins may have changed. */
  subscribe(listener: () => void): Disposable {
    return this.#changed.on("changed", listener);
  }

  /** Calls `listener` with the outcome of each load of changed plugins. */
  onChange(listener: (change: PluginsChange) => void): Disposable {
    return this.#reloads.onChange(listener);
  }

  /** Stops loading changed plugins, before the host closes what uses them. */
  stopReloading(): Promise<void> {
    return this.#reloads.close();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get #active(): readonly ActivePlugin[] {
    return this.#entries.flatMap(({ active }) => active ?? []);
  }

  async #activate(plugins: readonly (Plugin | string | PluginUse)[]): Promise<void> {
    const entries = plugins.map((plugin) => createEntry(isUse(plugin) ? plugin : { use: plugin }));
    this.#entries.push(...entries);
    const start = Date.now();
    await activateAll(entries, this.#life, this.#closing.signal);
    for (const entry of entries) this.#reloads.follow(entry, start);
  }

  #forget(): void {
    this.#sources = undefined;
    this.#skills = undefined;
    this.#offers = undefined;
    this.#hooks = undefined;
    this.#changed.emit("changed", undefined);
  }

  async #close(): Promise<void> {
    this.#closing.abort(new HostError("HOST_CLOSED", "The host is closing."));
    await this.#reloads.close();
    await (this.#ready ?? this.#late ?? this.#started);
    this.#changed.clear();
    await this.#life.close();
  }
}

function isUse(plugin: Plugin | string | PluginUse): plugin is PluginUse {
  return typeof plugin === "object" && "use" in plugin;
}
