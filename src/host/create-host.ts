import { rm } from "node:fs/promises";
import { extname } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { Emitter } from "../base/emitter.ts";
import { HostError } from "../base/errors.ts";
import { packageVersion } from "../base/package-root.ts";
import { type FieldReaders, mustBe, readCallback, readFields, readRecord, readText, readTexts } from "../base/read-fields.ts";
import { cacheFolder } from "../io/cache-folder.ts";
import { openTransformCache } from "../io/disk-cache.ts";
import { createModuleLoader, type OwnedModuleLoader } from "../io/module-loader/create-module-loader.ts";
import type { McpPeers } from "../plugin-host/mcp-peers.ts";
import type { PluginInfo } from "../plugin-host/plugin-entry.ts";
import { PluginHost } from "../plugin-host/plugin-host.ts";
import type { ServerInfo } from "../session/mcp/server-connections.ts";
import { type ResolvedServers, resolveServers } from "../session/mcp/session-server-options.ts";
import type { Session } from "../session/session.ts";
import type { SessionOptions } from "../session/session-config.ts";
import { createSkillRunner } from "../skills/isolation/skill-runner.ts";
import { SkillTextCache } from "../skills/load/text-cache.ts";
import { moduleExtensions } from "../skills/load/tool-entries.ts";
import { providedModules } from "../skills/load/tool-module.ts";
import type { ToolRunner } from "../skills/load/tool-runner.ts";
import type { ResolvedSkills } from "../skills/resolve-overrides.ts";
import { type RootsLease, SkillStore } from "../skills/store/skill-store.ts";
import type { CallResult } from "../tools/tool.ts";
import type { CallParameters, ToolData, ToolName } from "../tools/tool-signatures.ts";
import { approvalLogOf, withApprovalLog } from "../trust/approval-log.ts";
import { createFileApprovals } from "../trust/approvals.ts";
import type { HeldPush } from "../trust/push-trust.ts";
import { loadTrustSettings } from "../trust/trust-settings.ts";
import { describeSkills, packagesIn } from "./describe-skills.ts";
import { DiagnosticFeed, HostProblems } from "./diagnostic-feed.ts";
import { describeTools, type ExplainParts, type Explanation, explainName, type HostTool } from "./explain.ts";
import { type ExportFormat, exportEvents, FileSessionStore } from "./file-session-store.ts";
import type { ConnectServersOptions, Host, HostCallOptions, HostEvents, SkillInfo } from "./host.ts";
import { type HostOptions, type ResolvedHostOptions, resolveHostOptions } from "./host-options.ts";
import { HostedServers, type SignInOptions } from "./host-servers.ts";
import {
  type ForkSessionOptions,
  HostSessions,
  type OpenSession,
  type ResumeOptions,
  type SessionInfo,
  type SessionOpening,
} from "./host-sessions.ts";
import { FolderConsent, HostTrust } from "./host-trust.ts";
import type { Inspector, InspectorOptions } from "./inspection.ts";
import { createEnvironmentParts, type EnvironmentParts } from "./session-environment.ts";
import { ServerSets } from "./session-server-sets.ts";

/** Serves the inspector of a host. Servers know hosts and not the other way round, so the caller that creates a host passes it. */
export type OpenInspector = (host: Host, options: InspectorOptions) => Promise<Inspector>;

/** Starts a host, as `createHost` of load-parts.ts documents it. */
export async function createHost(options: HostOptions = {}, openInspector: OpenInspector = withoutInspector): Promise<Host> {
  const host = new SkillHost(resolveHostOptions(options), openInspector);
  await host.start();
  return host;
}

/**
 * Starts a host like `createHost`, but settles before its skills are loaded: sessions wait for them in their first turn.
 * `latePlugins` are activated for the first session, unless the options name plugins.
 */
export async function startHost(options: HostOptions = {}, latePlugins: readonly string[] = []): Promise<Host> {
  const host = new SkillHost(resolveHostOptions(options), withoutInspector, options.plugins === undefined ? latePlugins : []);
  await host.begin();
  return host;
}

