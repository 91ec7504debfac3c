import { expect, test } from "vitest";
import type { ModelReply } from "../../src/models/model.ts";
import { chatAnswer, chatChunks, chatStreamAnswer, createGate, jsonAnswer, type ScriptedReply, sse } from "../doubles/scripted-model.ts";
import { patience } from "../slowness.ts";
import { ask, endpoint, fetchSaying, hello, listen, modelAt, modelSaying } from "./models-kit.ts";

const sampleReply: ScriptedReply = {
  content: "I will look at the weather.",
  reasoning: "The user wants weather.",
  toolCalls: [
    { id: "call_a", name: "weather", arguments: { city: "Köln", days: 3 } },
    { id: "call_b", name: "time", arguments: {} },
  ],
  usage: {
    prompt_tokens: 100,
    completion_tokens: 20,
    total_tokens: 120,
    prompt_tokens_details: { cached_tokens: 64 },
    completion_tokens_details: { reasoning_tokens: 5 },
  },
};
const understood = {
  content: "I will look at the weather.",
  reasoning: "The user wants weather.",
  toolCalls: [
    { id: "call_a", name: "weather", arguments: { city: "Köln", days: 3 }, argumentsText: '{"city":"Köln","days":3}' },
    { id: "call_b", name: "time", arguments: {}, argumentsText: "{}" },
  ],
  finishReason: "tool-calls",
  providerFinishReason: "tool_calls",
  usage: { inputTokens: 100, outputTokens: 20, totalTokens: 120, cachedTokens: 64, reasoningTokens: 5 },
  model: "scripted-model",
  callId: "chatcmpl-1",
  attempts: 1,
};

test("the model reads an unstreamed answer", async () => {
  const { url, answer, requests } = await endpoint();
  const scripted = chatAnswer(sampleReply);
  answer({ ...scripted, headers: { ...scripted.headers, "x-request-id": "req-7" } });
  expect(await ask(modelAt(url))).toMatchObject({ ...understood, chunkCount: 1, requestId: "req-7" });
  expect(requests[0]).toMatchObject({ method: "POST", path: "/v1/chat/completions" });
  expect(requests[0]?.body).toEqual({ model: "test-model", messages: [{ role: "user", content: "Hello" }] });
});

test("the model reads the same answer as a stream, and emits each piece as it arrives", async () => {
  const { url, answer, requests } = await endpoint();
  answer(chatStreamAnswer(sampleReply));
  const { reply, deltas } = await listen(modelAt(url));
  expect(reply).toMatchObject({ ...understood, chunkCount: chatChunks(sampleReply).length });
  expect(requests[0]?.body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  const textOf = (kind: string): string => deltas.map((delta) => (delta.kind === kind && "text" in delta ? delta.text : "")).join("");
  expect([textOf("text"), textOf("reasoning")]).toEqual([sampleReply.content, sampleReply.reasoning]);
  const inputOf = (id: string): string =>
    deltas.map((delta) => (delta.kind === "tool-input" && delta.toolCallId === id ? delta.input : "")).join("");
  expect([inputOf("call_a"), inputOf("call_b")]).toEqual(['{"city":"Köln","days":3}', "{}"]);
  const sizes = deltas.map((delta) => delta.receivedBytes);
  expect(sizes[0]).toBeGreaterThan(0);
  expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
});

test("text is emitted before the answer is complete", async () => {
  const { url, answer } = await endpoint();
  const gate = createGate();
  const chunks = chatChunks({ content: "one two" }).map(sse);
  answer({ steps: [chunks[0] ?? "", chunks[1] ?? "", { until: gate.opened }, ...chunks.slice(2), sse("[DONE]")] });
  const heard: string[] = [];
  const reply = await modelAt(url).complete(hello, {
    signal: AbortSignal.timeout(patience(10_000)),
    onDelta: (delta) => {
      heard.push(delta.kind === "tool-input" ? "" : delta.text);
      gate.open();
    },
  });
  expect(heard).toEqual(["one ", "two"]);
  expect(reply.content).toBe("one two");
});

test("the stream option decides whether a request without a listener streams", async () => {
  const { url, answer, requests } = await endpoint();
  answer(chatStreamAnswer({ content: "Hi" }), chatAnswer({ content: "Hi" }));
  expect((await ask(modelAt(url), { ...hello, stream: true })).content).toBe("Hi");
  const { reply, deltas } = await listen(modelAt(url), { ...hello, stream: false });
  expect(reply?.content).toBe("Hi");
  expect(deltas).toMatchObject([{ kind: "text", text: "Hi" }]);
  expect(requests.map(({ body }) => body.stream)).toEqual([true, undefined]);
});

test.each(["application/json", "text/event-stream", "text/plain", "image/png", "application/json; charset=\u00ff", ""])(
  "takes JSON for a stream and a stream for JSON, whatever the content type claims: %j",
  async (contentType) => {
    const json = JSON.stringify({ choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] });
    const stream = sse({ choices: [{ delta: { content: "Hi" }, finish_reason: "stop" }] });
    for (const text of [json, `\uFEFF\n ${json}\n`, stream, `\uFEFF${stream}`]) {
      for (const wants of [true, false]) {
        const model = modelSaying([], { fetch: fetchSaying([text], contentType) });
        expect((await ask(model, { ...hello, stream: wants })).content).toBe("Hi");
      }
    }
  },
);

