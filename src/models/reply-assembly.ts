import { isRecord } from "../base/json.ts";
import type { AssistantMessage, ChatMessage, ModelReply, ModelToolCall, ReplayFields } from "./model.ts";
import type { PartialReply } from "./model-error.ts";

/** Something new in an answer, without what the exchange knows. */
export type NewPart =
  | { readonly kind: "text" | "reasoning"; readonly text: string }
  | { readonly kind: "tool-input"; readonly toolCallId: string; readonly toolName: string; readonly input: string };

/** What an answer says, as far as its own bytes tell. */
export type AssembledReply = Pick<
  ModelReply,
  "content" | "reasoning" | "toolCalls" | "finishReason" | "providerFinishReason" | "usage" | "callId" | "chunkCount" | "replay"
> & { readonly model?: string };

/** Puts a reply together from the events of one answer, or from a whole one. Anything of a wrong type counts as absent. */
export interface ReplyAssembly {
  /** Whether anything looked like an answer. */
  readonly hasBegun: boolean;
  /** Whether the model said that it is done. No more than counts come after that. */
  readonly isFinished: boolean;
  /** Whether the protocol said that nothing comes any more. */
  readonly isOver: boolean;
  readonly partial: PartialReply;
  /** Takes in an event, or the whole; tells what is new in it, in order. */
  add(value: unknown): readonly NewPart[];
  finish(): AssembledReply;
}

/** The optional fields of a reply that are there. */
export function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined | ""> } {
  const there = Object.entries(fields).filter(([, value]) => value !== undefined && value !== "");
  return Object.fromEntries(there) as { [K in keyof T]?: Exclude<T[K], undefined | ""> };
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/**
 * In what order an answer's thoughts, text and calls came. Some APIs want thoughts back unchanged, at their place, and by
 * the model that had them. Text and calls are not repeated: the message has them. Plain JSON, since logs keep it.
 */
export type LayoutPart =
  | { readonly kind: "thought"; readonly item: Readonly<Record<string, unknown>> }
  /** So many characters of the message's text. */
  | { readonly kind: "text"; readonly length: number; readonly phase?: string }
  | { readonly kind: "call" };

/** A part of a message that is about to be sent. */
export type MessagePiece =
  | Extract<LayoutPart, { kind: "thought" }>
  | { readonly kind: "text"; readonly text: string; readonly phase?: string }
  | { readonly kind: "call"; readonly call: ModelToolCall };

export interface LayoutOwner {
  /** The API, and the model's name there. */
  readonly api: "messages" | "responses";
  readonly model: string;
}

/** What is to be kept of an answer, if it has anything that must be seen again. */
export function toReplay({ api, model }: LayoutOwner, parts: readonly LayoutPart[]): ReplayFields | undefined {
  const matters = parts.some((part) => part.kind === "thought" || (part.kind === "text" && part.phase !== undefined));
  return matters ? { [api]: { model, parts } } : undefined;
}

/** Whether a message has thoughts of this API and model, and they were not refused before. */
export function hasThoughts(message: AssistantMessage, owner: LayoutOwner, refused: WeakSet<object>): boolean {
  return layoutOf(message, owner, refused).some((part) => part.kind === "thought");
}

/** Marks the thoughts in these messages as refused. Whether there were any. */
export function refuseThoughts(messages: readonly ChatMessage[], owner: LayoutOwner, refused: WeakSet<object>): boolean {
  const thoughtful = messages.filter(
    (message): message is AssistantMessage => message.role === "assistant" && hasThoughts(message, owner, refused),
  );
  for (const { replay } of thoughtful) if (replay !== undefined) refused.add(replay);
  return thoughtful.length > 0;
}

/** The parts of a message in the order in which they came, without empty text and thoughts that nothing follows: both are refused. */
export function arrange(message: AssistantMessage, owner: LayoutOwner, refused: WeakSet<object>): readonly MessagePiece[] {
  const layout = layoutOf(message, owner, refused);
  const pieces = fits(layout, message) ? place(layout, message) : [...layout.filter((part) => part.kind === "thought"), ...plain(message)];
  const said = pieces.filter((piece) => piece.kind !== "text" || piece.text.trim() !== "");
  return said.slice(0, said.findLastIndex((piece) => piece.kind !== "thought") + 1);
}

function layoutOf({ replay }: AssistantMessage, { api, model }: LayoutOwner, refused: WeakSet<object>): readonly LayoutPart[] {
  const kept = !isRecord(replay) || refused.has(replay) ? undefined : replay[api];
  if (!isRecord(kept) || kept["model"] !== model || !Array.isArray(kept["parts"])) return [];
  return kept["parts"].filter(isLayoutPart);
}

function isLayoutPart(part: unknown): part is LayoutPart {
  if (!isRecord(part)) return false;
  if (part["kind"] === "thought") return isRecord(part["item"]);
  if (part["kind"] === "text") return Number.isSafeInteger(part["length"]) && ["string", "undefined"].includes(typeof part["phase"]);
  return part["kind"] === "call";
}

function plain({ content, toolCalls = [] }: AssistantMessage): readonly MessagePiece[] {
  return [{ kind: "text", text: content }, ...toolCalls.map((call) => ({ kind: "call" as const, call }))];
}

// A message may have been changed since.
function fits(layout: readonly LayoutPart[], { content, toolCalls = [] }: AssistantMessage): boolean {
  const length = layout.reduce((sum, part) => sum + (part.kind === "text" ? part.length : 0), 0);
  return length === content.length && layout.filter((part) => part.kind === "call").length === toolCalls.length;
}

function place(layout: readonly LayoutPart[], { content, toolCalls = [] }: AssistantMessage): readonly MessagePiece[] {
  let [start, count] = [0, 0];
  return layout.map((part): MessagePiece => {
    if (part.kind === "thought") return part;
    if (part.kind === "call") return { kind: "call", call: toolCalls[count++] as ModelToolCall };
    start += part.length;
    const text = content.slice(start - part.length, start);
    return { kind: "text", text, ...(part.phase === undefined ? {} : { phase: part.phase }) };
  });
}
