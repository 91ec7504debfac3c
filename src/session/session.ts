import { randomUUID } from "node:crypto";
import { toError } from "../base/errors.ts";
import type { ToolLike } from "../tools/define/define-tool.ts";
import type { Completion, PromptDefinition, PromptResult } from "../tools/prompt.ts";
import type { ResourceContents, ResourceDefinition, ResourceTemplateDefinition } from "../tools/resource.ts";
import type { CallResult, ToolDefinition } from "../tools/tool.ts";
import { toCallResult } from "../tools/tool-result.ts";
import type { CallParameters, ToolData, ToolName } from "../tools/tool-signatures.ts";
import type { SkillEntry } from "../tools/tool-source.ts";
import type { SubAgents } from "./agents/sub-agents.ts";
import { findToolName } from "./calls/call-pipeline.ts";
import {
  type AgentScope,
  type CallOptions,
  type CallOutcome,
  type FileChange,
  listenTo,
  type PreparedCall,
  type ScopeOptions,
  type ToolCall,
} from "./calls/tool-call.ts";
import { type ListedTool, listTools } from "./catalog/assemble-catalog.ts";
import type { ToolCatalog } from "./catalog/tool-catalog.ts";
import type { ClientRequests } from "./clients/client-requests.ts";
import type { ToolsDiff } from "./clients/pushed-tools.ts";
import { type Attachment, type AttachmentOptions, toToolAnswer } from "./clients/session-client.ts";
import { SessionConversation } from "./conversation.ts";
import { noTodos, type SqlTodos } from "./database/sql-database.ts";
import type { DescribedSkill, SessionEnvironment } from "./environment.ts";
import type { History, SessionUsage } from "./history/conversation-history.ts";
import type { SessionEvent, SessionEventType } from "./history/event-types.ts";
import type { EventSink, SessionEvents, Unsubscribe } from "./history/events.ts";
import type { SessionLog } from "./history/session-log.ts";
import { type RewindOptions, type RewindResult, SessionRewind } from "./history/session-rewind.ts";
import type { HookRunner } from "./hooks/run-hooks.ts";
import { SessionMcp } from "./mcp/session-mcp.ts";
import type { Permissions } from "./permissions/permissions.ts";
import type { PromptsAndResources } from "./prompts-resources/prompts-and-resources.ts";
import type {
  CompletionOptions,
  CompletionRef,
  OfferOptions,
  OffersChange,
  ReadOptions,
} from "./prompts-resources/session-prompts-resources.ts";
import {
  changeSessionConfig,
  type ResolvedSessionConfig,
  resolveSessionConfig,
  type SessionChange,
  type SessionOptions,
} from "./session-config.ts";
import { SessionRuntime } from "./session-runtime.ts";
import type { SendOptions } from "./turns/message-queue.ts";
import type { MessageStream } from "./turns/message-stream.ts";
import type { AssistantReply } from "./turns/turn-types.ts";
import type { SessionWorkspace } from "./workspace/session-workspace.ts";

export type { CallOptions, ListedTool };

/** One conversation's tools and everything that a call of them goes through. */
export class Session implements AsyncDisposable {
  readonly id: string;
  /** The door of everything that happens. Sinks such as a wire or a log are added here. */
  readonly events: SessionEvents;
  /** What is being asked, and the way to answer on behalf of an attachment. */
  readonly asks: ClientRequests;
  readonly hooks: HookRunner;
  readonly permissions: Permissions;
  /** What was said: shortening it, going back in it, and what waits to be said. */
  readonly conversation: SessionConversation;
  /** Going back in the conversation, also with the files that tools changed. @internal */
  readonly rewinding: SessionRewind;
  /** The files of the session itself: its plan, what is kept with it, and summaries of its conversation. */
  readonly workspace: SessionWorkspace;
  /** The session's MCP servers: their status, and starting and stopping them. */
  readonly mcp: SessionMcp;
  readonly #runtime: SessionRuntime;
  readonly #scope: AgentScope;

  constructor(config: ResolvedSessionConfig, environment: SessionEnvironment, sessionLog?: SessionLog) {
    const runtime = new SessionRuntime(config, environment, sessionLog);
    this.id = runtime.sessionId;
    this.events = runtime.events;
    this.asks = runtime.asks;
    this.hooks = runtime.hooks;
    this.permissions = runtime.permissions;
    this.conversation = new SessionConversation(runtime);
    this.workspace = runtime.workspace;
    this.rewinding = new SessionRewind(runtime);
    this.#runtime = runtime;
    this.mcp = new SessionMcp(runtime);
    this.#scope = this.createScope();
  }

