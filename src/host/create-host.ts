import { extname } from "node:path";
import { type Diagnostic, formatDiagnostic } from "../base/diagnostic.ts";
import { Emitter } from "../base/emitter.ts";
import { HostError } from "../base/errors.ts";
import { packageVersion } from "../base/package-version.ts";
import { createModuleLoader, type OwnedModuleLoader } from "../io/module-loader/create-module-loader.ts";
import { PluginHost } from "../plugin-host/plugin-host.ts";
import type { PluginInfo } from "../plugin-host/plugin-info.ts";
import { createCatalogMemo } from "../session/catalog/catalog-memo.ts";
import { type ResolvedServers, resolveServers } from "../session/servers/server-options.ts";
import type { ServerInfo } from "../session/servers/session-servers.ts";
import type { Session } from "../session/session.ts";
import type { SessionOptions } from "../session/session-config.ts";
import { createModuleRunner, moduleExtensions } from "../skills/module-runner.ts";
import type { ResolvedSkills } from "../skills/resolve-overrides.ts";
import { type RootsLease, SkillStore } from "../skills/skill-store.ts";
import type { ToolRunner } from "../skills/tool-runner.ts";
import { createFileApprovals } from "../trust/file-approvals.ts";
import { ConfiguredServers } from "./configured-servers.ts";
import { describeSkills } from "./describe-skills.ts";
import { type Explanation, explainName } from "./explain.ts";
import { type ExportFormat, exportEvents } from "./export-session.ts";
import type { ConnectServersOptions, Host, HostEvents, SkillInfo } from "./host.ts";
import { type HostOptions, type ResolvedHostOptions, resolveHostOptions } from "./host-options.ts";
import { HostSessions, type ResumeOptions, type SessionOpening } from "./host-sessions.ts";
import { HostedServers, type SignInOptions } from "./hosted-servers.ts";
import { ServerSets } from "./server-sets.ts";
import type { EnvironmentParts } from "./session-environment.ts";
import type { SessionInfo } from "./session-info.ts";
import { createSessionStore } from "./session-store.ts";
import { createSkillViews } from "./skill-views.ts";

/**
 * Starts a host: loads the skill directories and, unless told otherwise, watches them from then on. Settles when all
 * are loaded; what is wrong with one is in `host.diagnostics` and keeps no other back.
 * @throws HostError `HOST_OPTIONS` naming the option that is unknown or of the wrong type.
 */
export async function createHost(options: HostOptions = {}): Promise<Host> {
  const host = new SkillHost(resolveHostOptions(options));
  await host.start();
  return host;
}

/**
 * Starts a host as `createHost` does, but settles before its skills are loaded: sessions wait for them with their first turn.
 * @internal
 */
export async function startHost(options: HostOptions = {}): Promise<Host> {
  const host = new SkillHost(resolveHostOptions(options));
  await host.begin();
  return host;
}

