import Anthropic from "@anthropic-ai/sdk";
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import OpenAI from "openai";
import { defineTool, HostError, type Session } from "skillhost";
import { toAiSdkTools } from "skillhost/adapters/ai-sdk";
import { toAnthropicTools } from "skillhost/adapters/anthropic";
import { toLangChainTools } from "skillhost/adapters/langchain";
import { toOpenAIResponsesTools, toOpenAITools } from "skillhost/adapters/openai";
import { createTestHost } from "skillhost/testing";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { approveAll } from "../../src/tools/tool.ts";
import { anthropicAnswer } from "../doubles/scripted-anthropic.ts";
import { chatAnswer, type ScriptedAnswer, type ScriptedReply, startScriptedModel } from "../doubles/scripted-model.ts";
import { responsesAnswer } from "../doubles/scripted-responses.ts";

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const weather = defineTool("get_weather", {
  description: "Gets the weather.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  handler: ({ city }) => `${String(city)}: sunny`,
});
const draw = defineTool("draw", {
  description: "Draws.",
  handler: () => ({
    resultType: "success" as const,
    textResultForLlm: "A dot.",
    binaryResultsForLlm: [{ data: pixel, mimeType: "image/png", type: "image" }],
  }),
});
const fail = defineTool("fail", {
  description: "Fails.",
  handler: () => {
    throw new HostError("TEST", "secret details");
  },
});

async function openSession(
  options: Parameters<Awaited<ReturnType<typeof createTestHost>>["host"]["createSession"]>[0] = {},
): Promise<Session> {
  const test = await createTestHost({ skillDirectories: [] });
  onTestFinished(() => test.close());
  return test.host.createSession({ tools: [weather, draw, fail], onPermissionRequest: approveAll, ...options });
}

async function script(answer: (reply: ScriptedReply) => ScriptedAnswer, ...replies: ScriptedReply[]) {
  const model = await startScriptedModel();
  onTestFinished(() => model.close());
  model.answer(...replies.map(answer));
  return model;
}

const calls = {
  toolCalls: [
    { id: "call_1", name: "get_weather", arguments: '{"city":"Oslo"}' },
    { id: "call_2", name: "draw", arguments: "{}" },
    { id: "call_3", name: "fail", arguments: "{}" },
    { id: "call_4", name: "get_weather", arguments: "{}" },
    { id: "call_5", name: "missing", arguments: "{}" },
  ],
};

const texts = [
  "Oslo: sunny",
  "A dot.",
  expect.not.stringContaining("secret"),
  expect.stringContaining("city"),
  expect.stringContaining("does not exist"),
];

describe("a loop with OpenAI's package", () => {
  test("chat completions get the tools, and the results of their calls in order", async () => {
    const session = await openSession();
    const endpoint = await script(chatAnswer, calls, { content: "Done." });
    const client = new OpenAI({ apiKey: "key", baseURL: `${endpoint.url}/v1`, maxRetries: 0 });
    const tools = toOpenAITools(session);
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "Go." }];
    const { choices } = await client.chat.completions.create({ model: "m", messages, tools: tools.definitions });
    messages.push(choices[0]!.message, ...(await tools.run(choices[0]!.message.tool_calls)));
    await client.chat.completions.create({ model: "m", messages, tools: tools.definitions });
    expect(endpoint.requests[0]!.body.tools[2]).toEqual({
      type: "function",
      function: {
        name: "get_weather",
        description: "Gets the weather.",
        parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      },
    });
    const sent = endpoint.requests[1]!.body.messages.slice(2);
    expect(sent.slice(0, 5)).toEqual(texts.map((content, index) => ({ role: "tool", tool_call_id: `call_${index + 1}`, content })));
    expect(sent.slice(5)).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "Images that the call call_2 of draw returned:" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } },
        ],
      },
    ]);
  });

  test("a message without calls is followed by nothing, and invalid JSON by the reason", async () => {
    const tools = toOpenAITools(await openSession());
    expect(await tools.run(undefined)).toEqual([]);
    expect(await tools.run(null)).toEqual([]);
    const call = { id: "1", type: "function", function: { name: "get_weather", arguments: '{"city":' } };
    expect(await tools.run([call])).toEqual([{ role: "tool", tool_call_id: "1", content: expect.stringContaining("incomplete") }]);
    expect(await tools.run([{ id: "2", type: "custom" }])).toEqual([
      { role: "tool", tool_call_id: "2", content: expect.stringContaining("does not exist") },
    ]);
  });

  test("the Responses API gets the tools, and the outputs of their calls in order", async () => {
    const session = await openSession();
    const endpoint = await script(responsesAnswer, calls, { content: "Done." });
    const client = new OpenAI({ apiKey: "key", baseURL: `${endpoint.url}/v1`, maxRetries: 0 });
    const tools = toOpenAIResponsesTools(session);
    const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Go." }];
    const response = await client.responses.create({ model: "m", input, tools: tools.definitions });
    input.push(...(response.output as OpenAI.Responses.ResponseInputItem[]), ...(await tools.run(response.output)));
    await client.responses.create({ model: "m", input, tools: tools.definitions });
    expect(endpoint.requests[0]!.body.tools[2]).toMatchObject({ type: "function", name: "get_weather", strict: false });
    const outputs = endpoint.requests[1]!.body.input.filter(({ type }: { type: string }) => type === "function_call_output");
    const drawn = [
      { type: "input_text", text: "A dot." },
      { type: "input_image", image_url: `data:image/png;base64,${pixel}`, detail: "auto" },
    ];
    expect(outputs.map(({ output }: { output: unknown }) => output)).toEqual([texts[0], drawn, ...texts.slice(2)]);
    expect(outputs.map(({ call_id }: { call_id: string }) => call_id)).toEqual(calls.toolCalls.map(({ id }) => id));
  });
});

