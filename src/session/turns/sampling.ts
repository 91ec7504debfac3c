import { randomUUID } from "node:crypto";
import { HostError } from "../../base/errors.ts";
import { isRecord, type Json } from "../../base/json.ts";
import type { ChatMessage, FinishReason, MessagePart } from "../../models/model.ts";
import type { TurnModel } from "./model-cache.ts";

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
