import { isRecord, textOf } from "../base/json.ts";
import { copyJson } from "../tools/json-copy.ts";
import { nearestToolName } from "../tools/tool.ts";
import { argumentsToSend, documentNote, encodeParameters, imageUrl, toCallId } from "./encode-parts.ts";
import type { ChatMessage, ImagePart, MessagePart, ModelRequest, ModelTool, ModelUsage, ToolMessage } from "./model.ts";
import type { PartialReply } from "./model-error.ts";
import { type AssembledReply, finishOf, given, type NewPart, type ReplyAssembly, readUsage } from "./reply-assembly.ts";
import { arrange, type LayoutOwner, type LayoutPart, type MessagePiece, refuseThoughts, toReplay } from "./reply-layout.ts";
import type { ToolCallAssembly } from "./tool-call-assembly.ts";
import type { Protocol, Refusal, SentBody } from "./wire-model.ts";

/** `/responses`, the newer protocol of OpenAI: reasoning between calls is kept. `model` is its name there. */
export function responses(model: string): Protocol<ResponsesDialect> {
  return {
    path: "/responses",
    api: { http: "/responses", socket: "ws:/responses" },
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
  const optional = {
    store: false,
    include: ["reasoning.encrypted_content"],
    temperature: request.temperature,
    reasoning: encodeReasoning(request.reasoningEffort, !dropped.has("summary")),
  };
  return {
    model,
    instructions: first.length === 0 ? undefined : first.map(({ content }) => content as string).join("\n\n"),
    input: rest.flatMap((message) => encodeMessage(message, { api: "responses", model }, refused)),
    tools: tools.length === 0 ? undefined : tools.map(encodeTool),
    tool_choice: tools.length === 0 ? undefined : encodeToolChoice(request.toolChoice),
    max_output_tokens: request.maxOutputTokens,
    stream: isStream ? true : undefined,
    ...Object.fromEntries(Object.entries(optional).filter(([name]) => !(dropped as ReadonlySet<string>).has(name))),
  };
}

// Without a summary no reasoning text is available.
function encodeReasoning(effort: string | undefined, canSummarise: boolean): unknown {
  return effort === undefined ? undefined : { effort, summary: canSummarise ? "auto" : undefined };
}

function encodeMessage(message: ChatMessage, owner: LayoutOwner, refused: WeakSet<object>): readonly unknown[] {
  switch (message.role) {
    case "system":
      return [{ type: "message", role: "system", content: message.content }];
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
  if (piece.kind === "text") return { type: "message", role: "assistant", content: piece.text, phase: piece.phase };
  const { id, name } = piece.call;
  return { type: "function_call", call_id: callId(id), name: nearestToolName(name), arguments: argumentsToSend(piece.call) };
}

// Endpoints refuse longer ids, even their own.
function callId(id: string): string {
  return toCallId(id, /^[^\p{Cs}]{1,64}$/u);
}

function encodeContent(content: string | readonly MessagePart[]): unknown {
  if (typeof content === "string") return content;
  if (content.every((part) => part.type === "text")) return content.map((part) => part.text).join("\n");
  return content.map(encodePart);
}

function encodeResult({ content, images = [] }: ToolMessage): unknown {
  if (images.length === 0) return content;
  const text: readonly MessagePart[] = content === "" ? [] : [{ type: "text", text: content }];
  return [...text, ...(images as readonly ImagePart[])].map(encodePart);
}

function encodePart(part: MessagePart): unknown {
  if (part.type === "text") return { type: "input_text", text: part.text };
  if (part.type === "document") return { type: "input_text", text: documentNote(part) };
  return { type: "input_image", image_url: imageUrl(part), detail: part.detail ?? "auto" };
}

// Without `strict`, endpoints assume that schemas follow its rules.
function encodeTool({ name, description, parameters, strict = false }: ModelTool): unknown {
  return { type: "function", name, description, parameters: encodeParameters(parameters), strict };
}

function encodeToolChoice(choice: ModelRequest["toolChoice"]): unknown {
  return typeof choice === "object" ? { type: "function", name: choice.name } : choice;
}

/** One output item, as received so far. */
interface Item {
  kind: OutputKind;
  readonly number: number;
  /** The text of a message, the readable part of reasoning, or the arguments of a call. */
  text: string;
  /** The latest summary part of reasoning. */
  section: unknown;
  /** Whether the name of a call is known. */
  isNamed: boolean;
  thought?: Data | undefined;
  phase?: string;
}

/** Assembles a reply from the events of a response, or from a complete one (OpenAI Responses API). */
class ResponsesAssembly implements ReplyAssembly {
  readonly #toolCalls: ToolCallAssembly;
  readonly #model: string;
  readonly #items: Item[] = [];
  readonly #byKey = new Map<unknown, Item>();
  readonly #lastOf = new Map<OutputKind, Item>();
  readonly #reasons: string[] = [];
  #content = "";
  #reasoning = "";
  #hasBegun = false;
  #isOver = false;
  #chunkCount = 0;
  #usage: ModelUsage | undefined;
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
    return this.#isOver;
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
    const type = textOf(event["type"]);
    if (isRecord(event["response"])) return this.#addResponse(event["response"], /\.(?:completed|incomplete|failed)$/.test(type));
    if (Array.isArray(event["output"])) return this.#addResponse(event, true);
    if (!type.startsWith("response.")) return [];
    return this.#addEvent(type.slice("response.".length), event);
  }

  finish(): AssembledReply {
    const toolCalls = this.#toolCalls.finish();
    return {
      content: this.#content,
      toolCalls,
      ...finishOf(this.#reasons, toolCalls.length > 0),
      chunkCount: this.#chunkCount,
      ...given({ reasoning: this.#reasoning, usage: this.#usage, model: this.#answering, callId: this.#callId }),
      ...given({ replay: toReplay({ api: "responses", model: this.#model }, this.#layout()) }),
    };
  }

  #layout(): readonly LayoutPart[] {
    const texts = this.#items.filter(({ kind }) => kind === "message").map(({ text }) => text);
    const isInOrder = texts.join("") === this.#content;
    return this.#items.flatMap(toLayout).filter(({ kind }) => isInOrder || kind !== "text");
  }

  #addResponse(response: Data, isLast: boolean): readonly NewPart[] {
    this.#answering = textOf(response["model"]) || this.#answering;
    this.#callId = textOf(response["id"]) || this.#callId;
    this.#usage = readUsage(response["usage"]) ?? this.#usage;
    if (!isLast) return [];
    this.#hasBegun ||= Array.isArray(response["output"]);
    const isAllNew = this.#items.length === 0;
    const itemOf = (item: Data, index: number): Item =>
      isAllNew ? this.#begin(kindOf(item)) : this.#itemOf({ output_index: index, item });
    const parts = listOf(response["output"]).flatMap((item, index) => this.#settle(itemOf(item, index), item));
    const details = isRecord(response["incomplete_details"]) ? textOf(response["incomplete_details"]["reason"]) : "";
    const reason = details || textOf(response["status"]);
    if (reason !== "") this.#reasons.push(reason.slice(0, 100));
    this.#isOver = true;
    return parts;
  }

  #addEvent(type: string, event: Data): readonly NewPart[] {
    const delta = textOf(event["delta"]);
    switch (type) {
      case "output_item.added":
      case "output_item.done":
        return isRecord(event["item"]) ? this.#addItem(event, event["item"], type.endsWith("done")) : [];
      case "output_text.delta":
      case "refusal.delta":
        return this.#addText(this.#itemOf(event, "message"), delta);
      case "reasoning_summary_text.delta":
      case "reasoning_text.delta":
        return this.#addThought(this.#itemOf(event, "thought"), delta, event["summary_index"] ?? event["content_index"]);
      case "function_call_arguments.delta":
        return this.#addInput(this.#itemOf(event, "call"), delta, {});
      case "function_call_arguments.done":
        return this.#addRest(this.#itemOf(event, "call"), event["arguments"], {});
      default:
        return [];
    }
  }

  #addItem(event: Data, item: Data, isDone: boolean): readonly NewPart[] {
    if (isDone) return this.#settle(this.#itemOf(event), item);
    // Some servers send the same index, or the same id, for every item: it is a different item nevertheless.
    const begun = this.#begin(kindOf(item));
    for (const key of keysOf(event)) this.#byKey.set(key, begun);
    return begun.kind === "call" ? this.#addInput(begun, "", item) : [];
  }

  /** The content of a complete item that its events did not contain: some servers send no other events. */
  #settle(item: Item, complete: Data): readonly NewPart[] {
    if (item.kind !== kindOf(complete)) return [];
    if (item.kind === "call") return this.#addRest(item, complete["arguments"], complete);
    if (item.kind === "thought") {
      item.thought = thoughtOf(complete) ?? item.thought;
      return item.text === "" ? this.#addThought(item, thoughtText(complete), undefined) : [];
    }
    if (item.kind !== "message") return [];
    if (textOf(complete["phase"]) !== "") item.phase = textOf(complete["phase"]);
    const text = fullText(complete);
    return text.startsWith(item.text) ? this.#addText(item, text.slice(item.text.length)) : [];
  }

  #addText(item: Item, text: string): readonly NewPart[] {
    item.text += text;
    this.#content += text;
    return text === "" ? [] : [{ kind: "text", text }];
  }

  #addThought(item: Item, more: string, section: unknown): readonly NewPart[] {
    if (more === "") return [];
    const isApart = this.#reasoning !== "" && (item.text === "" || item.section !== section);
    const text = isApart ? `\n\n${more}` : more;
    item.section = section;
    item.text += text;
    this.#reasoning += text;
    return [{ kind: "reasoning", text }];
  }

  #addInput(item: Item, text: unknown, { call_id: id, name }: Data): readonly NewPart[] {
    const inputs = this.#toolCalls.add(item.number, [{ index: 0, ...(!item.isNamed && { id, name }), arguments: text }]);
    item.isNamed ||= textOf(name) !== "";
    item.text += inputs.map(({ input }) => input).join("");
    return inputs.map((input) => ({ kind: "tool-input", ...input }));
  }

  #addRest(item: Item, whole: unknown, call: Data): readonly NewPart[] {
    if (item.text === "") return this.#addInput(item, whole, call);
    const rest = typeof whole === "string" && whole.startsWith(item.text) ? whole.slice(item.text.length) : "";
    return this.#addInput(item, rest, call);
  }

  // In the protocol an event has the id and the index of its item. Servers omit one of them, or change ids within a stream.
  #itemOf(event: Data, kind: OutputKind = "other"): Item {
    const keys = keysOf(event);
    const wanted = kind === "other" && isRecord(event["item"]) ? kindOf(event["item"]) : kind;
    const last = keys.length === 0 ? this.#lastOf.get(wanted) : undefined;
    const item = keys.map((key) => this.#byKey.get(key)).find((found) => found !== undefined) ?? last ?? this.#begin(wanted);
    if (item.kind === "other") item.kind = wanted;
    for (const key of keys) this.#byKey.set(key, item);
    return item;
  }

  #begin(kind: OutputKind): Item {
    this.#hasBegun = true;
    const item = { kind, number: this.#items.length, text: "", section: undefined, isNamed: false };
    this.#items.push(item);
    this.#lastOf.set(kind, item);
    return item;
  }
}

