import { expect, test } from "vitest";
import type { ModelReply } from "../../src/models/model.ts";
import { anthropicAnswer, anthropicEvents } from "../doubles/scripted-anthropic.ts";
import { jsonAnswer, namedSse, type ScriptedReply, sse } from "../doubles/scripted-model.ts";
import { ask, endpoint, failure, hello, listen, modelAt, modelSaying } from "./models-kit.ts";

const wire = { type: "anthropic" } as const;
const refused = (message: string, more: object = {}) =>
  jsonAnswer({ type: "error", error: { type: "invalid_request_error", message, ...more } }, { status: 400 });

const sampleReply: ScriptedReply = { content: "Hi there", reasoning: "Hm.", toolCalls: [{ id: "a", name: "f", arguments: { x: 1 } }] };
type Event = Record<string, unknown> & { readonly type: string };
const events = anthropicEvents(sampleReply) as readonly Event[];
const read = (given: readonly Event[]): Promise<ModelReply> =>
  ask(modelSaying(given.map(namedSse), { ...wire, retries: 0 }), { ...hello, stream: true });

test.each<[string, readonly Event[]]>([
  ["without pings", events.filter(({ type }) => type !== "ping")],
  ["without ends of blocks", events.filter(({ type }) => type !== "content_block_stop")],
  ["without an end", events.filter(({ type }) => type !== "message_stop")],
  [
    "with citations and deltas of unknown kinds",
    events.flatMap((event) => [
      event,
      ...["citations_delta", "later_delta"].map((type) => ({ type: "content_block_delta", index: 1, delta: { type } })),
    ]),
  ],
  [
    "with blocks of unknown kinds",
    [
      ...events.slice(0, 2),
      { type: "content_block_start", index: 9, content_block: { type: "server_tool_use", id: "s", name: "web" } },
      ...events.slice(2),
    ],
  ],
  ["with one place for all", events.map((event) => (event["index"] === undefined ? event : { ...event, index: 0 }))],
])("the Anthropic API: reads a stream %s", async (_what, given) => {
  expect(await read(given)).toMatchObject({
    content: "Hi there",
    reasoning: "Hm.",
    toolCalls: [{ id: "a", arguments: { x: 1 } }],
    finishReason: "tool-calls",
  });
});

test("input at the start of a call and text at the start of a block are read", async () => {
  const start = (index: number, content_block: object) => [
    { type: "content_block_start", index, content_block },
    { type: "content_block_stop", index },
  ];
  const reply = await read([
    ...start(0, { type: "text", text: "Hi" }),
    ...start(1, { type: "tool_use", id: "a", name: "f", input: { x: 1 } }),
    { type: "message_delta", delta: { stop_reason: "tool_use" } },
  ]);
  expect(reply).toMatchObject({ content: "Hi", toolCalls: [{ id: "a", arguments: { x: 1 } }] });
});

test("redacted, empty and signed thoughts are kept in order", async () => {
  const { url, answer, requests } = await endpoint();
  const blocks = [
    { type: "thinking", thinking: "", signature: "s1" },
    { type: "text", text: "One. " },
    { type: "redacted_thinking", data: "sealed" },
    { type: "tool_use", id: "a", name: "f", input: {} },
    { type: "text", text: "Two." },
    { type: "thinking", thinking: "End.", signature: "s2" },
  ];
  answer(jsonAnswer({ content: blocks, stop_reason: "tool_use" }), anthropicAnswer({ content: "ok" }));
  const model = modelAt(url, wire);
  const first = await ask(model);
  expect(first).toMatchObject({ content: "One. Two.", reasoning: "End." });
  await ask(model, { messages: [...hello.messages, { role: "assistant", ...first }, { role: "tool", toolCallId: "a", content: "ok" }] });
  // A message must not end with a thought.
  expect(requests[1]?.body.messages[1].content).toEqual(blocks.slice(0, -1));
});

