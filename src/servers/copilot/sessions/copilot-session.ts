import { setImmediate as nextTurn } from "node:timers/promises";
import { type Diagnostic, formatDiagnostic } from "../../../base/diagnostic.ts";
import { HostError, toError } from "../../../base/errors.ts";
import type { Logger } from "../../../base/logger.ts";
import { settlesWithin } from "../../../base/wait.ts";
import type { Host } from "../../../host/host.ts";
import type { Attachment } from "../../../session/clients/session-client.ts";
import { takenOverWarning } from "../../../session/environment.ts";
import type { RecordedEvent } from "../../../session/history/events.ts";
import type { AgentMode } from "../../../session/prompt/system-prompt.ts";
import type { Session } from "../../../session/session.ts";
import type { ToolLike } from "../../../tools/define/define-tool.ts";
import type { Client } from "../clients/client.ts";
import { answeredBy, areAlike, type ClientCapabilities, toAttachment } from "../clients/client-capabilities.ts";
import { ClientCommands, QueuedCommands } from "../clients/client-commands.ts";
import type { ClientFiles } from "../clients/client-files.ts";
import type { ClientPlugins } from "../clients/client-plugins.ts";
import { ClientTasks } from "../clients/client-tasks.ts";
import type { SessionExtensions } from "../extensions/session-extensions.ts";
import { SessionProviders } from "../request/session-providers.ts";
import type { SessionSpans } from "../telemetry/session-spans.ts";
import { DerivedEvents, describeSkill, EventTranslator, isDroppable, isStreaming, translateAll } from "./copilot-events.ts";

interface Joining {
  readonly past: "all" | ReadonlySet<string>;
  readonly continuesWork?: boolean;
}

/** Receives what the server must know of its sessions. As an interface, since the server imports the sessions. */
export interface CopilotSessionObserver {
  /** A recorded event has changed a session, or it has become idle. */
  onChanged(session: CopilotSession): void;
  /** A session has become idle. */
  onTurnOver(): void;
  /** Another process takes the session over, so it ends here. */
  onTakenOver(session: CopilotSession): void;
}

/** How long the end of a session waits until its clients have received earlier events. */
const catchUpMs = 2_000;

/** A session and its clients. All of them receive its events, and each answers the requests that it can answer. */
export class CopilotSession {
  readonly session: Session;
  readonly createdAt: Date = new Date();
  readonly commands: ClientCommands;
  readonly queuedCommands: QueuedCommands;
  readonly #observer: CopilotSessionObserver;
  readonly #joined = new Map<Client, JoinedClient>();
  readonly #events: EventTranslator;
  readonly #sink: Disposable;
  modifiedAt: Date = this.createdAt;
  /** The time of the last event or request. */
  touchedAt: number = Date.now();
  /** Whether a turn is running, according to the events. */
  isBusy = false;
  /** Running sampling requests of MCP servers, by the ids that clients gave them. */
  readonly samplings: Map<string, AbortController> = new Map();
  /** The context that pages of MCP servers get from the client that shows them. */
  hostContext: Readonly<Record<string, unknown>> = {};
  /** Undefined: no client has requested extensions. */
  extensions: SessionExtensions | undefined;
  /** The name that a client has set. */
  name: string | undefined;
  plugins: ClientPlugins;
  /** The models that clients may choose. Undefined: all. */
  allowedModels: readonly string[] | undefined;
  readonly providers: SessionProviders = new SessionProviders();
  /** The work that clients do themselves. */
  readonly clientTasks: ClientTasks;
  /** The session's files at its client. Undefined: they are on this machine. */
  files: ClientFiles | undefined;
  /** Undefined: no OpenTelemetry is exported. */
  spans: SessionSpans | undefined;
  /** The last client, which has disconnected without leaving. Its pending requests wait for the next client. */
  #absent: JoinedClient | undefined;
  readonly derivedEvents: DerivedEvents;
  readonly #following: Disposable;
  #errors: Disposable | undefined;
  #skills: readonly unknown[] | undefined;

