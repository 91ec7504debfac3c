import { isRecord } from "../base/json.ts";
import type { AssistantMessage, ChatMessage, ModelToolCall, ReplayFields } from "./model.ts";

/**
 * The order of a reply's thinking blocks, text and calls. Some APIs require thinking blocks unchanged, at the same position,
 * and for the same model. Text and calls are not repeated, because the message contains them. Plain JSON, because it is logged.
 */
export type LayoutPart =
  | { readonly kind: "thought"; readonly item: Readonly<Record<string, unknown>> }
  /** The number of characters of the message's text. */
  | { readonly kind: "text"; readonly length: number; readonly phase?: string }
  | { readonly kind: "call" };

/** A part of a message to be sent. */
export type MessagePiece =
  | Extract<LayoutPart, { kind: "thought" }>
  | { readonly kind: "text"; readonly text: string; readonly phase?: string }
  | { readonly kind: "call"; readonly call: ModelToolCall };

export interface LayoutOwner {
  /** The API, and the model's name there. */
  readonly api: "messages" | "responses";
  readonly model: string;
}

/** The layout of a reply, if it has parts that must be sent again. */
export function toReplay({ api, model }: LayoutOwner, parts: readonly LayoutPart[]): ReplayFields | undefined {
  const matters = parts.some((part) => part.kind === "thought" || (part.kind === "text" && part.phase !== undefined));
  return matters ? { [api]: { model, parts } } : undefined;
}

/** Whether a message has thinking blocks of this API and model that were not refused. */
export function hasThoughts(message: AssistantMessage, owner: LayoutOwner, refused: WeakSet<object>): boolean {
  return layoutOf(message, owner, refused).some((part) => part.kind === "thought");
}

/** Marks the thinking blocks in these messages as refused. Returns whether there were any. */
export function refuseThoughts(messages: readonly ChatMessage[], owner: LayoutOwner, refused: WeakSet<object>): boolean {
  const thoughtful = messages.filter(
    (message): message is AssistantMessage => message.role === "assistant" && hasThoughts(message, owner, refused),
  );
  for (const { replay } of thoughtful) if (replay !== undefined) refused.add(replay);
  return thoughtful.length > 0;
}

/** The parts of a message in order of arrival, without empty text and trailing thinking blocks, which endpoints refuse. */
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

// The message may have been changed since.
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
