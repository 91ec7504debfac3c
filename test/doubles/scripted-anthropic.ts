import {
  argumentsText,
  jsonAnswer,
  namedSse,
  piecesOf,
  type ScriptedAnswer,
  type ScriptedReply,
  type ScriptedToolCall,
  streamAnswer,
  words,
} from "./scripted-model.ts";

const countedUsage = { input_tokens: 11, output_tokens: 7, cache_read_input_tokens: null };

/** An answer in one piece, as of `/v1/messages` without `stream`. */
export function anthropicAnswer(reply: ScriptedReply): ScriptedAnswer {
  return jsonAnswer({ ...messageOf(reply), content: blocksOf(reply), stop_reason: stopReason(reply), usage: reply.usage ?? countedUsage });
}

/** The same reply as a stream: one event per word, arguments in pieces. */
export function anthropicStreamAnswer(reply: ScriptedReply): ScriptedAnswer {
  return streamAnswer(anthropicEvents(reply).map(namedSse));
}

interface AnthropicEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The events of a streamed reply. */
export function anthropicEvents(reply: ScriptedReply): readonly AnthropicEvent[] {
  const { output_tokens, ...asked } = { ...countedUsage, ...reply.usage };
  const { toolCalls = [] } = reply;
  const blocks = blocksOf({ ...reply, toolCalls: toolCalls.map((call) => ({ ...call, arguments: {} })) });
  const callAt = (index: number): ScriptedToolCall | undefined => toolCalls[index - (blocks.length - toolCalls.length)];
  return [
    { type: "message_start", message: { ...messageOf(reply), usage: { ...asked, output_tokens: 1 } } },
    { type: "ping" },
    ...blocks.flatMap((block, index) => blockEvents(block, index, callAt(index))),
    { type: "message_delta", delta: { stop_reason: stopReason(reply), stop_sequence: null }, usage: { input_tokens: null, output_tokens } },
    { type: "message_stop" },
  ];
}

function messageOf({ model = "scripted-model" }: ScriptedReply): object {
  return { id: "msg_1", type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null };
}

function blocksOf({ content = "", reasoning = "", toolCalls = [] }: ScriptedReply): readonly Block[] {
  return [
    ...(reasoning === "" ? [] : [{ type: "thinking", thinking: reasoning, signature: "sealed thought" }]),
    ...(content === "" ? [] : [{ type: "text", text: content }]),
    ...toolCalls.map((call) => ({ type: "tool_use", id: call.id, name: call.name, input: inputOf(call) })),
  ];
}

// An unstreamed answer carries parsed input, so invalid JSON of a model can only appear in a stream.
function inputOf({ arguments: given }: ScriptedToolCall): unknown {
  return typeof given === "string" ? JSON.parse(given) : given;
}

function blockEvents(block: Block, index: number, call: ScriptedToolCall | undefined): readonly AnthropicEvent[] {
  const start = { ...block, ...emptied[block.type] };
  return [
    { type: "content_block_start", index, content_block: start },
    ...deltasOf(block, call).map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

const emptied: Readonly<Record<string, object>> = {
  text: { text: "" },
  thinking: { thinking: "", signature: "" },
  tool_use: { input: {} },
};

function deltasOf({ type, text, thinking, signature }: Block, call: ScriptedToolCall | undefined): readonly object[] {
  if (type === "text") return words(text as string).map((word) => ({ type: "text_delta", text: word }));
  if (type !== "thinking")
    return piecesOf(argumentsText(call as ScriptedToolCall)).map((piece) => ({ type: "input_json_delta", partial_json: piece }));
  return [...words(thinking as string).map((word) => ({ type: "thinking_delta", thinking: word })), { type: "signature_delta", signature }];
}

function stopReason({ finishReason, toolCalls = [] }: ScriptedReply): string {
  return finishReason ?? (toolCalls.length > 0 ? "tool_use" : "end_turn");
}