class SkillHost implements Host {
  readonly version = packageVersion;
  readonly #options: ResolvedHostOptions;
  readonly #loader: OwnedModuleLoader;
  readonly #plugins: PluginHost;
  readonly #runners: ToolRunner[];
  readonly #store: SkillStore;
  readonly #servers: ServerSets;
  readonly #parts: EnvironmentParts;
  readonly #events: Emitter<HostEvents>;
  readonly #sessions: HostSessions;
  /** What no skill's own diagnostics tell, each once. */
  readonly #problems = new Map<string, Diagnostic>();
  #hosted: HostedServers | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: ResolvedHostOptions) {
    const { log } = options;
    this.#options = options;
    this.#events = new Emitter((error, type) => log.error("A listener of the host failed.", { type, error }));
    this.#loader = createModuleLoader({
      hostModules: { skillhost: () => import("skillhost"), "skillhost/testing": () => import("skillhost/testing") },
      guardExit: options.guardExit,
      onDiagnostic: (diagnostic) => this.#report(diagnostic),
    });
    this.#plugins = new PluginHost({ ...options, loader: this.#loader });
    // Those of plugins come when they are active, before any skill is loaded.
    this.#runners = [createModuleRunner(this.#loader)];
    this.#store = new SkillStore({
      loader: this.#loader,
      runners: this.#runners,
      hostVersion: packageVersion,
      log,
      watch: options.watch,
      watchBackend: options.watchBackend,
      importTimeout: options.importTimeout,
      onEdited: (files) => this.#forgetProblems(files),
    });
    this.#store.onProblem((problem) => this.#report(problem));
    this.#store.onChange((change) => {
      log.info("Skills changed.", change);
      this.#events.emit("skills.changed", change);
    });
    const plugins = this.#plugins;
    const approvals = createFileApprovals({
      directory: options.approvalsDirectory,
      onDiagnostic: (diagnostic) => this.#report(diagnostic),
    });
    this.#servers = new ServerSets(options, approvals);
    const { mcp } = options;
    this.#parts = {
      options,
      plugins,
      store: this.#store,
      views: createSkillViews(options, this.#store, plugins),
      memo: createCatalogMemo(),
      approvals,
      servers: {
        sets: this.#servers,
        configured: new ConfiguredServers(options, plugins),
        policy: mcp,
        startupWait: mcp.startupWait,
        log,
      },
    };
    const sessionStore = createSessionStore(options.sessionsDirectory, (diagnostic) => this.#reportLog(diagnostic));
    this.#sessions = new HostSessions(this.#parts, sessionStore, (diagnostic) => this.#report(diagnostic));
  }

  get workingDirectory(): string {
    return this.#options.workingDirectory;
  }

  get plugins(): readonly PluginInfo[] {
    return this.#plugins.plugins;
  }

  get skills(): readonly SkillInfo[] {
    return describeSkills(this.#resolved, this.#store.snapshot);
  }

  get diagnostics(): readonly Diagnostic[] {
    const skills = this.#resolved;
    const ofServers = this.#parts.servers.configured.diagnostics(skills);
    return [...this.#problems.values(), ...this.#plugins.diagnostics, ...skills.diagnostics, ...ofServers];
  }

  async start(): Promise<void> {
    await (await this.begin()).ready;
    await this.#store.idle();
  }

  /** Settles when skills are being loaded. */
  async begin(): Promise<RootsLease> {
    await this.#plugins.start();
    this.#runners.push(...this.#plugins.toolRunners);
    return this.#store.acquire([...this.#plugins.skillDirectories, ...this.#options.roots]);
  }

  on<K extends keyof HostEvents>(type: K, listener: (event: HostEvents[K]) => void): Disposable {
    return this.#events.on(type, listener);
  }

  async createSession(options: SessionOptions = {}, opening: SessionOpening = {}): Promise<Session> {
    this.#assertOpen();
    return this.#sessions.create(options, opening);
  }

  async resumeSession(sessionId: string, changes: ResumeOptions = {}, opening: SessionOpening = {}): Promise<Session> {
    this.#assertOpen();
    return this.#sessions.resume(sessionId, changes, opening);
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
    await this.#store.reload();
  }

  listServers(): readonly ServerInfo[] {
    return [...this.#hostServers().list(), ...this.#sessions.ownServers()];
  }

  async connectServers({ signal, timeout }: ConnectServersOptions = {}): Promise<readonly ServerInfo[]> {
    this.#assertOpen();
    const waits = [...(signal === undefined ? [] : [signal]), ...(timeout === undefined ? [] : [AbortSignal.timeout(timeout)])];
    try {
      await this.#hostServers().connect(AbortSignal.any(waits));
    } catch (error) {
      // Past the timeout there is still something to list.
      if (signal?.aborted === true) throw error;
    }
    return this.listServers();
  }

  approveServer(name: string, tool?: string): Promise<number> {
    this.#assertOpen();
    this.#hostServers();
    return this.#servers.approve(name, tool);
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
    const { sources } = this.#plugins;
    return explainName(name, { skills: this.#resolved, others: [...sources, ...this.#hostServers().sources(ownView)], engineOf });
  }

  async idle(): Promise<void> {
    await this.#store.idle();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The servers that every session has, for the host itself to look at. */
  #hostServers(): HostedServers {
    if (this.#hosted === undefined) {
      const hosted = new HostedServers(this.#parts.servers, () => this.#resolved);
      this.#parts.views.subscribe(() => hosted.refresh());
      hosted.adopt({ view: ownView, servers: noServers });
      this.#hosted = hosted;
    }
    return this.#hosted;
  }

  get #resolved(): ResolvedSkills {
    return this.#parts.views.resolve([], []);
  }

  async #close(): Promise<void> {
    await this.#sessions.close();
    this.#hosted?.[Symbol.dispose]();
    await this.#servers[Symbol.asyncDispose]();
    await this.#store[Symbol.asyncDispose]();
    await this.#plugins.close();
    this.#loader[Symbol.dispose]();
    this.#events.clear();
  }

  #report(diagnostic: Diagnostic): void {
    this.#problems.set(formatDiagnostic(diagnostic), diagnostic);
    this.#events.emit("diagnostic", diagnostic);
  }

  /** Of a log only the trouble of now is listed; its end is told, too. */
  #reportLog(diagnostic: Diagnostic): void {
    if (diagnostic.severity !== "info") this.#report(diagnostic);
    else {
      this.#forgetProblems(diagnostic.file === undefined ? [] : [diagnostic.file]);
      this.#events.emit("diagnostic", diagnostic);
    }
  }

  /** What was wrong with a file that has changed is reported anew if it still is. */
  #forgetProblems(files: readonly string[]): void {
    for (const [key, { file }] of this.#problems) if (file !== undefined && files.includes(file)) this.#problems.delete(key);
  }

  #assertOpen(): void {
    if (this.#closed) throw new HostError("HOST_CLOSED", "This host is closed. Make another with createHost().");
  }
}

const ownView = { agent: undefined };
const noServers: ResolvedServers = resolveServers({}, { all: new Map(), custom: [], selected: undefined }, "/");
