import type { ChatModel } from "../../src/models/model.ts";
import type { ModelOptions } from "../../src/models/provider.ts";
import { anthropicAnswer, anthropicEvents, anthropicStreamAnswer } from "../doubles/scripted-anthropic.ts";
import {
  chatAnswer,
  chatChunks,
  chatStreamAnswer,
  namedSse,
  type ScriptedAnswer,
  type ScriptedReply,
  sse,
} from "../doubles/scripted-model.ts";
import { responsesAnswer, responsesEvents, responsesStreamAnswer } from "../doubles/scripted-responses.ts";
import { modelAt } from "./models-kit.ts";

/** An API, described for the contract tests of chat models. */
export interface WireApi {
  readonly name: string;
  readonly options: Partial<ModelOptions>;
  readonly path: string;
  readonly whole: (reply: ScriptedReply) => ScriptedAnswer;
  readonly stream: (reply: ScriptedReply) => ScriptedAnswer;
  /** The events of the stream as sent; the last one ends the stream. */
  readonly events: (reply: ScriptedReply) => readonly string[];
  /** Number of events after the one in which the model reports its end. */
  readonly tail: number;
  /** The API's names for finish reasons and errors. */
  readonly words: Readonly<Record<"stop" | "calls" | "length" | "filter", string>>;
  /** 100 input tokens, 64 of them cached; 20 output tokens. */
  readonly usage: object;
  readonly counted: object;
  /** The content of a request, in one form for all APIs. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  readonly read: (body: any) => Conversation;
  readonly error: object;
}

export interface Conversation {
  readonly system: string;
  /** `role: text`, or `call id name arguments`, `result id text`, `image address`, `thought …`, in order. */
  readonly lines: readonly string[];
  readonly tools: readonly { readonly name: string; readonly parameters: unknown }[];
  readonly choice: string | undefined;
}

const chat: WireApi = {
  name: "chat completions",
  options: {},
  path: "/v1/chat/completions",
  whole: chatAnswer,
  stream: chatStreamAnswer,
  events: (reply) => [...chatChunks(reply).map(sse), sse("[DONE]")],
  tail: 2,
  words: { stop: "stop", calls: "tool_calls", length: "length", filter: "content_filter" },
  usage: { prompt_tokens: 100, completion_tokens: 20, prompt_tokens_details: { cached_tokens: 64 } },
  counted: { inputTokens: 100, outputTokens: 20, cachedTokens: 64 },
  read: readChat,
  error: { error: { message: "Overloaded", type: "server_error" } },
};

const openResponses: WireApi = {
  name: "responses",
  options: { wireApi: "responses" },
  path: "/v1/responses",
  whole: responsesAnswer,
  stream: responsesStreamAnswer,
  events: (reply) => responsesEvents(reply).map(namedSse),
  tail: 1,
  words: { stop: "completed", calls: "completed", length: "max_output_tokens", filter: "content_filter" },
  usage: { input_tokens: 100, output_tokens: 20, input_tokens_details: { cached_tokens: 64 } },
  counted: { inputTokens: 100, outputTokens: 20, cachedTokens: 64 },
  read: readResponses,
  error: { type: "error", code: "server_error", message: "Overloaded", param: null },
};

