import { expect, test } from "vitest";
import type { ModelRequest } from "../../src/models/model.ts";
import { jsonAnswer, type ScriptedReply } from "../doubles/scripted-model.ts";
import { responsesAnswer } from "../doubles/scripted-responses.ts";
import { ask, endpoint, failure, hello, modelAt } from "./models-kit.ts";

const wire = { wireApi: "responses" } as const;
const refused = (message: string, more: object = {}) =>
  jsonAnswer({ error: { message, type: "invalid_request_error", ...more } }, { status: 400 });

const sampleReply: ScriptedReply = { content: "Hi there", reasoning: "Hm. Hm.", toolCalls: [{ id: "a", name: "f", arguments: { x: 1 } }] };

test("a request disables storage and asks for encrypted thoughts to send back", async () => {
  const { url, requests } = await endpoint(() => responsesAnswer({ content: "ok" }));
  await ask(modelAt(url, wire), {
    ...hello,
    reasoningEffort: "low",
    maxOutputTokens: 50,
    temperature: 0,
    tools: [{ name: "f", strict: true }, { name: "g" }],
  });
  expect(requests[0]?.body).toEqual({
    model: "test-model",
    input: [{ type: "message", role: "user", content: "Hello" }],
    store: false,
    include: ["reasoning.encrypted_content"],
    reasoning: { effort: "low", summary: "auto" },
    max_output_tokens: 50,
    temperature: 0,
    tools: [
      { type: "function", name: "f", parameters: { type: "object", properties: {} }, strict: true },
      // The default is true.
      { type: "function", name: "g", parameters: { type: "object", properties: {} }, strict: false },
    ],
  });
});

test("system messages at the start become instructions, and later ones stay in place", async () => {
  const { url, requests } = await endpoint(() => responsesAnswer({ content: "ok" }));
  const system = (content: string) => ({ role: "system" as const, content });
  await ask(modelAt(url, wire), { messages: [system("One."), system("Two."), ...hello.messages, system("Three.")] });
  expect(requests[0]?.body).toMatchObject({
    instructions: "One.\n\nTwo.",
    input: [{ role: "user" }, { type: "message", role: "system", content: "Three." }],
  });
});

test.each<[string, string, (body: Record<string, unknown>) => unknown]>([
  ["encrypted thoughts", "Encrypted content is not supported with this model.", (body) => body["include"]],
  [
    "summaries",
    "Your organization must be verified to generate reasoning summaries.",
    (body) => (body["reasoning"] as { summary?: string })?.summary,
  ],
  ["thinking", "Unsupported parameter: 'reasoning.effort' is not supported with this model.", (body) => body["reasoning"]],
  ["a temperature", "Unsupported parameter: 'temperature' is not supported with this model.", (body) => body["temperature"]],
  ["storage", "Unknown parameter: 'store'.", (body) => body["store"]],
])("learns once that a model does not know %s", async (_what, message, sent) => {
  const { url, requests } = await endpoint(({ body }) =>
    sent(body) === undefined ? responsesAnswer({ content: "ok" }) : refused(message),
  );
  const model = modelAt(url, wire);
  const request: ModelRequest = { ...hello, reasoningEffort: "low", temperature: 0 };
  expect((await ask(model, request)).content).toBe("ok");
  expect((await ask(model, request)).content).toBe("ok");
  expect(requests.map(({ body }) => sent(body) !== undefined)).toEqual([true, false, false]);
});

test("retries end when every request is refused", async () => {
  const { url, requests } = await endpoint(() => refused("include, summary, reasoning, temperature, store: no"));
  const error = await failure(ask(modelAt(url, wire), { ...hello, reasoningEffort: "low", temperature: 0 }));
  expect([error.code, requests.length]).toEqual(["MODEL_HTTP", 6]);
});

