import { isRecord, textOf } from "../base/json.ts";
import { nearestToolName } from "../tools/tool.ts";
import { anthropicImageType, argumentsToSend, encodeParameters, imageNote, toCallId } from "./encode-parts.ts";
import type {
  ChatMessage,
  DocumentPart,
  ImagePart,
  MessagePart,
  ModelRequest,
  ModelTool,
  ModelToolCall,
  ModelUsage,
  ToolMessage,
} from "./model.ts";
import type { PartialReply } from "./model-error.ts";
import { type AssembledReply, finishOf, given, type NewPart, type ReplyAssembly, readUsage } from "./reply-assembly.ts";
import { arrange, hasThoughts, type LayoutOwner, type LayoutPart, type MessagePiece, refuseThoughts, toReplay } from "./reply-layout.ts";
import type { ToolCallAssembly } from "./tool-call-assembly.ts";
import type { Protocol, Refusal } from "./wire-model.ts";

/** `/v1/messages`, the protocol of Anthropic. `model` is its name there. */
export function anthropicMessages(model: string): Protocol<AnthropicDialect> {
  return {
    path: "/messages",
    api: { http: "/v1/messages" },
    requiredField: "content",
    dialect: {
      thinking: withBudget.test(model) ? "budget" : "adaptive",
      outputLimit: Number.POSITIVE_INFINITY,
      canCache: true,
      canSetTemperature: true,
      refused: new WeakSet(),
    },
    encode: (request, isStream, dialect) => encodeAnthropicRequest(model, request, isStream, dialect),
    learn: (refusal, dialect) => learnAnthropicDialect(refusal, dialect, model),
    assemble: (toolCalls) => new AnthropicAssembly(toolCalls, model),
  };
}

// Models that require a thinking budget in tokens; later models reject it.
const withBudget = /claude-3|(?:opus|sonnet|haiku)-4(?:[.-][015])?(?:$|[-@:]20|[-@:]latest)/i;

const lesserThinking = { adaptive: "budget", budget: "none", none: "none" } as const;

function learnAnthropicDialect({ said, body, request }: Refusal, dialect: AnthropicDialect, model: string): AnthropicDialect | undefined {
  const owner = { api: "messages", model } as const;
  const isAboutThoughts = /signature|thinking.{0,3} blocks?\b|messages\.\d+.*thinking/i.test(said);
  if (isAboutThoughts && refuseThoughts(request.messages, owner, dialect.refused)) return dialect;
  const limit = Number(/max_tokens.*?(?:>|at most|less than or equal to|maximum of)\s*(\d+)/i.exec(said)?.[1]);
  if (limit >= 1 && limit < (body["max_tokens"] as number)) return { ...dialect, outputLimit: limit };
  if (dialect.canCache && said.includes("cache_control")) return { ...dialect, canCache: false };
  // An effort that the API does not know is an error of the caller.
  const isAboutThinking = /thinking|adaptive|effort|output_config|budget/i.test(said) && !/effort\W.*(?:should|must) be/i.test(said);
  if (body["thinking"] !== undefined && isAboutThinking) return { ...dialect, thinking: lesserThinking[dialect.thinking] };
  return body["temperature"] !== undefined && said.includes("temperature") ? { ...dialect, canSetTemperature: false } : undefined;
}

/** Features that differ between endpoints and models and cannot be queried: they are detected from a refusal. */
interface AnthropicDialect {
  /** The thinking mode: adaptive, with a token budget, or disabled. */
  readonly thinking: "adaptive" | "budget" | "none";
  /** The limit of output tokens. */
  readonly outputLimit: number;
  readonly canCache: boolean;
  readonly canSetTemperature: boolean;
  /** The `replay` of messages whose thinking blocks the endpoint rejected. */
  readonly refused: WeakSet<object>;
}

type Block = Record<string, unknown>;

interface Turn {
  readonly role: "user" | "assistant";
  readonly content: readonly Block[];
}

// The API requires a limit. A longer reply takes longer than most connections last.
const usualOutput = 32_000;

