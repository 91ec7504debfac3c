import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { CoalescedEmitter, Emitter } from "../base/emitter.ts";
import { HostError, toError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import type { Asks, Tool } from "../tools/tool.ts";
import type { SkillEntry } from "../tools/tool-source.ts";
import { locationOf } from "../trust/trust-file.ts";
import { type AgentChanges, createAgentChanges } from "./agents/agent-profiles.ts";
import { CallPipeline } from "./calls/call-pipeline.ts";
import type { CallServices } from "./calls/call-stages.ts";
import { outputsFolder } from "./calls/finalize-call.ts";
import type { FileChange, Pipeline } from "./calls/tool-call.ts";
import { SessionCatalog } from "./catalog/live-catalog.ts";
import { SessionToolset } from "./catalog/session-tools.ts";
import { ClientRequests } from "./clients/client-requests.ts";
import { SessionClients } from "./clients/session-client.ts";
import { SessionDatabase } from "./database/session-database.ts";
import { type DescribedSkill, describeSkill, type SessionEnvironment, sessionClosed, takenOver, takenOverWarning } from "./environment.ts";
import { SessionUsage } from "./history/conversation-history.ts";
import { SessionEvents } from "./history/events.ts";
import { FileChanges } from "./history/file-changes.ts";
import { Recording } from "./history/recording.ts";
import type { SessionLog } from "./history/session-log.ts";
import { HookRunner } from "./hooks/run-hooks.ts";
import { SessionServerConnections } from "./mcp/server-connections.ts";
import { Permissions } from "./permissions/permissions.ts";
import { SessionPromptsAndResources } from "./prompts-resources/session-prompts-resources.ts";
import { changeSessionConfig, type ResolvedSessionConfig, type SessionChange } from "./session-config.ts";
import { createPlan } from "./tools/plan-mode.ts";
import type { SessionPlan, SessionServices } from "./tools/session-tool-services.ts";
import { sampleWithModel } from "./turns/model-call.ts";
import { findCommand, runCommand, type SessionCommand } from "./turns/slash-commands.ts";
import type { SessionTurnContext } from "./turns/turn-agent.ts";
import { ModelCache } from "./turns/turn-options.ts";
import { TurnRunner } from "./turns/turn-runner.ts";
import type { CheckpointStore } from "./turns/turn-types.ts";
import { SessionWorkspace } from "./workspace/session-workspace.ts";
import { LocalFiles } from "./workspace/workspace-files.ts";

/** The parts of a session, put together; also what each of them sees of the session. */
export class SessionRuntime implements CallServices, SessionTurnContext {
  readonly sessionId: string;
  readonly environment: SessionEnvironment;
  readonly log: Logger;
  readonly events: SessionEvents;
  readonly asks: ClientRequests;
  readonly hooks: HookRunner;
  readonly permissions: Permissions;
  readonly fileChanges: Emitter<{ changed: FileChange }>;
  readonly catalog: SessionCatalog;
  readonly clients: SessionClients;
  readonly usage: SessionUsage = new SessionUsage();
  readonly toolset: SessionToolset;
  readonly services: SessionServices;
  readonly pipeline: Pipeline;
  readonly recording: Recording;
  readonly servers: SessionServerConnections;
  readonly turns: TurnRunner;
  /** Emits when tools, skills, prompts or resources of the session may have changed. */
  readonly changes: CoalescedEmitter;
  readonly offers: SessionPromptsAndResources;
  readonly plan: SessionPlan;
  readonly workspace: SessionWorkspace;
  /** Undefined: the session cannot have one. */
  readonly database: SessionDatabase | undefined;
  /** Where summaries of the conversation are stored. Undefined: the session itself is not stored. */
  readonly checkpoints: CheckpointStore | undefined;
  /** Undefined: the session does not track changes of files. */
  readonly fileHistory: FileChanges | undefined;
  readonly #agentChanges: AgentChanges;
  readonly #subscription: Disposable;
  readonly #samplingModels = new ModelCache();
  readonly #closing = new AbortController();
  /** A plain property: parts read it several times in each call. */
  config: ResolvedSessionConfig;
  /** Increases with each push that changes what clients and models see. */
  externalToolsVersion = 0;
  #closed: Promise<void> | undefined;
  #takenOver: HostError | undefined;

  /** The order counts: a part may ask for those before it at once, and for the others once the session is made. */
  constructor(config: ResolvedSessionConfig, environment: SessionEnvironment, sessionLog: SessionLog | undefined) {
    const { log } = environment;
    this.sessionId = config.sessionId;
    this.environment = environment;
    this.log = log;
    this.config = config;
    this.events = new SessionEvents(log, sessionLog?.resumed?.lastEventId);
    this.events.addSink((event) => this.usage.hear(event), "assistant.usage");
    this.asks = new ClientRequests(this.sessionId, this.events, log);
    this.hooks = new HookRunner(this);
    this.permissions = new Permissions(this, this.asks, environment.approvals);
    this.changes = new CoalescedEmitter((error) => log.error("A change listener failed.", { error }));
    this.fileChanges = new Emitter((error) => log.error("A file-change listener failed.", { error }));
    this.catalog = new SessionCatalog({
      events: this.events,
      log,
      assemble: () => this.toolset.assemble(),
      model: () => this.config.view.model,
    });
    this.clients = new SessionClients({
      asks: this.asks,
      trust: environment.pushTrust,
      config: () => this.config,
      assertOpen: () => this.assertOpen(),
      builtinNames: () => this.catalog.builtinNames(),
      onToolsChanged: (hasNewContract) => {
        if (hasNewContract) this.externalToolsVersion++;
        this.#invalidate();
      },
      onAnswerersChanged: () => {
        if (this.toolset.isStale) this.catalog.invalidate();
      },
    });
    const files = environment.files ?? new LocalFiles(environment.sessionDirectory(this.sessionId));
    this.fileHistory = config.options.fileChangeTracking === true ? new FileChanges(files.below("file-changes"), log) : undefined;
    this.workspace = new SessionWorkspace(files, this.events);
    this.checkpoints = sessionLog === undefined ? undefined : this.workspace;
    this.plan = this.#createPlan();
    const place = environment.database ?? join(environment.sessionDirectory(this.sessionId), databaseFile);
    this.database = place === "none" ? undefined : new SessionDatabase({ events: this.events, log, place });
    this.toolset = new SessionToolset(this);
    this.services = this.toolset.services;
    this.#agentChanges = createAgentChanges(this.events, config.agents.selected);
    this.pipeline = new CallPipeline(this);
    if (config.tools.length > 0) this.clients.own.setTools(config.tools);
    this.servers = new SessionServerConnections(this, this.clients, this.asks, environment.mcp);
    this.offers = new SessionPromptsAndResources(this);
    this.#subscription = environment.subscribe(() => this.#invalidate());
    this.recording = new Recording(this, sessionLog);
    this.turns = new TurnRunner(this);
  }

  get isOpen(): boolean {
    return this.#closed === undefined;
  }

  assertOpen(): void {
    if (!this.isOpen) throw this.#takenOver ?? sessionClosed(this.sessionId);
  }

  /** @throws HostError `SESSION_CLOSED`, `SESSION_BUSY`. */
  assertIdle(): void {
    this.assertOpen();
    if (this.turns.isBusy || !this.turns.background.isEmpty || this.pipeline.isBusy)
      throw new HostError("SESSION_BUSY", "A turn, an agent or a call of this session is running. Wait for session.idle, or abort it.");
  }

  /** Ends an idle session because another process takes it over. Returns what is in progress otherwise. */
  handOver(claimant: string): string | undefined {
    if (!this.isOpen) return undefined;
    if (this.turns.isBusy || !this.turns.background.isEmpty) return "A turn or an agent of it is running there. Try again when it is idle.";
    if (this.pipeline.isBusy) return "A call of a tool is running there. Try again when it is idle.";
    if (this.asks.pending.length > 0) return "A question of it is waiting for an answer there. Try again when it is idle.";
    this.#takenOver = takenOver(this.sessionId, claimant);
    const { message } = this.#takenOver;
    this.events.append("session.warning", { warningType: takenOverWarning, message }, undefined, { isEphemeral: true });
    this.close().catch((error: unknown) => this.log.error("A session that was taken over did not end.", { error: toError(error) }));
    return undefined;
  }

  /** Settles when the session's sources are loaded; rejects with the signal's reason, or when the session is closed. */
  async load(signal?: AbortSignal): Promise<void> {
    this.assertOpen();
    const closing = this.#closing.signal;
    await this.#becomeReady(signal === undefined ? closing : AbortSignal.any([signal, closing]));
  }

  /** A turn begins. */
  async ready(signal: AbortSignal): Promise<void> {
    this.#agentChanges.begin();
    await this.#becomeReady(signal);
  }

  async #becomeReady(signal: AbortSignal): Promise<void> {
    await Promise.all([this.environment.ready(signal), this.servers.ready(signal)]);
    this.catalog.setReady();
  }

  /** Settles when what lies on disk is loaded; MCP servers start in the background. */
  async loadSources(): Promise<void> {
    this.servers.start();
    await this.environment.ready(this.#closing.signal);
    this.catalog.setReady();
  }

  /** @throws HostError `SESSION_OPTIONS`; nothing is changed then. */
  async update(change: SessionChange): Promise<void> {
    const before = this.config;
    const next = changeSessionConfig(before, change, this.environment.defaults);
    const held = this.catalog.hold();
    try {
      this.environment.adopt(next);
      this.config = next;
      this.recording.optionsChanged(before);
      this.#announceUpdate(before);
      if (next.view.key !== before.view.key) this.catalog.forgetNotices();
      this.#invalidate();
      this.#agentChanges.changed(before.agents, next.agents);
      const { signal } = this.#closing;
      const hasOthers = next.view.key !== before.view.key;
      await Promise.all([this.environment.ready(signal), hasOthers ? this.servers.changed(signal) : undefined]);
      this.catalog.setReady();
    } finally {
      held.end();
    }
  }

  /** Announces a new mode or model to those who watch the conversation. */
  #announceUpdate(before: ResolvedSessionConfig): void {
    const [previousMode, newMode] = [before.turn.agentMode, this.config.turn.agentMode];
    if (previousMode !== newMode) this.events.append("session.mode_changed", { previousMode, newMode });
    const { workingDirectory } = this.config;
    if (workingDirectory !== before.workingDirectory) this.events.append("session.context_changed", directoryContext(workingDirectory));
    const { model } = this.config.view;
    if (model !== undefined && model !== before.view.model) this.turns.modelChanged(model, before.view.model);
  }

  #createPlan(): SessionPlan {
    return {
      ...createPlan(this.workspace.plan, this.events),
      leave: ({ mode: agentMode, approvesEdits }) => {
        const { allow = [], ...others } = this.config.options.permissions ?? {};
        const widened = allow.includes("write") ? allow : [...allow, "write"];
        return this.update({ agentMode, ...(approvesEdits && { permissions: { ...others, allow: widened } }) });
      },
    };
  }

  skills(): readonly SkillEntry[] {
    return this.environment.skills(this.config.view);
  }

  describeSkills(): readonly DescribedSkill[] {
    const { view } = this.config;
    return this.environment.describeSkills?.(view) ?? this.skills().map((skill) => describeSkill(skill, true));
  }

  sample(request: Asks["sampling"]["data"], signal: AbortSignal): Promise<Asks["sampling"]["answer"]> {
    return sampleWithModel(request, this.#samplingModels.modelOf(this.config.turn), signal);
  }

  commands(): ReadonlyMap<string, SessionCommand> {
    return this.environment.commands?.() ?? new Map();
  }

  runCommand(name: string, argumentsText: string, signal: AbortSignal = this.#closing.signal): Promise<unknown> {
    const called = { command: findCommand(name, this.commands()), argumentsText };
    return runCommand(called, this, AbortSignal.any([signal, this.#closing.signal]));
  }

  outputDirectory(): string {
    return this.config.largeOutput.outputDir ?? join(this.environment.sessionDirectory(this.sessionId), outputsFolder);
  }

  ownersOf(tool: Tool): readonly string[] | undefined {
    return this.clients.ownersOf(tool);
  }

  #invalidate(): void {
    this.catalog.invalidate();
    this.changes.touch();
  }

  onFileChanged(change: FileChange): void {
    this.fileHistory?.capture({ ...change, path: resolve(this.config.workingDirectory, change.path) });
    this.usage.fileChanged(change.path);
    this.fileChanges.emit("changed", change);
  }

  notify(prompt: string): void {
    try {
      this.turns.send({ prompt, mode: "immediate", source: "agent" });
    } catch (error) {
      // The model may be missing by now, and no caller waits for this.
      this.log.warning("The model could not be notified of a sub-agent.", { sessionId: this.sessionId, error: toError(error) });
    }
  }

  background(work: PromiseLike<unknown>): void {
    this.turns.background.add(work);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  #emitShutdown(): void {
    this.events.append("session.shutdown", () => {
      const { startedAt, summary } = this.usage;
      const { model } = this.config.view;
      const current = model !== undefined && { currentModel: model };
      return { shutdownType: "routine", sessionStartTime: startedAt.getTime(), ...summary, ...current };
    });
  }

  async #close(): Promise<void> {
    this.#closing.abort(sessionClosed(this.sessionId));
    this.asks.close();
    const offersClosed = this.offers.close();
    await Promise.all([this.turns.close(sessionClosed(this.sessionId)), this.toolset.close(), this.pipeline.close(), offersClosed]);
    this.hooks.close();
    this.#subscription[Symbol.dispose]();
    this.servers[Symbol.dispose]();
    this.catalog.close();
    this.clients.close();
    this.#emitShutdown();
    this.events.close();
    await this.fileHistory?.settled();
    await this.database?.close();
    await this.recording.close();
    this.fileChanges.clear();
    this.changes.clear();
    this.environment.release();
  }
}

const databaseFile = "session.db";

function directoryContext(cwd: string): { readonly cwd: string; readonly gitRoot?: string } {
  const top = locationOf(cwd);
  return { cwd, ...(existsSync(join(top, ".git")) && { gitRoot: top }) };
}
