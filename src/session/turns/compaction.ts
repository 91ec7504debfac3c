import { errorMessage, HostError, toError } from "../../base/errors.ts";
import { onAbort, waitFor } from "../../base/wait.ts";
import type { ChatMessage, CompleteOptions, MessagePart, ModelReply, ModelRequest } from "../../models/model.ts";
import { ModelError } from "../../models/model-error.ts";
import type { ToolDefinition } from "../../tools/tool.ts";
import { assembleMessages } from "../history/conversation-history.ts";
import type { SessionEventData } from "../history/event-types.ts";
import { asideRequest, compactionInstruction, compactionRequest } from "../prompt/model-text.ts";
import { estimateTokens } from "../prompt/system-prompt.ts";
import type { TurnModel } from "./turn-options.ts";
import type { ContextLimit, ModelCall, RequestParts, TurnContext } from "./turn-types.ts";

/** What made a conversation shorter, in the Copilot SDK's words. */
type CompactionTrigger = "threshold" | "context_limit_retry" | "manual";

/** How full a model's context is, by an estimate. */
export interface ContextUse {
  readonly tokenLimit: number;
  readonly currentTokens: number;
  readonly systemTokens: number;
  readonly conversationTokens: number;
  readonly toolDefinitionsTokens: number;
}

interface CompactionRequest {
  readonly trigger: CompactionTrigger;
  readonly model: TurnModel;
  readonly use: ContextUse;
  readonly messages: readonly ChatMessage[];
  /** The conversation with its system message and tools, as it was sent. Absent: it was not, or it is too long to be sent again. */
  readonly dialogue?: Dialogue | undefined;
  /** Counts the summaries of the session. */
  readonly checkpointNumber: number;
  readonly customInstructions?: string | undefined;
}

interface Dialogue {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
}

export type Compaction =
  | { readonly kind: "done"; readonly summary: string; readonly messagesRemoved: number; readonly tokensRemoved: number }
  | { readonly kind: "failed"; readonly error: Error }
  | { readonly kind: "cancelled" };

/**
 * Lets the model summarise a conversation and emits the events from which its history is made: with the success the
 * messages give way to the summary, and what was said meanwhile stays behind it. Never rejects.
 */
async function compact(request: CompactionRequest, host: TurnContext, signal: AbortSignal): Promise<Compaction> {
  const { events, log } = host;
  const { model, use, messages, trigger, customInstructions } = request;
  events.append("session.compaction_start", { model: model.chat.id, trigger, ...use });
  const end = (data: Omit<SessionEventData["session.compaction_complete"], "trigger" | "customInstructions">): void => {
    const instructions = customInstructions !== undefined && { customInstructions };
    events.append("session.compaction_complete", { trigger, ...instructions, ...data });
  };
  try {
    const reply = await summarize(request, model, customInstructions, signal);
    const tokensRemoved = Math.max(0, use.conversationTokens - estimateTokens(reply.content.length));
    const messagesRemoved = messages.length;
    const stored = await storeCheckpoint(reply.content, host);
    end({
      success: true,
      checkpointNumber: stored?.number ?? request.checkpointNumber,
      ...(stored && { checkpointPath: stored.path }),
      summaryContent: reply.content,
      messagesRemoved,
      tokensRemoved,
      preCompactionMessagesLength: messages.length,
      preCompactionTokens: use.currentTokens,
      postCompactionTokens: use.currentTokens - tokensRemoved,
      ...(reply.usage && { compactionTokensUsed: { ...tokensUsed(reply), duration: reply.duration } }),
    });
    return { kind: "done", summary: reply.content, messagesRemoved, tokensRemoved };
  } catch (error) {
    end({ success: false, error: errorMessage(error) });
    if (signal.aborted) return { kind: "cancelled" };
    log.warning("A conversation could not be compacted; it continues unchanged.", { error: toError(error) });
    return { kind: "failed", error: toError(error) };
  }
}

