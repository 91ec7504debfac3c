import { isRecord } from "../base/json.ts";
import { finishOf } from "./finish-reason.ts";
import type { ModelToolCall, ModelUsage, ReplayFields } from "./model.ts";
import type { PartialReply } from "./model-error.ts";
import { readUsage } from "./read-usage.ts";
import { type AssembledReply, given, type NewPart, type ReplyAssembly, textOf } from "./reply-assembly.ts";
import type { ToolCallAssembly } from "./tool-arguments.ts";

/**
 * Assembles a reply from the chunks of a chat completion, or from a complete one. All choices form one message: text in one and
 * tool calls in another belong together, in order of arrival.
 */
export class ChatAssembly implements ReplyAssembly {
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
    this.#chunkCount += 1;
    this.#model = textOf(chunk["model"]) || this.#model;
    this.#callId = textOf(chunk["id"]) || this.#callId;
    const vendor = isRecord(chunk["x_groq"]) ? chunk["x_groq"]["usage"] : undefined;
    this.#usage = readUsage(chunk["usage"]) ?? readUsage(vendor) ?? this.#usage;
    const choices = Array.isArray(chunk["choices"]) ? chunk["choices"].filter(isRecord) : [];
    return choices.flatMap((choice, position) => {
      this.#hasChoices = true;
      this.#usage = readUsage(choice["usage"]) ?? this.#usage;
      const number = typeof choice["index"] === "number" ? choice["index"] : position;
      const message = [choice["delta"], choice["message"]].find(isRecord);
      const parts = message === undefined ? [] : this.#addMessage(message, number);
      const reason = textOf(choice["finish_reason"]);
      if (reason !== "") this.#reasons.push(reason.slice(0, 100));
      return parts;
    });
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

  #addMessage(message: Readonly<Record<string, unknown>>, choice: number): readonly NewPart[] {
    const { text, thought } = readContent(message["content"]);
    const legacy = isRecord(message["function_call"]) ? [message["function_call"]] : undefined;
    const inputs = this.#toolCalls.add(choice, message["tool_calls"] ?? legacy);
    this.#keepOpaque(message);
    return [
      ...this.#addReasoning(this.#readReasoning(message) + thought),
      ...this.#addText(text + textOf(message["refusal"])),
      ...inputs.map((input) => ({ kind: "tool-input" as const, ...input })),
    ];
  }

  #addText(text: string): readonly NewPart[] {
    this.#content += text;
    return text === "" ? [] : [{ kind: "text", text }];
  }

  #addReasoning(text: string): readonly NewPart[] {
    this.#reasoning += text;
    return text === "" ? [] : [{ kind: "reasoning", text }];
  }

  // Gateways repeat the same reasoning under several names.
  #readReasoning(message: Readonly<Record<string, unknown>>): string {
    const name = reasoningFields.find((field) => textOf(message[field]) !== "");
    if (name === undefined) return "";
    this.#reasoningField ??= name;
    return textOf(message[name]);
  }

  #keepOpaque(message: Readonly<Record<string, unknown>>): void {
    const text = textOf(message["reasoning_opaque"]);
    if (text !== "") this.#replay["reasoning_opaque"] = text;
  }

  // Models that reason between tool calls require their reasoning again; on other messages some reject it.
  #replayFields(toolCalls: readonly ModelToolCall[]): ReplayFields | undefined {
    if (toolCalls.length > 0 && this.#reasoningField !== undefined) this.#replay[this.#reasoningField] = this.#reasoning;
    return Object.keys(this.#replay).length === 0 ? undefined : this.#replay;
  }
}

/** The names under which gateways send and accept a model's reasoning. */
const reasoningFields = ["reasoning_content", "reasoning", "reasoning_text"];

function readContent(content: unknown): { text: string; thought: string } {
  if (!Array.isArray(content)) return { text: textOf(content), thought: "" };
  const parts = content.filter(isRecord);
  return {
    text: parts.map((part) => textOf(part["text"])).join(""),
    thought: parts.map((part) => thoughtOf(part["thinking"])).join(""),
  };
}

function thoughtOf(thinking: unknown): string {
  return Array.isArray(thinking) ? readContent(thinking).text : textOf(thinking);
}
