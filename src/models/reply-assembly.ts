import type { ModelReply } from "./model.ts";
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