function keysOf({ item_id: id, item, output_index: place }: Data): readonly unknown[] {
  const named = isRecord(item) ? item["id"] : undefined;
  return [id ?? named, place].filter((key) => key !== undefined && key !== null && key !== "");
}

function toLayout({ kind, text, thought, phase }: Item): readonly LayoutPart[] {
  if (kind === "thought") return thought === undefined ? [] : [{ kind: "thought", item: thought }];
  if (kind === "call") return [{ kind: "call" }];
  return kind === "message" ? [{ kind: "text", length: text.length, ...(phase === undefined ? {} : { phase }) }] : [];
}

type Data = Readonly<Record<string, unknown>>;

/** The kind of an output item. */
type OutputKind = "message" | "thought" | "call" | "other";

function kindOf({ type }: Data): OutputKind {
  if (type === "message") return "message";
  if (type === "reasoning") return "thought";
  return type === "function_call" ? "call" : "other";
}

function listOf(list: unknown): readonly Data[] {
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

/** The text of a message, including refusals. */
function fullText({ content }: Data): string {
  return listOf(content)
    .map((part) => textOf(part["text"]) + textOf(part["refusal"]))
    .join("");
}

/** The readable text of reasoning. */
function thoughtText({ summary, content }: Data): string {
  return [...listOf(summary), ...listOf(content)].map((part) => textOf(part["text"])).join("\n\n");
}

/**
 * Reasoning in the form to send back. Reasoning without encrypted or readable content exists only at the endpoint, which is
 * asked not to store it.
 */
function thoughtOf({ id, summary, content, encrypted_content: encrypted }: Data): Data | undefined {
  const isEncrypted = typeof encrypted === "string" && encrypted !== "";
  if (!isEncrypted && listOf(content).length === 0) return undefined;
  const item = {
    type: "reasoning",
    ...(typeof id === "string" && { id }),
    summary: listOf(summary),
    ...(listOf(content).length > 0 && { content }),
    ...(isEncrypted && { encrypted_content: encrypted }),
  };
  const copy = copyJson(item);
  return copy.ok ? (copy.value as Data) : undefined;
}
