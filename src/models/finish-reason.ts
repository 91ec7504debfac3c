import type { FinishReason } from "./model.ts";

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
