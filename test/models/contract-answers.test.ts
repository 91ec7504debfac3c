import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import type { ChatMessage } from "../../src/models/model.ts";
import { createGate, jsonAnswer, type ScriptedAnswer, type ScriptedReply, sse } from "../doubles/scripted-model.ts";
import { ask, endpoint, failure, fetchSaying, handClock, hello, listen } from "./models-kit.ts";
import { apiModel, wireApis } from "./wire-apis.ts";

const sampleReply: ScriptedReply = {
  content: "I will look at the weather.",
  reasoning: "The user wants weather.",
  toolCalls: [
    { id: "call_a", name: "weather", arguments: { city: "Köln 🌧", days: 3 } },
    { id: "call_b", name: "time", arguments: {} },
  ],
};

const understood = {
  content: sampleReply.content,
  reasoning: sampleReply.reasoning,
  toolCalls: [
    { id: "call_a", name: "weather", arguments: { city: "Köln 🌧", days: 3 }, argumentsText: '{"city":"Köln 🌧","days":3}' },
    { id: "call_b", name: "time", arguments: {}, argumentsText: "{}" },
  ],
  finishReason: "tool-calls",
  model: "scripted-model",
  callId: expect.stringMatching(/./),
  attempts: 1,
};

describe.each(wireApis)("a model behind $name", (api) => {
  const saying = (pieces: readonly (string | Uint8Array)[], more = {}) =>
    apiModel(api, "http://model.test", { fetch: fetchSaying(pieces), ...more });
  const given = api.events(sampleReply);

  test("the model reads an unstreamed answer", async () => {
    const { url, answer, requests } = await endpoint();
    const scripted = api.whole({ ...sampleReply, usage: api.usage });
    answer({ ...scripted, headers: { ...scripted.headers, "request-id": "req-7" } });
    const reply = await ask(apiModel(api, url));
    expect(reply).toMatchObject({ ...understood, providerFinishReason: api.words.calls, chunkCount: 1, requestId: "req-7" });
    expect(reply.usage).toEqual(api.counted);
    expect(requests[0]).toMatchObject({ method: "POST", path: api.path });
    expect(requests[0]?.body.stream).toBeUndefined();
  });

  test("the model reads the same answer as a stream, and emits each piece as it arrives", async () => {
    const { url, answer, requests } = await endpoint();
    answer(api.stream({ ...sampleReply, usage: api.usage }));
    const { reply, deltas } = await listen(apiModel(api, url));
    expect(reply).toMatchObject({ ...understood, providerFinishReason: api.words.calls });
    expect(reply?.usage).toEqual(api.counted);
    expect(requests[0]?.body.stream).toBe(true);
    const textOf = (kind: string): string => deltas.map((delta) => (delta.kind === kind && "text" in delta ? delta.text : "")).join("");
    expect([textOf("text"), textOf("reasoning")]).toEqual([sampleReply.content, sampleReply.reasoning]);
    const inputs = deltas.filter((delta) => delta.kind === "tool-input");
    const inputOf = (id: string): string => inputs.map((delta) => (delta.toolCallId === id ? delta.input : "")).join("");
    expect([inputOf("call_a"), inputOf("call_b")]).toEqual(['{"city":"Köln 🌧","days":3}', "{}"]);
    expect(deltas.length).toBeGreaterThan(12);
  });

  test("the model reads a stream in any division into pieces", async () => {
    const bytes = new TextEncoder().encode(given.join(""));
    const whole = await listen(saying([bytes]));
    const single = await listen(saying([...bytes].map((byte) => Uint8Array.of(byte))));
    expect(single.reply).toEqual(whole.reply);
    for (let size = 2; size < 40; size += 5) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.slice(at * size, (at + 1) * size));
      expect((await listen(saying(pieces))).reply).toEqual(whole.reply);
    }
  });

  test("a reply says why it ended", async () => {
    const reasonOf = async (reply: ScriptedReply): Promise<readonly unknown[]> => {
      const [whole, stream] = await Promise.all([
        ask(saying((api.whole(reply).steps ?? []) as string[])),
        ask(saying(api.events(reply)), { ...hello, stream: true }),
      ]);
      expect(stream).toMatchObject({ finishReason: whole.finishReason, providerFinishReason: whole.providerFinishReason });
      return [whole.finishReason, whole.providerFinishReason];
    };
    expect(await reasonOf({ content: "Hi" })).toEqual(["stop", api.words.stop]);
    expect(await reasonOf({ content: "Hi", finishReason: api.words.length })).toEqual(["length", api.words.length]);
    expect(await reasonOf({ ...sampleReply, finishReason: api.words.filter })).toEqual(["content-filter", api.words.filter]);
  });

  test("the model ignores unknown events and keep-alives", async () => {
    const noise = [
      ": ping\n\n",
      "event: ping\ndata: alive\n\n",
      sse({ type: "response.future.event", thing: 1 }),
      sse({ type: "later_block", index: 0 }),
    ];
    const pieces = given.flatMap((event) => [...noise, event]);
    expect((await listen(saying(pieces))).reply).toMatchObject(understood);
  });

  test("arguments that are not JSON are kept, and sent back in a form that the endpoint accepts", async () => {
    const { url, answer, requests } = await endpoint();
    const toolCalls = [
      { id: "a", name: "f", arguments: '{"city": "Kö' },
      { id: "b", name: "my tool!", arguments: "rain" },
    ];
    answer(api.stream({ toolCalls }), api.whole({ content: "ok" }));
    const model = apiModel(api, url);
    const first = await ask(model, { ...hello, stream: true });
    expect(first.toolCalls).toMatchObject([
      { arguments: '{"city": "Kö', argumentsError: "The JSON of the arguments is incomplete." },
      { arguments: "rain", argumentsError: "The arguments are not valid JSON." },
    ]);
    const results = first.toolCalls.map(({ id }) => ({ role: "tool" as const, toolCallId: id, content: "no" }));
    await ask(model, { messages: [...hello.messages, { role: "assistant", ...first }, ...results] });
    expect(api.read(requests[1]?.body).lines).toEqual([
      "user: Hello",
      'call a f {"unreadable_arguments":"{\\"city\\": \\"Kö"}',
      'call b my_tool {"unreadable_arguments":"rain"}',
      "result a no",
      "result b no",
    ]);
  });

  test("a call gets a new id when its own is repeated, used earlier, or missing", async () => {
    const toolCalls = ["twice", "twice", "before", ""].map((id, number) => ({ id, name: "f", arguments: { number } }));
    const before: ChatMessage = {
      role: "assistant",
      content: "",
      toolCalls: [{ id: "before", name: "f", arguments: {}, argumentsText: "{}" }],
    };
    const request = { messages: [...hello.messages, before, { role: "tool" as const, toolCallId: "before", content: "" }] };
    for (const stream of [true, false]) {
      const pieces = stream ? api.events({ toolCalls }) : ((api.whole({ toolCalls }).steps ?? []) as string[]);
      const reply = await ask(saying(pieces), { ...request, stream });
      expect(reply.toolCalls.map((call) => call.arguments)).toEqual([{ number: 0 }, { number: 1 }, { number: 2 }, { number: 3 }]);
      const ids = reply.toolCalls.map(({ id }) => id);
      expect(ids[0]).toBe("twice");
      expect(new Set([...ids, "before", ""]).size).toBe(6);
    }
  });

  test("an answer that stops at any point before its end is reported as incomplete", async () => {
    for (let count = 0; count < given.length - api.tail; count++) {
      const error = await failure(ask(saying(given.slice(0, count), { retries: 0 }), { ...hello, stream: true }));
      expect(error).toMatchObject({ code: "MODEL_BAD_ANSWER", retryable: true });
    }
    const { error, retries, deltas } = await listen(saying(given.slice(0, -api.tail - (api.name.includes("chat") ? 1 : 0))));
    expect(error?.details.partial).toEqual({ content: sampleReply.content, reasoning: sampleReply.reasoning });
    expect(retries).toEqual([]);
    expect(deltas.length).toBeGreaterThan(0);
  });

  test("a request is retried when its answer broke before any of it was emitted", async () => {
    const { url, answer } = await endpoint();
    answer({ steps: [...given.slice(0, 4), "reset"] }, api.stream(sampleReply));
    expect(await ask(apiModel(api, url), { ...hello, stream: true })).toMatchObject({ ...understood, attempts: 2 });
  });

  test("a reply does not wait for a server that keeps the connection open after the final event", async () => {
    const { url, answer } = await endpoint();
    answer({ steps: [...given, "silence"] });
    expect((await listen(apiModel(api, url))).reply).toMatchObject(understood);
  });

  test.each<[number, string, boolean]>([
    [429, "MODEL_RATE_LIMITED", true],
    [500, "MODEL_HTTP", true],
    [529, "MODEL_HTTP", true],
    [401, "MODEL_AUTH", false],
    [404, "MODEL_HTTP", false],
    [413, "MODEL_CONTEXT_TOO_LONG", false],
  ])("maps status %i to %s", async (status, code, isRepeated) => {
    const { url, requests } = await endpoint(() => jsonAnswer({ type: "error", error: { message: "no" } }, { status }));
    const error = await failure(ask(apiModel(api, url, { retries: 2 })));
    expect(error).toMatchObject({ code, status, retryable: isRepeated, details: { providerMessage: "no" } });
    expect(requests.length).toBe(isRepeated ? 3 : 1);
  });

  test("a retry waits as long as the endpoint asks", async () => {
    const { url, answer } = await endpoint();
    answer(jsonAnswer({ error: { message: "slow down" } }, { status: 429, headers: { "retry-after": "7" } }), api.whole(sampleReply));
    const { reply, retries } = await listen(apiModel(api, url));
    expect(reply).toMatchObject({ ...understood, attempts: 2 });
    expect(retries).toMatchObject([{ delay: 7_000, error: { code: "MODEL_RATE_LIMITED" } }]);
  });

  test("errors for a conversation that is too long or filtered are recognised by their messages", async () => {
    const { url, answer } = await endpoint();
    const refused = (error: object): ScriptedAnswer => jsonAnswer({ error }, { status: 400 });
    answer(
      refused({ message: "prompt is too long: 213462 tokens > 200000 maximum" }),
      refused({ message: "The response was filtered", code: "content_filter" }),
    );
    const model = apiModel(api, url);
    expect(await failure(ask(model))).toMatchObject({ code: "MODEL_CONTEXT_TOO_LONG", retryable: false });
    const filtered = await failure(ask(model));
    expect(filtered).toMatchObject({ code: "MODEL_HTTP", details: { providerCode: "content_filter" } });
    expect(filtered.message).toContain("Its content filter rejects the conversation.");
  });

  test("an error in the middle of a stream ends it, with the part that had arrived", async () => {
    const pieces = [...given.slice(0, -api.tail), sse(api.error), ...given.slice(-api.tail)];
    const { error } = await listen(saying(pieces));
    expect(error).toMatchObject({ code: "MODEL_HTTP", retryable: true, details: { providerMessage: "Overloaded" } });
    expect(error?.details.partial?.content).toBe(sampleReply.content);
    const { reply, retries } = await listen(saying([sse(api.error)], { retries: 1 }));
    expect([reply, retries.length]).toEqual([undefined, 1]);
  });

  test.each<[string, readonly string[]]>([
    ["a page for browsers", ["<!doctype html><html></html>"]],
    ["JSON of something else", ['{"hello":"world"}']],
    ["a list", ["[1,2,3]"]],
    ["JSON that is cut off", [api.whole(sampleReply).steps?.join("").slice(0, -20) ?? ""]],
    ["an event that is cut", [...given.slice(0, 3), `${(given[3] ?? "").slice(0, -20)}\n\n`, ...given.slice(4)]],
  ])("%s is not a valid answer", async (_what, pieces) => {
    const { error, retries } = await listen(saying(pieces));
    expect(error).toMatchObject({ code: "MODEL_BAD_ANSWER", retryable: false });
    expect(retries).toEqual([]);
  });

  test.each<[string, (gate: Promise<void>) => ScriptedAnswer]>([
    ["before the headers", (gate) => ({ before: gate })],
    ["before the first event", () => ({ steps: ["silence"] })],
    ["in the middle of a stream", () => ({ steps: [...given.slice(0, 6), "silence"] })],
    ["in the middle of JSON", () => ({ steps: ['{"id":', "silence"] })],
  ])("an abort %s ends the request and its connection", async (_when, scripted) => {
    const { url, answer, request } = await endpoint();
    const gate = createGate();
    answer(scripted(gate.opened));
    const controller = new AbortController();
    const reply = listen(apiModel(api, url, { clock: handClock() }), hello, controller.signal);
    const seen = await request(0);
    controller.abort();
    expect((await reply).error).toMatchObject({ code: "MODEL_ABORTED", retryable: false });
    await seen.closed;
    gate.open();
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  test("arguments of ten megabytes are read, and an answer over the limit is an error", async () => {
    const text = "x".repeat(10_000_000);
    const [head = "", tail = ""] =
      api
        .whole({ toolCalls: [{ id: "a", name: "f", arguments: { text: "HERE" } }] })
        .steps?.join("")
        .split("HERE") ?? [];
    const pieces = [head, ...Array<string>(100).fill(text.slice(0, 100_000)), tail];
    const reply = await ask(saying(pieces));
    expect(reply.toolCalls[0]?.arguments).toEqual({ text });
    expect(await failure(ask(saying(pieces, { maxAnswerBytes: 1_000_000 })))).toMatchObject({ code: "MODEL_BAD_ANSWER" });
  });
});