test("an incomplete thought is emitted but not kept", async () => {
  const cut = events.filter(({ type }, at) => at < 4 || type.startsWith("message_"));
  const reply = await read(
    cut.map((event) => (event.type === "message_delta" ? { ...event, delta: { stop_reason: "max_tokens" } } : event)),
  );
  expect(reply).toMatchObject({ reasoning: "Hm.", finishReason: "length" });
  expect(reply.replay).toBeUndefined();
});

test.each<[string, object, Partial<ModelReply>]>([
  [
    "a refusal with a reason",
    { content: [], stop_reason: "refusal", stop_details: { type: "refusal", explanation: "That is not done." } },
    { content: "That is not done.", finishReason: "content-filter" },
  ],
  [
    "a refusal in the middle",
    { content: [{ type: "text", text: "Well" }], stop_reason: "refusal", stop_details: { explanation: "No." } },
    { content: "Well", finishReason: "content-filter" },
  ],
  ["an end of the context", { content: [], stop_reason: "model_context_window_exceeded" }, { finishReason: "length" }],
  [
    "a pause",
    { content: [{ type: "text", text: "x" }], stop_reason: "pause_turn" },
    { finishReason: "other", providerFinishReason: "pause_turn" },
  ],
  ["a stop sequence", { content: [], stop_reason: "stop_sequence" }, { finishReason: "stop" }],
  ["no reason at all", { content: [] }, { finishReason: "other" }],
  [
    "fields of wrong types",
    { content: [null, 5, { type: "text", text: 5 }, { type: "tool_use" }, {}], stop_reason: 5, usage: [] },
    { content: "", toolCalls: [] },
  ],
  [
    "what thinking took",
    { content: [], usage: { input_tokens: 1, output_tokens: 9, output_tokens_details: { thinking_tokens: 5 } } },
    { usage: { inputTokens: 1, outputTokens: 9, reasoningTokens: 5 } },
  ],
])("the Anthropic API: understands %s", async (_what, body, expected) => {
  expect(await ask(modelSaying([JSON.stringify(body)], wire))).toMatchObject(expected);
});

test("a request that reaches a spending limit is not retried, and one that reaches a rate limit is", async () => {
  const limited = (details: object) =>
    jsonAnswer({ type: "error", error: { type: "rate_limit_error", message: "no", ...details } }, { status: 429 });
  const { url, answer } = await endpoint();
  answer(limited({ details: { error_code: "enforced_spend_limit_reached" } }), limited({}), anthropicAnswer({ content: "ok" }));
  const model = modelAt(url, wire);
  expect(await failure(ask(model))).toMatchObject({ code: "MODEL_RATE_LIMITED", retryable: false });
  expect((await ask(model)).attempts).toBe(2);
});

test.each<[string, object]>([
  [
    "MODEL_CONTEXT_TOO_LONG",
    { message: "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens`" },
  ],
  ["MODEL_HTTP", { message: "tools.0.custom.name: Invalid" }],
])("the error %s is recognised by its message, and does not change later requests: %j", async (code, error) => {
  const { url, requests } = await endpoint(() => refused("", error));
  expect(await failure(ask(modelAt(url, wire)))).toMatchObject({ code });
  expect(requests.length).toBe(1);
});

test("an error in a stream has the type that the API gives", async () => {
  const error = (type: string) => sse({ type: "error", error: { type, message: "x" } });
  const codeOf = async (type: string) => (await listen(modelSaying([error(type)], { ...wire, retries: 0 }))).error;
  expect(await codeOf("overloaded_error")).toMatchObject({
    code: "MODEL_HTTP",
    retryable: true,
    details: { providerType: "overloaded_error" },
  });
  expect(await codeOf("api_error")).toMatchObject({ code: "MODEL_HTTP", retryable: true });
  expect(await codeOf("authentication_error")).toMatchObject({ code: "MODEL_AUTH", retryable: false });
  expect(await codeOf("rate_limit_error")).toMatchObject({ code: "MODEL_RATE_LIMITED", retryable: true });
});
