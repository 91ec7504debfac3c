import { AnthropicAssembly } from "./assemble-anthropic.ts";
import { type AnthropicDialect, encodeAnthropicRequest } from "./encode-anthropic.ts";
import { refuseThoughts } from "./reply-layout.ts";
import type { Protocol, Refusal } from "./wire-model.ts";

/** `/v1/messages`, the protocol of Anthropic. `model` is its name there. */
export function anthropicMessages(model: string): Protocol<AnthropicDialect> {
  return {
    path: "/messages",
    essence: "content",
    dialect: {
      thinking: withBudget.test(model) ? "budget" : "adaptive",
      outputLimit: Number.POSITIVE_INFINITY,
      canCache: true,
      canSetTemperature: true,
      refused: new WeakSet(),
    },
    encode: (request, isStream, dialect) => encodeAnthropicRequest(model, request, isStream, dialect),
    learn: (refusal, dialect) => learnAnthropicDialect(refusal, dialect, model),
    assemble: (toolCalls) => new AnthropicAssembly(toolCalls, model),
  };
}

// The models that have to be told how many tokens they may think with; later ones refuse to be told.
const withBudget = /claude-3|(?:opus|sonnet|haiku)-4(?:[.-][015])?(?:$|[-@:]20|[-@:]latest)/i;

const lesserThinking = { adaptive: "budget", budget: "none", none: "none" } as const;

function learnAnthropicDialect({ said, body, request }: Refusal, dialect: AnthropicDialect, model: string): AnthropicDialect | undefined {
  const owner = { api: "messages", model } as const;
  const isAboutThoughts = /signature|thinking.{0,3} blocks?\b|messages\.\d+.*thinking/i.test(said);
  if (isAboutThoughts && refuseThoughts(request.messages, owner, dialect.refused)) return dialect;
  const limit = Number(/max_tokens.*?(?:>|at most|less than or equal to|maximum of)\s*(\d+)/i.exec(said)?.[1]);
  if (limit >= 1 && limit < (body["max_tokens"] as number)) return { ...dialect, outputLimit: limit };
  if (dialect.canCache && said.includes("cache_control")) return { ...dialect, canCache: false };
  // A word for the effort that the API does not know is somebody's mistake.
  const isAboutThinking = /thinking|adaptive|effort|output_config|budget/i.test(said) && !/effort\W.*(?:should|must) be/i.test(said);
  if (body["thinking"] !== undefined && isAboutThinking) return { ...dialect, thinking: lesserThinking[dialect.thinking] };
  return body["temperature"] !== undefined && said.includes("temperature") ? { ...dialect, canSetTemperature: false } : undefined;
}