test("all choices are merged into one message: the text of one and the tool calls of the others, in order", async () => {
  const call = (id: string): object => ({ id, type: "function", function: { name: "f", arguments: `{"of":"${id}"}` } });
  const whole = {
    choices: [
      { index: 0, finish_reason: "stop", message: { role: "assistant", content: "Let me " } },
      { index: 1, finish_reason: "tool_calls", message: { role: "assistant", content: null, tool_calls: [call("a"), call("b")] } },
      { index: 2, finish_reason: "tool_calls", message: { role: "assistant", content: "see.", tool_calls: [call("c")] } },
    ],
  };
  const pieces = whole.choices.map(({ index, finish_reason, message }) =>
    sse({
      choices: [
        { index, finish_reason, delta: { ...message, tool_calls: message.tool_calls?.map((item, at) => ({ index: at, ...item })) } },
      ],
    }),
  );
  for (const reply of [await ask(modelSaying([JSON.stringify(whole)])), await ask(modelSaying(pieces))]) {
    expect(reply).toMatchObject({ content: "Let me see.", finishReason: "tool-calls" });
    expect(reply.toolCalls.map(({ id, arguments: given }) => [id, given])).toEqual([
      ["a", { of: "a" }],
      ["b", { of: "b" }],
      ["c", { of: "c" }],
    ]);
  }
});

test("tool calls of two choices with equal indexes stay separate", async () => {
  const chunk = (index: number, id: string | undefined, text: string): string =>
    sse({ choices: [{ index, delta: { tool_calls: [{ index: 0, id, function: { name: id, arguments: text } }] } }] });
  const end = sse({ choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] });
  const pieces = [chunk(0, "a", '{"x":'), chunk(1, "b", '{"y":'), chunk(0, undefined, "1}"), chunk(1, undefined, "2}"), end];
  const reply = await ask(modelSaying(pieces));
  expect(reply.toolCalls.map(({ name, arguments: given }) => [name, given])).toEqual([
    ["a", { x: 1 }],
    ["b", { y: 2 }],
  ]);
});

test.each<[string, readonly string[], Partial<ModelReply>]>([
  ["comments and keep-alives", [": ping\n\n", "event: ping\ndata: alive\n\n", "data:\n\n", "id: 4\nretry: 10\n\n"], {}],
  ["an event without choices", [sse({ choices: [], prompt_filter_results: [{}] }), sse({ type: "ping" })], {}],
])("Chat Completions: a stream is read on over %s", async (_what, noise, expected) => {
  const chunks = chatChunks({ content: "Hi there" }).map(sse);
  const reply = await ask(modelSaying(chunks.flatMap((chunk) => [...noise, chunk]).concat(sse("[DONE]"))));
  expect(reply).toMatchObject({ content: "Hi there", finishReason: "stop", ...expected });
});

test.each(["\n", "\r\n", "\r"])("lines that end in %j are read, as is a last event without its blank line", async (lineEnd) => {
  const text = chatChunks(sampleReply).map(sse).join("").trimEnd().replaceAll("\n", lineEnd);
  const bytes = [...new TextEncoder().encode(text)].map((byte) => Uint8Array.of(byte));
  expect(await ask(modelSaying(bytes))).toMatchObject(understood);
});

