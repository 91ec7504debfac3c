import type { OpenSession } from "../../host/host-sessions.ts";
import type { Attachment } from "../../session/clients/session-client.ts";
import type { RecordedEvent } from "../../session/history/events.ts";
import type { Session } from "../../session/session.ts";
import type { BlobStore } from "./blob-store.ts";
import { toFeedRecord, toWholeRecord } from "./feed-json.ts";
import type { FeedAsk, FeedEvent, FeedSession } from "./feed-messages.ts";
import type { LoggedMessage, MessageLog } from "./message-log.ts";

const maxEvents = 500;
/** A text longer than this is converted at once, so that the event itself can be dropped. */
const longText = 64 * 1024;
const titleLength = 80;
/** What repeats what came before, many times per answer or call: the number of bytes so far, and the output so far. */
const omitted: ReadonlySet<string> = new Set(["assistant.streaming_delta", "tool.execution_partial_result"]);

const askKindOf: Readonly<Record<string, FeedAsk["kind"]>> = {
  "permission.requested": "permission",
  "elicitation.requested": "elicitation",
  "user_input.requested": "userInput",
  "exit_plan_mode.requested": "exitPlanMode",
};
const allKinds = [...new Set(Object.values(askKindOf))];

interface WatchedSessionParts {
  readonly log: MessageLog;
  readonly blobs: BlobStore;
  /** Whether questions are only shown. */
  readonly isReadOnly: boolean;
  onCallStarted(toolCallId: string, toolName: string, session: Session): void;
  onCallEnded(toolCallId: string): void;
}

interface ShownAsk {
  readonly ask: FeedAsk;
  readonly answerer: Attachment | undefined;
}

/** Follows one session: its events, its state, and what is asked in it. */
export class WatchedSession implements Disposable {
  readonly #session: Session;
  readonly #parts: WatchedSessionParts;
  readonly #client: string;
  readonly #startTime = new Date().toISOString();
  readonly #listening: Disposable;
  readonly #asks = new Map<string, ShownAsk>();
  readonly #running = new Set<string>();
  /** Answers every question of a session that the inspector opened itself. */
  readonly #own: Attachment | undefined;
  #events: LoggedMessage[] = [];
  #state: FeedSession["state"] = "idle";
  #title: string | undefined;

  constructor({ session, client }: OpenSession, parts: WatchedSessionParts) {
    this.#session = session;
    this.#client = client;
    this.#parts = parts;
    this.#listening = session.events.addSink((event) => this.#follow(event));
    const answers = client === inspectorClient && !parts.isReadOnly;
    this.#own = answers ? session.attach({ level: "connection", name: "the inspector", answers: allKinds }) : undefined;
  }

  get session(): Session {
    return this.#session;
  }

