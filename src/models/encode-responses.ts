import { nearestToolName } from "../tools/tool-name.ts";
import { argumentsToSend, defined, encodeParameters, imageUrl, toCallId, wellFormed } from "./encode-parts.ts";
import type { AssistantMessage, ChatMessage, ImagePart, MessagePart, ModelRequest, ModelTool, ToolMessage } from "./model.ts";
import { arrange, type LayoutOwner, type MessagePiece } from "./reply-layout.ts";

/** What differs between endpoints and models without a way to ask: found out when one refuses. */
export interface ResponsesDialect {
  /** What is not to be sent. */
  readonly dropped: ReadonlySet<"include" | "summary" | "reasoning" | "temperature" | "store">;
  /** The `replay` of messages whose thoughts an endpoint did not take back. */
  readonly refused: WeakSet<object>;
}

/** The body of a request to `/responses`. The endpoint keeps nothing: each request has the whole conversation. */
export function encodeResponsesRequest(
  model: string,
  request: ModelRequest,
  isStream: boolean,
  { dropped, refused }: ResponsesDialect,
): Record<string, unknown> {
  const tools = request.tools ?? [];
  const start = request.messages.findIndex(({ role }) => role !== "system");
  const [first, rest] = start === -1 ? [request.messages, []] : [request.messages.slice(0, start), request.messages.slice(start)];
  const optional = defined({
    store: false,
    include: ["reasoning.encrypted_content"],
    temperature: request.temperature,
    reasoning: encodeReasoning(request.reasoningEffort, !dropped.has("summary")),
  });
  return defined({
    model,
    instructions: first.length === 0 ? undefined : first.map(({ content }) => wellFormed(content as string)).join("\n\n"),
    input: rest.flatMap((message) => encodeMessage(message, { api: "responses", model }, refused)),
    tools: tools.length === 0 ? undefined : tools.map(encodeTool),
    tool_choice: tools.length === 0 ? undefined : encodeToolChoice(request.toolChoice),
    max_output_tokens: request.maxOutputTokens,
    stream: isStream ? true : undefined,
    ...Object.fromEntries(Object.entries(optional).filter(([name]) => !(dropped as ReadonlySet<string>).has(name))),
  });
}

// Without a summary nothing of a thought can be read.
function encodeReasoning(effort: string | undefined, canSummarise: boolean): unknown {
  return effort === undefined ? undefined : defined({ effort, summary: canSummarise ? "auto" : undefined });
}

function encodeMessage(message: ChatMessage, owner: LayoutOwner, refused: WeakSet<object>): readonly unknown[] {
  switch (message.role) {
    case "system":
      return [{ type: "message", role: "system", content: wellFormed(message.content) }];
    case "user":
      return [{ type: "message", role: "user", content: encodeContent(message.content) }];
    case "tool":
      return [{ type: "function_call_output", call_id: callId(message.toolCallId), output: encodeResult(message) }];
    case "assistant":
      return encodeAssistant(message, owner, refused);
  }
}

function encodeAssistant(message: AssistantMessage, owner: LayoutOwner, refused: WeakSet<object>): readonly unknown[] {
  return arrange(message, owner, refused).map(encodePiece);
}

function encodePiece(piece: MessagePiece): unknown {
  if (piece.kind === "thought") return piece.item;
  if (piece.kind === "text") return defined({ type: "message", role: "assistant", content: wellFormed(piece.text), phase: piece.phase });
  const { id, name } = piece.call;
  return { type: "function_call", call_id: callId(id), name: nearestToolName(name), arguments: argumentsToSend(piece.call) };
}

// Endpoints refuse longer ones, even their own.
function callId(id: string): string {
  return toCallId(id, /^[^\p{Cs}]{1,64}$/u);
}

function encodeContent(content: string | readonly MessagePart[]): unknown {
  if (typeof content === "string") return wellFormed(content);
  if (content.every((part) => part.type === "text")) return wellFormed(content.map((part) => part.text).join("\n"));
  return content.map(encodePart);
}

function encodeResult({ content, images = [] }: ToolMessage): unknown {
  if (images.length === 0) return wellFormed(content);
  const text: readonly MessagePart[] = content === "" ? [] : [{ type: "text", text: content }];
  return [...text, ...(images as readonly ImagePart[])].map(encodePart);
}

function encodePart(part: MessagePart): unknown {
  if (part.type === "text") return { type: "input_text", text: wellFormed(part.text) };
  return { type: "input_image", image_url: imageUrl(part), detail: part.detail ?? "auto" };
}

// Without `strict`, schemas are taken to keep to the rules for it.
function encodeTool({ name, description, parameters, strict = false }: ModelTool): unknown {
  return defined({ type: "function", name, description, parameters: encodeParameters(parameters), strict });
}

function encodeToolChoice(choice: ModelRequest["toolChoice"]): unknown {
  return typeof choice === "object" ? { type: "function", name: choice.name } : choice;
}