test.each([
  ["stop", "stop"],
  ["end_turn", "stop"],
  ["STOP", "stop"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["content_filter", "content-filter"],
  ["function_call", "stop"],
  ["insufficient_system_resource", "other"],
  ["constructor", "other"],
])("Chat Completions: the finish reason %s means %s", async (word, reason) => {
  const reply = await ask(modelSaying([JSON.stringify({ choices: [{ message: { content: "x" }, finish_reason: word }] })]));
  expect(reply).toMatchObject({ finishReason: reason, providerFinishReason: word });
});

test("the finish reason of a truncated or filtered choice wins over others, and tool calls win over a stop", async () => {
  const withReasons = (reasons: readonly string[], message: object = { content: "x" }): Promise<ModelReply> =>
    ask(modelSaying([JSON.stringify({ choices: reasons.map((finish_reason) => ({ message, finish_reason })) })]));
  expect((await withReasons(["stop", "length", "tool_calls"])).finishReason).toBe("length");
  expect((await withReasons(["length", "content_filter"])).finishReason).toBe("content-filter");
  const calls = { tool_calls: [{ id: "a", function: { name: "f", arguments: "{}" } }] };
  expect(await withReasons(["stop"], calls)).toMatchObject({ finishReason: "tool-calls", providerFinishReason: "stop" });
});

test.each<[string, unknown, object | undefined]>([
  ["the usual fields", { prompt_tokens: 3, completion_tokens: 2 }, { inputTokens: 3, outputTokens: 2 }],
  [
    "the other usual fields",
    { input_tokens: 3, output_tokens: 2, input_tokens_details: { cached_tokens: 1 } },
    { inputTokens: 3, outputTokens: 2, cachedTokens: 1 },
  ],
  [
    "cache fields of other makers",
    { prompt_tokens: 3, completion_tokens: 2, prompt_cache_hit_tokens: 2, cache_creation_input_tokens: 1 },
    { inputTokens: 3, outputTokens: 2, cachedTokens: 2, cacheWriteTokens: 1 },
  ],
  ["invalid numbers", { prompt_tokens: -1, completion_tokens: "2", total_tokens: Number.NaN }, undefined],
  ["no object", "many", undefined],
])("Chat Completions: usage is read in %s", async (_what, usage, expected) => {
  const choices = [{ message: { content: "x" }, finish_reason: "stop" }];
  expect((await ask(modelSaying([JSON.stringify({ choices, usage })]))).usage).toEqual(expected);
  expect((await ask(modelSaying([JSON.stringify({ choices: [{ ...choices[0], usage }] })]))).usage).toEqual(expected);
});

test("the last usage of a stream with repeated usage counts", async () => {
  const chunk = (content: string, count: number, finish_reason: string | null = null): string =>
    sse({ choices: [{ delta: { content }, finish_reason }], usage: { prompt_tokens: 5, completion_tokens: count } });
  const reply = await ask(modelSaying([chunk("a", 1), chunk("b", 2, "stop"), sse({ choices: [], usage: null }), sse("[DONE]")]));
  expect(reply.usage).toEqual({ inputTokens: 5, outputTokens: 2 });
});

test.each<[string, object, Partial<ModelReply>]>([
  [
    "content in parts, thoughts among them",
    {
      content: [
        { type: "thinking", thinking: [{ type: "text", text: "Hm." }] },
        { type: "text", text: "Hi" },
      ],
    },
    { content: "Hi", reasoning: "Hm." },
  ],
  ["a refusal", { content: null, refusal: "No." }, { content: "No." }],
  ["a whole message in the place of a delta", { content: "Hi" }, { content: "Hi" }],
  ["reasoning under two names", { content: "x", reasoning: "Hm.", reasoning_content: "Hm." }, { reasoning: "Hm." }],
  ["an old function call", { function_call: { name: "f", arguments: '{"a":1}' } }, { finishReason: "tool-calls" }],
  [
    "fields of wrong types",
    { content: 5, reasoning_content: {}, tool_calls: "none", refusal: [], function_call: 1 },
    { content: "", toolCalls: [] },
  ],
])("Chat Completions: understands %s", async (_what, message, expected) => {
  expect(await ask(modelSaying([sse({ choices: [{ message, finish_reason: "stop" }] })]))).toMatchObject(expected);
});

test("a request sends back what the endpoint requires: thoughts between tool calls, signatures, opaque state", async () => {
  const { url, answer, requests } = await endpoint();
  const call = {
    id: "a",
    type: "function",
    function: { name: "f", arguments: "{}" },
    extra_content: { google: { thought_signature: "sig" } },
  };
  const message = { content: null, reasoning_content: "Hm.", reasoning_opaque: "xyz", tool_calls: [call] };
  answer(jsonAnswer({ choices: [{ message, finish_reason: "tool_calls" }] }), chatAnswer({ content: "done", reasoning: "Good." }));
  const model = modelAt(url);
  const first = await ask(model);
  const { content, toolCalls, replay = {} } = first;
  const second = await ask(model, {
    messages: [...hello.messages, { role: "assistant", content, toolCalls, replay }, { role: "tool", toolCallId: "a", content: "ok" }],
  });
  expect(requests[1]?.body.messages[1]).toEqual({ role: "assistant", ...message });
  // Endpoints without support for tools refuse thoughts in earlier messages.
  expect(second).toMatchObject({ reasoning: "Good." });
  expect(second.replay).toBeUndefined();
});

test("a reply does not wait for a server that keeps the connection open after [DONE]", async () => {
  const { url, answer } = await endpoint();
  answer({
    steps: [...chatChunks({ content: "Hi" }).map(sse), sse("[DONE]"), sse({ choices: [{ delta: { content: " more" } }] }), "silence"],
  });
  expect(await ask(modelAt(url), { ...hello, stream: true })).toMatchObject({ content: "Hi" });
  answer({ steps: [sse({ choices: [{ delta: { content: "Hi" } }] }), sse("[DONE]"), "silence"] });
  expect(await ask(modelAt(url), { ...hello, stream: true })).toMatchObject({ content: "Hi", finishReason: "other" });
});

test("requests to Chat Completions reuse connections, also for streams", async () => {
  const { url, requests } = await endpoint(({ body }) => (body.stream ? chatStreamAnswer : chatAnswer)({ content: "Hi" }));
  const model = modelAt(url, { clock: undefined });
  for (const stream of [true, false, true, true, false, true, true]) await ask(model, { ...hello, stream });
  // The runtime frees a connection shortly after its answer has ended, so the next request may open a second one.
  expect(new Set(requests.map(({ port }) => port)).size).toBeLessThanOrEqual(3);
});