/** Stores a summary as a file of a stored session. Undefined: it was not; the conversation has it in any case. */
async function storeCheckpoint(summary: string, { checkpoints, log }: TurnContext): Promise<{ number: number; path: string } | undefined> {
  const [, title = ""] = /<checkpoint_title>([^<]*)<\/checkpoint_title>/.exec(summary) ?? [];
  try {
    return await checkpoints?.addCheckpoint(title, summary);
  } catch (error) {
    log.warning("The summary of a conversation could not be stored as a checkpoint.", { error: toError(error) });
    return undefined;
  }
}

type Writer = Pick<TurnModel, "chat" | "contextTokens">;

interface Summarized {
  readonly messages: readonly ChatMessage[];
  readonly dialogue?: Dialogue | undefined;
}

/**
 * A summary of a conversation. The model is asked at its end, which lets endpoints use what they cached of it, or about a
 * transcript of it where that does not fit. Rejects as the model does, and when it says nothing.
 */
export async function summarize(
  { messages, dialogue }: Summarized,
  writer: Writer,
  instructions: string | undefined,
  signal: AbortSignal,
): Promise<ModelReply> {
  const options = { signal, origin: { kind: "compaction" } } as const;
  if (dialogue !== undefined) {
    try {
      return await continueDialogue(dialogue, compactionInstruction(instructions), writer, options);
    } catch (error) {
      if (!(error instanceof ModelError && error.code === "MODEL_CONTEXT_TOO_LONG")) throw error;
    }
  }
  return write((transcript) => compactionRequest(transcript, instructions), messages, writer, options);
}

/** An answer to a question about a conversation. */
export function askAbout(messages: readonly ChatMessage[], question: string, writer: Writer, signal: AbortSignal): Promise<ModelReply> {
  return write((transcript) => asideRequest(transcript, question), messages, writer, { signal, origin: { kind: "aside" } });
}

function continueDialogue({ messages, tools }: Dialogue, content: string, writer: Writer, options: CompleteOptions): Promise<ModelReply> {
  const asked = [...messages, { role: "user", content }] as const;
  return askFor({ messages: asked, ...(tools.length > 0 && { tools, toolChoice: "none" }) }, writer, options);
}

function write(
  toContent: (transcript: string) => string,
  messages: readonly ChatMessage[],
  writer: Writer,
  options: CompleteOptions,
): Promise<ModelReply> {
  // What is left of the window is for the request's own words and for the answer.
  const content = toContent(transcriptOf(messages, writer.contextTokens * charactersPerToken * 0.6));
  return askFor({ messages: [{ role: "user", content }] }, writer, options);
}

async function askFor(request: ModelRequest, { chat }: Writer, options: CompleteOptions): Promise<ModelReply> {
  const reply = await chat.complete({ ...request, stream: false, headers: { "x-initiator": "agent" } }, options);
  options.signal.throwIfAborted();
  if (reply.content.trim() === "") throw new Error("The model returned an empty summary.");
  return reply;
}

// Rather fewer than English has: text that counts for more must fit, too.
const charactersPerToken = 3;
const shortestCut = 500;

/** A conversation as text. Where it is too long, the longest parts of it are cut. */
function transcriptOf(messages: readonly ChatMessage[], maxCharacters: number): string {
  const parts = messages.map(describe);
  let longest = Math.max(0, ...parts.map(({ length }) => length));
  while (totalOf(parts, longest) > maxCharacters && longest > shortestCut) longest = Math.max(shortestCut, Math.floor(longest / 2));
  const cut = parts.map((part) => shortened(part, longest));
  // Of a conversation of very many messages the newest count most.
  while (totalOf(cut, longest) > maxCharacters && cut.length > 1) cut.shift();
  return cut.join("\n\n");
}

function totalOf(parts: readonly string[], longest: number): number {
  return parts.reduce((sum, { length }) => sum + Math.min(length, longest) + 2, 0);
}

