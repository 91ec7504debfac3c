import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { chatStreamAnswer, jsonAnswer } from "../../doubles/scripted-model.ts";
import { patience } from "../../slowness.ts";
import { event, Runtime, type Sdk } from "./sdk-kit.ts";

let runtime: Runtime;
let sdk: Sdk;

beforeAll(async () => {
  runtime = await Runtime.start();
  sdk = runtime.sdk;
}, patience(120_000));

afterEach(() => runtime.clear());
afterAll(() => runtime[Symbol.asyncDispose]());

const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
const ofResponses = {
  id: "resp_1",
  object: "response",
  status: "completed",
  model: "mine",
  output: [
    {
      type: "message",
      id: "msg_1",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "Hi.", annotations: [] }],
    },
  ],
  usage,
};
const ofMessages = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "mine",
  content: [{ type: "text", text: "Hi." }],
  stop_reason: "end_turn",
  usage,
};
const ofChat = {
  id: "chat_1",
  object: "chat.completion",
  model: "mine",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }],
};

describe("models", () => {
  test("models are listed, and a session has the default one unless it selects another", async () => {
    const client = await runtime.shared();
    expect(await client.listModels()).toMatchObject([{ id: "claude-sonnet-4.5", name: "Claude", capabilities: { limits: {} } }]);
    const session = await runtime.session({ model: undefined });
    runtime.says("Hi.", "Ho.");
    await session.sendAndWait("Hi");
    expect(runtime.asked.model).toBe("claude-sonnet-4.5");
    await session.setModel("claude-sonnet-4.5", { reasoningEffort: "high" });
    await session.sendAndWait("Ho");
    expect(runtime.asked.messages.map(({ role }: Sdk) => role)).toEqual(["system", "user", "assistant", "user"]);
  });

  test.each<[what: string, provider: object, path: RegExp, answer: object, headers: object]>([
    ["OpenAI's chat completions", { type: "openai" }, /\/chat\/completions$/, ofChat, { authorization: "Bearer key-1" }],
    ["OpenAI's responses", { type: "openai", wireApi: "responses" }, /\/responses$/, ofResponses, { authorization: "Bearer key-1" }],
    ["Anthropic's messages", { type: "anthropic" }, /\/messages$/, ofMessages, { "x-api-key": "key-1" }],
    ["Azure", { type: "azure", azure: { apiVersion: "2024-10-21" } }, /\/chat\/completions/, ofChat, { "api-key": "key-1" }],
  ])("of a provider that the application brings are spoken to as %s", async (_what, provider, path, answer, headers) => {
    const session = await runtime.session({
      model: "mine",
      provider: { baseUrl: runtime.model.url, apiKey: "key-1", headers: { "x-team": "a" }, ...provider },
    });
    runtime.model.answer(jsonAnswer(answer));
    expect((await session.sendAndWait("Hi")).data.content).toBe("Hi.");
    const asked = runtime.model.requests.at(-1)!;
    expect(asked.path).toMatch(path);
    expect(asked.headers).toMatchObject({ "x-team": "a", ...headers });
  });

  test("a provider with its own tokens gets a fresh one from the application", async () => {
    const provider = { type: "openai", baseUrl: runtime.model.url, bearerTokenProvider: () => "fresh-token", headers: { "x-team": "a" } };
    const session = await runtime.session({ model: "mine", provider });
    runtime.says("Hi.");
    await session.sendAndWait("Hi");
    expect(runtime.requests.at(-1)?.headers).toMatchObject({ authorization: "Bearer fresh-token", "x-team": "a" });
  });

  test("a failing model causes a session error, and the session continues", async () => {
    const session = await runtime.session();
    runtime.answers(jsonAnswer({ error: { message: "no such thing" } }, { status: 400 }));
    const idle = event(session, "session.idle");
    await expect(session.sendAndWait("Hi")).rejects.toThrow(/no such thing/);
    // The SDK rejects with the error shortly before the turn ends.
    await idle;
    runtime.says("Better.");
    expect((await session.sendAndWait("Again")).data.content).toBe("Better.");
  });

  test("an answer with several choices becomes one message", async () => {
    const session = await runtime.session({
      tools: [sdk.defineTool("look", { description: "Looks.", skipPermission: true, handler: () => "Seen." })],
    });
    const call = { id: "call-1", type: "function", function: { name: "look", arguments: "{}" } };
    const choices = [
      { index: 0, message: { role: "assistant", content: "I look." }, finish_reason: "tool_calls" },
      { index: 1, message: { role: "assistant", content: null, tool_calls: [call] }, finish_reason: "tool_calls" },
    ];
    runtime.answers(jsonAnswer({ ...ofChat, choices }));
    runtime.says("Done.");
    await session.sendAndWait("Look");
    const [, , said, result] = runtime.asked.messages;
    expect([said.role, said.content, said.tool_calls[0].function.name, result.content]).toEqual(["assistant", "I look.", "look", "Seen."]);
  });
});

test("the application sends model requests itself: streamed, failing and aborted ones", async () => {
  const carried: Sdk[] = [];
  const { model } = runtime;
  let session: Sdk;
  class Handler extends sdk.CopilotRequestHandler {
    protected async sendRequest(request: Request, context: Sdk): Promise<Response> {
      carried.push([new URL(request.url).pathname, context.sessionId === session?.sessionId]);
      if (carried.length === 2) throw new Error("no network today");
      return fetch(model.url + new URL(request.url).pathname, { method: "POST", body: await request.text(), signal: context.signal });
    }
  }
  const { COPILOT_API_URL: _url, ...env } = runtime.env;
  const client = runtime.spawning({ env, requestHandler: new Handler() });
  session = await runtime.session({ streaming: true }, client);
  runtime.answers(chatStreamAnswer({ content: "One two." }), chatStreamAnswer({ content: "After a failure." }), { steps: ["silence"] });
  expect((await session.sendAndWait("Count")).data.content).toBe("One two.");
  expect((await session.sendAndWait("Again")).data.content).toBe("After a failure.");
  expect(carried).toEqual(Array.from({ length: 3 }, () => ["/chat/completions", true]));
  const before = model.requests.length;
  await session.send("Wait");
  const { closed } = await model.request(before);
  await session.abort();
  await closed;
});

test("a session in empty mode has only the tools and instructions that it asks for", async () => {
  const client = runtime.spawning({ mode: "empty" });
  const folder = runtime.place({ "skills/alpha/SKILL.md": "---\nname: alpha\ndescription: Alpha.\n---\nDo.\n" });
  const session = await runtime.session(
    {
      skillDirectories: [`${folder}/skills`],
      availableTools: new sdk.ToolSet().addCustom("*"),
      tools: [sdk.defineTool("look", { description: "Looks.", handler: () => "Seen." })],
    },
    client,
  );
  runtime.says("Hi.");
  await session.sendAndWait("Hi");
  expect(runtime.asked.tools.map((tool: Sdk) => tool.function.name)).toEqual(["look"]);
  expect(runtime.asked.messages[0].content).not.toContain("alpha");
  await expect(runtime.session({ availableTools: undefined }, client)).rejects.toThrow(/availableTools/);
});
