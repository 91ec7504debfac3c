import { isRecord, type Json, textOf } from "../base/json.ts";
import { nearestToolName } from "../tools/tool.ts";
import { argumentsToSend, documentNote, encodeParameters, imageUrl } from "./encode-parts.ts";
import type {
  ChatMessage,
  ImagePart,
  MessagePart,
  ModelRequest,
  ModelTool,
  ModelToolCall,
  ModelUsage,
  ReplayFields,
  ToolMessage,
} from "./model.ts";
import type { PartialReply } from "./model-error.ts";
import { type AssembledReply, finishOf, given, type NewPart, type ReplyAssembly, readUsage } from "./reply-assembly.ts";
import type { ToolCallAssembly } from "./tool-call-assembly.ts";
import type { Protocol, Refusal } from "./wire-model.ts";

/** `/chat/completions`, the protocol that most endpoints speak. `model` is its name there. */
export function chatCompletions(model: string): Protocol<ChatDialect> {
  return {
    path: "/chat/completions",
    api: { http: "/chat/completions" },
    requiredField: "choices",
    dialect: { canStreamUsage: true, canSetTemperature: true, maxTokensField: "max_tokens" },
    encode: (request, isStream, dialect) => encodeChatRequest(model, request, isStream, dialect),
    learn: learnChatDialect,
    assemble: (toolCalls) => new ChatAssembly(toolCalls),
  };
}

// Some endpoints reject each of these, and others require it.
function learnChatDialect({ said, body }: Refusal, dialect: ChatDialect): ChatDialect | undefined {
  if (body["stream_options"] !== undefined && said.includes("stream_options")) return { ...dialect, canStreamUsage: false };
  const wantsOther = body["max_tokens"] !== undefined && said.includes("max_completion_tokens");
  if (wantsOther) return { ...dialect, maxTokensField: "max_completion_tokens" };
  return body["temperature"] !== undefined && said.includes("temperature") ? { ...dialect, canSetTemperature: false } : undefined;
}

/** Features that differ between endpoints and cannot be queried: they are detected from a refusal. */
interface ChatDialect {
  /** Whether a stream may be asked to report usage. */
  readonly canStreamUsage: boolean;
  readonly canSetTemperature: boolean;
  readonly maxTokensField: "max_tokens" | "max_completion_tokens";
}

/** The body of a request to `/chat/completions`. Plain JSON without lone surrogates, which some servers cannot read. */
function encodeChatRequest(model: string, request: ModelRequest, isStream: boolean, dialect: ChatDialect): Record<string, unknown> {
  const tools = request.tools ?? [];
  return {
    model,
    messages: encodeMessages(request.messages),
    // Endpoints reject an empty list, and a choice without a list.
    tools: tools.length === 0 ? undefined : tools.map((tool) => encodeTool(tool, model)),
    tool_choice: tools.length === 0 ? undefined : encodeToolChoice(request.toolChoice),
    temperature: dialect.canSetTemperature ? request.temperature : undefined,
    [dialect.maxTokensField]: request.maxOutputTokens,
    reasoning_effort: request.reasoningEffort,
    stream: isStream ? true : undefined,
    stream_options: isStream && dialect.canStreamUsage ? { include_usage: true } : undefined,
  };
}

function encodeMessages(messages: readonly ChatMessage[]): readonly unknown[] {
  const encoded: unknown[] = [];
  let pictures: ToolMessage[] = [];
  const showPictures = (): void => {
    if (pictures.length > 0) encoded.push({ role: "user", content: pictures.flatMap(encodePictures) });
    pictures = [];
  };
  for (const message of messages) {
    // The results of a message's calls must be consecutive, so their images follow the last one.
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
      return { role: "system", content: message.content };
    case "user":
      return { role: "user", content: encodeContent(message.content) };
    case "tool":
      return { role: "tool", tool_call_id: message.toolCallId, content: message.content };
    case "assistant": {
      const { content, toolCalls = [], replay } = message;
      const kept = ownFields(replay, messageFields);
      if (toolCalls.length === 0) return { ...kept, role: "assistant", content: content };
      return {
        ...kept,
        role: "assistant",
        content: content === "" ? null : content,
        tool_calls: toolCalls.map(encodeToolCall),
      };
    }
  }
}

function encodeToolCall(call: ModelToolCall): unknown {
  const { id, name, replay } = call;
  const called = { name: nearestToolName(name), arguments: argumentsToSend(call) };
  return { ...ownFields(replay, callFields), id, type: "function", function: called };
}

const messageFields = ["reasoning_content", "reasoning", "reasoning_text", "reasoning_opaque"];
const callFields = ["extra_content"];

// A conversation may have begun with another API, whose fields this endpoint rejects.
function ownFields(replay: ReplayFields | undefined, names: readonly string[]): ReplayFields {
  return Object.fromEntries(Object.entries(replay ?? {}).filter(([name]) => names.includes(name)));
}

function encodeContent(content: string | readonly MessagePart[]): unknown {
  if (typeof content === "string") return content;
  // Servers without image support often accept only plain text.
  if (content.every((part) => part.type === "text")) return content.map((part) => part.text).join("\n");
  return content.map(encodePart);
}

function encodePart(part: MessagePart): unknown {
  if (part.type === "text") return { type: "text", text: part.text };
  if (part.type === "document") return { type: "text", text: documentNote(part) };
  return { type: "image_url", image_url: { url: imageUrl(part), detail: part.detail } };
}

