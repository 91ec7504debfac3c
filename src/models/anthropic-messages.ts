import { isRecord } from "../base/json.ts";
import { nearestToolName } from "../tools/tool.ts";
import { AnthropicAssembly } from "./assemble-anthropic.ts";
import { argumentsToSend, defined, encodeParameters, toCallId, wellFormed } from "./encode-parts.ts";
import type { ChatMessage, ImagePart, MessagePart, ModelRequest, ModelTool, ModelToolCall, ToolMessage } from "./model.ts";
import { arrange, hasThoughts, type LayoutOwner, type MessagePiece, refuseThoughts } from "./reply-assembly.ts";
import type { Protocol, Refusal } from "./wire-model.ts";

/** `/v1/messages`, the protocol of Anthropic. `model` is its name there. */
export function anthropicMessages(model: string): Protocol<AnthropicDialect> {
  return {
    path: "/messages",
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
  return defined({
    model,
    max_tokens: maxTokens,
    system: system.length === 0 ? undefined : system,
    messages: turns,
    tools: tools.length === 0 ? undefined : tools.map(encodeTool),
    tool_choice: tools.length === 0 ? undefined : encodeToolChoice(request.toolChoice),
    ...thinking,
    temperature: canSetTemperature ? request.temperature : undefined,
    stream: isStream ? true : undefined,
  });
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
  if (!isRecord(call.arguments)) return {};
  return /[\ud800-\udfff]|\\ud/i.test(call.argumentsText) ? copyWellFormed(call.arguments) : call.arguments;
}

function copyWellFormed(input: object): unknown {
  return JSON.parse(JSON.stringify(input), (_key, value) => (typeof value === "string" ? wellFormed(value) : value));
}

function encodeResult({ toolCallId, content, images = [] }: ToolMessage): Block {
  const shown = [...encodeText(content), ...(images as readonly ImagePart[]).flatMap(encodePart)];
  return { type: "tool_result", tool_use_id: callId(toolCallId), content: images.length === 0 ? wellFormed(content) : shown };
}

function callId(id: string): string {
  return toCallId(id, /^[a-zA-Z0-9_-]{1,512}$/);
}

// The API rejects text that consists of white space.
function encodeText(text: string): readonly Block[] {
  return text.trim() === "" ? [] : [{ type: "text", text: wellFormed(text) }];
}

const shownTypes: Readonly<Record<string, string>> = {
  "image/png": "image/png",
  "image/jpeg": "image/jpeg",
  "image/jpg": "image/jpeg",
  "image/gif": "image/gif",
  "image/webp": "image/webp",
};

function encodePart(part: MessagePart): readonly Block[] {
  if (part.type === "text") return encodeText(part.text);
  const inline = "url" in part ? /^data:([^;,]+);base64,(.*)$/s.exec(part.url)?.slice(1) : [part.mimeType, part.data];
  if (inline === undefined) return [{ type: "image", source: { type: "url", url: (part as { url: string }).url } }];
  const [mimeType = "", data] = inline;
  const type = Object.hasOwn(shownTypes, mimeType) ? shownTypes[mimeType] : undefined;
  if (type === undefined) return encodeText(`(An image of type ${mimeType.slice(0, 100)}, which this model does not support.)`);
  return [{ type: "image", source: { type: "base64", media_type: type, data } }];
}

function encodeTool({ name, description, parameters, strict }: ModelTool): Block {
  return defined({ name, description: description || undefined, input_schema: encodeParameters(parameters), strict });
}

function encodeToolChoice(choice: ModelRequest["toolChoice"]): unknown {
  if (choice === undefined) return undefined;
  if (typeof choice === "object") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : choice };
}