  get config(): ResolvedSessionConfig {
    return this.#runtime.config;
  }

  /** The tools as the model sees them: data only, in a stable order. */
  get tools(): readonly ToolDefinition[] {
    return this.#runtime.toolset.disclosure.advertised(this.catalog);
  }

  /** Everything that is known of the session's tools, also of those that lost their name or are hidden. */
  get catalog(): ToolCatalog {
    this.#runtime.assertOpen();
    return this.#runtime.catalog.current;
  }

  /** Rises with every push that changes what clients see. */
  get externalToolsVersion(): number {
    return this.#runtime.externalToolsVersion;
  }

  /** The session's own conversation, for `prepare`; its `catalog` is always the one of now. */
  createScope(options: ScopeOptions = {}): AgentScope {
    return this.#runtime.catalog.createScope(this.#runtime.toolset.disclosure, options);
  }

  /**
   * Waits until the session's sources are loaded and its MCP servers were tried, those no longer than the host's
   * `mcp.startupWait`; what a slow one has later still counts. Rejects with the signal's reason.
   */
  async ready(signal?: AbortSignal): Promise<void> {
    await this.#runtime.load(signal);
  }

  /** Waits for what lies on disk alone; MCP servers start in the background. @internal */
  loadSources(): Promise<void> {
    return this.#runtime.loadSources();
  }

  /** What its models took, and the files that its tools changed. */
  get usage(): SessionUsage {
    return this.#runtime.usage;
  }