const anthropic: WireApi = {
  name: "anthropic messages",
  options: { type: "anthropic" },
  path: "/v1/messages",
  whole: anthropicAnswer,
  stream: anthropicStreamAnswer,
  events: (reply) => anthropicEvents(reply).map(namedSse),
  tail: 2,
  words: { stop: "end_turn", calls: "tool_use", length: "max_tokens", filter: "refusal" },
  usage: { input_tokens: 30, output_tokens: 20, cache_read_input_tokens: 64, cache_creation_input_tokens: 6 },
  counted: { inputTokens: 100, outputTokens: 20, cachedTokens: 64, cacheWriteTokens: 6 },
  read: readMessages,
  error: { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
};

const azure = { type: "azure", azure: { apiVersion: "2025-01-01" } } as const;

export const wireApis: readonly WireApi[] = [
  chat,
  openResponses,
  anthropic,
  {
    ...chat,
    name: "azure chat completions",
    options: azure,
    path: "/openai/deployments/test-model/chat/completions?api-version=2025-01-01",
  },
  { ...openResponses, name: "azure responses", options: { type: "azure", wireApi: "responses" }, path: "/openai/v1/responses" },
];

/** A model of this API at an endpoint. */
export function apiModel(api: WireApi, url: string, more: Partial<ModelOptions> = {}): ChatModel {
  return modelAt(url, { baseUrl: api.options.type === undefined ? `${url}/v1` : url, ...api.options, ...more });
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of requests
type Body = any;

function readChat({ messages, tools = [], tool_choice: choice }: Body): Conversation {
  const lines = messages.flatMap(({ role, content, tool_calls: calls = [], tool_call_id: id, ...more }: Body) => [
    ...Object.entries(more).map(([name, value]) => `thought ${name} ${value}`),
    ...partsOf(content).map((part: Body) => (role === "tool" ? `result ${id} ${part.text}` : lineOf(role, part))),
    ...calls.map(({ id, function: called }: Body) => `call ${id} ${called.name} ${called.arguments}`),
  ]);
  const described = tools.map((tool: Body) => ({ name: tool.function.name, parameters: tool.function.parameters }));
  return { ...withoutSystem(lines), tools: described, choice: choice?.function?.name ?? choice };
}

function readResponses({ instructions, input, tools = [], tool_choice: choice }: Body): Conversation {
  const lines = input.flatMap((item: Body) => {
    if (item.type === "reasoning") return [`thought ${JSON.stringify(item)}`];
    if (item.type === "function_call") return [`call ${item.call_id} ${item.name} ${item.arguments}`];
    const parts = partsOf(item.output ?? item.content);
    const said = item.type === "message" ? item.role : `result ${item.call_id}`;
    return parts.map((part: Body) => lineOf(said, part));
  });
  return { system: instructions ?? "", lines, tools, choice: choice?.name ?? choice };
}

function readMessages({ system = [], messages, tools = [], tool_choice: choice }: Body): Conversation {
  const lines = messages.flatMap(({ role, content }: Body) =>
    content.flatMap((block: Body) => {
      if (/thinking/.test(block.type)) return [`thought ${JSON.stringify(block)}`];
      if (block.type === "tool_use") return [`call ${block.id} ${block.name} ${JSON.stringify(block.input)}`];
      if (block.type === "tool_result") return partsOf(block.content).map((part: Body) => lineOf(`result ${block.tool_use_id}`, part));
      return [lineOf(role, block)];
    }),
  );
  const described = tools.map(({ name, input_schema: parameters }: Body) => ({ name, parameters }));
  const chosen = choice?.type === "any" ? "required" : (choice?.name ?? choice?.type);
  return { system: system.map(({ text }: Body) => text).join("\n\n"), lines, tools: described, choice: chosen };
}

function withoutSystem(lines: readonly string[]): Pick<Conversation, "system" | "lines"> {
  const isSystem = (line: string): boolean => line.startsWith("system: ");
  const system = lines.filter(isSystem).map((line) => line.slice("system: ".length));
  return { system: system.join("\n\n"), lines: lines.filter((line) => !isSystem(line)) };
}

function partsOf(content: Body): readonly Body[] {
  if (content === null || content === undefined) return [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function lineOf(role: string, part: Body): string {
  if (!/image/.test(part.type)) return role.startsWith("result") ? `${role} ${part.text}` : `${role}: ${part.text}`;
  const url = part.image_url?.url ?? part.image_url ?? part.source?.url ?? `data:${part.source?.media_type};base64,${part.source?.data}`;
  return `image ${url}`;
}
