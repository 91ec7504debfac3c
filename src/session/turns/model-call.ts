import { randomUUID } from "node:crypto";
import { waitFor } from "../../base/wait.ts";
import type { CompleteOptions, ModelDelta, ModelReply, ModelRequest, ModelRetry, RequestOrigin } from "../../models/model.ts";
import { errorType, type StepEnd, type TracedStep } from "../telemetry.ts";
import { emitUsage, emitUsageInfo, initiatorOf } from "./compaction.ts";
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
    stream: agent.streaming,
    headers: { "x-initiator": initiatorOf(call), ...run.headers },
    ...(model.reasoningEffort !== undefined && { reasoningEffort: model.reasoningEffort }),
  };
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
  const emit = call.agent.streaming ? createDeltaEmitter(call, host) : undefined;
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

function originOf({ agent: { agentId, parentAgentId }, run: { interactionId } }: ModelCall): RequestOrigin {
  return { kind: agentId === undefined ? "agent" : "subagent", agentId, parentAgentId, interactionId };
}

function createDeltaEmitter({ agent, messageId }: ModelCall, { events }: TurnContext): (delta: ModelDelta) => void {
  const reasoningId = randomUUID();
  let hasBegun = false;
  const append = (type: string, data: object): void => {
    events.append(type, data, agent.agentId);
  };
  return (delta) => {
    if (!hasBegun) append("assistant.message_start", { messageId });
    hasBegun = true;
    if (delta.kind === "tool-input") {
      const { toolCallId, toolName, input } = delta;
      append("assistant.tool_call_delta", { toolCallId, toolName, toolType: "function", inputDelta: input });
    } else if (delta.kind === "text") append("assistant.message_delta", { messageId, deltaContent: delta.text });
    else append("assistant.reasoning_delta", { reasoningId, deltaContent: delta.text });
    append("assistant.streaming_delta", { totalResponseSizeBytes: delta.receivedBytes });
  };
}

function reportRetry({ agent, model, run }: ModelCall, { events, log }: TurnContext, { error, attempt, delay }: ModelRetry): void {
  log.warning("A request to the model failed and will be retried.", { code: error.code, message: error.message, attempt, delay });
  if (!events.wants("model.call_failure")) return;
  const { status } = error;
  const data = { model: model.chat.id, interactionId: run.interactionId, errorCode: error.code, errorMessage: error.message, attempt };
  const source = agent.agentId === undefined ? "top_level" : "subagent";
  events.append(
    "model.call_failure",
    { ...data, source, retryDelayMs: delay, ...(status !== undefined && { statusCode: status }) },
    agent.agentId,
  );
}
