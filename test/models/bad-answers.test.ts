import { expect, test } from "vitest";
import { chatChunks, sse } from "../doubles/scripted-model.ts";
import { ask, failure, fetchSaying, listen, modelAt, modelSaying } from "./models-kit.ts";

const bytes = (...values: readonly number[]): Uint8Array => Uint8Array.from(values);
const some = sse({ choices: [{ delta: { content: "so far" } }] });
const noForm = /neither JSON nor a stream of events\. Check the base URL/;

test.each<[string, readonly (string | Uint8Array)[], RegExp]>([
  ["a page for browsers", ["<!doctype html><html><body>It works!</body></html>"], noForm],
  ["plain text", ["Internal error\n\nTry later"], noForm],
  ["a picture", [bytes(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0xff)], noForm],
  ["text in UTF-16", [bytes(0xff, 0xfe, 0x7b, 0, 0x7d, 0)], noForm],
  ["JSON without choices", ["{}"], /an answer without choices/],
  ["a list", ["[]"], /an answer without choices/],
  ["choices that are not a list", ['{"choices":{"0":{"message":{}}}}'], /an answer without choices/],
  ["an empty list of choices", ['{"choices":[]}'], /an answer without choices/],
  ["choices that are not objects", ['{"choices":[null,1,"x",[]]}'], /an answer without choices/],
  ["JSON that is cut off", ['{"choices":[{"message":{"content":"x"'], /JSON that is not valid or is truncated/],
  ["JSON and then more", ['{"choices":[]}\n{"choices":[]}'], /JSON that is not valid/],
  ["brackets without end", ["[".repeat(200_000)], /JSON that is not valid/],
  ["an event that is not valid JSON", [some, "data: {not json}\n\n", sse("[DONE]")], /an event that is not JSON: \{not json\}/],
  ["a stream that is over before it began", [sse("[DONE]")], /an answer without choices/],
])("%s is not a valid answer, and is not retried", async (_what, pieces, message) => {
  const { error, retries } = await listen(modelSaying(pieces));
  expect(error).toMatchObject({ code: "MODEL_BAD_ANSWER", retryable: false });
  expect(error?.message).toMatch(message);
  expect(retries).toEqual([]);
});

test.each<[string, readonly string[]]>([
  ["nothing at all", []],
  ["white space", [" \r\n\n"]],
  ["comments only", [": a\n\n", ": b\n\n"]],
  ["an event and no end", [some]],
  ["half an event", [some, 'data: {"choices":[{"delta":{"content":" and']],
  ["usage only", [sse({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } })]],
])("an answer that stops in the middle is an error: %s", async (_what, pieces) => {
  const error = await failure(ask(modelSaying(pieces)));
  expect(error.code).toBe("MODEL_BAD_ANSWER");
  expect(error.details.partial).toEqual({ content: pieces.includes(some) ? "so far" : "", reasoning: "" });
});

test("an incomplete answer is retried while none of it was emitted", async () => {
  const model = modelSaying([some], { retries: 2 });
  expect((await failure(ask(model))).details.attempts).toBe(3);
  const { error, deltas } = await listen(model);
  expect(error).toMatchObject({ details: { attempts: 1 } });
  expect(deltas).toMatchObject([{ text: "so far" }]);
});

test.each<[string, object, object]>([
  ["a number for a code", { error: { code: 429, message: "Slow down" } }, { code: "MODEL_RATE_LIMITED", retryable: true }],
  ["a server's trouble", { error: { message: "Upstream overloaded", type: "overloaded_error" } }, { code: "MODEL_HTTP", retryable: true }],
  ["a wrong key", { error: { message: "No", code: "invalid_api_key" } }, { code: "MODEL_AUTH", retryable: false }],
  ["too long", { error: { message: "No", code: "context_length_exceeded" } }, { code: "MODEL_CONTEXT_TOO_LONG", retryable: false }],
  ["a text", { error: "Unexpected endpoint or method." }, { code: "MODEL_HTTP", retryable: false }],
  ["an empty object", { error: {} }, { code: "MODEL_HTTP", retryable: false }],
])("an error in an answer that claims success is an error: %s", async (_what, body, expected) => {
  expect(await failure(ask(modelSaying([JSON.stringify(body)], { retries: 0 })))).toMatchObject(expected);
  const streamed = await failure(ask(modelSaying([some, sse(body)], { retries: 0 })));
  expect(streamed).toMatchObject({ ...expected, details: { partial: { content: "so far" } } });
});

test("an error field that is null is ignored", async () => {
  const chunks = chatChunks({ content: "fine" }).map((chunk) => sse({ ...chunk, error: null }));
  expect((await ask(modelSaying(chunks))).content).toBe("fine");
});

test("bytes that are not valid UTF-8 are replaced, and an incomplete character at the end is harmless", async () => {
  const chunk = new TextEncoder().encode(sse({ choices: [{ delta: { content: "aXb" }, finish_reason: "stop" }] }));
  const broken = chunk.map((byte) => (byte === "X".charCodeAt(0) ? 0xff : byte));
  expect((await ask(modelSaying([broken, bytes(0xf0, 0x9f)]))).content).toBe("a\ufffdb");
});

test("inherited properties of objects are not read as fields of an answer", async () => {
  const text = '{"__proto__":{"choices":[{"message":{"content":"x"}}]},"constructor":{},"toString":1}';
  expect((await failure(ask(modelSaying([text])))).message).toMatch(/without choices/);
  const reply = await ask(
    modelSaying([
      '{"choices":[{"__proto__":{"finish_reason":"length"},"message":{"__proto__":{"content":"x"}}}],"usage":{"__proto__":{"prompt_tokens":1}}}',
    ]),
  );
  expect(reply).toMatchObject({ content: "", finishReason: "other" });
  expect(reply.usage).toBeUndefined();
});

test.each<[string, unknown]>([
  [
    "pieces that are not bytes",
    (async function* () {
      yield "data: [DONE]\n\n";
    })(),
  ],
  [
    "a body that throws",
    (async function* () {
      yield new Uint8Array(1);
      throw null;
    })(),
  ],
])("an injected fetch with %s ends in an error", async (_what, body) => {
  const fetch = async () => ({ status: 200, headers: { get: () => null }, body: body as AsyncIterable<Uint8Array> });
  expect((await failure(ask(modelAt("http://model.test", { fetch, retries: 0 })))).name).toBe("ModelError");
});

test("a huge content type or one with a line break is shortened or escaped in the message", async () => {
  const fetch = fetchSaying(["nothing"], `text/\u001b[2J${"x".repeat(10_000)}`);
  const { message } = await failure(ask(modelAt("http://model.test", { fetch })));
  expect(message.length).toBeLessThan(800);
  expect(message).not.toContain("\u001b");
});