test("a loop with Anthropic's package gets the tools, and the results of their calls in order", async () => {
  const session = await openSession();
  const endpoint = await script(anthropicAnswer, calls, { content: "Done." });
  const client = new Anthropic({ apiKey: "key", baseURL: endpoint.url, maxRetries: 0 });
  const tools = toAnthropicTools(session);
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Go." }];
  const common = { model: "m", max_tokens: 100 };
  const message = await client.messages.create({ ...common, messages, tools: tools.definitions });
  messages.push({ role: "assistant", content: message.content }, { role: "user", content: await tools.run(message.content) });
  await client.messages.create({ ...common, messages, tools: tools.definitions });
  expect(endpoint.requests[0]!.body.tools[2]).toEqual({
    name: "get_weather",
    description: "Gets the weather.",
    input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  });
  const results = endpoint.requests[1]!.body.messages[2].content;
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } };
  expect(results).toEqual(
    texts.map((text, index) => ({
      type: "tool_result",
      tool_use_id: `call_${index + 1}`,
      ...(index > 1 && { is_error: true }),
      content: [{ type: "text", text }, ...(index === 1 ? [image] : [])],
    })),
  );
});

test("Anthropic gets images under the media types that it knows, and a note about others", async () => {
  const image = (mimeType: string) => ({ data: pixel, mimeType, type: "image" });
  const shots = defineTool("shots", {
    description: "Takes pictures.",
    handler: () => ({
      resultType: "success" as const,
      textResultForLlm: "Two.",
      binaryResultsForLlm: [image("image/jpg"), image("image/tiff")],
    }),
  });
  const tools = toAnthropicTools(await openSession({ tools: [shots] }));
  const [result] = await tools.run([{ type: "tool_use", id: "1", name: "shots", input: {} }]);
  expect(result?.content.slice(1)).toEqual([
    { type: "image", source: { type: "base64", media_type: "image/jpeg", data: pixel } },
    { type: "text", text: expect.stringContaining("image/tiff") },
  ]);
});

type ModelResult = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>;

function aiModel(...contents: ModelResult["content"][]) {
  const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
  const results = contents.map((content): ModelResult => {
    const unified = content.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop";
    return { content, finishReason: { unified, raw: undefined }, usage, warnings: [] };
  });
  return new MockLanguageModelV3({ doGenerate: results });
}

const aiCall = (toolCallId: string, toolName: string, input: string) => ({ type: "tool-call" as const, toolCallId, toolName, input });

describe("a loop of the AI SDK", () => {
  test("runs tools, reports failures to the model and passes images on", async () => {
    const model = aiModel(
      [aiCall("1", "get_weather", '{"city":"Oslo"}'), aiCall("2", "draw", "{}"), aiCall("3", "fail", "{}")],
      [{ type: "text", text: "Done." }],
    );
    const { text, steps } = await generateText({
      model,
      prompt: "Go.",
      tools: toAiSdkTools(await openSession()),
      stopWhen: stepCountIs(3),
    });
    expect([text, steps.length]).toEqual(["Done.", 2]);
    expect(model.doGenerateCalls[0]!.tools?.map((tool) => tool.name)).toEqual(["draw", "fail", "get_weather"]);
    const said = model.doGenerateCalls[1]!.prompt.at(-1)!;
    const outputs = (said.content as { output: unknown }[]).map(({ output }) => output);
    expect(outputs).toEqual([
      { type: "text", value: "Oslo: sunny" },
      { type: "content", value: [{ type: "text", text: "A dot." }, expect.objectContaining({ mediaType: "image/png", data: pixel })] },
      { type: "error-text", value: expect.not.stringContaining("secret") },
    ]);
  });

  test("sees in its next step the tools that the session has then", async () => {
    const session = await openSession();
    const later = defineTool("later", { description: "Added later.", handler: () => "It is later." });
    const change = defineTool("change", {
      description: "Changes the tools.",
      handler: async () => {
        await session.setTools([weather, later]);
        return "Changed.";
      },
    });
    await session.setTools([change]);
    const model = aiModel([aiCall("1", "change", "{}")], [aiCall("2", "later", "{}")], [{ type: "text", text: "Done." }]);
    const { steps } = await generateText({ model, prompt: "Go.", tools: toAiSdkTools(session), stopWhen: stepCountIs(4) });
    expect(model.doGenerateCalls.map(({ tools }) => tools?.map((tool) => tool.name))).toEqual([
      ["change"],
      ["get_weather", "later"],
      ["get_weather", "later"],
    ]);
    expect(steps[1]!.toolResults.map(({ output }) => output)).toEqual(["It is later."]);
  });

  test("cannot change the tools, and names that no tool has are absent", async () => {
    const tools = toAiSdkTools(await openSession());
    expect(["get_weather" in tools, "constructor" in tools, tools["toString"]]).toEqual([true, false, undefined]);
    expect(Reflect.set(tools, "own", {})).toBe(false);
    expect(Reflect.deleteProperty(tools, "draw")).toBe(false);
    expect(Object.keys(tools)).toEqual(["draw", "fail", "get_weather"]);
  });

  test("a tool keeps its object until it changes", async () => {
    const tools = toAiSdkTools(await openSession());
    expect(tools["draw"]).toBe(tools["draw"]);
  });
});

