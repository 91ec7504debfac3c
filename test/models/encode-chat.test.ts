import { expect, test } from "vitest";
import type { ChatMessage, ModelRequest, ModelToolCall } from "../../src/models/model.ts";
import { chatAnswer, jsonAnswer } from "../doubles/scripted-model.ts";
import { ask, endpoint, failure, hello, modelAt } from "./models-kit.ts";

/** The body that reaches an endpoint for a request. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
async function sent(request: Partial<ModelRequest>): Promise<any> {
  const { url, requests } = await endpoint(() => chatAnswer({ content: "ok" }));
  await ask(modelAt(url), { ...hello, ...request });
  return requests[0]?.body;
}

const call = (more: Partial<ModelToolCall> = {}): ModelToolCall => ({ id: "a", name: "f", arguments: {}, argumentsText: "{}", ...more });

test("a request contains system, user, assistant and tool messages in order", async () => {
  const messages: readonly ChatMessage[] = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Weather?" },
    { role: "assistant", content: "", toolCalls: [call({ name: "weather", argumentsText: '{ "city": "Köln" }' })] },
    { role: "tool", toolCallId: "a", content: "rain" },
    { role: "assistant", content: "Rain." },
  ];
  expect((await sent({ messages })).messages).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "Weather?" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "a", type: "function", function: { name: "weather", arguments: '{ "city": "Köln" }' } }],
    },
    { role: "tool", tool_call_id: "a", content: "rain" },
    { role: "assistant", content: "Rain." },
  ]);
});

test("images become parts, and text alone stays a string", async () => {
  const text = { type: "text", text: "What is this?" } as const;
  const inline = { type: "image", mimeType: "image/png", data: "iVBORw==", detail: "low" } as const;
  const linked = { type: "image", url: "https://example.test/cat.jpg" } as const;
  const body = await sent({
    messages: [
      { role: "user", content: [text, inline, linked] },
      { role: "user", content: [text, { type: "text", text: "Say." }] },
    ],
  });
  expect(body.messages[0].content).toEqual([
    { type: "text", text: "What is this?" },
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw==", detail: "low" } },
    { type: "image_url", image_url: { url: "https://example.test/cat.jpg" } },
  ]);
  expect(body.messages[1].content).toBe("What is this?\nSay.");
});

test("the images of tool results follow the last result of their message", async () => {
  const image = { type: "image", mimeType: "image/png", data: "AA==" } as const;
  const body = await sent({
    messages: [
      { role: "assistant", content: "", toolCalls: [call(), call({ id: "b" })] },
      { role: "tool", toolCallId: "a", content: "a chart", images: [image] },
      { role: "tool", toolCallId: "b", content: "text" },
      { role: "user", content: "Continue." },
      { role: "assistant", content: "", toolCalls: [call({ id: "c" })] },
      { role: "tool", toolCallId: "c", content: "another", images: [image] },
    ],
  });
  expect(body.messages.map(({ role }: { role: string }) => role)).toEqual([
    "assistant",
    "tool",
    "tool",
    "user",
    "user",
    "assistant",
    "tool",
    "user",
  ]);
  expect(body.messages[3].content).toEqual([
    { type: "text", text: "Images that tool call a returned:" },
    { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
  ]);
});

test("invalid calls of a model are sent back in a form that the endpoint accepts", async () => {
  const toolCalls = [
    call({ name: "my tool!", argumentsText: " " }),
    call({ id: "b", name: "", argumentsText: '{"a":', argumentsError: "The JSON of the arguments is incomplete." }),
  ];
  const body = await sent({ messages: [{ role: "assistant", content: "", toolCalls }] });
  const functions = body.messages[0].tool_calls.map((item: { function: object }) => item.function);
  expect(functions).toEqual([
    { name: "my_tool", arguments: "{}" },
    { name: "tool", arguments: '{"unreadable_arguments":"{\\"a\\":"}' },
  ]);
});

test("a request contains no lone surrogates, which some servers cannot read", async () => {
  const content = "half \ud83d of 😀 \udc00";
  const body = await sent({
    messages: [
      { role: "user", content },
      { role: "tool", toolCallId: "a", content },
    ],
  });
  expect(body.messages.map((message: { content: string }) => message.content)).toEqual(Array(2).fill("half \ufffd of 😀 \ufffd"));
});

test("a request describes tools, and one without parameters takes an object without properties", async () => {
  const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const definition = { name: "time", title: "Time", defer: "auto", isTerminal: true, metadata: {} } as const;
  const body = await sent({
    tools: [
      { name: "weather", description: "Weather of a city", parameters, strict: true },
      { name: "ping", parameters: { type: "object" } },
      definition,
    ],
  });
  expect(body.tools).toEqual([
    { type: "function", function: { name: "weather", description: "Weather of a city", parameters, strict: true } },
    { type: "function", function: { name: "ping", parameters: { type: "object", properties: {} } } },
    { type: "function", function: { name: "time", parameters: { type: "object", properties: {} } } },
  ]);
  expect(body).not.toHaveProperty("tool_choice");
});

test("a model of Gemini gets tools with the keywords of its API", async () => {
  const parameters = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { size: { type: ["integer", "null"], exclusiveMinimum: 0 }, tags: { type: "array" } },
    additionalProperties: false,
  };
  const { url, requests } = await endpoint(() => chatAnswer({ content: "ok" }));
  const tools = [{ name: "make", parameters }];
  await ask(modelAt(url, { model: "gemini-2.5-pro" }), { ...hello, tools });
  await ask(modelAt(url), { ...hello, tools });
  const [gemini, other] = requests.map(
    ({ body }) => (body as { tools: { function: { parameters: unknown } }[] }).tools[0]?.function.parameters,
  );
  expect(gemini).toEqual({
    type: "object",
    properties: {
      size: { type: "integer", nullable: true, description: "(exclusiveMinimum: 0)" },
      tags: { type: "array", items: { type: "string" } },
    },
  });
  expect(other).toEqual({ ...parameters, properties: { ...parameters.properties, tags: { type: "array", items: {} } } });
});

test("a chat request has a tool choice only beside tools", async () => {
  const tools = [{ name: "f" }];
  expect((await sent({ tools, toolChoice: "required" })).tool_choice).toBe("required");
  expect((await sent({ tools, toolChoice: { name: "f" } })).tool_choice).toEqual({ type: "function", function: { name: "f" } });
  const body = await sent({ tools: [], toolChoice: "auto" });
  expect(Object.keys(body).sort()).toEqual(["messages", "model"]);
});

test("a request contains temperature, output limit and reasoning effort when they are given", async () => {
  expect(await sent({ temperature: 0, maxOutputTokens: 50, reasoningEffort: "low" })).toMatchObject({
    temperature: 0,
    max_tokens: 50,
    reasoning_effort: "low",
  });
});

test("a model learns once which fields an endpoint does not accept", async () => {
  const refuse = (message: string) => jsonAnswer({ error: { message, type: "invalid_request_error" } }, { status: 400 });
  const { url, requests } = await endpoint(({ body }) => {
    if (body.stream_options) return refuse("Unrecognized request argument supplied: stream_options");
    if (body.max_tokens) return refuse("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.");
    return chatAnswer({ content: "ok" });
  });
  const model = modelAt(url);
  const request = { ...hello, stream: true, maxOutputTokens: 9 };
  expect((await ask(model, request)).content).toBe("ok");
  expect((await ask(model, request)).content).toBe("ok");
  expect(requests.map(({ body }) => Object.keys(body).filter((key) => /max|options/.test(key)))).toEqual([
    ["max_tokens", "stream_options"],
    ["max_tokens"],
    ["max_completion_tokens"],
    ["max_completion_tokens"],
  ]);
});

test("retries end when an endpoint refuses every request", async () => {
  const message = "Unsupported: stream_options, max_tokens, max_completion_tokens";
  const { url, requests } = await endpoint(() => jsonAnswer({ error: { message } }, { status: 400 }));
  const error = await failure(ask(modelAt(url), { ...hello, stream: true, maxOutputTokens: 9 }));
  expect(error).toMatchObject({ code: "MODEL_HTTP", status: 400, retryable: false });
  expect(requests.length).toBe(3);
});
