import fc from "fast-check";
import { expect, test } from "vitest";
import { chatCompletions } from "../../src/models/chat-completions.ts";
import type { ModelDelta, ModelReply } from "../../src/models/model.ts";
import { ModelError } from "../../src/models/model-error.ts";
import { createEndpoint } from "../../src/models/provider-endpoint.ts";
import { parseArguments } from "../../src/models/tool-call-assembly.ts";
import { createWireModel } from "../../src/models/wire-model.ts";
import { chatChunks, sse } from "../doubles/scripted-model.ts";
import { rounds } from "../rounds.ts";
import { fetchSaying, hello, hurriedClock, listen, modelSaying } from "./models-kit.ts";

const encoder = new TextEncoder();
const stream = `\uFEFF: hello\r\n\r\n${chatChunks({
  content: "Grüße, 世界! 😀\r\nFine.",
  reasoning: "Hm 🤔.",
  toolCalls: [
    { id: "", name: "weather", arguments: { city: "Köln 🌧", deep: { a: [1, '\\"}{'] } } },
    { id: "b", name: "time", arguments: "" },
    { id: "b", name: "date", arguments: '{"zone":' },
  ],
})
  .map((chunk) => sse({ ...chunk, id: undefined, object: undefined, model: undefined, usage: undefined }))
  .join("")}event: ping\rdata\r\rdata: [DONE]\n\n`;
const streamBytes = encoder.encode(stream);

/** Divides the bytes at these offsets. */
function split(bytes: Uint8Array, ends: readonly number[]): readonly Uint8Array[] {
  const places = [0, ...ends.map((end) => end % bytes.length).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.slice(places[index], end));
}

/** Reply and deltas, with generated ids replaced by stable ones. */
async function read(pieces: readonly Uint8Array[]): Promise<{ reply: ModelReply; deltas: readonly object[] }> {
  let count = 0;
  const options = {
    retries: 0,
    firstDelay: 1,
    longestDelay: 1,
    longestRetryAfter: 1,
    responseTimeout: 1e9,
    idleTimeout: 1e9,
    maxBytes: 1e9,
  };
  const endpoint = createEndpoint({
    ...options,
    baseUrl: new URL("http://model.test/v1"),
    bases: ["/v1"],
    credential: undefined,
    headers: {},
    fetch: fetchSaying(pieces),
    clock: hurriedClock(),
    random: () => 0,
  });
  const wire = { id: "m", address: "a", endpoint, clock: hurriedClock(), newId: () => `new_${++count}` };
  const model = createWireModel(wire, chatCompletions("m"));
  const deltas: object[] = [];
  const onDelta = ({ receivedBytes: _, ...delta }: ModelDelta): void => void deltas.push(delta);
  return { reply: await model.complete(hello, { signal: new AbortController().signal, onDelta }), deltas };
}

test("a stream gives the same reply and the same deltas in any division into pieces", async () => {
  const whole = await read([streamBytes]);
  expect(whole.reply.toolCalls).toMatchObject([
    { id: "new_1", name: "weather", arguments: { city: "Köln 🌧" } },
    { id: "b", name: "time", arguments: {} },
    { id: "new_2", name: "date", argumentsError: "The JSON of the arguments is incomplete." },
  ]);
  expect(whole.reply.content).toBe("Grüße, 世界! 😀\r\nFine.");
  for (let at = 1; at < streamBytes.length; at++) expect(await read(split(streamBytes, [at]))).toEqual(whole);
  const cuts = fc.array(fc.nat(streamBytes.length), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(cuts, async (ends) => {
      expect(await read(split(streamBytes, ends))).toEqual(whole);
    }),
    { numRuns: rounds(20, 200) },
  );
});

