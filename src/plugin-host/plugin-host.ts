import type { Diagnostic } from "../base/diagnostic.ts";
import { Emitter } from "../base/emitter.ts";
import { HostError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import { packageVersion } from "../base/package-version.ts";
import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import type { WatchBackend } from "../io/watch/watch-tree.ts";
import type { CatalogSource } from "../session/catalog/tool-catalog.ts";
import { joinHooks, type ResolvedHooks } from "../session/hooks/hook-kinds.ts";
import type { PromptAndResourceSource } from "../session/prompts-resources/prompts-and-resources.ts";
import type { ModelFactory } from "../session/turns/turn-options.ts";
import type { ToolRunner } from "../skills/load/tool-runner.ts";
import type { SkillEntry } from "../tools/tool-source.ts";
import type { SkillTrust } from "../trust/skill-trust.ts";
import type { ImportModule } from "./bundled.ts";
import type { Plugin } from "./define-plugin.ts";
import type { PluginAgent, PluginCommand } from "./plugin-api.ts";
import { type ActivePlugin, createEntry, describePlugin, type PluginEntry, type PluginInfo } from "./plugin-entry.ts";
import { activateAll, joinNamed, PluginLifecycle } from "./plugin-lifecycle.ts";
import { PluginReloads, type PluginsChange } from "./plugin-reloads.ts";
import { PluginSessions } from "./plugin-sessions.ts";
import type { PluginConsent, PluginUse } from "./prepare-plugin.ts";
import { offersOf, sourcesOf } from "./published-source.ts";

export interface PluginHostOptions {
  /** Plugins, or specifiers of their modules, also with a configuration. Activated in this order, as far as none requires another. */
  readonly plugins: readonly (Plugin | string | PluginUse)[];
  /** Those that are activated after them, and not before the first session. */
  readonly latePlugins?: readonly string[] | undefined;
  readonly workingDirectory: string;
  readonly loader: ModuleLoader;
  readonly log: Logger;
  /** Checks plugins that lie in the folder of a skill. */
  readonly skillTrust?: SkillTrust | undefined;
  /** Holds a folder for each bundle that keeps something. Default: `~/.skillhost/plugin-data`. */
  readonly pluginDataDirectory?: string | undefined;
  /** Milliseconds that activating, and disposing, of one plugin may take. Default: 10,000. */
  readonly activationTimeout?: number | undefined;
  /** Whether the files of plugins are watched. Default: false. */
  readonly watch?: boolean | undefined;
  readonly watchBackend?: WatchBackend | "auto" | undefined;
  /** Imports plugins that come with this package. */
  readonly importModule?: ImportModule | undefined;
  /** What ranges of `engines.skillhost` are held against. Default: that of this package. */
  readonly hostVersion?: string | undefined;
  /** Says which plugins may run. Absent: all that are named. */
  readonly consent?: PluginConsent | undefined;
  /** Told of trouble with watching. */
  onProblem?(problem: Diagnostic): void;
}

/**
 * The plugins of one host. They are activated one after the other, each after those that it requires, and as a whole or not
 * at all; one that fails is told by a diagnostic and keeps only those back that require it. They are disposed of in the
 * opposite order. One whose files change is replaced as a whole, or not at all.
 */
export class PluginHost implements AsyncDisposable {
  readonly sessions: PluginSessions;
  /** Awaited when other plugins are active than before, and what was replaced has not ended yet. */
  adapt: () => Promise<void> = async () => {};
  readonly #options: PluginHostOptions;
  readonly #slots: PluginEntry[] = [];
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
    this.#life = new PluginLifecycle(this.#slots, {
      ...options,
      hostVersion,
      sessions: this.sessions,
      timeout: options.activationTimeout ?? 10_000,
      closing: this.#closing.signal,
      onChanged: () => this.#forget(),
    });
    this.#reloads = new PluginReloads(this.#slots, {
      life: this.#life,
      loader,
      log,
      watch,
      watchBackend,
      onProblem: (problem) => options.onProblem?.(problem),
      adapt: () => this.adapt(),
    });
  }

  /** Activates all, once. Never rejects. */
  start(): Promise<void> {
    this.#started ??= this.#activate(this.#options.plugins);
    return this.#started;
  }

  /** Activates late ones, too. Never rejects. */
  startLate(): Promise<void> {
    this.#late ??= this.start().then(() => this.#activate(this.#options.latePlugins ?? []));
    return this.#late;
  }

  get plugins(): readonly PluginInfo[] {
    return this.#slots.filter(({ state }) => state !== "waiting").map(describePlugin);
  }

  get diagnostics(): readonly Diagnostic[] {
    return this.#slots.flatMap(({ diagnostics }) => diagnostics);
  }

  /** What sessions assemble their catalogs of. The same array until something in it changes. */
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

  /** Of all plugins, in their order: they run before a session's own. */
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

  get mcpServers(): ReadonlyMap<string, object> {
    return joinNamed(this.#active, "mcpServers");
  }

  /** Settles when all, also late ones, have their first snapshots. One that fails or takes too long is told and passed over. */
  ready(): Promise<void> {
    this.#ready ??= this.startLate().then(async () => {
      await Promise.all(this.#slots.map((slot) => this.#life.awaitSources(slot)));
    });
    return this.#ready;
  }

  /** Looks at the files of plugins again and loads what changed; what failed is tried again. */
  async reload(): Promise<void> {
    await this.start();
    await this.#reloads.reload();
  }

  /** Settles when no plugin is being loaded, and the files of all are watched. */
  async idle(): Promise<void> {
    await this.#reloads.idle();
  }

  /** Tells that what plugins give may be something else now. */
  subscribe(listener: () => void): Disposable {
    return this.#changed.on("changed", listener);
  }

  /** Tells what each load of changed plugins came to. */
  onChange(listener: (change: PluginsChange) => void): Disposable {
    return this.#reloads.onChange(listener);
  }

  /** Loads no plugin again from now on: what they are used for is about to end. */
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
    return this.#slots.flatMap(({ active }) => active ?? []);
  }

  async #activate(entries: readonly (Plugin | string | PluginUse)[]): Promise<void> {
    const slots = entries.map((entry) => createEntry(isUse(entry) ? entry : { use: entry }));
    this.#slots.push(...slots);
    const start = Date.now();
    await activateAll(slots, this.#life, this.#closing.signal);
    for (const slot of slots) this.#reloads.follow(slot, start);
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

function isUse(entry: Plugin | string | PluginUse): entry is PluginUse {
  return typeof entry === "object" && "use" in entry;
}
