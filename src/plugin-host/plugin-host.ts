import { withinDeadline } from "../base/deadline.ts";
import type { Diagnostic } from "../base/diagnostic.ts";
import { Emitter } from "../base/emitter.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import type { ModuleLoader } from "../io/module-loader.ts";
import { createScope, type OwnedScope } from "../io/scope.ts";
import type { CatalogSource } from "../session/catalog/tool-catalog.ts";
import { joinHooks, type ResolvedHooks } from "../session/hooks/hook-kinds.ts";
import type { OfferSource } from "../session/offers/offers.ts";
import type { ModelFactory } from "../session/turns/provided-model.ts";
import type { ToolRunner } from "../skills/tool-runner.ts";
import type { SkillEntry, ToolSource } from "../tools/tool-source.ts";
import { type ActivationLimits, activatePlugin, disposeScope, withinActivation } from "./activate.ts";
import { type ImportModule, isBundledSpecifier } from "./bundled.ts";
import type { PluginPlace } from "./contributions.ts";
import type { Plugin } from "./define-plugin.ts";
import { findPlugin } from "./find-plugin.ts";
import { clashesOf, joinNamed, nameTaken } from "./named-contributions.ts";
import type { PluginAgent, PluginCommand } from "./plugin-api.ts";
import { type ActivePlugin, describePlugin, type PluginInfo, type PluginRecord, unknownPlugin } from "./plugin-info.ts";
import { PluginSessions } from "./plugin-sessions.ts";
import { offersOf, PublishedSource, sourcesOf } from "./published-source.ts";

export interface PluginHostOptions {
  /** Plugins, or specifiers of their modules, in the order in which they are activated. */
  readonly plugins: readonly (Plugin | string)[];
  /** Those that are activated after them, and not before the first session. */
  readonly latePlugins?: readonly string[] | undefined;
  readonly workingDirectory: string;
  readonly loader: ModuleLoader;
  readonly log: Logger;
  /** Milliseconds that activating, and disposing, of one plugin may take. Default: 10,000. */
  readonly activationTimeout?: number | undefined;
  /** Imports plugins that come with this package. */
  readonly importModule?: ImportModule | undefined;
}

/**
 * The plugins of one host. They are activated one after the other, each as a whole or not at all; one that fails is told
 * by a diagnostic and keeps no other back. They are disposed of in the opposite order.
 */
export class PluginHost implements AsyncDisposable {
  readonly sessions: PluginSessions;
  readonly #options: PluginHostOptions;
  readonly #records: PluginRecord[] = [];
  readonly #closing = new AbortController();
  readonly #changed: Emitter<{ changed: undefined }>;
  #started: Promise<void> | undefined;
  #late: Promise<void> | undefined;
  #ready: Promise<void> | undefined;
  #closed: Promise<void> | undefined;
  #sources: readonly CatalogSource[] | undefined;
  #skills: readonly SkillEntry[] | undefined;
  #offers: readonly OfferSource[] | undefined;
  #hooks: ResolvedHooks | undefined;

  constructor(options: PluginHostOptions) {
    this.#options = options;
    this.sessions = new PluginSessions(options.log);
    this.#changed = new Emitter((error) => options.log.error("A listener for plugins failed.", { error }));
  }

  /** Activates all, once. Never rejects. */
  start(): Promise<void> {
    this.#started ??= this.#activateAll(this.#options.plugins);
    return this.#started;
  }

  /** Activates late ones, too. Never rejects. */
  startLate(): Promise<void> {
    this.#late ??= this.start().then(() => this.#activateAll(this.#options.latePlugins ?? []));
    return this.#late;
  }

  get plugins(): readonly PluginInfo[] {
    return this.#records.map(describePlugin);
  }

  get diagnostics(): readonly Diagnostic[] {
    return this.#records.flatMap(({ diagnostics }) => diagnostics);
  }

  /** What sessions assemble their catalogs of. The same array until something in it changes. */
  get sources(): readonly CatalogSource[] {
    this.#sources ??= this.#active.flatMap(({ contributions: { tools }, published, place }) => sourcesOf({ tools, published, place }));
    return this.#sources;
  }

  /** The prompts and resources of plugins' tool sources. The same array until something in them changes. */
  get offers(): readonly OfferSource[] {
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
    this.#ready ??= this.#makeReady();
    return this.#ready;
  }

  /** Tells that `sources` or `skills` may be something else now. */
  subscribe(listener: () => void): Disposable {
    return this.#changed.on("changed", listener);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get #active(): readonly ActivePlugin[] {
    return this.#records.flatMap(({ active }) => active ?? []);
  }

  get #limits(): ActivationLimits {
    return { timeout: this.#options.activationTimeout ?? 10_000, signal: this.#closing.signal };
  }

  async #activateAll(entries: readonly (Plugin | string)[]): Promise<void> {
    for (const entry of entries) {
      if (this.#closing.signal.aborted) return;
      await this.#activate(entry);
    }
  }

  async #makeReady(): Promise<void> {
    await this.startLate();
    await Promise.all(this.#active.flatMap((plugin) => plugin.published.map(({ source }) => this.#awaitSource(plugin, source))));
  }