describe("tools of LangChain", () => {
  test("describe themselves and answer calls of models with messages", async () => {
    const session = await openSession();
    using tools = toLangChainTools(session);
    expect(convertToOpenAITool(tools[2]!)).toMatchObject({
      function: { name: "get_weather", parameters: { properties: { city: { type: "string" } }, required: ["city"] } },
    });
    const message = new AIMessage({
      content: "",
      tool_calls: [
        { id: "1", name: "get_weather", args: { city: "Oslo" }, type: "tool_call" },
        { id: "2", name: "draw", args: {}, type: "tool_call" },
        { id: "3", name: "fail", args: {}, type: "tool_call" },
      ],
    });
    const results = await Promise.all(
      message.tool_calls!.map((call) =>
        tools.find(({ name }) => name === call.name)!.invoke({ ...call, type: "tool_call" as const, id: call.id! }),
      ),
    );
    expect(results.map((result) => [ToolMessage.isInstance(result), result.tool_call_id, result.status])).toEqual([
      [true, "1", "success"],
      [true, "2", "success"],
      [true, "3", "error"],
    ]);
    expect(results[0].content).toBe("Oslo: sunny");
    expect(results[1].content).toEqual([
      { type: "text", text: "A dot." },
      { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } },
    ]);
  });

  test("invoked without a call, return the content or throw the reason", async () => {
    using tools = toLangChainTools(await openSession());
    expect(await tools[2]!.invoke({ city: "Oslo" })).toBe("Oslo: sunny");
    await expect(tools[1]!.invoke({})).rejects.toThrow("Invoking this tool produced an error.");
  });

  test("follow the session until they are disposed of", async () => {
    const session = await openSession();
    const tools = toLangChainTools(session);
    await session.setTools([draw]);
    await vi.waitFor(() => expect(tools.map(({ name }) => name)).toEqual(["draw"]));
    tools[Symbol.dispose]();
    await session.setTools([weather]);
    await session.callTool("get_weather", { city: "Oslo" });
    expect(tools.map(({ name }) => name)).toEqual(["draw"]);
  });
});

describe("options of the calls", () => {
  const waiting = defineTool("wait", {
    description: "Waits.",
    handler: (_args, { signal }, { progress }) => {
      progress({ message: "Waiting." });
      return new Promise<string>((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  });

  test("a signal cancels the calls, and their results say so", async () => {
    const session = await openSession({ tools: [waiting] });
    const stop = new AbortController();
    const onProgress = vi.fn(() => stop.abort());
    const call = { id: "1", type: "function", function: { name: "wait", arguments: "{}" } };
    const [answer] = await toOpenAITools(session).run([call], { signal: stop.signal, onProgress });
    expect(answer).toMatchObject({ tool_call_id: "1", content: expect.stringContaining("interrupted") });
    expect(onProgress).toHaveBeenCalledOnce();
  });

  test("answers decide about permission before the session's clients", async () => {
    const session = await openSession({ onPermissionRequest: () => ({ kind: "denied-interactively-by-user" as const }) });
    const block = { type: "tool_use", id: "1", name: "get_weather", input: { city: "Oslo" } };
    const tools = toAnthropicTools(session);
    expect(await tools.run([block])).toMatchObject([{ is_error: true }]);
    expect(await tools.run([block], { answers: { permission: approveAll } })).toMatchObject([
      { content: [{ type: "text", text: "Oslo: sunny" }] },
    ]);
  });

  test("a closed session is an error of the program", async () => {
    const session = await openSession();
    const tools = toOpenAITools(session);
    await session[Symbol.asyncDispose]();
    await expect(tools.run([{ id: "1", type: "function", function: { name: "draw", arguments: "{}" } }])).rejects.toMatchObject({
      code: "SESSION_CLOSED",
    });
    expect(() => tools.definitions).toThrow(expect.objectContaining({ code: "SESSION_CLOSED" }));
  });
});
