import { HostError } from "../base/errors.ts";
import type { Asks } from "../tools/tool.ts";
import type { RecordedEvent } from "./history/events.ts";
import type { SessionRuntime } from "./session-runtime.ts";
import { askAbout, type Compaction, type ContextUse, summarize } from "./turns/compaction.ts";
import type { QueueChange, QueuedCommand, QueuedPrompt, SendAllOptions, SendOptions } from "./turns/message-queue.ts";
import type { SentRequest } from "./turns/turn-agent.ts";

export type { Compaction, ContextUse, QueuedPrompt, SentRequest };

type ConversationParts = Pick<SessionRuntime, "assertOpen" | "events" | "recording" | "sample" | "turns">;

/** A place in a conversation that it can go back to. */
export interface RewindPoint {
  readonly eventId: string;
  readonly prompt: string;
  readonly timestamp: string;
}

/** What a session and its model said to each other: shortening it, going back in it, and what waits to be said. */
export class SessionConversation {
  readonly #host: ConversationParts;

  constructor(host: ConversationParts) {
    this.#host = host;
  }

  /** Whether a turn runs or is about to. */
  get isBusy(): boolean {
    return this.#host.turns.isBusy;
  }

  /** Summaries made by `compact` give way to nothing else: the model reads them in the place of what they are of. */
  async compact(options: { readonly instructions?: string | undefined; readonly signal?: AbortSignal } = {}): Promise<Compaction> {
    this.#host.assertOpen();
    if (this.#host.recording.history.messages().length === 0)
      throw new HostError("COMPACTION", "The conversation has no messages that could be compacted.");
    const { turns } = this.#host;
    return turns.context.compactNow(turns.model(), options.instructions, options.signal ?? never);
  }

  /** Stops a compaction that `compact` began, or one that was begun by itself. False: there is none. */
  cancelCompaction(which: "manual" | "background"): boolean {
    return this.#host.turns.context.cancel(which);
  }

  /** A summary of what was said, which changes nothing; empty when nothing was. Rejects as the model does. */
  async summarize(signal: AbortSignal = never): Promise<string> {
    this.#host.assertOpen();
    const messages = this.#host.recording.history.messages();
    if (messages.length === 0) return "";
    return (await summarize({ messages }, this.#host.turns.model(), undefined, signal)).content;
  }

  /** The messages of the user that `rewind` may go back to, oldest first. */
  async rewindPoints(): Promise<readonly RewindPoint[]> {
    const events = await this.#events();
    const said = events.filter(
      ({ type, data, agentId }) => type === "user.message" && data["source"] === undefined && agentId === undefined,
    );
    return said.map(({ id, timestamp, data }) => ({ eventId: id, prompt: String(data["content"] ?? ""), timestamp }));
  }

  /**
   * Takes back an event and all after it: what was said there, was never said. What tools did meanwhile stays done.
   * @returns how many events. @throws HostError `SESSION_BUSY` while a turn runs, `EVENT_UNKNOWN`.
   */
  async rewind(eventId: string): Promise<number> {
    this.#host.assertOpen();
    return this.#host.recording.truncate(eventId, () => this.#assertIdle());
  }

  /** Forgets all that was said, and says this. @returns the message's id. @throws HostError `SESSION_BUSY`, and as `Session.send`. */
  clear(prompt: string): { readonly messageId: string; readonly messagesCleared: number } {
    this.#host.assertOpen();
    this.#assertIdle();
    const { events, recording, turns } = this.#host;
    const messagesCleared = recording.history.messages().length;
    turns.model();
    events.append("session.context_cleared", { messagesCleared, initialMessage: prompt });
    return { messageId: turns.send(prompt), messagesCleared };
  }

  /**
   * The last request of the session's own conversation to its model: the system message, the messages and the tools, in the order in which the
   * model got them. Undefined before the first. Those of sub-agents are not included.
   */
  get lastRequest(): SentRequest | undefined {
    return this.#host.turns.lastRequest;
  }

  /** How full the model's context is, by an estimate; undefined before the first request. */
  get contextUse(): ContextUse | undefined {
    return this.#host.turns.context.use();
  }

  /** Has the model answer a question about the conversation, which does not become part of it. */
  async ask(question: string, signal: AbortSignal = never): Promise<string> {
    this.#host.assertOpen();
    const { chat, contextTokens } = this.#host.turns.model();
    return (await askAbout(this.#host.recording.history.messages(), question, { chat, contextTokens }, signal)).content;
  }

  /** Whether no turn runs and no work continues in the background: `session.idle` was emitted. */
  get isIdle(): boolean {
    return !this.isBusy && this.#host.turns.background.isEmpty;
  }

  /** Has a command done when its turn comes. @returns its id, for `unqueue`. */
  enqueue(text: string, command: QueuedCommand): string {
    this.#host.assertOpen();
    return this.#host.turns.enqueue(text, command);
  }

  /** What waits for its turn, in order. */
  get queued(): readonly QueuedPrompt[] {
    return this.#host.turns.queued;
  }

  /** Takes one back that waits; the newest unless another is named. False: it does not wait any more. */
  unqueue(messageId?: string): boolean {
    return this.#host.turns.unqueue(messageId);
  }

  /** Sends a message whose turn begins at a position in the queue. @throws HostError as `Session.send`. */
  insert(options: SendOptions, position: number): string {
    this.#host.assertOpen();
    return this.#host.turns.send(options, position);
  }

  /**
   * Sends messages that one turn answers, and gives their ids. Without messages, the model answers what the conversation ends with.
   * @throws HostError as `Session.send`; no message is sent then.
   */
  sendAll(list: readonly Omit<SendOptions, "mode" | "requestHeaders">[], options: SendAllOptions = {}): readonly string[] {
    this.#host.assertOpen();
    return this.#host.turns.sendAll(list, options);
  }

  /** Changes an item that waits. @returns whether something changed. Undefined: no message or command with this id waits. */
  changeQueued(id: string, change: QueueChange): boolean | undefined {
    this.#host.assertOpen();
    return this.#host.turns.changeQueued(id, change);
  }

  /** Queues an item once more, after itself. @returns the id of the copy. Undefined: no message or command with this id waits. */
  duplicateQueued(id: string): string | undefined {
    this.#host.assertOpen();
    return this.#host.turns.duplicateQueued(id);
  }

  /** Whether queued messages wait although no turn runs. Steering messages reach a running turn all the same. */
  get isPaused(): boolean {
    return this.#host.turns.isPaused;
  }

  pause(isPaused: boolean): void {
    this.#host.assertOpen();
    this.#host.turns.pause(isPaused);
  }

  /** Has the session's model write something apart from the conversation, as MCP's `sampling/createMessage` asks. */
  sample(request: Asks["sampling"]["data"], signal: AbortSignal = never): Promise<Asks["sampling"]["answer"]> {
    this.#host.assertOpen();
    return this.#host.sample(request, signal);
  }

  #events(): Promise<readonly RecordedEvent[]> {
    this.#host.assertOpen();
    return this.#host.recording.read();
  }

  #assertIdle(): void {
    this.#host.assertOpen();
    if (this.isBusy) throw new HostError("SESSION_BUSY", "A turn of this session is running. Wait for session.idle, or abort it.");
  }
}

const never: AbortSignal = new AbortController().signal;