  constructor(session: Session, observer: CopilotSessionObserver, plugins: ClientPlugins) {
    this.plugins = plugins;
    this.session = session;
    this.#events = new EventTranslator(session.config.view.model, () => this.isAtGivenProvider);
    this.#observer = observer;
    this.commands = new ClientCommands(session);
    this.queuedCommands = new QueuedCommands(session);
    this.clientTasks = new ClientTasks(session.id, () => {
      if (session.isOpen) session.events.append("session.background_tasks_changed", {});
    });
    this.#sink = session.events.addSink((event) => this.#forward(event));
    this.derivedEvents = new DerivedEvents(session, () => this.name !== undefined);
    this.#following = session.onChanged(() => {
      if (this.#skills !== undefined) this.emitSkills();
    });
  }

  get id(): string {
    return this.session.id;
  }

  /** Whether the session's model is at a provider that a client gave, not at the runtime's own endpoint. */
  get isAtGivenProvider(): boolean {
    return this.providers.providerOf(this.session.config.turn.model) !== undefined;
  }

  /** Emits the errors of the host's skills and plugins as warnings, each once. */
  followErrors(host: Host): void {
    if (this.#errors !== undefined) return;
    const reported = new Set<string>();
    const report = (diagnostic: Diagnostic): void => {
      const message = formatDiagnostic(diagnostic);
      if (diagnostic.severity !== "error" || reported.has(message) || !this.session.isOpen) return;
      reported.add(message);
      this.session.events.append("session.warning", { warningType: "diagnostic", message });
    };
    this.#errors = host.on("diagnostic", report);
    host.diagnostics.forEach(report);
  }

  /** @throws HostError `MODEL_NOT_ALLOWED`. */
  assertAllowed(model: string | undefined): void {
    if (model === undefined || this.allowedModels?.includes(model) !== false) return;
    const names = this.allowedModels.join(", ");
    throw new HostError("MODEL_NOT_ALLOWED", `Model "${model.slice(0, 200)}" is not allowed in session ${this.id}. Allowed: ${names}.`);
  }

  touch(): void {
    this.touchedAt = Date.now();
  }

  get clients(): readonly Client[] {
    return [...this.#joined.keys()];
  }

  /** The clients that keep the session open; extensions do not. */
  get participants(): readonly Client[] {
    return this.clients.filter(({ extension }) => extension === undefined);
  }

  /** The clients whose hooks run. */
  get hookClients(): readonly Client[] {
    return [...this.#joined.values()].filter(({ capabilities }) => capabilities.hooks).map(({ client }) => client);
  }

  get canElicit(): boolean {
    return [...this.#joined.values()].some(({ capabilities }) => capabilities.answersElicitation);
  }

  /** Whether a client shows the pages of MCP servers. */
  get rendersApps(): boolean {
    return [...this.#joined.values()].some(({ capabilities }) => capabilities.rendersApps);
  }

  attachmentOf(client: Client): Attachment | undefined {
    return this.#joined.get(client)?.attachment;
  }

  /**
   * Adds a client, and sends it the earlier events in `past` first. With `continuesWork` it can answer the pending requests of
   * a client that has disconnected.
   * @throws HostError as `Attachment.setTools`; the client has not joined then.
   */
  join(client: Client, capabilities: ClientCapabilities, { past, continuesWork = false }: Joining): void {
    const couldElicit = this.canElicit;
    const before = this.#joined.get(client) ?? (client.extension === undefined ? this.#takeAbsent(continuesWork) : undefined);
    const isAsBefore = before !== undefined && areAlike(before.capabilities, capabilities);
    const asked = isAsBefore ? before.asked : { client };
    asked.client = client;
    const attachment = isAsBefore ? before.attachment : this.session.attach(toAttachment(asked, capabilities));
    const tools = capabilities.tools ?? before?.attachment.tools.map(({ definition }) => definition);
    try {
      if (tools !== undefined) attachment.setTools(tools as readonly ToolLike[]);
    } catch (error) {
      if (attachment !== before?.attachment) void attachment[Symbol.asyncDispose]();
      throw error;
    }
    const link = new JoinedClient(this.id, {
      client,
      attachment,
      asked,
      capabilities,
      interests: before?.interests ?? new Map(),
      handles: before?.handles ?? new Map(),
    });
    this.#joined.set(client, link);
    if (before !== undefined && before.attachment !== attachment) void before.attachment[Symbol.asyncDispose]();
    this.commands.set(client, capabilities.commands);
    if (couldElicit !== this.canElicit) this.#emitCapabilities();
    link.catchUp(() => this.#missed(past));
  }

  /** Removes the last client after it has disconnected. Its pending requests wait for the next client. */
  lose(client: Client): void {
    const link = this.#joined.get(client);
    if (link === undefined) return;
    const couldElicit = this.canElicit;
    this.#absent = link;
    this.#joined.delete(client);
    this.clientTasks.orphan(client);
    this.commands.remove(client);
    this.#releaseQueuedCommands();
    if (couldElicit) this.#emitCapabilities();
  }

  /** Returns the disconnected client for another to continue its work, or ends its pending requests. */
  #takeAbsent(continuesWork: boolean): JoinedClient | undefined {
    const absent = this.#absent;
    this.#absent = undefined;
    if (absent === undefined || continuesWork) return absent;
    for (const attachment of [absent.attachment, ...absent.interests.values()]) void attachment[Symbol.asyncDispose]();
    return undefined;
  }

  /** Removes a client with its tools, and settles the requests that only it could answer. */
  async leave(client: Client): Promise<void> {
    const link = this.#joined.get(client);
    if (link === undefined) return;
    const couldElicit = this.canElicit;
    this.#joined.delete(client);
    this.clientTasks.orphan(client);
    this.commands.remove(client);
    this.#releaseQueuedCommands();
    for (const attachment of [link.attachment, ...link.interests.values()]) await attachment[Symbol.asyncDispose]();
    if (this.session.isOpen && couldElicit !== this.canElicit) this.#emitCapabilities();
  }

  /** Replaces the tools of one client. @throws HostError as `Attachment.setTools`; `NOT_ATTACHED`. */
  setTools(client: Client, tools: readonly object[]): void {
    const attachment = this.attachmentOf(client);
    if (attachment === undefined) throw new HostError("NOT_ATTACHED", `Resume session ${this.id} on this connection first.`);
    attachment.setTools(tools as readonly ToolLike[]);
  }

  get mode(): AgentMode {
    return this.session.config.turn.agentMode;
  }

  /** Names the session, also for those who resume it. `isChosen`: a user chose the name. */
  async setName(name: string, isChosen: boolean): Promise<void> {
    this.name = name;
    this.session.events.append("session.title_changed", { title: name });
    const { workspace, config } = this.session;
    await workspace.updateMetadata({ id: this.id, cwd: config.workingDirectory, name, user_named: isChosen });
  }

  /** Gives the session the name that it had when it was stored. */
  async restoreName(log: Logger): Promise<void> {
    try {
      const { name } = await this.session.workspace.readMetadata();
      if (typeof name === "string" && name.trim() !== "") this.name ??= name;
    } catch (error) {
      log.warning("The name of a session could not be read.", { sessionId: this.id, error: toError(error) });
    }
  }

  /** Emits the skills if they have changed since the last time. */
  emitSkills(): void {
    const active = this.session.listSkills();
    if (active === this.#skills) return;
    this.#skills = active;
    this.session.events.append("session.skills_loaded", { skills: this.session.describeSkills().map(describeSkill) });
  }

  /** Undefined: a client has been sent the events before it joined. Otherwise settles when it has, which is soon. */
  catchingUp(client: Client): Promise<unknown> | undefined {
    const link = this.#joined.get(client);
    return link === undefined || link.isReady ? undefined : settlesWithin(link.caughtUp, catchUpMs);
  }

  /** Ends the session for all clients. */
  async close(): Promise<void> {
    this.commands.close();
    this.queuedCommands.release();
    await this.extensions?.close();
    for (const sampling of this.samplings.values()) sampling.abort();
    this.plugins[Symbol.dispose]();
    await this.session.disconnect();
    // The file system of a client may never answer.
    await Promise.all(this.clients.map((client) => this.catchingUp(client)));
    this.#sink[Symbol.dispose]();
    this.spans?.close();
    this.derivedEvents[Symbol.dispose]();
    this.#following[Symbol.dispose]();
    this.#errors?.[Symbol.dispose]();
    this.#joined.clear();
  }

  /** Answers a request of the session; the first answer counts. False: no such request waits for this client. */
  answer(client: Client, requestId: string, answer: unknown): boolean {
    const link = this.#joined.get(client);
    if (link === undefined) return false;
    return [link.attachment, ...link.interests.values()].some(({ id }) => this.session.asks.answer(requestId, answer, id));
  }

  /**
   * Answers a permission request. `user-not-available` counts as the answer of all clients.
   */
  answerPermission(client: Client, requestId: string, answer: Readonly<Record<string, unknown>>): boolean {
    const isAnswered = this.answer(client, requestId, answer);
    if (!isAnswered || answer["kind"] !== "user-not-available") return isAnswered;
    for (const other of this.clients) if (other !== client) this.answer(other, requestId, answer);
    return true;
  }

  /** Registers that a client handles a type of event, which may add a kind of request that it answers. */
  addInterest(client: Client, handle: string, eventType: string): void {
    const kind = answeredBy[eventType];
    const link = this.#joined.get(client);
    link?.handles.set(handle, eventType);
    if (kind === undefined || link === undefined) return;
    link.interests.set(handle, this.session.attach({ level: "connection", name: "a client", answers: [kind] }));
  }

  /** Releasing a handle is idempotent. False: this client never had it. */
  removeInterest(client: Client, handle: string): boolean {
    const link = this.#joined.get(client);
    const attachment = link?.interests.get(handle);
    link?.interests.delete(handle);
    void attachment?.[Symbol.asyncDispose]();
    if (link?.handles.has(handle) !== true) return false;
    link.handles.set(handle, undefined);
    this.#releaseQueuedCommands();
    return true;
  }

  /** Whether a client handles a type of event. */
  hasInterestIn(eventType: string): boolean {
    return [...this.#joined.values()].some(({ handles }) => [...handles.values()].includes(eventType));
  }

  #releaseQueuedCommands(): void {
    if (!this.hasInterestIn("command.queued")) this.queuedCommands.release();
  }

  /** All recorded events, as clients see them. */
  async past(): Promise<readonly RecordedEvent[]> {
    return translateAll(await this.session.getMessages());
  }

  #emitCapabilities(): void {
    this.session.events.append("capabilities.changed", { ui: { elicitation: this.canElicit } });
  }

  async #missed(past: "all" | ReadonlySet<string>): Promise<readonly RecordedEvent[]> {
    const events = await this.past();
    if (past === "all") return events;
    const open = new Set(this.session.asks.pending.map(({ id }) => id));
    const last = new Map(events.filter(({ type }) => past.has(type)).map((event) => [event.type, event]));
    return events.filter((event) => last.get(event.type) === event || open.has(String(event.data["requestId"])));
  }

  /** Hands an event to the spans, which may add the call's place in the trace. */
  #trace(event: RecordedEvent | undefined): RecordedEvent | undefined {
    const added = event && this.spans?.hear(event);
    return added === undefined ? event : { ...event!, data: { ...event!.data, ...added } };
  }

  #forward(original: RecordedEvent): void {
    this.touch();
    const event = this.#trace(this.#events.translate(original));
    if (original.type === "user.message") this.isBusy = true;
    if (original.type === "session.idle") {
      this.isBusy = false;
      this.#observer.onTurnOver();
    }
    if (original.type === "session.warning" && original.data["warningType"] === takenOverWarning) this.#observer.onTakenOver(this);
    // Once a client has received the skills, later changes are emitted too.
    if (original.type === "session.skills_loaded") this.#skills = this.session.listSkills();
    if (event === undefined) return;
    let json: string | undefined;
    for (const link of this.#joined.values()) {
      if (!link.isReady) {
        link.keep(event);
        continue;
      }
      json ??= JSON.stringify(event);
      link.send(event, json);
    }
    if (event.ephemeral === true && event.type !== "session.idle") return;
    this.modifiedAt = new Date();
    this.#observer.onChanged(this);
  }
}

interface JoinedClientParts {
  readonly client: Client;
  readonly attachment: Attachment;
  /** The client that gets the attachment's requests. It is replaced when another client continues this one's work. */
  readonly asked: { client: Client };
  readonly capabilities: ClientCapabilities;
  /** Attachments for the kinds of requests that the client registered later, by handle. */
  readonly interests: Map<string, Attachment>;
  /** Types of events that the client handles, by handle. Undefined: the handle was released. */
  readonly handles: Map<string, string | undefined>;
}

/** A client in a session, and the events that it is sent. */
class JoinedClient implements JoinedClientParts {
  readonly client: Client;
  readonly attachment: Attachment;
  readonly asked: { client: Client };
  readonly capabilities: ClientCapabilities;
  readonly interests: Map<string, Attachment>;
  readonly handles: Map<string, string | undefined>;
  readonly #sessionId: string;
  /** New events, which wait until the earlier ones were sent. Undefined: events are sent at once. */
  #waiting: RecordedEvent[] | undefined = [];
  #caughtUp: Promise<void> = Promise.resolve();

  constructor(sessionId: string, { client, attachment, asked, capabilities, interests, handles }: JoinedClientParts) {
    this.#sessionId = JSON.stringify(sessionId);
    this.client = client;
    this.attachment = attachment;
    this.asked = asked;
    this.capabilities = capabilities;
    this.interests = interests;
    this.handles = handles;
  }

  /** Whether the client has been sent the earlier events. */
  get isReady(): boolean {
    return this.#waiting === undefined;
  }

  /** Holds a new event back until the earlier ones were sent. */
  keep(event: RecordedEvent): void {
    this.#waiting?.push(event);
  }

  /** Sends the events that the client missed, then those held back. Later events are sent at once. */
  catchUp(missed: () => Promise<readonly RecordedEvent[]>): void {
    this.#caughtUp = this.#catchUp(missed);
  }

  /** Settles when the client has been sent all earlier events, which must precede the answer that ends the session. */
  get caughtUp(): Promise<void> {
    return this.#caughtUp;
  }

  async #catchUp(missed: () => Promise<readonly RecordedEvent[]>): Promise<void> {
    // The answer to the request that joined the client must be sent first.
    await nextTurn();
    const past = await missed().catch((): readonly RecordedEvent[] => []);
    const waiting = this.#waiting ?? [];
    const later = new Set(waiting.map(({ id }) => id));
    this.#waiting = undefined;
    for (const event of past) if (!later.has(event.id)) this.send(event, JSON.stringify(event));
    for (const event of waiting) this.send(event, JSON.stringify(event));
  }

  /** `json`: the event, serialized once for all clients. */
  send(event: RecordedEvent, json: string): void {
    const { wire } = this.client;
    if (isDroppable(event) && wire.isCrowded) return;
    if (event.agentId !== undefined && !this.capabilities.wantsSubAgentStreaming && isStreaming(event)) return;
    wire.notify("session.event", `{"sessionId":${this.#sessionId},"event":${json}}`);
  }
}