/** The body of a request to `/v1/messages`. */
function encodeAnthropicRequest(
  model: string,
  request: ModelRequest,
  isStream: boolean,
  dialect: AnthropicDialect,
): Record<string, unknown> {
  const tools = request.tools ?? [];
  const maxTokens = Math.min(request.maxOutputTokens ?? usualOutput, dialect.outputLimit);
  const thinking = encodeThinking(model, request, dialect, maxTokens);
  // Thinking does not allow another temperature.
  const canSetTemperature = dialect.canSetTemperature && thinking["thinking"] === undefined;
  // The API supports system messages only at the start.
  const system = request.messages.flatMap((message) => (message.role === "system" ? encodeText(message.content) : []));
  const turns = encodeTurns(request.messages, { api: "messages", model }, dialect.refused);
  if (dialect.canCache) {
    // The endpoint caches the prefix before a marked block for some minutes, and a repeated prefix costs a tenth. Marked are
    // the system message, which includes the tools before it, and the last two user turns: the older one is the cached prefix
    // of the next request.
    const users = turns.filter(({ role }) => role === "user").slice(-2);
    for (const block of [system.at(-1), ...users.map(({ content }) => content.at(-1))]) {
      if (block !== undefined) block["cache_control"] = { type: "ephemeral" };
    }
  }
  return {
    model,
    max_tokens: maxTokens,
    system: system.length === 0 ? undefined : system,
    messages: turns,
    tools: tools.length === 0 ? undefined : tools.map(encodeTool),
    tool_choice: tools.length === 0 ? undefined : encodeToolChoice(request.toolChoice),
    ...thinking,
    temperature: canSetTemperature ? request.temperature : undefined,
    stream: isStream ? true : undefined,
  };
}

const budgets: Readonly<Record<string, number>> = { low: 4_096, medium: 10_240, high: 20_480 };
const smallestBudget = 1_024;

function encodeThinking(model: string, request: ModelRequest, dialect: AnthropicDialect, maxTokens: number): Block {
  const { reasoningEffort: given, toolChoice = "auto" } = request;
  if (given === undefined || given === "none" || dialect.thinking === "none") return {};
  const effort = given === "minimal" ? "low" : given;
  if (dialect.thinking === "adaptive") return { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort } };
  // Half of the output limit is reserved for text and tool calls.
  const budget = Math.min(budgets[effort] ?? budgets["high"] ?? 0, Math.floor(maxTokens / 2));
  const isForced = typeof toolChoice === "object" || toolChoice === "required";
  if (budget < smallestBudget || isForced || !mayThinkNow(model, request.messages, dialect)) return {};
  return { thinking: { type: "enabled", budget_tokens: budget } };
}

// With a budget, the turn that is continued must begin with thinking.
function mayThinkNow(model: string, messages: readonly ChatMessage[], { refused }: AnthropicDialect): boolean {
  const last = messages.findLast((message) => message.role !== "tool");
  return last?.role !== "assistant" || hasThoughts(last, { api: "messages", model }, refused);
}

function encodeTurns(messages: readonly ChatMessage[], owner: LayoutOwner, refused: WeakSet<object>): readonly Turn[] {
  const turns: { role: Turn["role"]; content: Block[] }[] = [];
  for (const message of messages) {
    if (message.role === "system") continue;
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = encodeMessage(message, owner, refused);
    const last = turns.at(-1);
    // The results of all calls of a message must be in one turn.
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) turns.push({ role, content: [...content] });
  }
  if (turns[0]?.role !== "user") turns.unshift({ role: "user", content: [{ type: "text", text: "(The conversation began before.)" }] });
  return turns;
}

function encodeMessage(message: Exclude<ChatMessage, { role: "system" }>, owner: LayoutOwner, refused: WeakSet<object>): readonly Block[] {
  if (message.role === "tool") return [encodeResult(message)];
  if (message.role === "assistant") return arrange(message, owner, refused).flatMap(encodePiece);
  const parts = typeof message.content === "string" ? encodeText(message.content) : message.content.flatMap(encodePart);
  return parts.length > 0 ? parts : [{ type: "text", text: "(no text)" }];
}

function encodePiece(piece: MessagePiece): readonly Block[] {
  if (piece.kind === "thought") return [{ ...piece.item }];
  if (piece.kind === "text") return encodeText(piece.text);
  const { id, name } = piece.call;
  return [{ type: "tool_use", id: callId(id), name: nearestToolName(name), input: encodeInput(piece.call) }];
}

function encodeInput(call: ModelToolCall): unknown {
  if (call.argumentsError !== undefined) return JSON.parse(argumentsToSend(call));
  return isRecord(call.arguments) ? call.arguments : {};
}

function encodeResult({ toolCallId, content, images = [] }: ToolMessage): Block {
  const shown = [...encodeText(content), ...(images as readonly ImagePart[]).flatMap(encodePart)];
  return { type: "tool_result", tool_use_id: callId(toolCallId), content: images.length === 0 ? content : shown };
}

function callId(id: string): string {
  return toCallId(id, /^[a-zA-Z0-9_-]{1,512}$/);
}

// The API rejects text that consists of white space.
function encodeText(text: string): readonly Block[] {
  return text.trim() === "" ? [] : [{ type: "text", text: text }];
}