test.each([
  "The encrypted content for item rs_1 could not be verified.",
  "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
  "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
])("leaves out thoughts that an endpoint does not take back, and only those: %s", async (message) => {
  const { url, requests } = await endpoint(({ body }) =>
    body.input.some((item: { encrypted_content?: string }) => item.encrypted_content === "old")
      ? refused(message)
      : responsesAnswer({ content: "ok" }),
  );
  const thinking = (sealed: string) => ({
    role: "assistant" as const,
    content: "x",
    replay: {
      responses: {
        model: "test-model",
        parts: [
          { kind: "thought", item: { type: "reasoning", id: "rs_1", summary: [], encrypted_content: sealed } },
          { kind: "text", length: 1 },
        ],
      },
    },
  });
  const messages = [...hello.messages, thinking("old"), ...hello.messages];
  const model = modelAt(url, wire);
  await ask(model, { messages });
  await ask(model, { messages: [...messages, thinking("new"), ...hello.messages] });
  const thoughts = requests.map(({ body }) => body.input.flatMap((item: { encrypted_content?: string }) => item.encrypted_content ?? []));
  expect(thoughts).toEqual([["old"], [], ["new"]]);
});

test("phases, texts and thoughts are sent back in their original order", async () => {
  const { url, answer, requests } = await endpoint();
  const thought = (id: string) => ({ type: "reasoning", id, summary: [], encrypted_content: `sealed ${id}` });
  const text = (content: string, phase: string) => ({
    type: "message",
    id: "m",
    status: "completed",
    phase,
    content: [{ type: "output_text", text: content }],
  });
  const call = { type: "function_call", id: "fc", call_id: "a", name: "f", arguments: "{}" };
  answer(
    jsonAnswer({
      id: "r",
      status: "completed",
      output: [thought("1"), text("Looking. ", "commentary"), thought("2"), call, text("Done.", "final_answer"), thought("3")],
    }),
    responsesAnswer({ content: "ok" }),
  );
  const model = modelAt(url, wire);
  const first = await ask(model);
  expect(first.content).toBe("Looking. Done.");
  await ask(model, { messages: [...hello.messages, { role: "assistant", ...first }, { role: "tool", toolCallId: "a", content: "ok" }] });
  expect(requests[1]?.body.input.slice(1)).toEqual([
    thought("1"),
    { type: "message", role: "assistant", content: "Looking. ", phase: "commentary" },
    thought("2"),
    { type: "function_call", call_id: "a", name: "f", arguments: "{}" },
    { type: "message", role: "assistant", content: "Done.", phase: "final_answer" },
    // The third thought is not sent because nothing followed it.
    { type: "function_call_output", call_id: "a", output: "ok" },
  ]);
});

test("thoughts come first when a message was changed since", async () => {
  const { url, answer, requests } = await endpoint();
  answer(responsesAnswer(sampleReply), responsesAnswer({ content: "ok" }));
  const model = modelAt(url, wire);
  const first = await ask(model);
  await ask(model, {
    messages: [
      ...hello.messages,
      { role: "assistant", ...first, content: "Something else" },
      { role: "tool", toolCallId: "a", content: "" },
    ],
  });
  expect(requests[1]?.body.input.map((item: { type: string }) => item.type)).toEqual([
    "message",
    "reasoning",
    "message",
    "function_call",
    "function_call_output",
  ]);
});

test("call ids that are too long are shortened, in the call and in its result", async () => {
  const { url, requests } = await endpoint(() => responsesAnswer({ content: "ok" }));
  const ids = ["short|1", `${"x".repeat(70)}1`, `${"x".repeat(70)}2`];
  const toolCalls = ids.map((id) => ({ id, name: "f", arguments: {}, argumentsText: "{}" }));
  const results = ids.map((id) => ({ role: "tool" as const, toolCallId: id, content: id }));
  await ask(modelAt(url, wire), { messages: [...hello.messages, { role: "assistant", content: "", toolCalls }, ...results] });
  const items = requests[0]?.body.input.slice(1) as { call_id: string; type: string }[];
  const sent = items.map((item) => item.call_id);
  expect(sent.slice(0, 3)).toEqual(sent.slice(3));
  expect(sent[0]).toBe("short|1");
  expect(new Set(sent).size).toBe(3);
  expect(Math.max(...sent.map((id) => id.length))).toBeLessThanOrEqual(64);
});
