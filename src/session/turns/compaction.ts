import { errorMessage, toError } from "../../base/errors.ts";
import type { ChatMessage, CompleteOptions, MessagePart, ModelReply } from "../../models/model.ts";
import { asideRequest, compactionRequest } from "../instructions/model-text.ts";
import { estimateTokens } from "../instructions/skill-listing.ts";
import type { TurnModel } from "./turn-model.ts";
import type { TurnHost } from "./turn-types.ts";

/** What made a conversation shorter, in the Copilot SDK's words. */
export type CompactionTrigger = "threshold" | "context_limit_retry" | "manual";

/** How full a model's context is, by an estimate. */
export interface ContextUse {
  readonly tokenLimit: number;
  readonly currentTokens: number;
  readonly systemTokens: number;
  readonly conversationTokens: number;
  readonly toolDefinitionsTokens: number;
}

export interface CompactionRequest {
  readonly trigger: CompactionTrigger;
  readonly model: TurnModel;
  readonly use: ContextUse;
  readonly messages: readonly ChatMessage[];
  readonly customInstructions?: string | undefined;
}

export type Compaction =
  | { readonly kind: "done"; readonly summary: string; readonly messagesRemoved: number; readonly tokensRemoved: number }
  | { readonly kind: "failed"; readonly error: Error }
  | { readonly kind: "cancelled" };

/**
 * Has the model summarise a conversation and tells the events, from which its history is made: with the success the
 * messages give way to the summary, and what was said meanwhile stays behind it. Never rejects.
 */
export async function compact(request: CompactionRequest, { events, log }: TurnHost, signal: AbortSignal): Promise<Compaction> {
  const { model, use, messages, trigger, customInstructions } = request;
  events.append("session.compaction_start", { model: model.chat.id, trigger, ...use });
  const end = (data: object): void => {
    const wish = customInstructions !== undefined && { customInstructions };
    events.append("session.compaction_complete", { trigger, ...wish, ...data });
  };
  try {
    const reply = await summarize(messages, model, customInstructions, signal);
    const tokensRemoved = Math.max(0, use.conversationTokens - estimateTokens(reply.content.length));
    const messagesRemoved = messages.length;
    end({
      success: true,
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

type Writer = Pick<TurnModel, "chat" | "contextTokens">;

/** A summary of a conversation. Rejects as the model does, and when it says nothing. */
export function summarize(
  messages: readonly ChatMessage[],
  writer: Writer,
  wishes: string | undefined,
  signal: AbortSignal,
): Promise<ModelReply> {
  return write((transcript) => compactionRequest(transcript, wishes), messages, writer, { signal, origin: { kind: "compaction" } });
}

/** An answer to a question about a conversation. */
export function askAbout(messages: readonly ChatMessage[], question: string, writer: Writer, signal: AbortSignal): Promise<ModelReply> {
  return write((transcript) => asideRequest(transcript, question), messages, writer, { signal, origin: { kind: "aside" } });
}

async function write(
  toContent: (transcript: string) => string,
  messages: readonly ChatMessage[],
  { chat, contextTokens }: Writer,
  options: CompleteOptions,
): Promise<ModelReply> {
  // What is left of the window is for the request's own words and for the answer.
  const content = toContent(transcriptOf(messages, contextTokens * charactersPerToken * 0.6));
  const request = { messages: [{ role: "user", content }] as const, stream: false, headers: { "x-initiator": "agent" } };
  const reply = await chat.complete(request, options);
  options.signal.throwIfAborted();
  if (reply.content.trim() === "") throw new Error("The model wrote nothing.");
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
  return part.type === "text" ? part.text : "[an image]";
}

function tokensUsed({ usage }: ModelReply): object {
  return {
    inputTokens: usage?.inputTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    cacheReadTokens: usage?.cachedTokens ?? 0,
    cacheWriteTokens: usage?.cacheWriteTokens ?? 0,
  };
}
