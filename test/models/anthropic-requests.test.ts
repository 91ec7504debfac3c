import { describe, expect, test } from "vitest";
import type { ChatMessage, ModelRequest } from "../../src/models/model.ts";
import { anthropicAnswer } from "../doubles/scripted-anthropic.ts";
import { jsonAnswer } from "../doubles/scripted-model.ts";
import { ask, endpoint, failure, hello, modelAt } from "./models-kit.ts";

const wire = { type: "anthropic" } as const;
const refused = (message: string, more: object = {}) =>
  jsonAnswer({ type: "error", error: { type: "invalid_request_error", message, ...more } }, { status: 400 });
const tools = [{ name: "f" }];

/** The body that reaches an endpoint for a request. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
async function sent(request: Partial<ModelRequest>, more: object = {}): Promise<any> {
  const { url, requests } = await endpoint(() => anthropicAnswer({ content: "ok" }));
  await ask(modelAt(url, { ...wire, ...more }), { ...hello, ...request });
  return requests[0]?.body;
}

test("a request has the form that the API requires, with cache markers", async () => {
  const messages: readonly ChatMessage[] = [{ role: "system", content: "Be brief." }, ...hello.messages];
  const parameters = { type: "object", properties: {} };
  const body = await sent({ messages, tools: [{ name: "f", description: "Does it.", parameters }], temperature: 0, maxOutputTokens: 50 });
  const mark = { cache_control: { type: "ephemeral" } };
  expect(body).toEqual({
    model: "test-model",
    max_tokens: 50,
    system: [{ type: "text", text: "Be brief.", ...mark }],
    messages: [{ role: "user", content: [{ type: "text", text: "Hello", ...mark }] }],
    tools: [{ name: "f", description: "Does it.", input_schema: parameters }],
    temperature: 0,
  });
});

test("the last two user turns have cache markers, so that the previous entry is found", async () => {
  const say = (role: "user" | "assistant", content: string) => ({ role, content });
  const { messages } = await sent({
    messages: [say("user", "1"), say("assistant", "2"), say("user", "3"), say("assistant", "4"), say("user", "5")],
  });
  expect(messages.map(({ content }: { content: object[] }) => "cache_control" in (content.at(-1) ?? {}))).toEqual([
    false,
    false,
    true,
    false,
    true,
  ]);
});

test("a request has a default API version unless a header sets it", async () => {
  const { url, requests } = await endpoint(() => anthropicAnswer({ content: "ok" }));
  await ask(modelAt(url, { ...wire, apiKey: "the-key" }));
  await ask(modelAt(url, { ...wire, bearerToken: "the-token", headers: { "Anthropic-Version": "2026-10-21", "Anthropic-Beta": "x" } }));
  expect(requests[0]?.headers).toMatchObject({ "x-api-key": "the-key", "anthropic-version": "2023-06-01" });
  expect(requests[0]?.headers).not.toHaveProperty("authorization");
  expect(requests[1]?.headers).toMatchObject({
    authorization: "Bearer the-token",
    "anthropic-version": "2026-10-21",
    "anthropic-beta": "x",
  });
  expect(requests[1]?.headers).not.toHaveProperty("x-api-key");
});

describe("a conversation is adapted to the rules of the API", () => {
  const call = (id: string) => ({ id, name: "f", arguments: {}, argumentsText: "{}" });
  const image = (mimeType: string) => ({ type: "image" as const, data: "AA==", mimeType });
  const cases: readonly [string, readonly ChatMessage[], readonly object[]][] = [
    [
      "results and the messages after them are one turn, with images",
      [
        { role: "user", content: "Go." },
        { role: "assistant", content: "", toolCalls: [call("a"), call("b")] },
        { role: "tool", toolCallId: "a", content: "chart", images: [image("image/jpg")] },
        { role: "tool", toolCallId: "b", content: "" },
        { role: "user", content: "And?" },
      ],
      [
        { role: "user", content: [{ text: "Go." }] },
        {
          role: "assistant",
          content: [
            { type: "tool_use", id: "a", input: {} },
            { type: "tool_use", id: "b" },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "a",
              content: [
                { type: "text", text: "chart" },
                { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "AA==" } },
              ],
            },
            { type: "tool_result", tool_use_id: "b", content: "" },
            { type: "text", text: "And?" },
          ],
        },
      ],
    ],
    [
      "empty texts and empty turns are dropped",
      [
        { role: "user", content: " \n" },
        { role: "assistant", content: " " },
        { role: "user", content: [{ type: "text", text: "" }, image("image/png")] },
      ],
      [{ role: "user", content: [{ text: "(no text)" }, { type: "image" }] }],
    ],
    [
      "a conversation begins with a user turn",
      [{ role: "assistant", content: "Hi." }, ...hello.messages],
      [{ role: "user", content: [{ text: "(The conversation began before.)" }] }, { role: "assistant" }, { role: "user" }],
    ],
    ["a conversation without turns gets one", [{ role: "system", content: "Go." }], [{ role: "user" }]],
    [
      "all system messages move to the start",
      [...hello.messages, { role: "system", content: "Later." }, { role: "user", content: "You." }],
      [{ role: "user", content: [{ text: "Hello" }, { text: "You." }] }],
    ],
    [
      "images of unsupported types are named, and data URLs are decoded",
      [
        {
          role: "user",
          content: [image("image/tiff"), { type: "image", url: "data:image/gif;base64,AAEC" }, { type: "image", url: "https://x.test/a" }],
        },
      ],
      [
        {
          role: "user",
          content: [
            { type: "text", text: "(An image of type image/tiff, which this model does not support.)" },
            { type: "image", source: { type: "base64", media_type: "image/gif", data: "AAEC" } },
            { type: "image", source: { type: "url", url: "https://x.test/a" } },
          ],
        },
      ],
    ],
    [
      "ids of other APIs become valid, the same for a call and its result",
      [
        ...hello.messages,
        { role: "assistant", content: "", toolCalls: [call("functions.f:0")] },
        { role: "tool", toolCallId: "functions.f:0", content: "ok" },
      ],
      [{}, { content: [{ id: "functions_f_0_7b5e7c7e5be9e0cf" }] }, { content: [{ tool_use_id: "functions_f_0_7b5e7c7e5be9e0cf" }] }],
    ],
  ];
  test.each(cases)("%s", async (what, messages, expected) => {
    const body = await sent({ messages });
    if (!what.startsWith("ids")) return void expect(body.messages).toMatchObject(expected);
    const [, used, result] = body.messages;
    expect(used.content[0].id).toMatch(/^functions_f_0_[0-9a-f]{16}$/);
    expect(result.content[0].tool_use_id).toBe(used.content[0].id);
  });
});

describe("thinking, in a request to the Anthropic API,", () => {
  const effort = { reasoningEffort: "medium" };

  test.each<[string, string, object]>([
    ["claude-opus-5-5", "medium", { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "medium" } }],
    ["claude-sonnet-4-6", "minimal", { thinking: { type: "adaptive" }, output_config: { effort: "low" } }],
    ["claude-sonnet-4.5", "low", { thinking: { type: "enabled", budget_tokens: 4_096 } }],
    ["claude-haiku-4-5-20251001", "max", { thinking: { type: "enabled", budget_tokens: 16_000 } }],
    ["claude-3-7-sonnet-latest", "medium", { thinking: { type: "enabled", budget_tokens: 10_240 } }],
  ])("thinking is configured for %s with effort %s", async (model, reasoningEffort, expected) => {
    const body = await sent({ reasoningEffort, temperature: 0 }, { model });
    expect(body).toMatchObject(expected);
    // Thinking allows no other temperature.
    expect(body).not.toHaveProperty("temperature");
  });

  test.each<[string, Partial<ModelRequest>]>([
    ["the request does not set it", {}],
    ["the request disables it", { reasoningEffort: "none" }],
    ["an answer has no room for it", { ...effort, maxOutputTokens: 1_500 }],
    ["a tool is forced", { ...effort, tools, toolChoice: "required" }],
  ])("thinking is omitted when %s", async (_when, request) => {
    expect(await sent(request, { model: "claude-sonnet-4-5" })).not.toHaveProperty("thinking");
  });

  test("a turn that began without thinking does not get a budget later", async () => {
    const call = { id: "a", name: "f", arguments: {}, argumentsText: "{}" };
    const messages: readonly ChatMessage[] = [
      ...hello.messages,
      { role: "assistant", content: "", toolCalls: [call] },
      { role: "tool", toolCallId: "a", content: "" },
    ];
    expect(await sent({ ...effort, messages }, { model: "claude-sonnet-4-5" })).not.toHaveProperty("thinking");
    expect(await sent({ ...effort, messages: [...messages, ...hello.messages] }, { model: "claude-sonnet-4-5" })).toHaveProperty(
      "thinking",
    );
    expect(await sent({ ...effort, messages }, { model: "claude-opus-5-5" })).toHaveProperty("thinking");
  });
});

// biome-ignore lint/suspicious/noExplicitAny: bodies of requests
type Body = any;

test.each<[string, string, (body: Body) => unknown]>([
  ["how hard to think", "adaptive thinking is not supported on this model", (body) => body.output_config],
  ["thinking at all", "messages.0: thinking is not supported by this model", (body) => body.thinking],
  [
    "marks for a cache",
    "messages.0.content.0.cache_control: Extra inputs are not permitted",
    (body) => body.messages[0].content[0].cache_control,
  ],
  ["a temperature", "`temperature` is deprecated for this model.", (body) => body.temperature],
  [
    "answers so long",
    "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for this model",
    (body) => body.max_tokens > 8_192 || undefined,
  ],
])("learns once that a model does not know %s", async (what, message, given) => {
  const { url, requests } = await endpoint(({ body }) =>
    given(body) === undefined ? anthropicAnswer({ content: "ok" }) : refused(message),
  );
  const model = modelAt(url, wire);
  const request: ModelRequest = { ...hello, ...(what.includes("think") ? { reasoningEffort: "low" } : { temperature: 0 }) };
  expect((await ask(model, request)).content).toBe("ok");
  const lessons = requests.length;
  expect((await ask(model, request)).content).toBe("ok");
  expect(requests.length).toBe(lessons + 1);
});

test("an error of the caller changes no later request, and retries end", async () => {
  const wrong = await endpoint(() => refused("output_config.effort: Input should be 'low', 'medium' or 'high'"));
  expect(await failure(ask(modelAt(wrong.url, wire), { ...hello, reasoningEffort: "hard" }))).toMatchObject({
    code: "MODEL_HTTP",
    status: 400,
  });
  expect(wrong.requests.length).toBe(1);
  const never = await endpoint(() => refused("cache_control, thinking, temperature, signature: no"));
  await failure(ask(modelAt(never.url, wire), { ...hello, reasoningEffort: "low", temperature: 0 }));
  expect(never.requests.length).toBe(5);
});

const thoughtful = (signature: string) => ({
  role: "assistant" as const,
  content: "x",
  replay: {
    messages: {
      model: "test-model",
      parts: [
        { kind: "thought", item: { type: "thinking", thinking: "", signature } },
        { kind: "text", length: 1 },
      ],
    },
  },
});

test.each(["messages.1.content.0: Invalid `signature` in `thinking` block", "A thinking block belongs to another conversation."])(
  "leaves out thoughts that an endpoint does not take back, and only those: %s",
  async (message) => {
    const { url, requests } = await endpoint(({ text }) =>
      text.includes("sealed old") ? refused(message) : anthropicAnswer({ content: "ok" }),
    );
    const model = modelAt(url, wire);
    const messages = [...hello.messages, thoughtful("sealed old"), ...hello.messages];
    await ask(model, { messages });
    await ask(model, { messages: [...messages, thoughtful("sealed new"), ...hello.messages] });
    expect(requests.map(({ text }) => text.match(/sealed \w+/g) ?? [])).toEqual([["sealed old"], [], ["sealed new"]]);
  },
);

test("thoughts of one model are not sent to another", async () => {
  const body = await sent({ messages: [...hello.messages, thoughtful("sealed"), ...hello.messages] }, { model: "other-model" });
  expect(JSON.stringify(body)).not.toContain("sealed");
});