function encodePart(part: MessagePart): readonly Block[] {
  if (part.type === "text") return encodeText(part.text);
  if (part.type === "document") return [encodeDocument(part)];
  const inline = "url" in part ? /^data:([^;,]+);base64,(.*)$/s.exec(part.url)?.slice(1) : [part.mimeType, part.data];
  if (inline === undefined) return [{ type: "image", source: { type: "url", url: (part as { url: string }).url } }];
  const [mimeType = "", data] = inline;
  const type = anthropicImageType(mimeType);
  if (type === undefined) return encodeText(imageNote(mimeType));
  return [{ type: "image", source: { type: "base64", media_type: type, data } }];
}

function encodeDocument({ mimeType, data, title, isCited = false }: DocumentPart): Block {
  const source = { type: "base64", media_type: mimeType, data };
  return { type: "document", source, title, citations: isCited ? { enabled: true } : undefined };
}

function encodeTool({ name, description, parameters, strict }: ModelTool): Block {
  return {
    name,
    description: description || undefined,
    input_schema: encodeParameters(parameters, "anthropic"),
    strict,
  };
}

function encodeToolChoice(choice: ModelRequest["toolChoice"]): unknown {
  if (choice === undefined) return undefined;
  if (typeof choice === "object") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : choice };
}

type Data = Readonly<Record<string, unknown>>;

/** One content block, as received so far. */
interface StreamedBlock {
  readonly kind: "text" | "thinking" | "redacted" | "call" | "other";
  readonly number: number;
  text: string;
  /** The signature of a thinking block, once it is received. */
  signature: string | undefined;
  /** The data of redacted thinking, or the initial input of a call. */
  readonly start: unknown;
  isStopped: boolean;
}

const kinds: Readonly<Record<string, StreamedBlock["kind"]>> = {
  text: "text",
  thinking: "thinking",
  redacted_thinking: "redacted",
  tool_use: "call",
  text_delta: "text",
  thinking_delta: "thinking",
  signature_delta: "thinking",
  input_json_delta: "call",
};

/** Assembles a reply from the events of a message, or from a complete one (Anthropic Messages API). */
class AnthropicAssembly implements ReplyAssembly {
  readonly #toolCalls: ToolCallAssembly;
  readonly #model: string;
  readonly #blocks: StreamedBlock[] = [];
  readonly #byIndex = new Map<unknown, StreamedBlock>();
  readonly #reasons: string[] = [];
  #content = "";
  #reasoning = "";
  #hasBegun = false;
  #isOver = false;
  #chunkCount = 0;
  readonly #usage: Record<string, unknown> = {};
  #answering = "";
  #callId = "";