function encodePictures({ toolCallId, images = [] }: ToolMessage): readonly unknown[] {
  const areDescribed = images.every(({ description }) => description !== undefined);
  const describe = ({ description = "" }: ImagePart): readonly MessagePart[] => [{ type: "text", text: description }];
  const note: MessagePart = { type: "text", text: `Images that tool call ${toolCallId} returned:` };
  const parts = areDescribed ? images.flatMap((image) => [...describe(image), image]) : [note, ...images];
  return parts.map(encodePart);
}

function encodeTool({ name, description, parameters, strict }: ModelTool, model: string): unknown {
  // Google's endpoint for this protocol converts tools to those of Gemini, with the limits of its API.
  const target = /gemini/i.test(model) ? "gemini" : "openai";
  return { type: "function", function: { name, description, parameters: encodeParameters(parameters, target), strict } };
}

function encodeToolChoice(choice: ModelRequest["toolChoice"]): unknown {
  return typeof choice === "object" ? { type: "function", function: { name: choice.name } } : choice;
}

/**
 * Assembles a reply from the chunks of a chat completion, or from a complete one. All choices form one message: text in one and
 * tool calls in another belong together, in order of arrival.
 */
class ChatAssembly implements ReplyAssembly {
  /** A stream ends with `[DONE]`, which is not a chunk. */
  readonly isOver = false;
  readonly #toolCalls: ToolCallAssembly;
  readonly #reasons: string[] = [];
  readonly #replay: Record<string, string> = {};
  #content = "";
  #reasoning = "";
  #reasoningField: string | undefined;
  #hasChoices = false;
  #chunkCount = 0;
  #usage: ModelUsage | undefined;
  #model: string | undefined;
  #callId: string | undefined;

  constructor(toolCalls: ToolCallAssembly) {
    this.#toolCalls = toolCalls;
  }

  get hasBegun(): boolean {
    return this.#hasChoices;
  }

  get isFinished(): boolean {
    return this.#reasons.length > 0;
  }

  get partial(): PartialReply {
    return { content: this.#content, reasoning: this.#reasoning };
  }

  add(chunk: unknown): readonly NewPart[] {
    if (!isRecord(chunk)) return [];
    const { model, id, usage, x_groq: vendor, choices } = chunk;
    this.#chunkCount += 1;
    if (typeof model === "string" && model !== "") this.#model = model;
    if (typeof id === "string" && id !== "") this.#callId = id;
    this.#addUsage(usage ?? (vendor as Json | undefined)?.["usage"]);
    const parts: NewPart[] = [];
    if (Array.isArray(choices))
      for (const [position, choice] of choices.filter(isRecord).entries()) this.#addChoice(choice, position, parts);
    return parts;
  }

  finish(): AssembledReply {
    const toolCalls = this.#toolCalls.finish();
    return {
      content: this.#content,
      toolCalls,
      ...finishOf(this.#reasons, toolCalls.length > 0),
      chunkCount: this.#chunkCount,
      ...given({ reasoning: this.#reasoning, usage: this.#usage, model: this.#model, callId: this.#callId }),
      ...given({ replay: this.#replayFields(toolCalls) }),
    };
  }

  #addChoice({ index, delta, message, usage, finish_reason: reason }: Json, position: number, parts: NewPart[]): void {
    this.#hasChoices = true;
    this.#addUsage(usage);
    const said = isRecord(delta) ? delta : message;
    if (isRecord(said)) this.#addMessage(said, typeof index === "number" ? index : position, parts);
    if (typeof reason === "string" && reason !== "") this.#reasons.push(reason.slice(0, 100));
  }

  #addUsage(usage: unknown): void {
    // Most chunks have none.
    if (usage !== undefined && usage !== null) this.#usage = readUsage(usage) ?? this.#usage;
  }

  #addMessage(message: Json, choice: number, parts: NewPart[]): void {
    const { content, refusal, reasoning_opaque: opaque, tool_calls: calls, function_call: legacy } = message;
    const { text, thought } = typeof content === "string" ? { text: content, thought: "" } : readParts(content);
    // Gateways repeat the same reasoning under several names.
    const field = reasoningFields.find((name) => typeof message[name] === "string" && message[name] !== "");
    this.#reasoningField ??= field;
    const reasoning = field === undefined ? thought : `${message[field]}${thought}`;
    this.#reasoning += reasoning;
    if (reasoning !== "") parts.push({ kind: "reasoning", text: reasoning });
    const shown = typeof refusal === "string" ? text + refusal : text;
    this.#content += shown;
    if (shown !== "") parts.push({ kind: "text", text: shown });
    if (typeof opaque === "string" && opaque !== "") this.#replay["reasoning_opaque"] = opaque;
    const list = calls ?? (isRecord(legacy) ? [legacy] : undefined);
    if (list !== undefined) for (const input of this.#toolCalls.add(choice, list)) parts.push({ kind: "tool-input", ...input });
  }

  // Models that reason between tool calls require their reasoning again; on other messages some reject it.
  #replayFields(toolCalls: readonly ModelToolCall[]): ReplayFields | undefined {
    if (toolCalls.length > 0 && this.#reasoningField !== undefined) this.#replay[this.#reasoningField] = this.#reasoning;
    return Object.keys(this.#replay).length === 0 ? undefined : this.#replay;
  }
}

/** The names under which gateways send and accept a model's reasoning. */
const reasoningFields = ["reasoning_content", "reasoning", "reasoning_text"];

/** Some endpoints send a list of parts, thoughts among them. */
function readParts(content: unknown): { text: string; thought: string } {
  const parts = Array.isArray(content) ? content.filter(isRecord) : [];
  return {
    text: parts.map((part) => textOf(part["text"])).join(""),
    thought: parts.map((part) => thoughtOf(part["thinking"])).join(""),
  };
}

function thoughtOf(thinking: unknown): string {
  return Array.isArray(thinking) ? readParts(thinking).text : textOf(thinking);
}