function shortened(text: string, length: number): string {
  if (text.length <= length) return text;
  const half = Math.floor(length / 2);
  return `${text.slice(0, half)}\n[… ${text.length - 2 * half} characters left out …]\n${text.slice(-half)}`;
}

function describe(message: ChatMessage): string {
  switch (message.role) {
    case "assistant": {
      const calls = (message.toolCalls ?? []).map(({ name, argumentsText }) => `[calls ${name} with ${argumentsText}]`);
      return ["assistant:", message.content, ...calls].filter((part) => part !== "").join("\n");
    }
    case "tool":
      return `result:\n${message.content}`;
    default:
      return `${message.role}:\n${typeof message.content === "string" ? message.content : message.content.map(textOf).join("\n")}`;
  }
}

function textOf(part: MessagePart): string {
  if (part.type === "text") return part.text;
  return part.type === "document" ? `[the document ${part.title ?? "attachment"}]` : "[an image]";
}

function tokensUsed({ usage }: ModelReply): object {
  return {
    inputTokens: usage?.inputTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    cacheReadTokens: usage?.cachedTokens ?? 0,
    cacheWriteTokens: usage?.cacheWriteTokens ?? 0,
  };
}

interface Running {
  readonly trigger: CompactionTrigger;
  readonly stop: AbortController;
  readonly ended: Promise<Compaction>;
}

/** Keeps the conversation of a session within what its model takes, by summaries in the place of what was said. */
export class Compactor implements ContextLimit, Disposable {
  readonly #host: TurnContext;
  #parts: RequestParts | undefined;
  #running: Running | undefined;
  /** How many tokens the endpoint counts where one is estimated. */
  #ratio = 1;
  #estimated = 0;
  /** How long the conversation was when it last could not be made shorter: trying again at once would not help. */
  #hopelessAt = 0;
  #closed = false;

  constructor(host: TurnContext) {
    this.#host = host;
  }

