import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { Emitter } from "../base/emitter.ts";
import { HostError, toError } from "../base/errors.ts";
import type { ToolLike } from "../tools/define-tool.ts";
import type { ToolDefinition, ToolResult } from "../tools/tool.ts";
import { createAsks, type SessionAsks } from "./asks.ts";
import { type Attachment, type AttachmentOptions, type Attachments, createAttachments } from "./attachments.ts";
import { type CatalogKeeper, createCatalogKeeper } from "./catalog-keeper.ts";
import type { SessionEnvironment } from "./environment.ts";
import { createEvents, type EventSink, type SessionEvents, type Unsubscribe } from "./events.ts";
import { createHookRunner } from "./hooks.ts";
import { type ListedTool, listTools } from "./list-tools.ts";
import { createOwnClient, toToolAnswer } from "./own-client.ts";
import { createPermissions } from "./permissions.ts";
import { createPipeline, type FileChange, type Pipeline, resolveToolName } from "./pipeline.ts";
import type { AgentScope, CallOutcome, Prepared, ToolCall } from "./pipeline-types.ts";
import type { ToolsDiff } from "./pushed-tools.ts";
import {
  changeSessionConfig,
  type ResolvedSessionConfig,
  resolveSessionConfig,
  type SessionChange,
  type SessionOptions,
} from "./session-config.ts";
import type { ToolCatalog } from "./tool-catalog.ts";

export type { ListedTool };

export interface CallOptions {
  /** Default: a new UUID. */
  readonly toolCallId?: string;
  /** Cancels the call. */
  readonly signal?: AbortSignal;
}

/**
 * Makes a session at once, whatever of its sources is loaded; `session.ready` waits for the rest.
 * @throws HostError `SESSION_OPTIONS` naming the field; `TOOL_NAME_TAKEN`, `TOOL_NAME_ILLEGAL`, `TOOL_INVALID` for `tools`.
 */
export function createSession(options: SessionOptions, environment: SessionEnvironment): Session {
  const config = resolveSessionConfig(options, environment.defaults);
  try {
    environment.adopt(config);
    return new Session(config, environment);
  } catch (error) {
    releaseQuietly(environment);
    throw error;
  }
}

/** One conversation's tools and everything that a call of them goes through. */
export class Session implements AsyncDisposable {
  readonly id: string;
  /** The door of everything that happens. Sinks such as a wire or a log are added here. */
  readonly events: SessionEvents;
  /** What is being asked, and the way to answer on behalf of an attachment. */
  readonly asks: SessionAsks;
  readonly #environment: SessionEnvironment;
  readonly #attachments: Attachments;
  readonly #own: Attachment;
  readonly #keeper: CatalogKeeper;
  readonly #pipeline: Pipeline;
  readonly #scope: AgentScope;
  readonly #subscription: Disposable;
  readonly #fileChanges: Emitter<{ changed: FileChange }>;
  readonly #closing = new AbortController();
  #config: ResolvedSessionConfig;
  #externalToolsVersion = 0;
  #closed: Promise<void> | undefined;

