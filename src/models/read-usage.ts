import { isRecord } from "../base/json.ts";
import type { ModelUsage } from "./model.ts";

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
  return names.map((name) => value[name]).find(isRecord) ?? {};
}

function given<K extends keyof ModelUsage>(name: K, ...values: readonly unknown[]): { [P in K]?: number } {
  const found = values.map(count).find((value) => value !== undefined);
  return (found === undefined ? {} : { [name]: found }) as { [P in K]?: number };
}
