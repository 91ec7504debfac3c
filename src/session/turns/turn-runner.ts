import { randomUUID } from "node:crypto";
import { errorMessage, HostError, toError } from "../../base/errors.ts";
import { redactText } from "../../base/logger.ts";
import { waitFor } from "../../base/wait.ts";
import { ModelError, type ModelErrorCode } from "../../models/model-error.ts";
import { transcriptPath } from "../environment.ts";
import type { SessionEventData } from "../history/event-types.ts";
import type { Compactor } from "./compaction.ts";
import {
  type MessageQueue,
  type QueueChange,
  type QueuedCommand,
  type QueuedMessage,
  type QueuedPrompt,
  readSendOptions,
  type SendAllOptions,
  type SendOptions,
} from "./message-queue.ts";
import { type DeliveredMessage, MessageStream } from "./message-stream.ts";
import { type SentRequest, SessionTurnAgent, type SessionTurnContext } from "./turn-agent.ts";
import { runTurn } from "./turn-loop.ts";
import type { TurnModel } from "./turn-options.ts";
import type { AssistantReply, TurnEnd, TurnRun } from "./turn-types.ts";
import { readAttachments } from "./user-attachments.ts";

/** What a message came to. */
type MessageEnd =
  | { readonly kind: "answered"; readonly reply: AssistantReply | undefined }
  | { readonly kind: "failed"; readonly error: Error };

/** Works off the messages to a session, one turn after the other. */
export class TurnRunner {
  readonly #host: SessionTurnContext;
  readonly #agent: SessionTurnAgent;
  readonly #waiting = new Map<string, (end: MessageEnd) => void>();
  #current: AbortController | undefined;
  #driving: Promise<void> | undefined;
  /** How the last turn ended, while `session.idle` has not been emitted for it. */
  #endToReport: TurnEnd | undefined;
  /** The session is not idle while any of this runs. */
  readonly background: BackgroundWork = new BackgroundWork(() => this.#resume());
  readonly #closing = new AbortController();

  constructor(host: SessionTurnContext) {
    this.#host = host;
    this.#agent = new SessionTurnAgent(host);
  }

  get #queue(): MessageQueue {
    return this.#agent.queue;
  }

  /** Whether messages are being worked off. */
  get isBusy(): boolean {
    return this.#driving !== undefined;
  }

  get context(): Compactor {
    return this.#agent.context;
  }

  /** Another model answers from now on. */
  modelChanged(newModel: string, previousModel: string | undefined): void {
    this.#agent.announceModel(newModel, previousModel);
  }

  /** @throws HostError `MODEL_MISSING`. */
  model(): TurnModel {
    return this.#agent.model();
  }

  get lastRequest(): SentRequest | undefined {
    return this.#agent.lastRequest;
  }

  get queued(): readonly QueuedPrompt[] {
    return this.#queue.all;
  }

  unqueue(id: string | undefined): boolean {
    const removed = this.#queue.remove(id);
    if (removed !== undefined) this.#settle([removed.id], { kind: "failed", error: abortedError() });
    return removed !== undefined;
  }

  /** Changes a listed item of the queue. Undefined: no such item waits. */
  changeQueued(id: string, change: QueueChange): boolean | undefined {
    const message = this.#queue.find(id);
    if (message === undefined) return undefined;
    if (change.position !== undefined) return this.#queue.move(message, change.position);
    if (change.prompt !== undefined) {
      const isChanged = message.command === undefined && message.prompt !== change.prompt;
      if (isChanged) this.#queue.replace(message, { prompt: change.prompt });
      return isChanged;
    }
    const canSteer = message.command === undefined && this.#current !== undefined;
    if (canSteer) this.#queue.replace(message, { isSteering: true, delivery: "steering" });
    return canSteer;
  }

  /** Adds a listed item once more, after itself. @returns the id of the copy. Undefined: no such item waits. */
  duplicateQueued(id: string): string | undefined {
    const message = this.#queue.find(id);
    if (message === undefined) return undefined;
    const copy = randomUUID();
    this.#queue.duplicate(message, copy);
    return copy;
  }

  get isPaused(): boolean {
    return this.#queue.isPaused;
  }