  async #activate(entry: Plugin | string): Promise<void> {
    const moduleScope = createScope();
    const specifier = typeof entry === "string" ? entry : undefined;
    const plugin = typeof entry === "string" ? await this.#find(entry, moduleScope) : entry;
    if (plugin === undefined) return;
    const isBundled = specifier !== undefined && isBundledSpecifier(specifier);
    const record: PluginRecord = {
      name: plugin.name,
      version: plugin.version,
      specifier,
      isBundled,
      state: "failed",
      diagnostics: [],
      active: undefined,
    };
    const holder = this.#records.find(({ name, state }) => name === plugin.name && state !== "unknown");
    this.#records.push(record);
    if (holder !== undefined) {
      record.diagnostics.push(nameTaken(record));
      await this.#dispose(record, moduleScope);
      return;
    }
    await this.#run(plugin, record, moduleScope);
  }

  async #run(plugin: Plugin, record: PluginRecord, moduleScope: OwnedScope): Promise<void> {
    const { workingDirectory, log } = this.#options;
    const place: PluginPlace = { name: plugin.name, isBundled: record.isBundled, workingDirectory, log, sessions: this.sessions };
    const activation = await activatePlugin(plugin, place, this.#limits);
    if (activation.kind === "failed") {
      record.diagnostics.push(...activation.diagnostics);
      await this.#dispose(record, moduleScope);
    } else {
      const { contributions, scope } = activation;
      // A module's own disposers run after those of its activation.
      const published = contributions.toolSources.map((source) => new PublishedSource(source, place));
      record.diagnostics.push(...contributions.diagnostics, ...clashesOf(record.name, contributions, this.#active));
      record.active = { contributions, published, scopes: [scope, moduleScope], place };
      record.state = "active";
      this.#listen(record, scope, published);
      this.#forget();
    }
    for (const { severity, code, message } of record.diagnostics)
      if (severity === "error") log.error(message, { code, plugin: record.name });
  }

  async #find(specifier: string, scope: OwnedScope): Promise<Plugin | undefined> {
    const { log } = this.#options;
    const diagnostics: Diagnostic[] = [];
    try {
      const work = findPlugin(specifier, { ...this.#options, onDiagnostic: (found) => void diagnostics.push(found) }, scope);
      return await withinActivation(work, this.#limits);
    } catch (error) {
      const code = error instanceof HostError && findFaults.has(error.code) ? error.code : "PLUGIN_ACTIVATION";
      const message = `Plugin "${specifier}" cannot be loaded: ${errorMessage(error)}`;
      diagnostics.push({ severity: "error", code, source: specifier, message });
      const record = unknownPlugin(specifier, isBundledSpecifier(specifier), diagnostics);
      this.#records.push(record);
      log.error(message, { code });
      await this.#dispose(record, scope);
      return undefined;
    }
  }

  #listen({ name }: PluginRecord, scope: OwnedScope, published: readonly PublishedSource[]): void {
    for (const { source } of published) {
      try {
        const listening = source.subscribe(() => this.#forget());
        scope.onDispose(() => listening[Symbol.dispose]());
      } catch (error) {
        this.#report(name, source.id, error);
      }
    }
  }

  async #awaitSource({ place }: ActivePlugin, source: ToolSource): Promise<void> {
    const { timeout, signal } = this.#limits;
    const late = (): Error =>
      new HostError("PLUGIN_TIMEOUT", `it was not ready within ${timeout / 1000} seconds; what it has later still counts.`);
    try {
      const work = Promise.resolve().then(() => source.ready(signal));
      await withinDeadline(work, timeout, signal, late);
      // The first snapshot may be there without having been told of.
      this.#forget();
    } catch (error) {
      if (!signal.aborted) this.#report(place.name, source.id, error);
    }
  }

  #report(plugin: string, id: string, error: unknown): void {
    const message = `The tool source "${id}" of plugin "${plugin}" failed: ${errorMessage(error)}`;
    const record = this.#records.find(({ name, active }) => name === plugin && active !== undefined);
    if (record === undefined || record.diagnostics.some((known) => known.message === message)) return;
    record.diagnostics.push({ severity: "error", code: "PLUGIN_SOURCE", source: plugin, message });
    this.#options.log.error(message);
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
    await (this.#ready ?? this.#late ?? this.#started);
    this.#changed.clear();
    for (const record of this.#records.toReversed()) {
      const { active } = record;
      if (active === undefined) continue;
      for (const scope of active.scopes) await this.#dispose(record, scope);
      record.active = undefined;
      record.state = "disposed";
    }
  }

  async #dispose(record: PluginRecord, scope: OwnedScope): Promise<void> {
    const problems = await disposeScope(record.name, scope, this.#limits.timeout);
    record.diagnostics.push(...problems);
    for (const { message, code } of problems) this.#options.log.warning(message, { code, plugin: record.name });
  }
}

const findFaults: ReadonlySet<string> = new Set(["PLUGIN_NOT_FOUND", "PLUGIN_INVALID"]);
