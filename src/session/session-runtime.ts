import { join } from "node:path";
import { CoalescedEmitter } from "../base/coalesced-emitter.ts";
import { Emitter } from "../base/emitter.ts";
import { toError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import type { Asks, Tool, ToolDefinition } from "../tools/tool.ts";
import type { SkillEntry, SourceSnapshot } from "../tools/tool-source.ts";
import type { ApprovalStore } from "../trust/approvals.ts";
import { type AgentChanges, createAgentChanges } from "./agents/agent-profiles.ts";
import { createPipeline, type PipelineHost } from "./calls/call-pipeline.ts";
import { outputsFolder } from "./calls/finalize-call.ts";
import type { AgentScope, FileChange, Pipeline, ProgressListener, ScopeOptions } from "./calls/tool-call.ts";
import type { CatalogView } from "./catalog/catalog-view.ts";
import type { DiscoveredTools } from "./catalog/discovered-tools.ts";
import { type CatalogUpdates, createCatalogUpdates } from "./catalog/live-catalog.ts";
import { createSessionToolset, type SessionToolset, type ToolsetHost } from "./catalog/session-tools.ts";
import type { ToolCatalog } from "./catalog/tool-catalog.ts";
import { type AskHandlers, type ClientRequests, createClientRequests } from "./clients/client-requests.ts";
import { createOwnClient, hasOwnHandler } from "./clients/host-client.ts";
import type { AskKind } from "./clients/request-kinds.ts";
import { type Attachment, type AttachmentHost, createSessionClients, type SessionClients } from "./clients/session-client.ts";
import { type DescribedSkill, describeSkill, type SessionEnvironment, sessionClosed } from "./environment.ts";
import { type History, SessionUsage } from "./history/conversation-history.ts";
import { createEvents, type SessionEvent, type SessionEvents } from "./history/events.ts";
import { createRecording, type Recording, type RecordingHost } from "./history/recording.ts";
import type { SessionLog } from "./history/session-log.ts";
import { createHookRunner, type HookRunner } from "./hooks/run-hooks.ts";
import { SessionServerConnections } from "./mcp/server-connections.ts";
import { SessionMcp } from "./mcp/session-mcp.ts";
import { createPermissions, type PermissionHost, type Permissions } from "./permissions/permissions.ts";
import type { ServerInstructions } from "./prompt/system-prompt.ts";
import { SessionPromptsAndResources } from "./prompts-resources/session-prompts-resources.ts";
import { changeSessionConfig, type ResolvedSessionConfig, type SessionChange } from "./session-config.ts";
import { createSessionPlan, emitChanges } from "./session-mode.ts";
import type { SessionPlan, SessionServices } from "./session-services.ts";
import { ModelCache } from "./turns/model-cache.ts";
import { sampleWithModel } from "./turns/sampling.ts";
import { findCommand, runCommand, type SessionCommand } from "./turns/slash-commands.ts";
import { TurnRunner, type TurnRunnerHost } from "./turns/turn-runner.ts";

/** The parts of a session, put together; also what each of them sees of the session. */
export class SessionParts implements AttachmentHost, PermissionHost, PipelineHost, RecordingHost, ToolsetHost, TurnRunnerHost {
  readonly sessionId: string;
  readonly environment: SessionEnvironment;
  readonly log: Logger;
  readonly approvals: ApprovalStore | undefined;
  readonly events: SessionEvents;
  readonly asks: ClientRequests;
  readonly hooks: HookRunner;
  readonly permissions: Permissions;
  readonly fileChanges: Emitter<{ changed: FileChange }>;
  readonly keeper: CatalogUpdates;
  readonly attachments: SessionClients;
  readonly usage: SessionUsage = new SessionUsage();
  readonly toolset: SessionToolset;
  readonly services: SessionServices;
  readonly pipeline: Pipeline;
  /** The program itself, as a client of the session. */
  readonly own: Attachment;
  readonly recording: Recording;
  readonly servers: SessionServerConnections;
  readonly mcp: SessionMcp;
  readonly turns: TurnRunner;
  /** Tells that something that the session offers may be something else now. */
  readonly changes: CoalescedEmitter;
  readonly offers: SessionPromptsAndResources;
  readonly plan: SessionPlan;
  readonly #agentNews: AgentChanges;
  readonly #subscription: Disposable;
  readonly #isResumed: boolean;
  readonly #samplingModels = new ModelCache();
  readonly #closing = new AbortController();
  #config: ResolvedSessionConfig;
  #externalToolsVersion = 0;
  #closed: Promise<void> | undefined;

  /** The order counts: a part may ask for those before it at once, and for the others once the session is made. */
  constructor(config: ResolvedSessionConfig, environment: SessionEnvironment, sessionLog: SessionLog | undefined) {
    const { log } = environment;
    this.sessionId = config.sessionId;
    this.environment = environment;
    this.log = log;
    this.approvals = environment.approvals;
    this.#config = config;
    this.#isResumed = sessionLog?.resumed !== undefined;
    this.events = createEvents(log, sessionLog?.resumed?.lastEventId);
    this.events.addSink((event) => this.usage.hear(event), "assistant.usage");
    this.asks = createClientRequests(this.sessionId, this.events, log);
    this.hooks = createHookRunner(this);
    this.permissions = createPermissions(this);
    this.changes = new CoalescedEmitter((error) => log.error("A change listener failed.", { error }));
    this.fileChanges = new Emitter((error) => log.error("A file-change listener failed.", { error }));
    this.keeper = createCatalogUpdates({
      events: this.events,
      log,
      assemble: () => this.toolset.assemble(),
      model: () => this.#config.view.model,
    });
    this.attachments = createSessionClients(this, environment.pushTrust);
    this.plan = createSessionPlan(this);
    this.toolset = createSessionToolset(this);
    this.services = this.toolset.services;
    this.#agentNews = createAgentChanges(this.events, config.agents.selected);
    this.pipeline = createPipeline(this);
    this.own = this.attachments.attach({ level: "host", name: "this program", ...createOwnClient(() => this.#config) });
    if (config.tools.length > 0) this.own.setTools(config.tools);
    this.servers = new SessionServerConnections(this, environment.mcp);
    this.mcp = new SessionMcp(this, environment.mcp);
    this.offers = new SessionPromptsAndResources(this);
    this.#subscription = environment.subscribe(() => this.#invalidate());
    this.recording = createRecording(this, sessionLog);
    this.turns = new TurnRunner(this);
  }

  /** The configuration of now. */
  get config(): ResolvedSessionConfig {
    return this.#config;
  }

  get externalToolsVersion(): number {
    return this.#externalToolsVersion;
  }

  get history(): History {
    return this.recording.history;
  }

  get isOpen(): boolean {
    return this.#closed === undefined;
  }

  assertOpen(): void {
    if (!this.isOpen) throw sessionClosed(this.sessionId);
  }

  createScope(options: ScopeOptions = {}): AgentScope {
    return new ConversationScope(this.keeper, this.toolset.disclosure, options);
  }

  /** Settles when the session's sources are loaded; rejects with the signal's reason, or when the session is closed. */
  async load(signal?: AbortSignal): Promise<void> {
    this.assertOpen();
    const closing = this.#closing.signal;
    await this.#becomeReady(signal === undefined ? closing : AbortSignal.any([signal, closing]));
  }

  /** A turn begins. */
  async ready(signal: AbortSignal): Promise<void> {
    this.#agentNews.begin();
    await this.#becomeReady(signal);
  }

  async #becomeReady(signal: AbortSignal): Promise<void> {
    await Promise.all([this.environment.ready(signal), this.servers.ready(signal)]);
    this.keeper.setReady();
  }

  /** Settles when what lies on disk is loaded; MCP servers start in the background. */
  async loadSources(): Promise<void> {
    this.servers.start();
    await this.environment.ready(this.#closing.signal);
    this.keeper.setReady();
  }

  /** @throws HostError `SESSION_OPTIONS`; nothing is changed then. */
  async update(change: SessionChange): Promise<void> {
    const before = this.#config;
    const next = changeSessionConfig(before, change, this.environment.defaults);
    const held = this.keeper.hold();
    try {
      this.environment.adopt(next);
      this.#config = next;
      this.recording.optionsChanged(before);
      emitChanges(this, before);
      if (next.view.key !== before.view.key) this.keeper.forgetNotices();
      this.#invalidate();
      this.#agentNews.changed(before.agents, next.agents);
      const { signal } = this.#closing;
      const hasOthers = next.view.key !== before.view.key;
      await Promise.all([this.environment.ready(signal), hasOthers ? this.servers.changed(signal) : undefined]);
      this.keeper.setReady();
    } finally {
      held.end();
    }
  }

  advertised(catalog: ToolCatalog): readonly ToolDefinition[] {
    return this.toolset.disclosure.advertised(catalog);
  }

  skills(): readonly SkillEntry[] {
    return this.environment.skills(this.#config.view);
  }

  describeSkills(): readonly DescribedSkill[] {
    const { view } = this.#config;
    return this.environment.describeSkills?.(view) ?? this.skills().map((skill) => describeSkill(skill, true));
  }

  serverInstructions(view?: CatalogView): readonly ServerInstructions[] {
    return this.servers.instructions(view);
  }

  sample(request: Asks["sampling"]["data"], signal: AbortSignal): Promise<Asks["sampling"]["answer"]> {
    return sampleWithModel(request, this.#samplingModels.modelOf(this.#config.turn), signal);
  }

  commands(): ReadonlyMap<string, SessionCommand> {
    return this.environment.commands?.() ?? new Map();
  }

  runCommand(name: string, argumentsText: string, signal: AbortSignal = this.#closing.signal): Promise<unknown> {
    const called = { command: findCommand(name, this), argumentsText };
    return runCommand(called, this, AbortSignal.any([signal, this.#closing.signal]));
  }

  past(): Promise<readonly SessionEvent[]> | undefined {
    return this.#isResumed ? this.#readPast() : undefined;
  }

  async #readPast(): Promise<readonly SessionEvent[]> {
    const events = await this.recording.read();
    this.toolset.replay(events);
    return events;
  }

  transcriptPath(): string {
    return join(this.environment.sessionDirectory(this.sessionId), "events.jsonl");
  }

  outputDirectory(): string {
    return this.#config.largeOutput.outputDir ?? join(this.environment.sessionDirectory(this.sessionId), outputsFolder);
  }

  snapshots(): readonly SourceSnapshot[] {
    return this.attachments.snapshots();
  }

  ownersOf(tool: Tool): readonly string[] | undefined {
    return this.attachments.ownersOf(tool);
  }

  builtinNames(): ReadonlySet<string> {
    return this.keeper.builtinNames();
  }

  onToolsChanged(hasNewContract: boolean): void {
    if (hasNewContract) this.#externalToolsVersion++;
    this.#invalidate();
  }

  #invalidate(): void {
    this.keeper.invalidate();
    this.changes.touch();
  }

  onAnswerersChanged(): void {
    if (this.toolset.isStale) this.keeper.invalidate();
  }

  canAsk(kind: AskKind): boolean {
    return hasOwnHandler(kind, this.#config) || this.attachments.canAnswer(kind, this.own.id);
  }

  onFileChanged(change: FileChange): void {
    this.usage.fileChanged(change.path);
    this.fileChanges.emit("changed", change);
  }

  notify(prompt: string): void {
    try {
      this.turns.send({ prompt, mode: "immediate", source: "agent" });
    } catch (error) {
      // The model may be gone by now, and nobody called this who could be told.
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

  #tellShutdown(): void {
    if (!this.events.wants("session.shutdown")) return;
    const { startedAt, summary } = this.usage;
    const { model } = this.#config.view;
    this.events.append("session.shutdown", {
      shutdownType: "routine",
      sessionStartTime: startedAt.getTime(),
      ...summary,
      ...(model !== undefined && { currentModel: model }),
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
    this.keeper.close();
    this.attachments.close();
    this.#tellShutdown();
    this.events.close();
    await this.recording.close();
    this.fileChanges.clear();
    this.changes.clear();
    this.environment.release();
  }
}

/** The session's own conversation. A class, since servers make one for each call that they pass on. */
class ConversationScope implements AgentScope {
  readonly disclosure: DiscoveredTools;
  declare readonly turnId?: string;
  declare readonly signal?: AbortSignal;
  declare readonly answers?: AskHandlers;
  declare readonly onProgress?: ProgressListener;
  readonly #keeper: CatalogUpdates;

  constructor(keeper: CatalogUpdates, disclosure: DiscoveredTools, { turnId, signal, answers, onProgress }: ScopeOptions) {
    this.#keeper = keeper;
    this.disclosure = disclosure;
    if (turnId !== undefined) this.turnId = turnId;
    if (signal !== undefined) this.signal = signal;
    if (answers !== undefined) this.answers = answers;
    if (onProgress !== undefined) this.onProgress = onProgress;
  }

  get catalog(): AgentScope["catalog"] {
    return this.#keeper.current;
  }

  hasVanished(name: string): boolean {
    return this.#keeper.hasVanished(name);
  }
}
