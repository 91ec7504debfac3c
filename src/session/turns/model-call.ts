import { randomUUID } from "node:crypto";
import { HostError } from "../../base/errors.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { waitFor } from "../../base/wait.ts";
import type {
  ChatMessage,
  CompleteOptions,
  FinishReason,
  MessagePart,
  ModelDelta,
  ModelReply,
  ModelRequest,
  ModelRetry,
  RequestOrigin,
} from "../../models/model.ts";
import type { SessionEventData, SessionEventType } from "../history/event-types.ts";
import { errorType, type StepEnd, type TracedStep } from "../telemetry.ts";
import { emitUsage, emitUsageInfo, initiatorOf } from "./compaction.ts";
import type { TurnModel } from "./turn-options.ts";
import type { ModelCall, TurnContext } from "./turn-types.ts";

/**
 * Sends a request to the model and emits the events of the answer. Rejects with the model's error, or with the signal's reason as soon
 * as it fires, whatever the model does: nothing of an answer is emitted after that.
 */
export async function callModel(call: ModelCall, host: TurnContext): Promise<ModelReply> {
  const { agent, model, messages, tools, run } = call;
  const { events } = host;
  emitUsageInfo(call, host);
  events.append("model.call_start", { turnId: call.turnId, model: model.chat.id }, agent.agentId);
  const request: ModelRequest = {
    messages,
    tools,
    stream: isStreamed(call),
    headers: { "x-initiator": initiatorOf(call), ...run.headers },
    ...(model.reasoningEffort !== undefined && { reasoningEffort: model.reasoningEffort }),
  };
  agent.sent?.(request, model);
  const listening = listen(call, host);
  const step = beginStep(call, host);
  const complete = (): Promise<ModelReply> => model.chat.complete(request, listening.options);
  try {
    const reply = await waitFor(step === undefined ? complete() : step.within(complete), { signal: run.signal });
    step?.end({ attributes: replyAttributes(reply) });
    emitUsage(call, host, reply);
    return reply;
  } catch (error) {
    step?.end({ error: run.signal.aborted ? "aborted" : errorType(error) });
    throw error;
  } finally {
    listening.isOver = true;
  }
}

function beginStep({ agent, model, run }: ModelCall, { pipeline }: TurnContext): TracedStep | undefined {
  const { chat, provider } = model;
  return pipeline.telemetry?.begin({ kind: "model", model: chat.id, provider, address: chat.address }, agent.agentId, run.trace);
}

/** What a span contains of an answer: counts and names only. */
function replyAttributes({ model, callId, finishReason, usage }: ModelReply): NonNullable<StepEnd["attributes"]> {
  return {
    "gen_ai.response.model": model,
    "gen_ai.response.finish_reasons": [finishReason],
    ...(callId !== undefined && { "gen_ai.response.id": callId }),
    ...(usage && { "gen_ai.usage.input_tokens": usage.inputTokens, "gen_ai.usage.output_tokens": usage.outputTokens }),
    ...(usage?.cachedTokens !== undefined && { "gen_ai.usage.cache_read.input_tokens": usage.cachedTokens }),
  };
}

interface Listening {
  readonly options: CompleteOptions;
  isOver: boolean;
}

function listen(call: ModelCall, host: TurnContext): Listening {
  const emit = isStreamed(call) ? createDeltaEmitter(call, host) : undefined;
  const listening: Listening = {
    isOver: false,
    options: {
      signal: call.run.signal,
      origin: originOf(call),
      onRetry: (retry) => void (listening.isOver || reportRetry(call, host, retry)),
      ...(emit && { onDelta: (delta) => void (listening.isOver || emit(delta)) }),
    },
  };
  return listening;
}

function isStreamed({ agent, run }: ModelCall): boolean {
  return agent.streaming || run.streams === true;
}

function originOf({ agent: { agentId, parentAgentId }, run: { interactionId } }: ModelCall): RequestOrigin {
  return { kind: agentId === undefined ? "agent" : "subagent", agentId, parentAgentId, interactionId };
}

