import { isRecord } from "../base/json.ts";
import { finishOf } from "./finish-reason.ts";
import type { ModelUsage } from "./model.ts";
import type { PartialReply } from "./model-error.ts";
import { readUsage } from "./read-usage.ts";
import { type AssembledReply, given, type LayoutPart, type NewPart, type ReplyAssembly, textOf, toReplay } from "./reply-assembly.ts";
import type { ToolCallAssembly } from "./tool-arguments.ts";

type Data = Readonly<Record<string, unknown>>;

/** One content block, as received so far. */
interface Block {
  readonly kind: "text" | "thinking" | "redacted" | "call" | "other";
  readonly number: number;
  text: string;
  /** The signature of a thinking block, once it is received. */
  signature: string | undefined;
  /** The data of redacted thinking, or the initial input of a call. */
  readonly start: unknown;
  isStopped: boolean;
}

const kinds: Readonly<Record<string, Block["kind"]>> = {
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
export class AnthropicAssembly implements ReplyAssembly {
  readonly #toolCalls: ToolCallAssembly;
  readonly #model: string;
  readonly #blocks: Block[] = [];
  readonly #byIndex = new Map<unknown, Block>();
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

  #open(index: unknown, kind: Block["kind"] = "other", start: unknown): Block {
    this.#hasBegun = true;
    const block: Block = { kind, number: this.#blocks.length, text: "", signature: undefined, start, isStopped: false };
    this.#blocks.push(block);
    this.#byIndex.set(index, block);
    return block;
  }

  /** A complete call has its input at the start, as in the streams of some servers. */
  #stop(block: Block | undefined): readonly NewPart[] {
    if (block === undefined || block.isStopped) return [];
    block.isStopped = true;
    const isWhole = block.kind === "call" && block.text === "" && isRecord(block.start);
    return isWhole ? this.#addInput(block, block.start, {}) : [];
  }

  #addText(block: Block, text: string): readonly NewPart[] {
    block.text += text;
    this.#content += text;
    return text === "" ? [] : [{ kind: "text", text }];
  }

  #addThought(block: Block, more: string): readonly NewPart[] {
    if (more === "") return [];
    const text = block.text === "" && this.#reasoning !== "" ? `\n\n${more}` : more;
    block.text += more;
    this.#reasoning += text;
    return [{ kind: "reasoning", text }];
  }

  #addInput(block: Block, text: unknown, { id, name }: Data): readonly NewPart[] {
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
function toLayout({ kind, text, signature, start, isStopped }: Block): readonly LayoutPart[] {
  if (kind === "text") return [{ kind: "text", length: text.length }];
  if (kind === "call") return [{ kind: "call" }];
  if (kind === "redacted" && typeof start === "string") return [{ kind: "thought", item: { type: "redacted_thinking", data: start } }];
  if (kind !== "thinking" || signature === undefined || (signature === "" && !isStopped)) return [];
  return [{ kind: "thought", item: { type: "thinking", thinking: text, signature } }];
}
