import { randomUUID } from "node:crypto";
import type { ModelReply, ModelToolCall } from "../../models/model.ts";
import type { ToolCall } from "../calls/pipeline-types.ts";
import type { ToolCatalog } from "../catalog/tool-catalog.ts";
import type { AssistantReply } from "./turn-types.ts";

/** A call of a model, as the pipeline takes it, with the model's own words. */
export interface ReadCall extends ToolCall {
  readonly argumentsText: string;
  readonly replay?: ModelToolCall["replay"];
}

/** The calls of one answer. An id that is there twice is made unique: results could not be told apart. */
export function readToolCalls(calls: readonly ModelToolCall[]): readonly ReadCall[] {
  const taken = new Set<string>();
  return calls.map(({ id, name, arguments: args, argumentsText, argumentsError, replay }) => {
    const own = id === "" || taken.has(id) ? `call_${randomUUID()}` : id;
    taken.add(own);
    return {
      id: own,
      name,
      arguments: args,
      argumentsText,
      ...(argumentsError !== undefined && { argumentsError }),
      ...(replay && { replay }),
    };
  });
}

interface Place {
  readonly messageId: string;
  readonly interactionId: string;
}

/**
 * The data of `assistant.message`. Beside the fields of the Copilot SDK it keeps what the endpoint must see again: the
 * text of arguments where it is not what JSON.stringify would write, and `replay`.
 */
export function toMessageData(
  answer: ModelReply,
  calls: readonly ReadCall[],
  catalog: ToolCatalog,
  place: Place & { readonly turnId: string },
): object {
  const { content, reasoning, model, usage, requestId, callId, chunkCount, replay } = answer;
  return {
    ...place,
    model,
    content,
    toolRequests: calls.map((call) => toRequest(call, catalog)),
    ...(reasoning !== undefined && { reasoningText: reasoning }),
    ...(usage && { outputTokens: usage.outputTokens }),
    ...(requestId !== undefined && { requestId }),
    ...(callId !== undefined && { apiCallId: callId }),
    chunkCount,
    ...(replay && { replay }),
  };
}

function toRequest({ id, name, arguments: args, argumentsText, argumentsError, replay }: ReadCall, catalog: ToolCatalog): object {
  const tool = catalog.executables.get(name);
  const title = tool?.definition.title;
  return {
    toolCallId: id,
    name,
    arguments: args,
    type: "function",
    ...(title !== undefined && { toolTitle: title }),
    ...(tool?.origin.kind === "mcp" && { mcpServerName: tool.origin.source, mcpToolName: tool.origin.nativeName }),
    ...(JSON.stringify(args) !== argumentsText && { argumentsText }),
    ...(argumentsError !== undefined && { argumentsError }),
    ...(replay && { replay }),
  };
}

export function toReply({ content, reasoning, model }: ModelReply, place: Place): AssistantReply {
  const { messageId, interactionId } = place;
  return Object.freeze({ messageId, content, ...(reasoning !== undefined && { reasoningText: reasoning }), model, interactionId });
}
