import { isRecord } from "../base/json.ts";
import type { FinishReason, ModelReply, ModelUsage } from "./model.ts";
import type { PartialReply } from "./model-error.ts";

/** A new part of a reply, without the fields of the transport. */
export type NewPart =
  | { readonly kind: "text" | "reasoning"; readonly text: string }
  | { readonly kind: "tool-input"; readonly toolCallId: string; readonly toolName: string; readonly input: string };

/** The content of a reply, without the fields of the transport. */
export type AssembledReply = Pick<
  ModelReply,
  "content" | "reasoning" | "toolCalls" | "finishReason" | "providerFinishReason" | "usage" | "callId" | "chunkCount" | "replay"
> & { readonly model?: string };

/** Assembles a reply from the events of a stream, or from a complete response. Values of a wrong type count as absent. */
export interface ReplyAssembly {
  /** Whether any part of a reply was received. */
  readonly hasBegun: boolean;
  /** Whether the model finished. Only usage follows. */
  readonly isFinished: boolean;
  /** Whether the protocol announced the end. */
  readonly isOver: boolean;
  readonly partial: PartialReply;
  /** Adds an event or the complete response; returns its new parts in order. */
  add(value: unknown): readonly NewPart[];
  finish(): AssembledReply;
}

/** The optional fields of a reply that are defined. */
export function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined | ""> } {
  const there = Object.entries(fields).filter(([, value]) => value !== undefined && value !== "");
  return Object.fromEntries(there) as { [K in keyof T]?: Exclude<T[K], undefined | ""> };
}

/** The token usage in any of the known formats; undefined if there is none. */
export function readUsage(value: unknown): ModelUsage | undefined {
  if (!isRecord(value)) return undefined;
  const inputTokens = count(value["prompt_tokens"]) ?? count(value["input_tokens"]);
  const outputTokens = count(value["completion_tokens"]) ?? count(value["output_tokens"]);
  if (inputTokens === undefined && outputTokens === undefined) return undefined;
  const input = part(value, "prompt_tokens_details", "input_tokens_details");
  const output = part(value, "completion_tokens_details", "output_tokens_details");
  return {
    inputTokens: inputTokens ?? 0,
    outputTokens: outputTokens ?? 0,
    ...firstCount("totalTokens", value["total_tokens"]),
    ...firstCount("cachedTokens", input["cached_tokens"], value["prompt_cache_hit_tokens"], value["cache_read_input_tokens"]),
    ...firstCount("cacheWriteTokens", input["cache_write_tokens"], input["cache_creation_tokens"], value["cache_creation_input_tokens"]),
    ...firstCount("reasoningTokens", output["reasoning_tokens"], output["thinking_tokens"], value["reasoning_tokens"]),
  };
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined;
}

function part(value: Readonly<Record<string, unknown>>, ...names: readonly string[]): Readonly<Record<string, unknown>> {
  return names.map((name) => value[name]).find(isRecord) ?? {};
}

function firstCount<K extends keyof ModelUsage>(name: K, ...values: readonly unknown[]): { [P in K]?: number } {
  const found = values.map(count).find((value) => value !== undefined);
  return (found === undefined ? {} : { [name]: found }) as { [P in K]?: number };
}

/** The finish reason of a reply, and the endpoint's own value. */
interface Finish {
  readonly finishReason: FinishReason;
  readonly providerFinishReason?: string;
}

const reasonWords: Readonly<Record<FinishReason, readonly string[]>> = {
  "content-filter": ["content_filter", "safety", "refusal", "recitation"],
  length: ["length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded"],
  "tool-calls": ["tool_calls", "function_call", "tool_use"],
  stop: ["stop", "end_turn", "eos", "eos_token", "stop_sequence", "complete", "completed"],
  other: [],
};

/** Normalizes the finish reasons of an endpoint. Of several choices, an abnormal one decides. Many servers report "stop" for tool calls. */
export function finishOf(words: readonly string[], hasToolCalls: boolean): Finish {
  const found = words.map((word) => ({ word, reason: reasonOf(word) }));
  const wordOf = (...reasons: readonly FinishReason[]): string | undefined => found.find(({ reason }) => reasons.includes(reason))?.word;
  for (const reason of ["content-filter", "length"] as const) {
    const word = wordOf(reason);
    if (word !== undefined) return toFinish(reason, word);
  }
  if (hasToolCalls) return toFinish("tool-calls", wordOf("tool-calls") ?? words[0]);
  const word = wordOf("stop", "tool-calls");
  return word === undefined ? toFinish("other", words[0]) : toFinish("stop", word);
}

function reasonOf(word: string): FinishReason {
  const known = Object.entries(reasonWords).find(([, words]) => words.includes(word.toLowerCase()));
  return (known?.[0] ?? "other") as FinishReason;
}

function toFinish(finishReason: FinishReason, word: string | undefined): Finish {
  return { finishReason, ...(word !== undefined && { providerFinishReason: word }) };
}