  constructor(toolCalls: ToolCallAssembly, model: string) {
    this.#toolCalls = toolCalls;
    this.#model = model;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  get isFinished(): boolean {
    return this.#isOver || this.#reasons.length > 0;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get partial(): PartialReply {
    return { content: this.#content, reasoning: this.#reasoning };
  }

  add(event: unknown): readonly NewPart[] {
    if (!isRecord(event)) return [];
    this.#chunkCount += 1;
    if (Array.isArray(event["content"])) return this.#addMessage(event);
    switch (event["type"]) {
      case "message_start":
        return isRecord(event["message"]) ? this.#addMessage(event["message"]) : [];
      case "content_block_start":
        return isRecord(event["content_block"]) ? this.#begin(event["index"], event["content_block"]) : [];
      case "content_block_delta":
        return isRecord(event["delta"]) ? this.#addDelta(event["index"], event["delta"]) : [];
      case "content_block_stop":
        return this.#stop(this.#byIndex.get(event["index"]));
      case "message_delta":
        this.#count(event["usage"]);
        return isRecord(event["delta"]) ? this.#end(event["delta"]) : [];
      case "message_stop":
        this.#isOver = true;
        return this.#blocks.filter(({ kind }) => kind === "call").flatMap((block) => this.#stop(block));
      default:
        return [];
    }
  }

  finish(): AssembledReply {
    const toolCalls = this.#toolCalls.finish();
    return {
      content: this.#content,
      toolCalls,
      ...finishOf(this.#reasons, toolCalls.length > 0),
      chunkCount: this.#chunkCount,
      ...given({ reasoning: this.#reasoning, usage: toUsage(this.#usage), model: this.#answering, callId: this.#callId }),
      ...given({ replay: toReplay({ api: "messages", model: this.#model }, this.#blocks.flatMap(toLayout)) }),
    };
  }

  #addMessage(message: Data): readonly NewPart[] {
    this.#hasBegun = true;
    this.#answering = textOf(message["model"]) || this.#answering;
    this.#callId = textOf(message["id"]) || this.#callId;
    this.#count(message["usage"]);
    const blocks = Array.isArray(message["content"]) ? message["content"].filter(isRecord) : [];
    const parts = blocks.flatMap((block, index) => [...this.#begin(index, block), ...this.#stop(this.#byIndex.get(index))]);
    return [...parts, ...this.#end(message)];
  }

  #begin(index: unknown, start: Data): readonly NewPart[] {
    const block = this.#open(index, kinds[textOf(start["type"])], start["data"] ?? start["input"]);
    if (block.kind === "text") return this.#addText(block, textOf(start["text"]));
    if (block.kind === "call") return this.#addInput(block, "", start);
    if (block.kind !== "thinking") return [];
    block.signature = signatureOf(start);
    return this.#addThought(block, textOf(start["thinking"]));
  }

  #addDelta(index: unknown, delta: Data): readonly NewPart[] {
    const kind = kinds[textOf(delta["type"])];
    const block = this.#byIndex.get(index) ?? this.#open(index, kind, undefined);
    if (block.kind !== kind) return [];
    if (kind === "text") return this.#addText(block, textOf(delta["text"]));
    if (kind === "call") return this.#addInput(block, textOf(delta["partial_json"]), {});
    block.signature = signatureOf(delta) === undefined ? block.signature : (block.signature ?? "") + signatureOf(delta);
    return this.#addThought(block, textOf(delta["thinking"]));
  }

  #open(index: unknown, kind: StreamedBlock["kind"] = "other", start: unknown): StreamedBlock {
    this.#hasBegun = true;
    const block: StreamedBlock = { kind, number: this.#blocks.length, text: "", signature: undefined, start, isStopped: false };
    this.#blocks.push(block);
    this.#byIndex.set(index, block);
    return block;
  }

  /** A complete call has its input at the start, as in the streams of some servers. */
  #stop(block: StreamedBlock | undefined): readonly NewPart[] {
    if (block === undefined || block.isStopped) return [];
    block.isStopped = true;
    const isWhole = block.kind === "call" && block.text === "" && isRecord(block.start);
    return isWhole ? this.#addInput(block, block.start, {}) : [];
  }

  #addText(block: StreamedBlock, text: string): readonly NewPart[] {
    block.text += text;
    this.#content += text;
    return text === "" ? [] : [{ kind: "text", text }];
  }

  #addThought(block: StreamedBlock, more: string): readonly NewPart[] {
    if (more === "") return [];
    const text = block.text === "" && this.#reasoning !== "" ? `\n\n${more}` : more;
    block.text += more;
    this.#reasoning += text;
    return [{ kind: "reasoning", text }];
  }

  #addInput(block: StreamedBlock, text: unknown, { id, name }: Data): readonly NewPart[] {
    const inputs = this.#toolCalls.add(block.number, [{ index: 0, id, name, arguments: text }]);
    block.text += inputs.map(({ input }) => input).join("");
    return inputs.map((input) => ({ kind: "tool-input", ...input }));
  }

  /** The stop reason. If the model refused without text, the explanation of the refusal becomes the text. */
  #end({ stop_reason: reason, stop_details: details }: Data): readonly NewPart[] {
    if (textOf(reason) === "") return [];
    this.#reasons.push(textOf(reason).slice(0, 100));
    const explanation = isRecord(details) ? textOf(details["explanation"]) : "";
    return this.#content === "" && explanation !== "" ? this.#addText(this.#open(undefined, "text", undefined), explanation) : [];
  }

  // Counts of later events replace earlier ones; null is ignored.
  #count(usage: unknown): void {
    if (!isRecord(usage)) return;
    for (const name of countNames) this.#usage[name] = usage[name] ?? this.#usage[name];
  }
}

const countNames = [
  "input_tokens",
  "output_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens",
  "output_tokens_details",
] as const;

function signatureOf({ signature }: Data): string | undefined {
  return typeof signature === "string" ? signature : undefined;
}

// This API does not include cached tokens in the input tokens.
function toUsage(usage: Data): ModelUsage | undefined {
  const read = readUsage(usage);
  if (read === undefined) return undefined;
  return { ...read, inputTokens: read.inputTokens + (read.cachedTokens ?? 0) + (read.cacheWriteTokens ?? 0) };
}

// An interrupted thinking block has no signature, and the API rejects it. Servers without signatures send an empty one.
function toLayout({ kind, text, signature, start, isStopped }: StreamedBlock): readonly LayoutPart[] {
  if (kind === "text") return [{ kind: "text", length: text.length }];
  if (kind === "call") return [{ kind: "call" }];
  if (kind === "redacted" && typeof start === "string") return [{ kind: "thought", item: { type: "redacted_thinking", data: start } }];
  if (kind !== "thinking" || signature === undefined || (signature === "" && !isStopped)) return [];
  return [{ kind: "thought", item: { type: "thinking", thinking: text, signature } }];
}
