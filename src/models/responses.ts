import { isRecord } from "../base/json.ts";
import { nearestToolName } from "../tools/tool.ts";
import { ResponsesAssembly } from "./assemble-responses.ts";
import { argumentsToSend, defined, encodeParameters, imageUrl, toCallId, wellFormed } from "./encode-parts.ts";
import type { ChatMessage, ImagePart, MessagePart, ModelRequest, ModelTool, ToolMessage } from "./model.ts";
import { arrange, type LayoutOwner, type MessagePiece, refuseThoughts } from "./reply-assembly.ts";
import type { Protocol, Refusal, SentBody } from "./wire-model.ts";

/** `/responses`, the newer protocol of OpenAI: reasoning between calls is kept. `model` is its name there. */
export function responses(model: string): Protocol<ResponsesDialect> {
  return {
    path: "/responses",
    requiredField: "output",
    dialect: { dropped: new Set(), refused: new WeakSet() },
    encode: (request, isStream, dialect) => encodeResponsesRequest(model, request, isStream, dialect),
    learn: (refusal, dialect) => learnResponsesDialect(refusal, dialect, model),
    errorIn,
    assemble: (toolCalls) => new ResponsesAssembly(toolCalls, model),
  };
}

type Dropped = ResponsesDialect["dropped"] extends ReadonlySet<infer Name> ? Name : never;

/** The texts of refusals, and the field to omit after each. */
const refusals: readonly (readonly [said: RegExp, name: Dropped, isSent: (body: SentBody) => boolean])[] = [
  [/\binclude\b|encrypted[ _]content/i, "include", (body) => body["include"] !== undefined],
  [/summar|verified/i, "summary", (body) => isRecord(body["reasoning"]) && body["reasoning"]["summary"] !== undefined],
  [/reasoning/i, "reasoning", (body) => body["reasoning"] !== undefined],
  [/temperature/i, "temperature", (body) => body["temperature"] !== undefined],
  [/\bstore\b/i, "store", (body) => body["store"] !== undefined],
];

// Reasoning of another account, expired reasoning, or reasoning whose following item was changed.
const refusedThought =
  /invalid_encrypted_content|encrypted content.*(?:verified|decrypt)|required following item|\brs_\w|type '?reasoning/i;

function learnResponsesDialect({ said, body, request }: Refusal, dialect: ResponsesDialect, model: string): ResponsesDialect | undefined {
  const owner = { api: "responses", model } as const;
  if (refusedThought.test(said) && refuseThoughts(request.messages, owner, dialect.refused)) return dialect;
  const refusal = refusals.find(([words, , isSent]) => words.test(said) && isSent(body));
  return refusal === undefined ? undefined : { ...dialect, dropped: new Set([...dialect.dropped, refusal[1]]) };
}

// A failed response contains its error; an error event is the error itself.
function errorIn(value: unknown): unknown {
  if (!isRecord(value)) return value;
  if (value["type"] === "error" && !isRecord(value["error"])) return { error: value };
  return isRecord(value["response"]) ? value["response"] : value;
}

/** Features that differ between endpoints and models and cannot be queried: they are detected from a refusal. */
interface ResponsesDialect {
  /** The fields to omit. */
  readonly dropped: ReadonlySet<"include" | "summary" | "reasoning" | "temperature" | "store">;
  /** The `replay` of messages whose reasoning the endpoint rejected. */
  readonly refused: WeakSet<object>;
}

/** The body of a request to `/responses`. The endpoint stores nothing: each request contains the whole conversation. */
function encodeResponsesRequest(
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

// Without a summary no reasoning text is available.
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
      return arrange(message, owner, refused).map(encodePiece);
  }
}

function encodePiece(piece: MessagePiece): unknown {
  if (piece.kind === "thought") return piece.item;
  if (piece.kind === "text") return defined({ type: "message", role: "assistant", content: wellFormed(piece.text), phase: piece.phase });
  const { id, name } = piece.call;
  return { type: "function_call", call_id: callId(id), name: nearestToolName(name), arguments: argumentsToSend(piece.call) };
}

// Endpoints refuse longer ids, even their own.
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

// Without `strict`, endpoints assume that schemas follow its rules.
function encodeTool({ name, description, parameters, strict = false }: ModelTool): unknown {
  return defined({ type: "function", name, description, parameters: encodeParameters(parameters), strict });
}

function encodeToolChoice(choice: ModelRequest["toolChoice"]): unknown {
  return typeof choice === "object" ? { type: "function", name: choice.name } : choice;
}