  get info(): FeedSession {
    const { id, config } = this.#session;
    return {
      id,
      client: this.#client,
      state: this.#state,
      startTime: this.#startTime,
      ...(config.view.model !== undefined && { model: config.view.model }),
      ...(this.#title !== undefined && { title: this.#title }),
      workingDirectory: config.workingDirectory,
    };
  }

  get asks(): readonly FeedAsk[] {
    return Array.from(this.#asks.values(), ({ ask }) => ask);
  }

  /** The last events, the oldest first. */
  get events(): readonly LoggedMessage[] {
    return this.#events.slice(-maxEvents);
  }

  /**
   * Answers a question. False: another client was first, or the question has ended.
   * @throws HostError `ANSWER_INVALID`
   */
  answer(askId: string, answer: unknown): boolean {
    const answerer = this.#asks.get(askId)?.answerer;
    return answerer !== undefined && this.#session.asks.answer(askId, answer, answerer.id);
  }

  /** Sends what is known of the session. */
  announce(): void {
    // Of this moment: the text is made later.
    const { info } = this;
    this.#parts.log.append("session", () => ({ session: toFeedRecord(info, this.#parts.blobs) }));
  }

  /** The session as JSON lines, an event each, with secrets replaced: as recorded, or the last events of a session that is not stored. */
  async export(): Promise<string> {
    const recorded = this.#session.isOpen ? await this.#session.getMessages() : [];
    const lines =
      recorded.length > 0 ? recorded.map((event) => JSON.stringify(toWholeEvent(event))) : this.events.map(({ body }) => eventIn(body));
    return lines.map((line) => `${line}\n`).join("");
  }

  close(): void {
    this.#state = "closed";
    this[Symbol.dispose]();
    for (const toolCallId of this.#running) this.#parts.onCallEnded(toolCallId);
    for (const askId of [...this.#asks.keys()]) this.#settle(askId);
    this.#parts.log.append("session.closed", () => ({ sessionId: this.#session.id }));
  }

  [Symbol.dispose](): void {
    this.#listening[Symbol.dispose]();
    void this.#own?.[Symbol.asyncDispose]();
    for (const { answerer } of this.#asks.values()) if (answerer !== this.#own) void answerer?.[Symbol.asyncDispose]();
  }

  #follow(event: RecordedEvent): void {
    const { type, data } = event;
    if (omitted.has(type)) return;
    const { id: sessionId } = this.#session;
    const message = this.#parts.log.append("event", () => ({ sessionId, event: toFeedEvent(event, this.#parts.blobs) }));
    if (isLong(data)) void message.body;
    this.#events.push(message);
    if (this.#events.length > 2 * maxEvents) this.#events = this.#events.slice(-maxEvents);
    if (type === "tool.execution_start") this.#callStarted(data);
    else if (type === "tool.execution_complete") this.#callEnded(String(data["toolCallId"]));
    else if (type === "assistant.turn_start" && event.agentId === undefined) this.#become("running");
    else if (type === "session.idle") this.#become("idle");
    else if (type === "user.message") this.#nameAfter(data);
    else if (type === "session.title_changed") this.#rename(String(data["title"]));
    else this.#followAsk(type, data);
  }

  #callStarted({ toolCallId, toolName }: RecordedEvent["data"]): void {
    this.#running.add(String(toolCallId));
    this.#parts.onCallStarted(String(toolCallId), String(toolName), this.#session);
  }

  #callEnded(toolCallId: string): void {
    if (this.#running.delete(toolCallId)) this.#parts.onCallEnded(toolCallId);
  }

  #become(state: FeedSession["state"]): void {
    if (this.#state === state) return;
    this.#state = state;
    this.announce();
  }

  #nameAfter({ content, source }: RecordedEvent["data"]): void {
    if (this.#title === undefined && source === undefined && typeof content === "string")
      this.#rename(content.trim().replaceAll(/\s+/g, " ").slice(0, titleLength));
  }

  #rename(title: string): void {
    this.#title = title;
    this.announce();
  }

  #followAsk(type: string, data: RecordedEvent["data"]): void {
    const { requestId } = data;
    if (typeof requestId !== "string") return;
    // A question that a callback answers at once is of no interest, and one that no client can answer ends at once, as without an inspector.
    if (Object.hasOwn(askKindOf, type)) setImmediate(() => this.#show(requestId));
    else if (this.#asks.has(requestId)) this.#settle(requestId);
  }

  #show(requestId: string): void {
    const open = this.#session.isOpen ? this.#session.asks.pending.find(({ id }) => id === requestId) : undefined;
    if (open === undefined || this.#asks.has(requestId)) return;
    const { kind, toolCallId } = open;
    if (!isShown(kind)) return;
    const { id: sessionId } = this.#session;
    const data = toFeedRecord(open.data, this.#parts.blobs);
    const ask: FeedAsk = { id: requestId, sessionId, kind, data, ...(toolCallId !== undefined && { toolCallId }) };
    this.#asks.set(requestId, { ask, answerer: this.#answererOf(kind) });
    this.#parts.log.append("ask", () => ({ ask }));
  }

  /** Attached only while there is a question: otherwise a session would offer its model tools that ask, because a client could answer. */
  #answererOf(kind: FeedAsk["kind"]): Attachment | undefined {
    if (this.#parts.isReadOnly) return undefined;
    return this.#own ?? this.#session.attach({ level: "connection", name: "the inspector", answers: [kind] });
  }

  #settle(askId: string): void {
    const shown = this.#asks.get(askId);
    if (shown === undefined) return;
    this.#asks.delete(askId);
    if (shown.answerer !== this.#own) void shown.answerer?.[Symbol.asyncDispose]();
    this.#parts.log.append("ask.settled", () => ({ askId, sessionId: this.#session.id }));
  }
}

/** What the sessions that the inspector opens are called. */
export const inspectorClient = "inspector";

function toFeedEvent(event: RecordedEvent, blobs: BlobStore): FeedEvent {
  return { ...eventHead(event), data: toFeedRecord(event.data, blobs) };
}

function toWholeEvent(event: RecordedEvent): FeedEvent {
  return { ...eventHead(event), data: toWholeRecord(event.data) };
}

function eventHead({ id, type, timestamp, parentId, agentId }: RecordedEvent): Omit<FeedEvent, "data"> {
  return { id, type, timestamp, parentId, ...(agentId !== undefined && { agentId }) };
}

function eventIn(body: string): string {
  return JSON.stringify((JSON.parse(body) as { readonly event: FeedEvent }).event);
}

function isShown(kind: string): kind is FeedAsk["kind"] {
  return (allKinds as readonly string[]).includes(kind);
}

/** Whether the event holds much memory, by the places where that is usual. */
function isLong({ result, content, arguments: args }: RecordedEvent["data"]): boolean {
  if (typeof content === "string" && content.length > longText) return true;
  if (
    typeof args === "object" &&
    args !== null &&
    Object.values(args).some((value) => typeof value === "string" && value.length > longText)
  )
    return true;
  if (typeof result !== "object" || result === null) return false;
  const { content: text, contents, structuredContent } = result as Readonly<Record<string, unknown>>;
  return (typeof text === "string" && text.length > longText) || contents !== undefined || structuredContent !== undefined;
}