  constructor(config: ResolvedSessionConfig, environment: SessionEnvironment) {
    const { log } = environment;
    this.id = config.sessionId;
    this.#config = config;
    this.#environment = environment;
    this.events = createEvents(log);
    this.asks = createAsks(this.id, this.events, log);
    this.#fileChanges = new Emitter((error) => log.error("A listener for changed files failed.", { error }));
    this.#keeper = createCatalogKeeper({
      events: this.events,
      log,
      assemble: () => environment.catalog(this.#config.view, this.#attachments.snapshots()),
      model: () => this.#config.view.model,
    });
    this.#attachments = this.#createAttachments();
    this.#pipeline = this.#createPipeline();
    this.#scope = this.createScope();
    this.#own = this.#attachments.attach({ level: "host", name: "this program", ...createOwnClient(() => this.#config) });
    if (config.tools.length > 0) this.#own.setTools(config.tools);
    this.#subscription = environment.subscribe(() => this.#keeper.invalidate());
  }

  get config(): ResolvedSessionConfig {
    return this.#config;
  }

  /** What the model is told of: data only, in a stable order. */
  get tools(): readonly ToolDefinition[] {
    return this.catalog.advertised;
  }

  /** Everything that is known of the session's tools, also of those that lost their name or are hidden. */
  get catalog(): ToolCatalog {
    this.#assertOpen();
    return this.#keeper.current;
  }

  /** Rises with every push that changes what clients see. */
  get externalToolsVersion(): number {
    return this.#externalToolsVersion;
  }

  /** The session's own conversation, for `prepare`; its `catalog` is always the one of now. */
  createScope(options: { readonly turnId?: string; readonly signal?: AbortSignal } = {}): AgentScope {
    const keeper = this.#keeper;
    return {
      get catalog() {
        return keeper.current;
      },
      hasVanished: (name) => keeper.hasVanished(name),
      ...options,
    };
  }

  /** Waits until the session's sources are loaded; rejects with the signal's reason. */
  async ready(signal?: AbortSignal): Promise<void> {
    this.#assertOpen();
    const closing = this.#closing.signal;
    await this.#environment.ready(signal === undefined ? closing : AbortSignal.any([signal, closing]));
    this.#keeper.setReady();
  }

  /**
   * Calls a tool by its name or as `server/tool`, through hooks, checks and permission like a model's call.
   * @throws HostError `SESSION_CLOSED`; what goes wrong with the call itself is a result.
   */
  async callTool(name: string, args?: unknown, options: CallOptions = {}): Promise<ToolResult> {
    this.#assertOpen();
    const scope = this.#scope;
    const call = { id: options.toolCallId ?? randomUUID(), name: resolveToolName(scope.catalog, name), arguments: args };
    const outcome = this.#pipeline.call(call, options.signal === undefined ? scope : this.createScope({ signal: options.signal }));
    return (outcome instanceof Promise ? await outcome : outcome).result;
  }

  /** Takes the calls of one message of a model through their gates, in order. @throws HostError `SESSION_CLOSED` */
  async prepare(calls: readonly ToolCall[], agent: AgentScope = this.#scope): Promise<readonly Prepared[]> {
    this.#assertOpen();
    return this.#pipeline.prepare(calls, agent);
  }

  /** Runs what `prepare` returned, each once; all at the same time if you like. @throws HostError `SESSION_CLOSED`, `CALL_TAKEN` */
  async run(prepared: Prepared): Promise<CallOutcome> {
    this.#assertOpen();
    return this.#pipeline.run(prepared);
  }

  /**
   * Replaces the tools of this program. Calls already running keep the tool they started with.
   * @throws HostError `TOOL_NAME_TAKEN` and the others of `Attachment.setTools`; nothing is changed then.
   */
  async setTools(all: readonly ToolLike[]): Promise<ToolsDiff> {
    return this.#own.setTools(all);
  }

  /** The callable tools in the order they are advertised. */
  listTools(): readonly ListedTool[] {
    return listTools(this.catalog);
  }

  /** Listens to one type of event, or to all. A listener that fails is logged and keeps nobody else from hearing. */
  on(listener: EventSink): Unsubscribe;
  on(type: string, listener: EventSink): Unsubscribe;
  on(first: string | EventSink, second?: EventSink): Unsubscribe {
    this.#assertOpen();
    const sink = typeof first === "function" ? this.events.addSink(first) : this.events.addSink(second!, first);
    const end = (): void => sink[Symbol.dispose]();
    return Object.assign(end, { [Symbol.dispose]: end });
  }

  /** Hears of every file that a tool says it wrote, with the content. */
  onFileChanged(listener: (change: FileChange) => void): Disposable {
    return this.#fileChanges.on("changed", listener);
  }

  /** Connects somebody who offers tools or answers questions. @throws HostError `SESSION_CLOSED` */
  attach(options: AttachmentOptions): Attachment {
    const attachment = this.#attachments.attach(options);
    this.#keeper.greet();
    return attachment;
  }

  /**
   * Answers a call of a tool without a handler: with `{ result }`, `{ error }`, an Error, or the result itself. False:
   * nobody waits for it any more.
   */
  respondToTool(requestId: string, answer: unknown): boolean {
    return this.asks.answer(requestId, toToolAnswer(answer), this.#own.id);
  }

  /**
   * Changes options while the session lives: what is not mentioned stays. The tools are assembled once for all of it.
   * @throws HostError `SESSION_OPTIONS`, `SESSION_CLOSED`; nothing is changed then.
   */
  async update(change: SessionChange): Promise<void> {
    this.#assertOpen();
    const before = this.#config;
    const next = changeSessionConfig(before, change);
    const held = this.#keeper.hold();
    try {
      this.#environment.adopt(next);
      this.#config = next;
      if (next.view.key !== before.view.key) {
        this.#keeper.forgetNotices();
        this.#keeper.invalidate();
      }
      await this.ready();
    } finally {
      held.end();
    }
  }

  /** Ends the session: running calls are told by their signal and settled, questions are closed, tools withdrawn. */
  disconnect(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.disconnect();
  }

  async #close(): Promise<void> {
    this.#closing.abort(closedError(this.id));
    this.asks.close();
    await this.#pipeline.close();
    this.#subscription[Symbol.dispose]();
    this.#keeper.close();
    this.#attachments.close();
    if (this.events.wants("session.shutdown")) this.events.append("session.shutdown", { shutdownType: "routine" });
    this.events.close();
    this.#fileChanges.clear();
    this.#environment.release();
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw closedError(this.id);
  }

  #createAttachments(): Attachments {
    return createAttachments({
      asks: this.asks,
      assertOpen: () => this.#assertOpen(),
      builtinNames: () => this.#keeper.builtinNames(),
      onToolsChanged: (hasNewContract) => {
        if (hasNewContract) this.#externalToolsVersion++;
        this.#keeper.invalidate();
      },
    });
  }

  #createPipeline(): Pipeline {
    const { log } = this.#environment;
    const session = this;
    return createPipeline({
      sessionId: this.id,
      events: this.events,
      asks: this.asks,
      permissions: createPermissions(this.asks),
      hooks: createHookRunner(this.id, this.events, log),
      log,
      get config() {
        return session.#config;
      },
      ownersOf: (tool) => this.#attachments.ownersOf(tool),
      outputDirectory: () => this.#config.largeOutput.outputDir ?? join(this.#environment.sessionDirectory(this.id), "outputs"),
      onFileChanged: (change) => this.#fileChanges.emit("changed", change),
    });
  }
}

function releaseQuietly(environment: SessionEnvironment): void {
  try {
    environment.release();
  } catch (error) {
    // What made the session fail is the news; this is only its echo.
    environment.log.error("What a session had taken on could not be released.", { error: toError(error) });
  }
}

function closedError(id: string): HostError {
  return new HostError("SESSION_CLOSED", `Session ${id} is closed. Open another one.`);
}