  /** Before a request: makes room if there is little, meanwhile while there is enough for a while. Rejects when the signal fires. */
  async makeRoom(parts: RequestParts, signal: AbortSignal): Promise<void> {
    this.#parts = parts;
    const use = this.use()!;
    this.#estimated = use.currentTokens;
    const { infinite } = this.#host.config.turn;
    if (infinite === undefined) return;
    const full = (use.currentTokens * this.#ratio) / use.tokenLimit;
    if (full < infinite.backgroundThreshold || !this.#isWorthwhile(use)) return;
    const running = this.#running ?? this.#start("threshold", use);
    if (full >= infinite.exhaustionThreshold) await untilEnded(running, signal);
  }

  /** After a request that was too long. False: it can be made no shorter. */
  async makeRoomAnyway(signal: AbortSignal): Promise<boolean> {
    const use = this.use();
    if (this.#host.config.turn.infinite === undefined || use === undefined || !this.#isWorthwhile(use)) return false;
    const end = await untilEnded(this.#running ?? this.#start("context_limit_retry", use), signal);
    return end.kind === "done";
  }

  /** What an answer took by the endpoint's own count. */
  learn({ usage }: ModelReply): void {
    if (usage === undefined || usage.inputTokens <= 0 || this.#estimated <= 0) return;
    // A strange count must neither hide that the window is full nor have it summarised again and again.
    this.#ratio = Math.min(4, Math.max(0.5, usage.inputTokens / this.#estimated));
  }

  /** How full the context was at the last request, with what was said since; undefined: there was none. */
  use(): ContextUse | undefined {
    if (this.#parts === undefined) return undefined;
    const { model, system, tools } = this.#parts;
    return contextUse({ model, tools, messages: assembleMessages(system, this.#host.recording.history, model) });
  }

  /** Shortens the conversation on request. @throws HostError `COMPACTION`. */
  async compactNow(model: TurnModel, customInstructions: string | undefined, signal: AbortSignal): Promise<Compaction> {
    if (this.#running !== undefined) throw new HostError("COMPACTION", "The conversation is already being compacted.");
    this.#parts ??= { model, system: "", tools: [] };
    const use = this.use()!;
    return untilEnded(this.#start("manual", use, customInstructions), signal, true);
  }

  /** Stops a compaction that was requested, or one that began by itself. False: there is none. */
  cancel(which: "manual" | "background"): boolean {
    const running = this.#running;
    if (running === undefined || (running.trigger === "manual") !== (which === "manual")) return false;
    running.stop.abort();
    return true;
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.#running?.stop.abort();
  }

  #start(trigger: CompactionTrigger, use: ContextUse, customInstructions?: string): Running {
    const { history } = this.#host.recording;
    const request: CompactionRequest = {
      trigger,
      model: this.#parts!.model,
      use,
      messages: history.messages(),
      dialogue: this.#dialogue(use),
      checkpointNumber: history.compactions + 1,
      customInstructions,
    };
    const stop = new AbortController();
    if (this.#closed) stop.abort();
    const ended = compact(request, this.#host, stop.signal).then((end) => {
      this.#running = undefined;
      this.#hopelessAt = this.#host.recording.history.messages().length;
      return end;
    });
    this.#running = { trigger, stop, ended };
    return this.#running;
  }

  /** The conversation as the model knows it, with room for a summary. Undefined: it does not fit, or its calls could not be sent. */
  #dialogue({ currentTokens, tokenLimit }: ContextUse): Dialogue | undefined {
    const { model, system, tools } = this.#parts!;
    const messages = assembleMessages(system, this.#host.recording.history, model);
    const fits = currentTokens * this.#ratio <= tokenLimit * roomiestShare;
    // Endpoints refuse calls of tools that a request does not describe.
    const isComplete = tools.length > 0 || messages.every(({ role }) => role !== "tool");
    return fits && isComplete ? { messages, tools } : undefined;
  }

  /** What the tools and the instructions take cannot be summarised. */
  #isWorthwhile({ conversationTokens, tokenLimit }: ContextUse): boolean {
    const { length } = this.#host.recording.history.messages();
    const isNew = this.#hopelessAt === 0 || length < this.#hopelessAt || length >= this.#hopelessAt + fewMessages;
    // Who wants a conversation kept that small means it.
    const threshold = this.#host.config.turn.infinite?.backgroundThreshold ?? 1;
    const [fewest, share] = threshold < smallShare ? [fewMessages - 1, threshold / 10] : [fewMessages, smallShare];
    return this.#running !== undefined || (isNew && length >= fewest && conversationTokens * this.#ratio >= tokenLimit * share);
  }
}

const fewMessages = 3;
/** With more of its window in use, a model has no room to write a summary behind the conversation. */
const roomiestShare = 0.9;
const smallShare = 0.1;

async function untilEnded({ ended, stop }: Running, signal: AbortSignal, stopsIt = false): Promise<Compaction> {
  const stopping = onAbort(signal, () => {
    if (stopsIt) stop.abort();
  });
  try {
    return await waitFor(ended, { signal });
  } finally {
    stopping[Symbol.dispose]();
  }
}

/** Emits how much of the model's context the next request takes, by an estimate. */
export function emitUsageInfo(call: ModelCall, { events }: TurnContext): void {
  const { agent, messages } = call;
  events.append("session.usage_info", () => ({ ...contextUse(call), messagesLength: messages.length }), agent.agentId);
}

/** How full a model's context is with a request, by an estimate. */
function contextUse({ model, messages, tools }: Pick<ModelCall, "model" | "messages" | "tools">): ContextUse {
  const system = messages[0]?.role === "system" ? sizeOfMessage(messages[0]) : 0;
  const sizes = [system, sizeOf(messages) - system, sizeOfTools(tools)] as const;
  const [systemTokens = 0, conversationTokens = 0, toolDefinitionsTokens = 0] = sizes.map(estimateTokens);
  const currentTokens = systemTokens + conversationTokens + toolDefinitionsTokens;
  return { tokenLimit: model.contextTokens, currentTokens, systemTokens, conversationTokens, toolDefinitionsTokens };
}

/** Emits the usage of an answer, as the endpoint counts it. */
export function emitUsage(call: ModelCall, { events }: TurnContext, reply: ModelReply): void {
  const { usage, duration, timeToFirstToken, finishReason, toolCalls, apiEndpoint, callId, requestId, model } = reply;
  const data: SessionEventData["assistant.usage"] = {
    model,
    initiator: initiatorOf(call),
    ...(usage && {
      inputTokens: usage.inputTokens,
      outputTokens: usage.outputTokens,
      cacheReadTokens: usage.cachedTokens ?? 0,
      cacheWriteTokens: usage.cacheWriteTokens ?? 0,
      ...(usage.reasoningTokens !== undefined && { reasoningTokens: usage.reasoningTokens }),
    }),
    duration,
    ...(timeToFirstToken !== undefined && { timeToFirstTokenMs: timeToFirstToken }),
    finishReason,
    ...(finishReason === "content-filter" && { contentFilterTriggered: true }),
    availableToolCount: call.tools.length,
    toolTokenCount: estimateTokens(sizeOfTools(call.tools)),
    numToolCalls: toolCalls.length,
    toolCounts: countByName(toolCalls),
    interactionType: call.agent.agentId === undefined ? "conversation-agent" : "conversation-subagent",
    maxPromptTokens: call.model.contextTokens,
    ...(apiEndpoint && { apiEndpoint, transport: apiEndpoint === "ws:/responses" ? "websocket" : "http" }),
    ...(callId !== undefined && { apiCallId: callId }),
    ...(requestId !== undefined && { providerCallId: requestId }),
  };
  events.append("assistant.usage", data, call.agent.agentId);
}

function countByName(calls: ModelReply["toolCalls"]): Readonly<Record<string, number>> {
  const counts = new Map<string, number>();
  for (const { name } of calls) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Object.fromEntries(counts);
}

const messageSizes = new WeakMap<ChatMessage, number>();

/** A conversation is asked for again and again: only what is new in it is counted. */
function sizeOf(messages: readonly ChatMessage[]): number {
  let sum = 0;
  for (const message of messages) {
    let size = messageSizes.get(message);
    if (size === undefined) {
      size = sizeOfMessage(message);
      messageSizes.set(message, size);
    }
    sum += size;
  }
  return sum;
}

function sizeOfMessage(message: ChatMessage): number {
  if (message.role === "assistant") {
    return (message.toolCalls ?? []).reduce((size, call) => size + call.name.length + call.argumentsText.length, message.content.length);
  }
  if (typeof message.content === "string") return message.content.length;
  return message.content.reduce((size, part) => size + (part.type === "text" ? part.text.length : pictureSize), 0);
}

// Endpoints count a picture as 85 to 1,600 tokens, whatever its bytes.
const pictureSize = 4_000;

/** Who caused a request: the first of an interaction a user, the others the agent. */
export function initiatorOf({ agent, turnId }: Pick<ModelCall, "agent" | "turnId">): "user" | "agent" {
  return agent.agentId === undefined && turnId === "0" ? "user" : "agent";
}

const sizes = new WeakMap<readonly ToolDefinition[], number>();

function sizeOfTools(tools: readonly ToolDefinition[]): number {
  const known = sizes.get(tools);
  if (known !== undefined) return known;
  const size = tools.reduce((sum, { name, description = "", parameters }) => {
    return sum + name.length + description.length + (parameters === undefined ? 0 : JSON.stringify(parameters).length);
  }, 0);
  sizes.set(tools, size);
  return size;
}