/** Any bytes result in a reply or a ModelError; `listen` throws anything else, which fails the test. */
async function settle(pieces: readonly (string | Uint8Array)[]): Promise<void> {
  const { reply, error } = await listen(modelSaying(pieces, { retries: 1 }));
  if (error !== undefined) return void expect(error).toBeInstanceOf(ModelError);
  expect(reply).toMatchObject({ content: expect.any(String), chunkCount: expect.any(Number) });
  const ids = reply?.toolCalls.map(({ id }) => id) ?? [];
  expect(new Set(ids).size).toBe(ids.length);
  for (const call of reply?.toolCalls ?? []) {
    if (call.argumentsError === undefined) expect(call.arguments).toBeTypeOf("object");
    else expect(call.arguments).toBe(call.argumentsText);
  }
  JSON.stringify(reply);
}

test("arbitrary bytes result in a reply or a ModelError", async () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.constantFrom("data: ", "\n", "\r", "\n\n", "{", "}", ":", "[DONE]", "\uFEFF", " "),
  );
  await fc.assert(fc.asyncProperty(fc.array(piece, { maxLength: 12 }), settle), { numRuns: rounds(100, 1_000) });
});

test("a stream with changed, dropped or doubled bytes results in a reply or a ModelError", async () => {
  const change = fc.record({ at: fc.nat(streamBytes.length - 1), bytes: fc.uint8Array({ maxLength: 3 }), length: fc.nat(3) });
  const property = fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
    const mutated = [...streamBytes];
    for (const { at, bytes, length } of changes) mutated.splice(at, length, ...bytes);
    await settle([Uint8Array.from(mutated)]);
  });
  await fc.assert(property, { numRuns: rounds(100, 1_000) });
});

test("chunks with arbitrary fields result in a reply or a ModelError", async () => {
  const anything = fc.jsonValue({ maxDepth: 3 });
  const text = fc.oneof(fc.string(), fc.constantFrom('{"a":1}', "{", "}", "f", "", "null"), anything);
  const fragment = fc.record(
    {
      index: fc.oneof(fc.nat(2), anything),
      id: fc.oneof(fc.constantFrom("a", "b", ""), anything),
      function: fc.oneof(fc.record({ name: text, arguments: text }, { requiredKeys: [] }), anything),
      extra_content: anything,
    },
    { requiredKeys: [] },
  );
  const delta = fc.record(
    {
      content: text,
      reasoning_content: text,
      tool_calls: fc.oneof(fc.array(fragment, { maxLength: 3 }), anything),
      function_call: anything,
    },
    { requiredKeys: [] },
  );
  const choice = fc.record(
    {
      index: fc.oneof(fc.nat(1), anything),
      delta: fc.oneof(delta, anything),
      message: anything,
      finish_reason: fc.oneof(fc.constant("stop"), anything),
    },
    { requiredKeys: [] },
  );
  const chunk = fc.record(
    {
      id: text,
      model: text,
      choices: fc.oneof(fc.array(choice, { maxLength: 2 }), anything),
      usage: anything,
      error: fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, anything),
    },
    { requiredKeys: [] },
  );
  const property = fc.asyncProperty(fc.array(fc.oneof(chunk, chunk, anything), { maxLength: 6 }), fc.boolean(), async (chunks, hasEnd) => {
    await settle(
      chunks.length === 1 && !hasEnd
        ? [JSON.stringify(chunks[0])]
        : [...chunks.map((item) => sse(JSON.stringify(item))), hasEnd ? sse("[DONE]") : ""],
    );
  });
  await fc.assert(property, { numRuns: rounds(100, 1_000) });
});

test("any text is parsed as arguments or has an error with the reason", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.json(),
    fc.json().map((json) => JSON.stringify(json)),
  );
  const property = fc.property(text, (given) => {
    const parsed = parseArguments(given);
    if (parsed.argumentsError === undefined) expect(parsed.arguments).toBeTypeOf("object");
    else expect(parsed.arguments).toBe(given);
  });
  fc.assert(property, { numRuns: rounds(100, 1_000) });
});

test("objects are unchanged after they are written and read as arguments", () => {
  const property = fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })), (object) => {
    const text = JSON.stringify(object);
    const expected = JSON.parse(text, (key, value) => (key === "__proto__" ? undefined : value));
    expect(parseArguments(text)).toEqual({ arguments: expected });
  });
  fc.assert(property, { numRuns: rounds(50, 500) });
});
