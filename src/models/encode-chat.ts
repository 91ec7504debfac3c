import type { JsonSchema } from "../tools/tool.ts";
import { nearestToolName } from "../tools/tool-name.ts";
import type {
  AssistantMessage,
  ChatMessage,
  ImagePart,
  MessagePart,
  ModelRequest,
  ModelTool,
  ModelToolCall,
  ToolMessage,
} from "./model.ts";

/** What differs between endpoints without a way to ask: found out when one refuses. */
export interface ChatDialect {
  /** Whether a stream may be asked to tell the usage. */
  readonly canStreamUsage: boolean;
  readonly maxTokensField: "max_tokens" | "max_completion_tokens";
}

/** The body of a request to `/chat/completions`. Plain JSON without lone surrogates, which some servers cannot read. */
export function encodeChatRequest(model: string, request: ModelRequest, isStream: boolean, dialect: ChatDialect): Record<string, unknown> {
  const tools = request.tools ?? [];
  return defined({
    model,
    messages: encodeMessages(request.messages),
    // An empty list and a choice without a list are refused.
    tools: tools.length === 0 ? undefined : tools.map(encodeTool),
    tool_choice: tools.length === 0 ? undefined : encodeToolChoice(request.toolChoice),
    temperature: request.temperature,
    [dialect.maxTokensField]: request.maxOutputTokens,
    reasoning_effort: request.reasoningEffort,
    stream: isStream ? true : undefined,
    stream_options: isStream && dialect.canStreamUsage ? { include_usage: true } : undefined,
  });
}

function encodeMessages(messages: readonly ChatMessage[]): readonly unknown[] {
  const encoded: unknown[] = [];
  let pictures: ToolMessage[] = [];
  const showPictures = (): void => {
    if (pictures.length > 0) encoded.push({ role: "user", content: pictures.flatMap(encodePictures) });
    pictures = [];
  };
  for (const message of messages) {
    // The results of one message's calls must stand together, so what they show comes after the last of them.
    if (message.role !== "tool") showPictures();
    else if ((message.images ?? []).length > 0) pictures.push(message);
    encoded.push(encodeMessage(message));
  }
  showPictures();
  return encoded;
}

function encodeMessage(message: ChatMessage): unknown {
  switch (message.role) {
    case "system":
      return { role: "system", content: wellFormed(message.content) };
    case "user":
      return { role: "user", content: encodeContent(message.content) };
    case "tool":
      return { role: "tool", tool_call_id: message.toolCallId, content: wellFormed(message.content) };
    case "assistant":
      return encodeAssistant(message);
  }
}

function encodeAssistant({ content, toolCalls = [], replay }: AssistantMessage): unknown {
  if (toolCalls.length === 0) return { ...replay, role: "assistant", content: wellFormed(content) };
  return {
    ...replay,
    role: "assistant",
    content: content === "" ? null : wellFormed(content),
    tool_calls: toolCalls.map(encodeToolCall),
  };
}

// What a model got wrong must be sent so that the endpoint takes it, or the conversation ends here.
function encodeToolCall({ id, name, argumentsText, argumentsError, replay }: ModelToolCall): unknown {
  const text = argumentsText.trim() === "" ? "{}" : wellFormed(argumentsText);
  const args = argumentsError === undefined ? text : JSON.stringify({ unreadable_arguments: text });
  return { ...replay, id, type: "function", function: { name: nearestToolName(name), arguments: args } };
}

function encodeContent(content: string | readonly MessagePart[]): unknown {
  if (typeof content === "string") return wellFormed(content);
  // Servers without pictures often take text only.
  if (content.every((part) => part.type === "text")) return wellFormed(content.map((part) => part.text).join("\n"));
  return content.map(encodePart);
}

function encodePart(part: MessagePart): unknown {
  if (part.type === "text") return { type: "text", text: wellFormed(part.text) };
  const url = "url" in part ? part.url : `data:${part.mimeType};base64,${part.data}`;
  return { type: "image_url", image_url: defined({ url, detail: part.detail }) };
}

function encodePictures({ toolCallId, images = [] }: ToolMessage): readonly unknown[] {
  const note: MessagePart = { type: "text", text: `What the tool call ${toolCallId} returned to look at:` };
  return [note, ...(images as readonly ImagePart[])].map(encodePart);
}

function encodeTool({ name, description, parameters, strict }: ModelTool): unknown {
  return { type: "function", function: defined({ name, description, parameters: encodeParameters(parameters), strict }) };
}

// An object schema without properties is valid JSON Schema, and refused.
function encodeParameters(parameters: JsonSchema | undefined): JsonSchema {
  if (parameters === undefined) return { type: "object", properties: {} };
  return parameters["type"] === "object" && parameters["properties"] === undefined ? { ...parameters, properties: {} } : parameters;
}

function encodeToolChoice(choice: ModelRequest["toolChoice"]): unknown {
  return typeof choice === "object" ? { type: "function", function: { name: choice.name } } : choice;
}

function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\uFFFD");
}

function defined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
