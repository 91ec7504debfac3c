import type { ChatMessage, ModelReply } from "../../models/model.ts";
import type { ToolDefinition } from "../../tools/tool.ts";
import { estimateTokens } from "../instructions/skill-listing.ts";
import type { ModelCall, TurnAgent, TurnHost } from "./turn-types.ts";

/** Tells how much of the model's context the next request takes, by an estimate. */
export function tellUsageInfo({ agent, model, messages, tools }: ModelCall, { events }: TurnHost): void {
  if (!events.wants("session.usage_info")) return;
  const system = messages[0]?.role === "system" ? sizeOfMessage(messages[0]) : 0;
  const systemTokens = estimateTokens(system);
  const conversationTokens = estimateTokens(sizeOf(agent, messages) - system);
  const toolDefinitionsTokens = estimateTokens(sizeOfTools(tools));
  const data = {
    tokenLimit: model.contextTokens,
    currentTokens: systemTokens + conversationTokens + toolDefinitionsTokens,
    messagesLength: messages.length,
    systemTokens,
    conversationTokens,
    toolDefinitionsTokens,
  };
  events.append("session.usage_info", data, agent.agentId);
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

interface Sized {
  readonly count: number;
  readonly last: ChatMessage | undefined;
  /** Without the system message, which changes. */
  readonly size: number;
}

const conversations = new WeakMap<TurnAgent, Sized>();

/** A conversation is asked for again and again and grows at its end: only what is new is counted. */
function sizeOf(agent: TurnAgent, messages: readonly ChatMessage[]): number {
  const [first] = messages;
  const system = first?.role === "system" ? sizeOfMessage(first) : 0;
  const known = conversations.get(agent);
  const isGrown = known !== undefined && known.count > 0 && messages[known.count - 1] === known.last;
  let size = isGrown ? known.size : -system;
  for (let index = isGrown ? known.count : 0; index < messages.length; index++) size += sizeOfMessage(messages[index]!);
  conversations.set(agent, { count: messages.length, last: messages.at(-1), size });
  return size + system;
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