class SkillHost implements Host {
  readonly version = packageVersion;
  readonly #options: ResolvedHostOptions;
  readonly #openInspector: OpenInspector;
  readonly #loader: OwnedModuleLoader;
  readonly #plugins: PluginHost;
  readonly #store: SkillStore;
  readonly #servers: ServerSets;
  readonly #parts: EnvironmentParts;
  readonly #events: Emitter<HostEvents>;
  readonly #sessions: HostSessions;
  readonly #problems: HostProblems;
  readonly #feed: DiagnosticFeed;
  readonly #trust: HostTrust;
  readonly #updates: PluginUpdates;
  #hosted: HostedServers | undefined;
  #closed: Promise<void> | undefined;
  #changeDue: NodeJS.Immediate | undefined;

  constructor(options: ResolvedHostOptions, openInspector: OpenInspector, latePlugins: readonly string[] = []) {
    const { log } = options;
    this.#options = options;
    this.#openInspector = openInspector;
    this.#events = new Emitter((error, type) => log.error("A host listener failed.", { type, error }));
    this.#feed = new DiagnosticFeed({
      log,
      all: () => this.diagnostics,
      emit: (diagnostic) => this.#events.emit("diagnostic", diagnostic),
      // Plugins log their own errors, with their names.
      isLogged: (diagnostic) => (this.#plugins as PluginHost | undefined)?.hasLogged(diagnostic) === true,
    });
    this.#problems = new HostProblems((diagnostic) => this.#feed.report(diagnostic));
    const stored = createFileApprovals({ directory: options.approvalsDirectory, onDiagnostic: this.#problems.report });
    const approvals = withApprovalLog(stored, approvalLogOf(options.approvalsDirectory));
    this.#trust = new HostTrust(loadTrustSettings(options.trust), approvals, log);
    this.#loader = createModuleLoader({
      ...providedModules,
      hostModules: { ...options.sharedModules, ...providedModules.hostModules },
      guardExit: options.guardExit,
      cache: options.caches ? openTransformCache() : undefined,
      onDiagnostic: this.#problems.report,
    });
    const { folderTrust: trust, workingDirectory } = options;
    const consent = new FolderConsent({ trust, workingDirectory, report: this.#problems.report });
    const skillTrust = this.#trust.settings.skills;
    this.#plugins = new PluginHost({
      ...options,
      latePlugins,
      loader: this.#loader,
      skillTrust,
      onProblem: this.#problems.report,
      ...(!options.namesPlugins && { consent }),
    });
    // The runners of plugins are added after their activation, before any skill is loaded.
    const { isolation } = options;
    const runners = [createSkillRunner(this.#loader, { isolation, workingDirectory, isWatched: options.watch })];
    const cache = options.caches ? cacheFolder("skills") : undefined;
    const texts = cache === undefined ? undefined : new SkillTextCache(cache);
    const ofStore = { loader: this.#loader, runners, hostVersion: packageVersion, onEdited: this.#problems.forget, texts };
    this.#store = new SkillStore({ ...options, ...ofStore, ...this.#trust.ofSkills, consent: consent.forSkills(this.#loader) });
    this.#store.onProblem(this.#problems.report);
    this.#store.onChange((change) => this.#emitChange("skills.changed", change));
    const plugins = this.#plugins;
    plugins.onChange((change) => this.#emitChange("plugins.changed", change));
    this.#servers = new ServerSets(options, approvals, {
      isWanted: () => this.#events.has("server.message"),
      receive: (traffic) => this.#events.emit("server.message", traffic),
    });
    const shared = { plugins, store: this.#store, approvals, pushTrust: this.#trust.pushed, sets: this.#servers, consent };
    this.#parts = createEnvironmentParts(options, shared);
    this.#parts.views.subscribe(() => {
      this.#feed.changed();
      this.#mayHaveChanged();
    });
    const sessionStore = new FileSessionStore(options, this.#problems.reportLog);
    this.#sessions = new HostSessions(this.#parts, sessionStore, {
      report: this.#problems.report,
      reportLog: this.#problems.reportLog,
      onOpened: (opened) => this.#events.emit("session.opened", opened),
      onClosed: (sessionId) => this.#events.emit("session.closed", { sessionId }),
    });
    this.#updates = new PluginUpdates({
      plugins,
      store: this.#store,
      consent,
      runners,
      roots: [...options.packageRoots, ...options.roots],
      onAdapted: () => this.#parts.servers.configured.forgetPlugins(),
      refreshSessions: () => this.#sessions.refresh(),
    });
    plugins.adapt = () => this.#updates.adapt();
  }

  get workingDirectory(): string {
    return this.#options.workingDirectory;
  }

  get plugins(): readonly PluginInfo[] {
    return this.#plugins.plugins;
  }

  get mcpPeers(): McpPeers | undefined {
    return this.#plugins.mcpPeers;
  }

  get skills(): readonly SkillInfo[] {
    return describeSkills(this.#resolved, this.#store.snapshot, this.#options.isolation);
  }

  get tools(): readonly HostTool[] {
    return describeTools(this.#explainable());
  }

  get openSessions(): readonly OpenSession[] {
    return this.#sessions.open;
  }

  get diagnostics(): readonly Diagnostic[] {
    const skills = this.#resolved;
    const ofServers = this.#parts.servers.configured.diagnostics(skills);
    return [...this.#problems.all, ...this.#plugins.diagnostics, ...skills.diagnostics, ...ofServers];
  }

  async start(): Promise<void> {
    await (await this.begin()).ready;
    await this.#store.idle();
    this.#feed.begin();
  }

  /** Settles when the skills are being loaded. */
  async begin(): Promise<RootsLease> {
    await this.#plugins.start();
    const lease = this.#updates.begin();
    this.#plugins.hostSkills.attach({
      all: () => this.skills,
      reload: async () => {
        await lease.ready;
        await this.#store.reload();
        await this.#store.idle();
      },
    });
    // Also for callers of `begin`, which do not wait for the skills. A second call does nothing.
    lease.ready
      .then(() => this.#feed.begin())
      .catch(() => {
        // The holder of the lease gets the error.
      });
    return lease;
  }

  on<K extends keyof HostEvents>(type: K, listener: (event: HostEvents[K]) => void): Disposable {
    return this.#events.on(type, listener);
  }

  async createSession(options: SessionOptions = {}, opening: SessionOpening = {}): Promise<Session> {
    this.#assertOpen();
    return this.#sessions.create(options, opening);
  }

  callTool<Name extends ToolName>(name: Name, ...rest: CallParameters<Name, HostCallOptions>): Promise<CallResult<ToolData<Name>>>;
  async callTool(name: string, args?: unknown, options: HostCallOptions = {}): Promise<CallResult> {
    this.#assertOpen();
    const { allow, signal, onProgress, ...given } = readFields(options, "options of a call", "HOST_CALL", callReaders);
    signal?.throwIfAborted();
    // The caller is a program: a long result goes to it as it is, and nothing of the call is kept.
    const ofCall = { persist: false, largeOutput: { enabled: false }, permissions: { allow: allow ?? [] } } as const;
    const session = await this.createSession({ ...given, ...ofCall });
    try {
      await session.ready(signal);
      return await session.callTool(name, args, { ...(signal && { signal }), ...(onProgress && { onProgress }) });
    } finally {
      await session.disconnect();
    }
  }

  async resumeSession(sessionId: string, changes: ResumeOptions = {}, opening: SessionOpening = {}): Promise<Session> {
    this.#assertOpen();
    return this.#sessions.resume(sessionId, changes, opening);
  }

  async forkSession(sessionId: string, options: ForkSessionOptions = {}): Promise<string> {
    this.#assertOpen();
    return this.#sessions.fork(sessionId, options);
  }

  async listSessions(): Promise<readonly SessionInfo[]> {
    this.#assertOpen();
    return this.#sessions.list();
  }

  async deleteSession(sessionId: string): Promise<void> {
    this.#assertOpen();
    await this.#sessions.delete(sessionId);
  }

  async exportSession(sessionId: string, { format = "jsonl" }: { readonly format?: ExportFormat } = {}): Promise<string> {
    this.#assertOpen();
    return exportEvents(sessionId, await this.#sessions.read(sessionId), format);
  }

  enableSkill(name: string): void {
    this.#parts.views.setDisabled(name, false);
  }

  disableSkill(name: string): void {
    this.#parts.views.setDisabled(name, true);
  }

  async reload(): Promise<void> {
    this.#assertOpen();
    await this.#plugins.reload();
    await this.#store.reload();
  }

  listServers(): readonly ServerInfo[] {
    return [...this.#hostServers().list(), ...this.#sessions.ownServers()];
  }

  async connectServers(options: ConnectServersOptions = {}): Promise<readonly ServerInfo[]> {
    this.#assertOpen();
    await this.#hostServers().connectInTime(options);
    return this.listServers();
  }

  restartServer(name: string): Promise<void> {
    this.#assertOpen();
    return this.#hostServers().restartServer(name);
  }

  approveServer(name: string, tool?: string): Promise<number> {
    this.#assertOpen();
    this.#hostServers();
    return this.#servers.approve(name, tool);
  }

  approveSkill(name: string, tool?: string): Promise<number> {
    this.#assertOpen();
    return this.#trust.approve(this.#store, name, tool);
  }

  heldTools(): Promise<readonly HeldPush[]> {
    this.#assertOpen();
    return this.#trust.pushed.held();
  }

  approveTools(name?: string): Promise<number> {
    this.#assertOpen();
    return this.#trust.pushed.approve(name);
  }

  async signInToServer(name: string, options: SignInOptions): Promise<ServerInfo> {
    this.#assertOpen();
    return this.#hostServers().signIn(name, options);
  }

  async signOutOfServer(name: string, { signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    this.#assertOpen();
    await this.#hostServers().signOut(name, signal);
  }

  explain(name: string): Explanation {
    const engineOf = (file: string) => (moduleExtensions.includes(extname(file)) ? this.#loader.engineOf(file) : undefined);
    const packageOf = packagesIn(this.#store.snapshot.roots);
    return explainName(name, { ...this.#explainable(), packageOf, engineOf });
  }

  #explainable(): Pick<ExplainParts, "skills" | "others"> {
    return { skills: this.#resolved, others: [...this.#plugins.sources, ...this.#hostServers().sources(ownView)] };
  }

  async inspect(options: InspectorOptions = {}): Promise<Inspector> {
    this.#assertOpen();
    return this.#openInspector(this, options);
  }

  async idle(): Promise<void> {
    await this.#plugins.idle();
    await this.#store.idle();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The servers that every session has, held by the host itself. */
  #hostServers(): HostedServers {
    if (this.#hosted === undefined) {
      const hosted = new HostedServers(this.#parts.servers, () => this.#resolved);
      this.#parts.views.subscribe(() => hosted.refresh());
      hosted.onChanged(() => this.#mayHaveChanged());
      hosted.subscribe(() => this.#mayHaveChanged());
      hosted.adopt({ view: ownView, servers: noServers });
      this.#hosted = hosted;
    }
    return this.#hosted;
  }

  get #resolved(): ResolvedSkills {
    return this.#parts.views.resolve([], []);
  }

  async #close(): Promise<void> {
    this.#feed.close();
    clearImmediate(this.#changeDue);
    await this.#sessions.close();
    await this.#plugins.stopReloading();
    this.#hosted?.[Symbol.dispose]();
    await this.#servers[Symbol.asyncDispose]();
    await this.#store[Symbol.asyncDispose]();
    await this.#trust.close();
    await this.#plugins.close();
    this.#loader[Symbol.dispose]();
    const { storesSessions, sessionsDirectory } = this.#options;
    if (!storesSessions) await rm(sessionsDirectory, { recursive: true, force: true });
    this.#events.clear();
  }

  #emitChange<K extends "skills.changed" | "plugins.changed">(type: K, change: HostEvents[K]): void {
    this.#options.log.info(type === "skills.changed" ? "Skills changed." : "Plugins changed.", change);
    this.#events.emit(type, change);
    this.#feed.changed();
    this.#mayHaveChanged();
  }

  /** Emits `changed` once for all changes of a turn of the event loop. */
  #mayHaveChanged(): void {
    if (this.#changeDue !== undefined || this.#closed !== undefined || !this.#events.has("changed")) return;
    this.#changeDue = setImmediate(() => {
      this.#changeDue = undefined;
      if (this.#closed === undefined) this.#events.emit("changed", undefined);
    });
  }

  #assertOpen(): void {
    if (this.#closed) throw new HostError("HOST_CLOSED", "This host is closed. Create another with createHost().");
  }
}

const withoutInspector: OpenInspector = () => {
  throw new HostError("INSPECTOR_ABSENT", "This host was created by a command that serves the inspector itself: start it with --inspect.");
};

const ownView = { agent: undefined };
const noServers: ResolvedServers = resolveServers({}, { all: new Map(), custom: [], selected: undefined }, "/");

interface PluginUpdatesParts {
  readonly plugins: PluginHost;
  readonly store: SkillStore;
  readonly consent: FolderConsent;
  /** The store's own list: the host's runner first, then those of plugins. */
  readonly runners: ToolRunner[];
  /** The host's own skill directories, as paths. */
  readonly roots: readonly string[];
  /** Makes open sessions use the current hooks, agents and models of plugins. */
  refreshSessions(): Promise<void>;
  /** Called when contributions of plugins have changed. */
  onAdapted(): void;
}

/** Applies changes of plugins to the host: skill folders, tool runners and open sessions. */
class PluginUpdates {
  readonly #parts: PluginUpdatesParts;
  #lease: RootsLease | undefined;
  #directories: readonly string[] = [];

  constructor(parts: PluginUpdatesParts) {
    this.#parts = parts;
  }

  /** Loads the skills for the first time. */
  begin(): RootsLease {
    const { runners, plugins } = this.#parts;
    runners.push(...plugins.toolRunners);
    return this.#acquire();
  }

  /** Settles when nothing uses replaced plugins any more. */
  async adapt(): Promise<void> {
    if (this.#lease === undefined) return;
    this.#parts.onAdapted();
    await Promise.all([this.#followDirectories(), this.#followRunners()]);
    await this.#parts.refreshSessions();
  }

  #acquire(): RootsLease {
    const { store, plugins, roots, consent } = this.#parts;
    this.#directories = plugins.skillDirectories;
    // An active plugin is trusted, and so are its skills.
    consent.name(this.#directories);
    this.#lease = store.acquire([...this.#directories, ...roots]);
    return this.#lease;
  }

  async #followDirectories(): Promise<void> {
    const { skillDirectories } = this.#parts.plugins;
    if (areEqual(skillDirectories, this.#directories)) return;
    const before = this.#lease;
    await this.#acquire().ready;
    before?.[Symbol.dispose]();
  }

  async #followRunners(): Promise<void> {
    const { runners, plugins, store } = this.#parts;
    const [own, ...before] = runners;
    const now = plugins.toolRunners;
    if (areEqual(before, now)) return;
    runners.splice(0, runners.length, ...(own === undefined ? [] : [own]), ...now);
    const changed = [...before.filter((runner) => !now.includes(runner)), ...now.filter((runner) => !before.includes(runner))];
    await store.reloadFiles(new Set(changed.flatMap(({ extensions }) => extensions)));
  }
}

function areEqual(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((item, index) => item === others[index]);
}

const callReaders: FieldReaders<HostCallOptions> = {
  allow: readTexts,
  signal: (value, path) => (value instanceof AbortSignal ? value : mustBe(path, "an AbortSignal")),
  onProgress: readCallback,
  onPermissionRequest: readCallback,
  workingDirectory: readText,
  context: readRecord,
};
