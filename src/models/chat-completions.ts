import { ChatAssembly } from "./assemble-chat.ts";
import { type ChatDialect, encodeChatRequest } from "./encode-chat.ts";
import type { Protocol, Refusal } from "./wire-model.ts";

/** `/chat/completions`, the protocol that most endpoints speak. `model` is its name there. */
export function chatCompletions(model: string): Protocol<ChatDialect> {
  return {
    path: "/chat/completions",
    essence: "choices",
    dialect: { canStreamUsage: true, canSetTemperature: true, maxTokensField: "max_tokens" },
    encode: (request, isStream, dialect) => encodeChatRequest(model, request, isStream, dialect),
    learn: learnChatDialect,
    assemble: (toolCalls) => new ChatAssembly(toolCalls),
  };
}

// Each of these is refused by some endpoints and needed by others.
function learnChatDialect({ said, body }: Refusal, dialect: ChatDialect): ChatDialect | undefined {
  if (body["stream_options"] !== undefined && said.includes("stream_options")) return { ...dialect, canStreamUsage: false };
  const wantsOther = body["max_tokens"] !== undefined && said.includes("max_completion_tokens");
  if (wantsOther) return { ...dialect, maxTokensField: "max_completion_tokens" };
  return body["temperature"] !== undefined && said.includes("temperature") ? { ...dialect, canSetTemperature: false } : undefined;
}