function createDeltaEmitter({ agent, messageId }: ModelCall, { events }: TurnContext): (delta: ModelDelta) => void {
  const reasoningId = randomUUID();
  let hasBegun = false;
  const append = <T extends SessionEventType>(type: T, data: SessionEventData[T]): void => {
    events.append(type, data, agent.agentId);
  };
  return (delta) => {
    append("assistant.streaming_delta", { totalResponseSizeBytes: delta.receivedBytes });
    if (!hasBegun && delta.kind !== "reasoning") {
      append("assistant.message_start", { messageId });
      hasBegun = true;
    }
    if (delta.kind === "tool-input") {
      const { toolCallId, toolName, input } = delta;
      append("assistant.tool_call_delta", { toolCallId, toolName, toolType: "function", inputDelta: input });
    } else if (delta.kind === "text") append("assistant.message_delta", { messageId, deltaContent: delta.text });
    else append("assistant.reasoning_delta", { reasoningId, deltaContent: delta.text });
  };
}

function reportRetry({ agent, model, run }: ModelCall, { events, log }: TurnContext, { error, attempt, delay }: ModelRetry): void {
  log.warning("A request to the model failed and will be retried.", { code: error.code, message: error.message, attempt, delay });
  const { status } = error;
  const data = { model: model.chat.id, interactionId: run.interactionId, errorCode: error.code, errorMessage: error.message, attempt };
  const source = agent.agentId === undefined ? "top_level" : "subagent";
  events.append(
    "model.call_failure",
    { ...data, source, retryDelayMs: delay, ...(status !== undefined && { statusCode: status }) },
    agent.agentId,
  );
}

/**
 * Has a model write what an MCP server wants written (`sampling/createMessage`). The model gets the server's messages and
 * nothing of the session's conversation; tools that the server would offer it are refused.
 * @throws HostError `SAMPLING_REQUEST` for what a model cannot be asked; the model's own errors as they are.
 */
export async function sampleWithModel(request: Json, { chat, seesImages }: TurnModel, signal: AbortSignal): Promise<Json> {
  const { systemPrompt, maxTokens, temperature, tools } = request;
  if (Array.isArray(tools) && tools.length > 0) throw cannot("it contains tools of its own");
  const messages = readMessages(request["messages"], seesImages);
  const system: readonly ChatMessage[] = typeof systemPrompt === "string" ? [{ role: "system", content: systemPrompt }] : [];
  const reply = await chat.complete(
    {
      messages: [...system, ...messages],
      stream: false,
      ...(isCount(maxTokens) && { maxOutputTokens: maxTokens }),
      ...(typeof temperature === "number" && Number.isFinite(temperature) && { temperature }),
    },
    { signal, origin: { kind: "sampling", agentId: randomUUID() } },
  );
  return {
    role: "assistant",
    content: { type: "text", text: reply.content },
    model: reply.model,
    stopReason: stopReasons[reply.finishReason] ?? reply.finishReason,
  };
}

const stopReasons: { readonly [K in FinishReason]?: string } = { stop: "endTurn", length: "maxTokens" };

function readMessages(value: unknown, seesImages: boolean): readonly ChatMessage[] {
  if (!Array.isArray(value) || value.length === 0) throw cannot("it has no messages");
  return value.map((message: unknown) => {
    if (!isRecord(message)) throw cannot("one of its messages is not an object");
    const parts = [message["content"]].flat().map((block) => readBlock(block, seesImages));
    if (message["role"] === "user") return { role: "user", content: parts };
    if (message["role"] !== "assistant") throw cannot('the role of a message is neither "user" nor "assistant"');
    return { role: "assistant", content: parts.map((part) => (part.type === "text" ? part.text : "")).join("\n") };
  });
}

function readBlock(block: unknown, seesImages: boolean): MessagePart {
  if (!isRecord(block)) throw cannot("the content of a message is not a content block");
  const { type, text, data, mimeType } = block;
  if (type === "text" && typeof text === "string") return { type, text };
  if (type === "image" && seesImages && typeof data === "string" && typeof mimeType === "string") return { type, data, mimeType };
  throw cannot(`its content of type ${JSON.stringify(type)} is not supported by the model`);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function cannot(why: string): HostError {
  return new HostError("SAMPLING_REQUEST", `The sampling request cannot be sent to the model: ${why}.`);
}
