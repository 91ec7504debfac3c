import { isRecord, textOf } from "../../base/json.ts";
import type {
  AssistantMessage,
  ChatMessage,
  ImagePart,
  MessagePart,
  ModelToolCall,
  ReplayFields,
  ToolMessage,
} from "../../models/model.ts";
import { compactedContext, modelText, unseenNote } from "../prompt/model-text.ts";
import type { ModelMetric } from "./event-types.ts";
import type { RecordedEvent } from "./events.ts";

type Data = Readonly<Record<string, unknown>>;

/** An assistant message with calls, until all have a result. */
interface OpenCalls {
  readonly message: AssistantMessage;
  readonly calls: readonly ModelToolCall[];
  readonly results: Map<string, Data>;
  /** What was said meanwhile: no endpoint takes it between calls and results. */
  readonly later: ChatMessage[];
}

/** A conversation as a model is shown it, made of nothing but a session's events. */
/**
 * Reads the events of one conversation:
 * - `user.message`: what the model was sent (`transformedContent`, else `content`), with its images. Also what the host
 *   adds by itself, such as a skill's context, is such an event, with a `source`.
 * - `assistant.message`: its text and `toolRequests`. A request may carry `argumentsText`, the model's own words, and
 *   `argumentsError`; the message and each request a `replay` for the endpoint.
 * - `tool.execution_complete`: the result, and `arguments` where a hook rewrote them.
 * - `session.compaction_complete` with a `summaryContent`: what was said before the last `session.compaction_start` gives
 *   way to it. `session.context_cleared`: everything so far is gone.
 */
export class History {
  readonly #agentId: string | undefined;
  readonly #messages: ChatMessage[] = [];
  #open: OpenCalls | undefined;
  /** The words of the user in a message, and in the summary that took the place of several. */
  readonly #said = new WeakMap<ChatMessage, readonly string[]>();
  #compactions = 0;
  /** How many messages a compaction that has begun is about. */
  #compacting = 0;

  constructor({ agentId }: { readonly agentId?: string } = {}) {
    this.#agentId = agentId;
  }

