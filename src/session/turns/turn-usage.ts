import type { ChatMessage, ModelReply } from "../../models/model.ts";
import type { ToolDefinition } from "../../tools/tool.ts";
import { estimateTokens } from "../instructions/skill-listing.ts";
import type { ContextUse } from "./compaction.ts";
import type { ModelCall, TurnHost } from "./turn-types.ts";

/** Tells how much of the model's context the next request takes, by an estimate. */
export function tellUsageInfo(call: ModelCall, { events }: TurnHost): void {
  if (!events.wants("session.usage_info")) return;
  const { agent, messages } = call;
  events.append("session.usage_info", { ...contextUse(call), messagesLength: messages.length }, agent.agentId);
}

/** How full a model's context is with a request, by an estimate. */
export function contextUse({ model, messages, tools }: Pick<ModelCall, "model" | "messages" | "tools">): ContextUse {
  const system = messages[0]?.role === "system" ? sizeOfMessage(messages[0]) : 0;
  const systemTokens = estimateTokens(system);
  const conversationTokens = estimateTokens(sizeOf(messages) - system);
  const toolDefinitionsTokens = estimateTokens(sizeOfTools(tools));
  const currentTokens = systemTokens + conversationTokens + toolDefinitionsTokens;
  return { tokenLimit: model.contextTokens, currentTokens, systemTokens, conversationTokens, toolDefinitionsTokens };
}

/** Tells what an answer took, as the endpoint counts it. */
export function tellUsage(call: ModelCall, { events }: TurnHost, reply: ModelReply): void {
  if (!events.wants("assistant.usage")) return;
  const { usage, duration, timeToFirstToken, finishReason, callId, requestId, model } = reply;
  const data = {
    model,
    initiator: initiatorOf(call),
    ...(usage && {
      inputTokens: usage.inputTokens,
      outputTokens: usage.outputTokens,
      cacheReadTokens: usage.cachedTokens ?? 0,
      cacheWriteTokens: usage.cacheWriteTokens ?? 0,
      ...(usage.reasoningTokens !== undefined && { reasoningTokens: usage.reasoningTokens }),
    }),
    duration,
    ...(timeToFirstToken !== undefined && { timeToFirstTokenMs: timeToFirstToken }),
    finishReason,
    ...(finishReason === "content-filter" && { contentFilterTriggered: true }),
    availableToolCount: call.tools.length,
    ...(callId !== undefined && { apiCallId: callId }),
    ...(requestId !== undefined && { providerCallId: requestId }),
  };
  events.append("assistant.usage", data, call.agent.agentId);
}

const messageSizes = new WeakMap<ChatMessage, number>();

/** A conversation is asked for again and again: only what is new in it is counted. */
function sizeOf(messages: readonly ChatMessage[]): number {
  let sum = 0;
  for (const message of messages) {
    let size = messageSizes.get(message);
    if (size === undefined) {
      size = sizeOfMessage(message);
      messageSizes.set(message, size);
    }
    sum += size;
  }
  return sum;
}

function sizeOfMessage(message: ChatMessage): number {
  if (message.role === "assistant") {
    return (message.toolCalls ?? []).reduce((size, call) => size + call.name.length + call.argumentsText.length, message.content.length);
  }
  if (typeof message.content === "string") return message.content.length;
  return message.content.reduce((size, part) => size + (part.type === "text" ? part.text.length : pictureSize), 0);
}

// Endpoints count a picture as 85 to 1,600 tokens, whatever its bytes.
const pictureSize = 4_000;

/** Who caused a request: the first of an interaction a user, the others the agent. */
export function initiatorOf({ agent, turnId }: Pick<ModelCall, "agent" | "turnId">): "user" | "agent" {
  return agent.agentId === undefined && turnId === "0" ? "user" : "agent";
}

const sizes = new WeakMap<readonly ToolDefinition[], number>();

function sizeOfTools(tools: readonly ToolDefinition[]): number {
  const known = sizes.get(tools);
  if (known !== undefined) return known;
  const size = tools.reduce((sum, { name, description = "", parameters }) => {
    return sum + name.length + description.length + (parameters === undefined ? 0 : JSON.stringify(parameters).length);
  }, 0);
  sizes.set(tools, size);
  return size;
}
