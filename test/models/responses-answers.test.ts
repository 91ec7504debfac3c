import { expect, test } from "vitest";
import type { ModelReply } from "../../src/models/model.ts";
import { namedSse, type ScriptedReply, sse } from "../doubles/scripted-model.ts";
import { responsesEvents } from "../doubles/scripted-responses.ts";
import { ask, hello, listen, modelSaying } from "./models-kit.ts";

const wire = { wireApi: "responses" } as const;

const sampleReply: ScriptedReply = { content: "Hi there", reasoning: "Hm. Hm.", toolCalls: [{ id: "a", name: "f", arguments: { x: 1 } }] };
const understood = {
  content: sampleReply.content,
  reasoning: sampleReply.reasoning,
  toolCalls: [{ id: "a", name: "f", arguments: { x: 1 } }],
};

type Event = Record<string, unknown> & { readonly type: string };
const read = async (events: readonly Event[]): Promise<ModelReply> =>
  ask(modelSaying(events.map(namedSse), { ...wire, retries: 0 }), { ...hello, stream: true });
const events = responsesEvents(sampleReply) as readonly Event[];
const isDelta = ({ type }: Event): boolean => type.endsWith(".delta");

test.each<[string, readonly Event[]]>([
  ["without deltas", events.filter((event) => !isDelta(event))],
  [
    "with deltas and nothing else",
    events.filter((event) => isDelta(event) || event.type.endsWith(".added") || event.type.endsWith("completed")),
  ],
  [
    "with an empty output at its end",
    events.map((event) => (event.type.endsWith("completed") ? { ...event, response: { status: "completed", output: [] } } : event)),
  ],
  ["without places", events.map(({ output_index: _, ...event }) => event)],
  [
    "without ids",
    events.map(({ item_id: _, ...event }) =>
      event["item"] === undefined ? event : { ...event, item: { ...(event["item"] as object), id: undefined } },
    ),
  ],
  [
    "with another id in every event",
    events.map((event, at) => ({
      ...event,
      item_id: `id-${at}`,
      ...(event["item"] !== undefined && { item: { ...(event["item"] as object), id: `id-${at}` } }),
    })),
  ],
  ["with one place for all", events.map((event) => (event["output_index"] === undefined ? event : { ...event, output_index: 0 }))],
  [
    "with everything at its end",
    events.filter(({ type }) => !type.includes("delta") && !type.includes("output_item") && !type.includes("arguments")),
  ],
])("the Responses API: reads a stream %s", async (_what, given) => {
  expect(await read(given)).toMatchObject({ ...understood, finishReason: "tool-calls" });
});

test("calls without an index or an item id stay separate", async () => {
  const call = (id: string, text: string) => [
    { type: "response.output_item.added", item: { type: "function_call", call_id: id, name: "f", arguments: "" } },
    { type: "response.function_call_arguments.delta", delta: text },
    { type: "response.output_item.done", item: { type: "function_call", call_id: id, name: "f", arguments: text } },
  ];
  const end = { type: "response.completed", response: { status: "completed" } };
  const { toolCalls } = await read([...call("a", '{"x":1}'), ...call("b", '{"x":2}'), end]);
  expect(toolCalls).toMatchObject([
    { id: "a", arguments: { x: 1 } },
    { id: "b", arguments: { x: 2 } },
  ]);
});

test("a refusal becomes the text of the reply, and the parts of a summary stay separate", async () => {
  const delta = (type: string, more: object) => ({ type: `response.${type}.delta`, output_index: 0, ...more });
  const end = { type: "response.completed", response: { status: "completed", output: [] } };
  const reply = await read([
    delta("reasoning_summary_text", { delta: "One.", summary_index: 0 }),
    delta("reasoning_summary_text", { delta: "Two.", summary_index: 1 }),
    delta("reasoning_text", { delta: "Three.", output_index: 1, content_index: 0 }),
    delta("refusal", { delta: "No.", output_index: 2 }),
    end,
  ]);
  expect(reply).toMatchObject({ reasoning: "One.\n\nTwo.\n\nThree.", content: "No.", finishReason: "stop" });
});

test("open thoughts of local models are kept, and thoughts that only the endpoint stores are not", async () => {
  const output = (thought: object) =>
    modelSaying(
      [
        JSON.stringify({
          output: [
            { type: "reasoning", id: "1", ...thought },
            { type: "message", content: [] },
          ],
        }),
      ],
      wire,
    );
  const open = await ask(output({ summary: [], content: [{ type: "reasoning_text", text: "Hm." }], status: "completed" }));
  expect(open.reasoning).toBe("Hm.");
  expect(open.replay).toMatchObject({ responses: { parts: [{ item: { id: "1", content: [{ text: "Hm." }] } }, { kind: "text" }] } });
  expect((await ask(output({ summary: [{ type: "summary_text", text: "Hm." }] }))).replay).toBeUndefined();
});

test.each<[string, object, object]>([
  [
    "a response that failed",
    { type: "response.failed", response: { status: "failed", error: { code: "rate_limit_exceeded", message: "slow" } } },
    { code: "MODEL_RATE_LIMITED", retryable: true },
  ],
  [
    "a whole one that failed",
    { object: "response", status: "failed", output: [], error: { code: "server_error", message: "oops" } },
    { code: "MODEL_HTTP", retryable: true },
  ],
  [
    "an error event",
    { type: "error", code: "context_length_exceeded", message: "too long" },
    { code: "MODEL_CONTEXT_TOO_LONG", retryable: false },
  ],
  [
    "an error event with an error in it",
    { type: "error", error: { code: "invalid_prompt", message: "no" } },
    { code: "MODEL_HTTP", retryable: false },
  ],
])("the Responses API: %s is an error", async (_what, event, expected) => {
  const { error } = await listen(modelSaying([sse(event)], { ...wire, retries: 0 }));
  expect(error).toMatchObject(expected);
});

test.each<[string, object, Partial<ModelReply>]>([
  ["a response that was cancelled", { status: "cancelled", output: [] }, { finishReason: "other", providerFinishReason: "cancelled" }],
  ["one that does not say how it ended", { output: [] }, { finishReason: "other", content: "" }],
  [
    "items of unknown kinds",
    { status: "completed", output: [{ type: "web_search_call", id: "w" }, null, 5] },
    { finishReason: "stop", toolCalls: [] },
  ],
  [
    "fields of wrong types",
    {
      status: 5,
      output: [
        { type: "message", content: "x" },
        { type: "function_call", name: {}, arguments: [] },
      ],
      usage: "many",
    },
    { content: "" },
  ],
  [
    "arguments that were parsed already",
    { output: [{ type: "function_call", call_id: "a", name: "f", arguments: { x: 1 } }] },
    { toolCalls: [expect.objectContaining({ arguments: { x: 1 } })] },
  ],
])("the Responses API: understands %s", async (_what, body, expected) => {
  expect(await ask(modelSaying([JSON.stringify(body)], wire))).toMatchObject(expected);
});