  /** While paused, messages wait; the running turn continues and takes steering messages. */
  pause(isPaused: boolean): void {
    this.#queue.isPaused = isPaused;
    if (!isPaused && this.#queue.hasNext) this.#resume();
  }

  /** Takes a command, which is done when its turn comes. @returns its id. */
  enqueue(prompt: string, command: QueuedCommand): string {
    const delivery = this.isBusy ? "queued" : "idle";
    const message = {
      id: randomUUID(),
      prompt,
      isSteering: false,
      attachments: [],
      headers: undefined,
      source: undefined,
      delivery,
      command,
    } as const;
    this.#add(message);
    return message.id;
  }

  /** Takes a message and gives its id; its turn begins later. @throws HostError as `Session.send` says. */
  send(options: SendOptions | string, position?: number): string {
    return this.#accept(options, undefined, false, position);
  }

  /**
   * Takes messages that one turn answers, and gives their ids. Without messages, the model answers what the conversation ends with.
   * @throws HostError as `Session.send` says; no message is taken then.
   */
  sendAll(
    list: readonly Omit<SendOptions, "mode" | "requestHeaders">[],
    { position, mode, requestHeaders }: SendAllOptions,
  ): readonly string[] {
    const given = list.map((options) => readSendOptions({ ...options, mode, requestHeaders }));
    this.#agent.begin();
    const messages = given.map((options) => this.#toMessage(options, false));
    const last = messages.at(-1);
    if (last === undefined) this.#add({ ...this.#toMessage({ prompt: "", requestHeaders }, false), isContinuation: true }, position);
    else if (last.isSteering) for (const message of messages) this.#add(message);
    else this.#add({ ...last, preceding: messages.slice(0, -1) }, position);
    return messages.map(({ id }) => id);
  }

  /** Takes a message, and gives what its turn comes to, with its parts as events. @throws HostError as `Session.send` says. */
  stream(options: SendOptions | string, signal: AbortSignal | undefined): MessageStream {
    const { events } = this.#host;
    const deliver = (): DeliveredMessage => this.#deliver(options, true);
    return new MessageStream({ events, deliver, cancel: (id) => this.#cancel(id) }, signal);
  }

  sendAndWait(options: SendOptions | string, timeout: number | undefined): Promise<AssistantReply> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const { id, reply } = this.#deliver(options);
      reply.then(resolve, reject).finally(() => clearTimeout(timer));
      if (timeout === undefined) return;
      timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(
          new HostError("SEND_TIMEOUT", `The model did not answer within ${timeout} ms. The turn continues; session.abort() stops it.`),
        );
      }, timeout);
    });
  }

  #deliver(options: SendOptions | string, streams = false): DeliveredMessage {
    let settle: (end: MessageEnd) => void = () => {};
    const reply = new Promise<AssistantReply>((resolve, reject) => {
      settle = (end) => {
        if (end.kind === "failed") reject(end.error);
        else if (end.reply === undefined) reject(new HostError("TURN_EMPTY", "The turn ended without an answer from the model."));
        else resolve(end.reply);
      };
    });
    return { id: this.#accept(options, settle, streams), reply };
  }

  /** Takes a waiting message back, or stops the turn that answers it. Messages behind it keep their turns. */
  #cancel(id: string): void {
    if (this.unqueue(id) || this.#current === undefined || this.#current.signal.aborted) return;
    if (!this.#agent.answering.includes(id)) return;
    this.#host.events.append("abort", { reason: "user_initiated" });
    this.#current.abort(abortedError());
  }

  /** Stops the running turn and drops waiting messages. Settles when the turn is over; background work is not stopped. */
  async abort(): Promise<void> {
    this.#drop(abortedError());
    const { events } = this.#host;
    const current = this.#current;
    // Nothing that a hook of the session's rest could wait for without waiting for itself.
    if (current === undefined) return;
    if (!current.signal.aborted) {
      events.append("abort", { reason: "user_initiated" });
      current.abort(abortedError());
    }
    await this.#driving;
  }

  async close(reason: Error): Promise<void> {
    this.#closing.abort(reason);
    this.context[Symbol.dispose]();
    this.#drop(reason);
    this.#current?.abort(reason);
    if (this.#endToReport !== undefined && this.#driving === undefined) {
      // Background work is stopped as well.
      this.#endToReport = { kind: "aborted" };
      this.#resume();
    }
    await this.#driving;
  }

  #accept(options: SendOptions | string, settle: ((end: MessageEnd) => void) | undefined, streams = false, position?: number): string {
    const given = readSendOptions(options);
    this.#agent.begin();
    const message = this.#toMessage(given, streams);
    if (settle !== undefined) this.#waiting.set(message.id, settle);
    this.#add(message, position);
    return message.id;
  }

  #toMessage({ prompt, attachments, mode, requestHeaders, source }: SendOptions, streams: boolean): QueuedMessage {
    const isSteering = mode === "immediate" && this.isBusy;
    return {
      id: randomUUID(),
      prompt,
      isSteering,
      attachments: readAttachments(attachments, this.#place),
      headers: requestHeaders,
      streams,
      source,
      delivery: isSteering ? "steering" : this.isBusy ? "queued" : "idle",
    };
  }

  get #place(): Parameters<typeof readAttachments>[1] {
    const { workingDirectory, turn } = this.#host.config;
    return { workingDirectory, additionalDirectories: turn.additionalDirectories };
  }

  #add(message: QueuedMessage, position: number = Number.POSITIVE_INFINITY): void {
    // Begun before the queue announces its change: a listener may send the next message at once.
    this.#resume();
    if (position === Number.POSITIVE_INFINITY) this.#queue.add(message);
    else this.#queue.insert(message, position);
  }

  #resume(): void {
    this.#driving ??= Promise.resolve().then(() => this.#drive());
  }

  /** Never rejects. */
  async #drive(): Promise<void> {
    if (!this.#queue.hasNext) this.#rest();
    for (let message = this.#agent.next(); message !== undefined; message = this.#agent.next()) {
      this.#current = new AbortController();
      if (this.#closing.signal.aborted) this.#current.abort(this.#closing.signal.reason);
      const end = await this.#answer(message, this.#current.signal);
      this.#current = undefined;
      const { answering } = this.#agent;
      this.#endToReport = end;
      if (!this.#queue.hasNext) {
        // The conversation has nothing to do: no message waits.
        const { events, hooks } = this.#host;
        const reason = end.kind === "aborted" ? "abort" : end.kind === "failed" ? "error" : "complete";
        await hooks.run("sessionEnd", { reason }, { signal: this.#closing.signal });
        events.append("assistant.idle", idleData(end));
        this.#rest();
      }
      this.#settle(answering, this.#toMessageEnd(end));
    }
    // Nothing is awaited between the last look at the queue and here.
    this.#driving = undefined;
  }

  async #answer(message: QueuedMessage, signal: AbortSignal): Promise<TurnEnd> {
    const interaction = { interactionId: randomUUID(), signal };
    const total = this.#host.config.turn.maxIterations;
    const run: TurnRun = {
      ...interaction,
      budget: { left: total, total },
      counter: { next: 0 },
      headers: message.headers,
      streams: message.streams,
    };
    try {
      signal.throwIfAborted();
      await this.#host.ready(signal);
      if (message.command !== undefined) {
        const outcome = await waitFor(message.command(signal), { signal });
        if (outcome === "hold") this.#queue.holdCommands();
        if (outcome !== "message") return { kind: "ended", reason: "answered", reply: undefined };
        this.#agent.begin();
      }
      const isToAnswer = await this.#agent.say(message, interaction);
      return isToAnswer ? await this.#runTurns(run) : { kind: "ended", reason: "answered", reply: undefined };
    } catch (error) {
      if (signal.aborted) return { kind: "aborted" };
      await this.#isToBeRetried(toError(error), "system", Number.POSITIVE_INFINITY, signal);
      return this.#fail(toError(error));
    }
  }

  /** The turn, and those that hooks ask for after it. */
  async #runTurns(run: TurnRun): Promise<TurnEnd> {
    const { hooks, events } = this.#host;
    const { signal, interactionId } = run;
    let isBlocked = false;
    let last: AssistantReply | undefined;
    for (let tries = 0; ; ) {
      const end = await runTurn(this.#agent, this.#host, run);
      if (end.kind === "failed") {
        if (await this.#isToBeRetried(end.error, "model_call", tries++, signal)) continue;
        return this.#fail(end.error);
      }
      if (end.kind === "aborted") return end;
      last = end.reply ?? last;
      if (end.reason !== "answered") return { ...end, reply: last };
      const facts = { transcriptPath: transcriptPath(this.#host), stopReason: "end_turn", stop_hook_active: isBlocked } as const;
      const { blockedBy } = await hooks.run("agentStop", facts, { signal });
      if (signal.aborted) return { kind: "aborted" };
      if (blockedBy === undefined) return end;
      isBlocked = true;
      events.append("user.message", { content: blockedBy, source: "hook", interactionId });
    }
  }

  /** Runs the hooks for an error; they may want the request repeated. */
  async #isToBeRetried(error: Error, errorContext: "model_call" | "system", tries: number, signal: AbortSignal): Promise<boolean> {
    const { hooks, events } = this.#host;
    const facts = { error: errorMessage(error), errorContext, recoverable: isRecoverable(error) };
    const { errorHandling, retryCount = 1, userNotifications } = await hooks.run("errorOccurred", facts, { signal });
    for (const message of userNotifications) events.append("session.info", { infoType: "notification", message });
    return errorHandling === "retry" && tries < Math.min(retryCount, mostRetries) && !signal.aborted;
  }

  #fail(error: Error): TurnEnd {
    const { events, log, sessionId } = this.#host;
    // Not an error of ours, and the sender of the message receives it.
    log.warning("A turn failed.", { sessionId, error });
    events.append("session.error", toErrorData(error));
    return { kind: "failed", error };
  }

  /** Emits that the session is idle, unless background work continues: then it does so when that ends. */
  #rest(): void {
    const end = this.#endToReport;
    if (end === undefined || !(this.background.isEmpty || this.#closing.signal.aborted)) return;
    this.#endToReport = undefined;
    const { events } = this.#host;
    events.append("session.idle", idleData(end));
  }

  #toMessageEnd(end: TurnEnd): MessageEnd {
    if (end.kind === "ended") return { kind: "answered", reply: end.reply };
    if (end.kind === "failed") return end;
    return { kind: "failed", error: toError(this.#closing.signal.aborted ? this.#closing.signal.reason : abortedError()) };
  }

  #drop(error: Error): void {
    this.#settle(
      this.#queue.clear().map(({ id }) => id),
      { kind: "failed", error },
    );
  }

  #settle(ids: readonly string[], end: MessageEnd): void {
    for (const id of ids) {
      this.#waiting.get(id)?.(end);
      this.#waiting.delete(id);
    }
  }
}

function idleData({ kind }: TurnEnd): object {
  return kind === "aborted" ? { aborted: true } : {};
}

// A hook that always wants another try would have the model asked for ever.
const mostRetries = 10;

/** The data of `session.error`. Its `errorType` is of the Copilot SDK's words; `errorCode` is ours. */
function toErrorData(error: Error): SessionEventData["session.error"] {
  if (!(error instanceof ModelError)) {
    const code = error instanceof HostError ? { errorCode: error.code } : {};
    return { errorType: "unknown", message: redactText(errorMessage(error)), ...code };
  }
  const { code, status, details } = error;
  return {
    errorType: errorTypes[code],
    errorCode: code,
    message: error.message,
    ...(status !== undefined && { statusCode: status }),
    ...(details.requestId !== undefined && { providerCallId: details.requestId }),
  };
}

const errorTypes: { readonly [Code in ModelErrorCode]: string } = {
  MODEL_AUTH: "authentication",
  MODEL_RATE_LIMITED: "rate_limit",
  MODEL_CONTEXT_TOO_LONG: "context_limit",
  MODEL_HTTP: "query",
  MODEL_UNREACHABLE: "query",
  MODEL_BAD_ANSWER: "query",
  MODEL_ABORTED: "query",
};

/** Whether the same message may do better another time. */
function isRecoverable(error: Error): boolean {
  return error instanceof ModelError && error.retryable;
}

function abortedError(): HostError {
  return new HostError("TURN_ABORTED", "The turn was stopped before the model answered. Send the message again.");
}

/** Work beside the conversation of a session: agents in the background, commands of an attached shell. */
class BackgroundWork {
  readonly #running = new Set<PromiseLike<unknown>>();
  readonly #ended: () => void;

  /** `ended` is called each time the last work has ended. */
  constructor(ended: () => void) {
    this.#ended = ended;
  }

  get isEmpty(): boolean {
    return this.#running.size === 0;
  }

  /** The outcome of the work is the business of its owner: a rejection ends it as well. */
  add(work: PromiseLike<unknown>): void {
    if (this.#running.has(work)) return;
    this.#running.add(work);
    const end = (): void => {
      this.#running.delete(work);
      if (this.isEmpty) this.#ended();
    };
    work.then(end, end);
  }
}
