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

const countedUsage = { input_tokens: 11, output_tokens: 7, total_tokens: 18 };

/** An answer in one piece, as of `/responses` without `stream`. `finishReason` says why it is incomplete. */
export function responsesAnswer(reply: ScriptedReply): ScriptedAnswer {
  return jsonAnswer(response(reply, outputOf(reply)));
}

/** The same reply as a stream: one event per word, arguments in pieces. */
export function responsesStreamAnswer(reply: ScriptedReply): ScriptedAnswer {
  return streamAnswer(responsesEvents(reply).map(namedSse));
}

interface ResponsesEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

interface OutputItem {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The events of a streamed reply. */
export function responsesEvents(reply: ScriptedReply): readonly ResponsesEvent[] {
  const output = outputOf(reply);
  const begun = { ...response(reply, []), status: "in_progress", usage: null, incomplete_details: null };
  const events = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...output.flatMap((item, index) => itemEvents(item, index)),
    { type: reply.finishReason === undefined ? "response.completed" : "response.incomplete", response: response(reply, output) },
  ];
  return events.map((event, sequence_number) => ({ ...event, sequence_number }));
}

function response(
  { finishReason: reason, usage = countedUsage, model = "scripted-model" }: ScriptedReply,
  output: readonly object[],
): object {
  return {
    id: "resp_1",
    object: "response",
    status: reason === undefined ? "completed" : "incomplete",
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    model,
    output,
    usage,
  };
}

function outputOf({ content = "", reasoning = "", toolCalls = [] }: ScriptedReply): readonly OutputItem[] {
  const thought = {
    type: "reasoning",
    id: "rs_1",
    summary: [{ type: "summary_text", text: reasoning }],
    encrypted_content: "sealed thought",
    status: null,
  };
  const text = { type: "output_text", text: content, annotations: [] };
  const message = { type: "message", id: "msg_1", role: "assistant", status: "completed", content: [text] };
  return [...(reasoning === "" ? [] : [thought]), ...(content === "" ? [] : [message]), ...toolCalls.map(callItem)];
}

function callItem(call: ScriptedToolCall, index: number): OutputItem {
  const { id, name } = call;
  return { type: "function_call", id: `fc_${index}`, call_id: id, name, arguments: argumentsText(call), status: "completed" };
}

function itemEvents(item: OutputItem, output_index: number): readonly ResponsesEvent[] {
  const place = { output_index, item_id: item["id"] };
  return [
    {
      type: "response.output_item.added",
      output_index,
      item: { ...item, summary: [], content: [], arguments: "", encrypted_content: null },
    },
    ...deltasOf(item).map((event) => ({ ...event, ...place })),
    { type: "response.output_item.done", output_index, item },
  ];
}

function deltasOf(item: OutputItem): readonly ResponsesEvent[] {
  const delta = (type: string, pieces: readonly string[], more: object): readonly ResponsesEvent[] =>
    pieces.map((piece) => ({ type, delta: piece, ...more }));
  const textOf = (parts: unknown): string => (parts as readonly { text: string }[]).map(({ text }) => text).join("");
  if (item.type === "reasoning")
    return delta("response.reasoning_summary_text.delta", words(textOf(item["summary"])), { summary_index: 0 });
  if (item.type === "message") return delta("response.output_text.delta", words(textOf(item["content"])), { content_index: 0 });
  const text = item["arguments"] as string;
  return [
    ...delta("response.function_call_arguments.delta", piecesOf(text), {}),
    { type: "response.function_call_arguments.done", arguments: text },
  ];
}
