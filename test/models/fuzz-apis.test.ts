import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ReplayFields } from "../../src/models/model.ts";
import { ModelError } from "../../src/models/model-error.ts";
import type { ScriptedReply } from "../doubles/scripted-model.ts";
import { rounds } from "../rounds.ts";
import { fetchSaying, hello, listen } from "./models-kit.ts";
import { apiModel, wireApis } from "./wire-apis.ts";

const sampleReply: ScriptedReply = {
  content: "Grüße, 世界!",
  reasoning: "Hm 🤔.",
  toolCalls: [
    { id: "a", name: "weather", arguments: { city: "Köln 🌧" } },
    { id: "a", name: "date", arguments: '{"zone":' },
  ],
};

const anything = fc.jsonValue({ maxDepth: 3 });
const words = [
  "message",
  "reasoning",
  "function_call",
  "text",
  "thinking",
  "tool_use",
  "redacted_thinking",
  "thinking_delta",
  "input_json_delta",
];
const types = [
  "response.output_item.added",
  "response.output_item.done",
  "response.output_text.delta",
  "response.reasoning_summary_text.delta",
  "response.function_call_arguments.delta",
  "response.function_call_arguments.done",
  "response.completed",
  "message_start",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
];
const text = fc.oneof(fc.constantFrom("a", "", '{"x":1}', "{", "}"), anything);
const part = fc.record(
  {
    type: fc.oneof(fc.constantFrom(...words), anything),
    id: text,
    call_id: text,
    name: text,
    arguments: text,
    input: anything,
    text,
    thinking: text,
    signature: text,
    data: text,
    partial_json: text,
    summary: anything,
    content: fc.oneof(fc.array(fc.record({ type: fc.constantFrom(...words), text }), { maxLength: 2 }), anything),
    encrypted_content: text,
    phase: text,
    stop_reason: text,
    stop_details: anything,
  },
  { requiredKeys: [] },
);
const list = fc.oneof(fc.array(fc.oneof(part, anything), { maxLength: 3 }), anything);
const event = fc.record(
  {
    type: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...types) }, anything),
    output_index: fc.oneof(fc.nat(2), anything),
    index: fc.oneof(fc.nat(2), anything),
    item_id: text,
    delta: fc.oneof(part, text),
    item: fc.oneof(part, anything),
    content_block: fc.oneof(part, anything),
    message: fc.oneof(fc.record({ content: list, usage: anything, model: text }), anything),
    response: fc.oneof(
      fc.record({ output: list, status: text, usage: anything, incomplete_details: anything }),
      fc.constant(undefined),
      anything,
    ),
    arguments: text,
    usage: anything,
    output: fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, list),
    content: fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, list),
  },
  { requiredKeys: [] },
);

describe.each(wireApis.slice(0, 3))("input in the form of $name", (api) => {
  /** Expects a reply or a ModelError; `listen` throws anything else, which fails the test. A reply can be sent back. */
  const settle = async (pieces: readonly (string | Uint8Array)[]): Promise<void> => {
    const { reply, error } = await listen(apiModel(api, "http://model.test", { fetch: fetchSaying(pieces), retries: 0 }));
    if (reply === undefined) return void expect(error).toBeInstanceOf(ModelError);
    const ids = reply.toolCalls.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const messages = [...hello.messages, { role: "assistant" as const, ...JSON.parse(JSON.stringify(reply)) }];
    const results = ids.map((toolCallId) => ({ role: "tool" as const, toolCallId, content: "" }));
    const whole = api.whole({ content: "ok" }).steps as readonly string[];
    const again = await listen(apiModel(api, "http://model.test", { fetch: fetchSaying(whole) }), { messages: [...messages, ...results] });
    expect(again.reply?.content).toBe("ok");
  };

  test("changed, dropped or doubled bytes result in a reply or a ModelError", async () => {
    const bytes = new TextEncoder().encode(api.events(sampleReply).join(""));
    const change = fc.record({ at: fc.nat(bytes.length - 1), bytes: fc.uint8Array({ maxLength: 3 }), length: fc.nat(3) });
    const property = fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
      const mutated = [...bytes];
      for (const { at, bytes: more, length } of changes) mutated.splice(at, length, ...more);
      await settle([Uint8Array.from(mutated)]);
    });
    await fc.assert(property, { numRuns: rounds(20, 400) });
  });

  test("omitted, doubled and reordered events result in a reply or a ModelError", async () => {
    const events = api.events(sampleReply);
    const property = fc.asyncProperty(fc.array(fc.nat(events.length - 1), { maxLength: 30 }), (order) =>
      settle(order.map((at) => events[at] ?? "")),
    );
    await fc.assert(property, { numRuns: rounds(20, 400) });
  });

  test("events with arbitrary fields result in a reply or a ModelError", async () => {
    const property = fc.asyncProperty(fc.array(fc.oneof({ weight: 9, arbitrary: event }, anything), { maxLength: 8 }), (events) =>
      settle(events.length === 1 ? [JSON.stringify(events[0])] : events.map((item) => `data: ${JSON.stringify(item)}\n\n`)),
    );
    await fc.assert(property, { numRuns: rounds(40, 800) });
  });

  test("arbitrary replay data of a reply from a log is sent or omitted", async () => {
    const piece = fc.record({
      kind: fc.constantFrom("thought", "text", "call"),
      item: anything,
      length: fc.oneof(fc.nat(3), anything),
      phase: text,
    });
    const layout = fc.record({ model: fc.constantFrom("test-model", "x"), parts: fc.oneof(fc.array(fc.oneof(piece, anything)), anything) });
    const replay = fc.oneof(
      fc.dictionary(fc.constantFrom("messages", "responses", "reasoning", "other"), fc.oneof(layout, anything)),
      anything,
    );
    const whole = api.whole({ content: "ok" }).steps as readonly string[];
    const property = fc.asyncProperty(replay, replay, async (one, other) => {
      const call = { id: "a", name: "f", arguments: {}, argumentsText: "{}", replay: one as ReplayFields };
      const message = { role: "assistant" as const, content: "abc", toolCalls: [call], replay: other as ReplayFields };
      const messages = [...hello.messages, message, { role: "tool" as const, toolCallId: "a", content: "" }];
      const { reply } = await listen(apiModel(api, "http://model.test", { fetch: fetchSaying(whole) }), { messages });
      expect(reply?.content).toBe("ok");
    });
    await fc.assert(property, { numRuns: rounds(30, 300) });
  });
});