  /** Adds the next event. Ignores events of other conversations, and those that are not part of one. */
  add({ type, data, agentId }: RecordedEvent): void {
    if (agentId !== this.#agentId) return;
    if (type === "user.message") {
      const transformed = data["transformedContent"];
      const content = typeof transformed === "string" ? transformed : textOf(data["content"]);
      const shown = listOf(data["attachments"]).flatMap(toShownParts);
      const message: ChatMessage = { role: "user", content: shown.length === 0 ? content : [{ type: "text", text: content }, ...shown] };
      if (data["source"] === undefined) this.#said.set(message, [textOf(data["content"])]);
      (this.#open?.later ?? this.#messages).push(message);
    } else if (type === "assistant.message") this.#answer(data);
    else if (type === "tool.execution_complete") this.#finish(data);
    else if (type === "session.compaction_start") this.#compacting = this.#messages.length;
    else if (type === "session.compaction_complete") this.#compact(data);
    else if (type === "session.context_cleared") {
      this.#messages.length = 0;
      this.#open = undefined;
      this.#compacting = 0;
    }
  }

  /** How often the conversation was shortened. */
  get compactions(): number {
    return this.#compactions;
  }

  /**
   * The messages so far, without a system message. Every call of an assistant message has its result, in the order of
   * the calls and right behind it, whenever it came: what is missing is a failure that says so.
   */
  messages(): readonly ChatMessage[] {
    return this.#open === undefined ? [...this.#messages] : [...this.#messages, ...rendered(this.#open)];
  }

  #answer(data: Data): void {
    this.#close();
    const calls = callsOf(data["toolRequests"]);
    const replay = replayOf(data);
    const message: AssistantMessage = { role: "assistant", content: textOf(data["content"]), ...replay };
    if (calls.length > 0) this.#open = { message, calls, results: new Map(), later: [] };
    // An empty message says nothing, and some endpoints refuse it.
    else if (message.content !== "" || replay !== undefined) this.#messages.push(message);
  }

  #finish(data: Data): void {
    const id = data["toolCallId"];
    if (this.#open === undefined || typeof id !== "string" || !this.#open.calls.some((call) => call.id === id)) return;
    this.#open.results.set(id, data);
    if (this.#open.results.size === this.#open.calls.length) this.#close();
  }

  #compact({ success, summaryContent }: Data): void {
    if (success !== true || typeof summaryContent !== "string") return;
    const said = this.#messages.slice(0, this.#compacting).flatMap((message) => this.#said.get(message) ?? []);
    const message: ChatMessage = { role: "user", content: compactedContext(summaryContent, quotable(said)) };
    this.#said.set(message, said);
    this.#messages.splice(0, this.#compacting, message);
    this.#compacting = 0;
    this.#compactions++;
  }

  #close(): void {
    if (this.#open !== undefined) this.#messages.push(...rendered(this.#open));
    this.#open = undefined;
  }
}

const maxQuoted = 20_000;
const maxQuote = 2_000;

/** What of the user's messages stands beside a summary: the first, which says what it is about, and the newest that fit. */
function quotable(said: readonly string[]): readonly string[] {
  const [first, ...rest] = said.map((text) => (text.length > maxQuote ? `${text.slice(0, maxQuote)}…` : text));
  if (first === undefined) return [];
  const kept: string[] = [];
  let left = maxQuoted - first.length;
  for (const text of rest.reverse()) {
    left -= text.length;
    if (left < 0) break;
    kept.unshift(text);
  }
  return [first, ...kept];
}

function rendered({ message, calls, results, later }: OpenCalls): ChatMessage[] {
  const toolCalls = calls.map((call) => rewritten(call, results.get(call.id)));
  return [{ ...message, toolCalls }, ...calls.map((call) => resultMessage(call, results.get(call.id))), ...later];
}

/** The model sees what really ran, also where a hook made other arguments of its own. */
function rewritten(call: ModelToolCall, completion: Data | undefined): ModelToolCall {
  if (completion?.["arguments"] === undefined) return call;
  const { argumentsError: _corrected, ...rest } = call;
  return { ...rest, arguments: completion["arguments"], argumentsText: jsonOf(completion["arguments"]) };
}

function resultMessage(call: ModelToolCall, completion: Data | undefined): ChatMessage {
  if (completion === undefined) return { role: "tool", toolCallId: call.id, content: modelText("interrupted", { tool: call.name }) };
  const result = recordOf(completion["result"]);
  const content = typeof result["content"] === "string" ? result["content"] : textOf(recordOf(completion["error"])["message"]);
  const images = imagesOf(result["binaryResultsForLlm"]);
  // Models are not shown binary results other than images.
  const notes = listOf(result["binaryResultsForLlm"]).flatMap((item) => {
    const { data, mimeType, description } = recordOf(item);
    if (typeof data !== "string" || typeof mimeType !== "string" || mimeType.startsWith("image/")) return [];
    return [unseenNote({ mimeType, description: textOf(description), bytes: Buffer.byteLength(data, "base64") })];
  });
  return { role: "tool", toolCallId: call.id, content: [content, ...notes].join("\n"), ...(images.length > 0 && { images }) };
}

/** The images among binary results: whatever says so by its MIME type and holds its data. */
function imagesOf(list: unknown): ImagePart[] {
  return listOf(list).flatMap((item) => {
    const { data, mimeType, description } = recordOf(item);
    return typeof data === "string" && typeof mimeType === "string" && mimeType.startsWith("image/")
      ? [{ type: "image" as const, data, mimeType, ...(typeof description === "string" && description !== "" && { description }) }]
      : [];
  });
}

/** An attachment that the model sees itself: an image behind its name, or a document. */
function toShownParts(attachment: unknown): MessagePart[] {
  const { data, mimeType, displayName } = recordOf(attachment);
  if (typeof data !== "string" || typeof mimeType !== "string") return [];
  const name = typeof displayName === "string" && displayName !== "" ? displayName : undefined;
  if (mimeType === "application/pdf") return [{ type: "document", mimeType, data, ...(name !== undefined && { title: name }) }];
  if (!mimeType.startsWith("image/")) return [];
  return [...(name === undefined ? [] : [{ type: "text" as const, text: name }]), { type: "image", data, mimeType }];
}

function callsOf(toolRequests: unknown): ModelToolCall[] {
  const calls = new Map<string, ModelToolCall>();
  for (const request of listOf(toolRequests)) {
    const call = callOf(recordOf(request));
    // A second call with the same id could not be distinguished from the first.
    if (call !== undefined && !calls.has(call.id)) calls.set(call.id, call);
  }
  return [...calls.values()];
}

function callOf(request: Data): ModelToolCall | undefined {
  const { toolCallId: id, name, arguments: args = {}, argumentsText, argumentsError } = request;
  if (typeof id !== "string" || typeof name !== "string") return undefined;
  return {
    id,
    name,
    arguments: args,
    argumentsText: typeof argumentsText === "string" ? argumentsText : jsonOf(args),
    ...(typeof argumentsError === "string" && { argumentsError }),
    ...replayOf(request),
  };
}

function replayOf({ replay }: Data): { readonly replay: ReplayFields } | undefined {
  return isRecord(replay) ? { replay: replay satisfies ReplayFields } : undefined;
}

function jsonOf(args: unknown): string {
  try {
    return JSON.stringify(args) ?? "{}";
  } catch {
    // A hook made arguments that JSON cannot hold; they ran all the same.
    return "{}";
  }
}

function recordOf(value: unknown): Data {
  return isRecord(value) ? value : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** What a model can be shown beside text. */
interface Sight {
  readonly seesImages: boolean;
  readonly readsDocuments: boolean;
  readonly citesDocuments: boolean;
}

/** What a model is sent: one system message, then the conversation as its events describe it. */
export function assembleMessages(system: string, history: History, sight: Sight): readonly ChatMessage[] {
  const conversation = history.messages().map((message) => asSeen(message, sight));
  return system === "" ? conversation : [{ role: "system", content: system }, ...conversation];
}

/** The same message when the model sees all of it. */
function asSeen(message: ChatMessage, sight: Sight): ChatMessage {
  if (message.role === "tool") return message.images === undefined || sight.seesImages ? message : withoutPictures(message, message.images);
  if (message.role !== "user" || typeof message.content === "string") return message;
  const parts = message.content.map((part) => partAsSeen(part, sight));
  return parts.every((part, index) => part === (message.content as readonly MessagePart[])[index])
    ? message
    : { role: "user", content: parts };
}

function partAsSeen(part: MessagePart, { seesImages, readsDocuments, citesDocuments }: Sight): MessagePart {
  if (part.type === "image") return seesImages ? part : { type: "text", text: noteOf(part) };
  if (part.type !== "document") return part;
  if (readsDocuments) return citesDocuments ? { ...part, isCited: true } : part;
  const { mimeType, title: description, data } = part;
  return { type: "text", text: unseenNote({ mimeType, description, bytes: Buffer.byteLength(data, "base64") }) };
}

function withoutPictures({ role, toolCallId, content }: ToolMessage, images: readonly ImagePart[]): ToolMessage {
  return { role, toolCallId, content: [content, ...images.map(noteOf)].join("\n") };
}

function noteOf(image: ImagePart): string {
  if ("url" in image) return unseenNote({ mimeType: "image", bytes: undefined });
  return unseenNote({ mimeType: image.mimeType, bytes: Buffer.byteLength(image.data, "base64") });
}

interface UsageSummary {
  readonly totalApiDurationMs: number;
  readonly codeChanges: { readonly linesAdded: number; readonly linesRemoved: number; readonly filesModified: readonly string[] };
  readonly modelMetrics: Readonly<Record<string, ModelMetric>>;
}

interface Metric {
  requests: { count: number; cost: number };
  usage: { inputTokens: number; outputTokens: number; cacheReadTokens: number; cacheWriteTokens: number };
}

/** More are not kept: a list of them is for people. */
const maxFiles = 10_000;

/** What a session's models took, as their endpoints counted it, and the files that its tools said they changed. */
export class SessionUsage {
  readonly startedAt: Date = new Date();
  readonly #models = new Map<string, Metric>();
  readonly #files = new Set<string>();
  #userRequests = 0;
  #durationMs = 0;
  #last = { input: 0, output: 0 };

  hear({ type, data, agentId }: RecordedEvent): void {
    if (type !== "assistant.usage") return;
    const model = String(data["model"]);
    const metric = this.#models.get(model) ?? newMetric();
    this.#models.set(model, metric);
    metric.requests.count++;
    for (const key of Object.keys(metric.usage) as (keyof Metric["usage"])[]) metric.usage[key] += countOf(data[key]);
    if (data["initiator"] === "user") this.#userRequests++;
    this.#durationMs += countOf(data["duration"]);
    if (agentId === undefined) this.#last = { input: countOf(data["inputTokens"]), output: countOf(data["outputTokens"]) };
  }

  fileChanged(path: string): void {
    if (this.#files.size < maxFiles) this.#files.add(path);
  }

  /** The totals for `session.shutdown`. Lines are not counted: tools report which files they changed, and not how. */
  get summary(): UsageSummary {
    return {
      totalApiDurationMs: Math.round(this.#durationMs),
      codeChanges: { linesAdded: 0, linesRemoved: 0, filesModified: [...this.#files] },
      modelMetrics: Object.fromEntries(this.#models),
    };
  }

  /** The totals while the session is open. */
  get metrics(): object {
    const { codeChanges, ...summary } = this.summary;
    return {
      ...summary,
      totalPremiumRequestCost: 0,
      totalUserRequests: this.#userRequests,
      sessionStartTime: this.startedAt.toISOString(),
      codeChanges: { ...codeChanges, filesModifiedCount: codeChanges.filesModified.length },
      lastCallInputTokens: this.#last.input,
      lastCallOutputTokens: this.#last.output,
    };
  }
}

function newMetric(): Metric {
  return { requests: { count: 0, cost: 0 }, usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 } };
}

function countOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
