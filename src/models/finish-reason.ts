import { isPlainRecord } from "../base/read-fields.ts";
import type { FinishReason, ModelUsage } from "./model.ts";

/** Why an answer ended, and the endpoint's own word that says so. */
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

/**
 * What the words of an endpoint come to. Of several choices, the one that something happened to decides. Many servers
 * say "stop" when they mean tool calls.
 */
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

/** What an endpoint says about tokens, in any of the dialects in use; undefined when that is nothing. */
export function readUsage(value: unknown): ModelUsage | undefined {
  if (!isPlainRecord(value)) return undefined;
  const inputTokens = count(value["prompt_tokens"]) ?? count(value["input_tokens"]);
  const outputTokens = count(value["completion_tokens"]) ?? count(value["output_tokens"]);
  if (inputTokens === undefined && outputTokens === undefined) return undefined;
  const input = part(value, "prompt_tokens_details", "input_tokens_details");
  const output = part(value, "completion_tokens_details", "output_tokens_details");
  return {
    inputTokens: inputTokens ?? 0,
    outputTokens: outputTokens ?? 0,
    ...given("totalTokens", value["total_tokens"]),
    ...given("cachedTokens", input["cached_tokens"], value["prompt_cache_hit_tokens"], value["cache_read_input_tokens"]),
    ...given("cacheWriteTokens", input["cache_write_tokens"], input["cache_creation_tokens"], value["cache_creation_input_tokens"]),
    ...given("reasoningTokens", output["reasoning_tokens"], output["thinking_tokens"], value["reasoning_tokens"]),
  };
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined;
}

function part(value: Readonly<Record<string, unknown>>, ...names: readonly string[]): Readonly<Record<string, unknown>> {
  return names.map((name) => value[name]).find(isPlainRecord) ?? {};
}

function given<K extends keyof ModelUsage>(name: K, ...values: readonly unknown[]): { [P in K]?: number } {
  const found = values.map(count).find((value) => value !== undefined);
  return (found === undefined ? {} : { [name]: found }) as { [P in K]?: number };
}