  /**
   * Calls a tool by its name or as `server/tool`, through hooks, checks and permission like a model's call. A name that
   * nothing has yet waits a while for MCP servers that are still starting.
   * @throws HostError `SESSION_CLOSED`; what goes wrong with the call itself is a result.
   */
  callTool<Name extends ToolName>(name: Name, ...rest: CallParameters<Name, CallOptions>): Promise<CallResult<ToolData<Name>>>;
  async callTool(name: string, args?: unknown, options: CallOptions = {}): Promise<CallResult> {
    this.#runtime.assertOpen();
    const { toolCallId = randomUUID(), signal } = options;
    let { catalog } = this.#scope;
    let known = findToolName(catalog, name);
    const starting = known === undefined ? this.#runtime.servers.awaitMoreTools(() => signal ?? never) : undefined;
    if (starting !== undefined) {
      // A call that is cancelled meanwhile settles as any other that is.
      await starting.catch(() => {});
      ({ catalog } = this.#scope);
      known = findToolName(catalog, name);
    }
    const listening = listenTo(options);
    const scope = listening === undefined ? this.#scope : this.createScope(listening);
    const call = { id: toolCallId, name: known ?? name, arguments: args };
    try {
      const outcome = this.#runtime.pipeline.call(call, scope, catalog);
      return toCallResult((outcome instanceof Promise ? await outcome : outcome).result);
    } finally {
      listening?.end();
    }
  }

  /** Takes the calls of one message of a model through their gates, in order. @throws HostError `SESSION_CLOSED` */
  async prepare(calls: readonly ToolCall[], agent: AgentScope = this.#scope): Promise<readonly PreparedCall[]> {
    this.#runtime.assertOpen();
    return this.#runtime.pipeline.prepare(calls, agent);
  }

  /** Runs what `prepare` returned, each once; all at the same time if you like. @throws HostError `SESSION_CLOSED`, `CALL_TAKEN` */
  async run(prepared: PreparedCall): Promise<CallOutcome> {
    this.#runtime.assertOpen();
    return this.#runtime.pipeline.run(prepared);
  }

  /**
   * Sends a message to the model and returns the message's id at once. Events report the progress and end with
   * `session.idle` once the background work has ended too; a failure is `session.error`.
   * @throws HostError `MODEL_MISSING`, `SEND_OPTIONS`, `SESSION_CLOSED`; `ATTACHMENT_INVALID`, `ATTACHMENT_OUTSIDE`,
   * `ATTACHMENT_UNREADABLE` or `ATTACHMENT_TOO_LARGE`.
   */
  async send(options: SendOptions | string): Promise<string> {
    this.#runtime.assertOpen();
    return this.#runtime.turns.send(options);
  }

  /**
   * Sends a message and gives the last thing that the model says in its turn, when the turn is over. Not for a handler
   * of a tool: its own turn cannot end before it does.
   * @param options `timeout`: milliseconds to wait; the turn continues after that. Default: no limit.
   * @throws HostError as `send` does; `TURN_ABORTED`, `SEND_TIMEOUT`, `TURN_EMPTY`. @throws ModelError when the model failed.
   */
  async sendAndWait(message: SendOptions | string, options: { readonly timeout?: number } = {}): Promise<AssistantReply> {
    this.#runtime.assertOpen();
    return this.#runtime.turns.sendAndWait(message, options.timeout);
  }

  /**
   * Sends a message and gives its answer while it is produced: `for await (const part of session.stream("Hi"))`, `textStream` for the
   * text alone, `toResponse()` for an HTTP endpoint, `reply` as `sendAndWait` gives it. The model is asked to stream, whatever the
   * session's `streaming` is.
   * @param options `signal` takes the message back while it waits, and stops the turn that answers it.
   * @throws HostError as `send` does; the signal's reason. Failures of the turn are thrown to the reader.
   */
  stream(message: SendOptions | string, options: { readonly signal?: AbortSignal } = {}): MessageStream {
    this.#runtime.assertOpen();
    return this.#runtime.turns.stream(message, options.signal);
  }

  /**
   * Stops the running turn: the request to the model, calls and questions of it end at once, and messages that wait are
   * dropped. Settles when the turn is over; agents in the background are not stopped. Does nothing when no turn runs.
   */
  async abort(): Promise<void> {
    this.#runtime.assertOpen();
    await this.#runtime.turns.abort();
  }

  /**
   * Replaces the tools of this program. Calls already running keep the tool they started with.
   * @throws HostError `TOOL_NAME_TAKEN` and the others of `Attachment.setTools`; nothing is changed then.
   */
  async setTools(all: readonly ToolLike[]): Promise<ToolsDiff> {
    return this.#runtime.clients.own.setTools(all);
  }

  /** The callable tools in the order they are advertised. */
  listTools(): readonly ListedTool[] {
    return listTools(this.catalog);
  }

  /** The skills that are active, lowest precedence first. The same array until something about them changes. */
  listSkills(): readonly SkillEntry[] {
    this.#runtime.assertOpen();
    return this.#runtime.skills();
  }

  /** All skills of the session, lowest precedence first, those that are switched off among them. */
  describeSkills(): readonly DescribedSkill[] {
    this.#runtime.assertOpen();
    return this.#runtime.describeSkills();
  }

  /** The commands that plugins bring, for `runCommand`, or `/name arguments` as a message. */
  get commands(): readonly { readonly name: string; readonly description?: string | undefined }[] {
    return Array.from(this.#runtime.commands().values(), ({ name, description }) => ({ name, description }));
  }

  /**
   * Runs a command of a plugin and gives what it gives; the model is not asked.
   * @throws HostError `COMMAND_UNKNOWN`, `COMMAND_FAILED` with the cause, `SESSION_CLOSED`; what the signal says when it fires.
   */
  async runCommand(name: string, argumentsText = "", options: { readonly signal?: AbortSignal } = {}): Promise<unknown> {
    this.#runtime.assertOpen();
    return this.#runtime.runCommand(name, argumentsText, options.signal);
  }

  /**
   * Calls the listener when tools, skills, prompts or resources may have changed; once for all changes before it. Read them
   * and compare.
   */
  onChanged(listener: () => void): Disposable {
    return this.#runtime.changes.on("changed", listener);
  }

  /**
   * Listens to one type of event, whose data is then typed, or to all; narrow it by `event.type`. A listener that fails is
   * logged; the other listeners are still called. @throws HostError `SESSION_CLOSED`
   */
  on(listener: EventSink): Unsubscribe;
  on<T extends SessionEventType>(type: T, listener: EventSink<T>): Unsubscribe;
  on(first: SessionEventType | EventSink, second?: EventSink): Unsubscribe {
    this.#runtime.assertOpen();
    const sink = typeof first === "function" ? this.events.addSink(first) : this.events.addSink(second!, first);
    const end = (): void => sink[Symbol.dispose]();
    return Object.assign(end, { [Symbol.dispose]: end });
  }

  /** Hears of every file that a tool says it wrote, with the content. */
  onFileChanged(listener: (change: FileChange) => void): Disposable {
    return this.#runtime.fileChanges.on("changed", listener);
  }

  /** Connects a client that offers tools or answers questions. @throws HostError `SESSION_CLOSED` */
  attach(options: AttachmentOptions): Attachment {
    const attachment = this.#runtime.clients.attach(options);
    this.#runtime.catalog.announceCurrent();
    return attachment;
  }

  /**
   * Answers a call of a tool without a handler: with `{ result }`, `{ error }`, an Error, or the result itself. False:
   * the call no longer waits for it.
   */
  respondToTool(requestId: string, answer: unknown): boolean {
    return this.asks.answer(requestId, toToolAnswer(answer), this.#runtime.clients.own.id);
  }

  /**
   * Changes options while the session lives: what is not mentioned stays. The tools are assembled once for all of it.
   * @throws HostError `SESSION_OPTIONS`, `SESSION_CLOSED`; nothing is changed then.
   */
  async update(change: SessionChange): Promise<void> {
    this.#runtime.assertOpen();
    await this.#runtime.update(change);
  }

  /**
   * Has the session work in another folder: tools, permission rules, instruction files and hooks follow, and `getMessages`
   * has a `session.context_changed`. Calls that run, MCP servers and relative paths of options stay where they are.
   * @param directory absolute, or from the working directory so far.
   * @throws HostError `SESSION_OPTIONS` when it is not a folder, `SESSION_CLOSED`; nothing is changed then.
   */
  setWorkingDirectory(directory: string): Promise<void> {
    return this.update({ workingDirectory: directory });
  }

  /** Everything of the session that is kept, oldest first: what happened, not only what was said. Empty when nothing is recorded. */
  async getMessages(): Promise<readonly SessionEvent[]> {
    this.#runtime.assertOpen();
    // What another version recorded may differ, which the documentation of the type says.
    return (await this.#runtime.recording.read()) as readonly SessionEvent[];
  }

  /**
   * Takes back an event and all after it. With `restoreFiles`, files that tools changed since get their former content, except those
   * that others have changed: they are left as they are and listed in `skippedFiles`. Requires `fileChangeTracking`.
   * @throws HostError `SESSION_BUSY`, `EVENT_UNKNOWN`, `FILES_NOT_TRACKED`, `SESSION_CLOSED`; nothing is changed then.
   */
  rewind(eventId: string, options: RewindOptions = {}): Promise<RewindResult> {
    return this.rewinding.rewind(eventId, options);
  }

  /**
   * What the model has to do, as it wrote it with the tool `sql` (`sessionDatabase`), the oldest first. `session.todos_changed` says when to
   * read it again. @throws HostError `SESSION_CLOSED`
   */
  async readSqlTodos(): Promise<SqlTodos> {
    this.#runtime.assertOpen();
    return (await this.#runtime.database?.readTodos()) ?? noTodos;
  }

  /** The agents that the session's agents have started. @internal */
  get subAgents(): SubAgents {
    return this.#runtime.services.subAgents;
  }

  /** The conversation as a model is shown it. @internal */
  get history(): History {
    return this.#runtime.recording.history;
  }

  /** Settles when what happened so far outlives this process. @throws HostError `LOG_NOT_WRITTEN`; it is tried again then. */
  async flush(): Promise<void> {
    await this.#runtime.fileHistory?.settled();
    await this.#runtime.recording.flush();
  }

  /**
   * Continues a session that is open: applies the changes, and replaces the tools if some are given.
   * @throws HostError as `setTools` and `update` do; nothing is changed then.
   * @internal
   */
  async join(
    { tools, ...change }: SessionChange & Pick<SessionOptions, "tools">,
    {
      tellsResume = true,
      continuesWork,
    }: { readonly tellsResume?: boolean | undefined; readonly continuesWork?: boolean | undefined } = {},
  ): Promise<void> {
    this.#runtime.assertOpen();
    changeSessionConfig(this.#runtime.config, change, this.#runtime.environment.defaults);
    if (tools !== undefined) this.#runtime.clients.own.setTools(tools);
    await this.update(change);
    if (tellsResume) await this.#runtime.recording.joined(continuesWork);
  }

  /** False once it is being disconnected. */
  get isOpen(): boolean {
    return this.#runtime.isOpen;
  }

  /**
   * Ends the session because another process takes it over, unless something of it is in progress: then it returns why not.
   * @internal
   */
  handOver(claimant: string): string | undefined {
    return this.#runtime.handOver(claimant);
  }

  /** Ends the session: aborts and settles running calls, closes questions, withdraws tools. */
  disconnect(): Promise<void> {
    return this.#runtime.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.disconnect();
  }

  /** Everything that is offered beside tools, with origin and revision. @throws HostError `SESSION_CLOSED` */
  get offers(): PromptsAndResources {
    return this.#runtime.offers.current;
  }

  /** The prompts in a stable order. The same array until something about them changes. @throws HostError `SESSION_CLOSED` */
  listPrompts(): readonly PromptDefinition[] {
    return this.#runtime.offers.prompts();
  }

  /**
   * Makes a prompt. Its arguments are texts; those that it does not declare are left out.
   * @throws HostError `PROMPT_UNKNOWN`, `PROMPT_ARGUMENTS`, `PROMPT_RESULT` when its handler gives no messages,
   * `SESSION_CLOSED`; what its handler throws; the signal's reason.
   */
  getPrompt(name: string, args: Readonly<Record<string, string>> = {}, options: OfferOptions = {}): Promise<PromptResult> {
    return this.#runtime.offers.getPrompt(name, args, options);
  }

  /**
   * The resources in a stable order, including the files of every skill, which are looked up at the first
   * call. The same array until something about them changes. @throws HostError `SESSION_CLOSED`
   */
  listResources(): readonly ResourceDefinition[] {
    return this.#runtime.offers.resources();
  }

  /** The patterns of addresses that can be read beside those that are listed. @throws HostError `SESSION_CLOSED` */
  listResourceTemplates(): readonly ResourceTemplateDefinition[] {
    return this.#runtime.offers.resourceTemplates();
  }

  /**
   * Reads a resource by its address.
   * @throws HostError `RESOURCE_UNKNOWN` when there is none, `RESOURCE_RESULT` when reading gives no contents,
   * `SESSION_CLOSED`; what its handler throws; the signal's reason.
   */
  readResource(uri: string, options: ReadOptions = {}): Promise<readonly ResourceContents[]> {
    return this.#runtime.offers.readResource(uri, options);
  }

  /**
   * Suggests values for an argument of a prompt or a variable of a template, by what was typed so far; at most 100.
   * @throws HostError `PROMPT_UNKNOWN`, `RESOURCE_UNKNOWN` for a template that does not exist, `SESSION_CLOSED`.
   */
  complete(
    ref: CompletionRef,
    argument: { readonly name: string; readonly value: string },
    options: CompletionOptions = {},
  ): Promise<Completion> {
    return this.#runtime.offers.complete(ref, argument, options);
  }

  /**
   * Calls the listener when a read of this address may give another result, also when a resource appears or disappears
   * there. Resolves once subscribed; unknown addresses are allowed. @throws HostError `SESSION_CLOSED`
   */
  watchResource(uri: string, listener: () => void): Promise<AsyncDisposable> {
    return this.#runtime.offers.watchResource(uri, listener);
  }

  /**
   * Calls the listener when one of the three lists has changed. Changes of `resources` are reported only after they were
   * listed once. @throws HostError `SESSION_CLOSED`
   */
  onOffersChanged(listener: (change: OffersChange) => void): Disposable {
    return this.#runtime.offers.onChanged(listener);
  }
}

const never: AbortSignal = new AbortController().signal;

/**
 * Makes a session at once, whatever of its sources is loaded; `session.ready` waits for the rest. With a log it is
 * recorded there and continues where the log ends. If this throws, the caller closes the log.
 * @throws HostError `SESSION_OPTIONS` naming the field; `TOOL_NAME_TAKEN`, `TOOL_NAME_ILLEGAL`, `TOOL_INVALID` for `tools`.
 */
export function createSession(options: SessionOptions, environment: SessionEnvironment, log?: SessionLog): Session {
  const config = resolveSessionConfig(options, environment.defaults);
  try {
    environment.adopt(config);
    return new Session(config, environment, log);
  } catch (error) {
    releaseQuietly(environment);
    throw error;
  }
}

function releaseQuietly(environment: SessionEnvironment): void {
  try {
    environment.release();
  } catch (error) {
    // What made the session fail is the news; this is only its echo.
    environment.log.error("Resources of a session could not be released.", { error: toError(error) });
  }
}
