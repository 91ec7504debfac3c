import { describe, expect, test } from "vitest";
import type { ChatMessage, ModelRequest } from "../../src/models/model.ts";
import { jsonAnswer, type ScriptedAnswer, type ScriptedReply } from "../doubles/scripted-model.ts";
import { ask, endpoint, failure, hello } from "./models-kit.ts";
import { apiModel, wireApis } from "./wire-apis.ts";

const sampleReply: ScriptedReply = {
  content: "I will look at the weather.",
  reasoning: "The user wants weather.",
  toolCalls: [
    { id: "call_a", name: "weather", arguments: { city: "Köln 🌧", days: 3 } },
    { id: "call_b", name: "time", arguments: {} },
  ],
};

describe.each(wireApis)("a model behind $name", (api) => {
  const sent = async (request: Partial<ModelRequest>) => {
    const { url, requests } = await endpoint(() => api.whole({ content: "ok" }));
    await ask(apiModel(api, url), { ...hello, ...request });
    return api.read(requests[0]?.body);
  };

  test("a request contains system, user, assistant and tool messages in order", async () => {
    const call = { id: "a", name: "weather", arguments: { city: "Köln" }, argumentsText: '{"city":"Köln"}' };
    const messages: readonly ChatMessage[] = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Weather?" },
      { role: "assistant", content: "Let me see.", toolCalls: [call, { ...call, id: "b" }] },
      { role: "tool", toolCallId: "a", content: "rain" },
      { role: "tool", toolCallId: "b", content: "sun" },
      { role: "user", content: "Really?" },
      { role: "assistant", content: "Both." },
      { role: "user", content: "Thanks." },
    ];
    const { system, lines } = await sent({ messages });
    expect(system).toBe("Be brief.");
    expect(lines).toEqual([
      "user: Weather?",
      "assistant: Let me see.",
      'call a weather {"city":"Köln"}',
      'call b weather {"city":"Köln"}',
      "result a rain",
      "result b sun",
      "user: Really?",
      "assistant: Both.",
      "user: Thanks.",
    ]);
  });

  test("the body that the model names is what the endpoint gets", async () => {
    const { url, requests } = await endpoint(() => api.whole({ content: "ok" }));
    const model = apiModel(api, url, { maxOutputTokens: 500 });
    const request: ModelRequest = { messages: [{ role: "user", content: "half a \ud83c sign" }], tools: [{ name: "weather" }] };
    await ask(model, request);
    expect(model.bodyOf?.(request)).toBe(requests[0]?.text);
  });

  test("a request contains images of the user and of results", async () => {
    const image = { type: "image", mimeType: "image/png", data: "AA==" } as const;
    const linked = { type: "image", url: "https://example.test/cat.jpg" } as const;
    const call = { id: "a", name: "look", arguments: {}, argumentsText: "{}" };
    const { lines } = await sent({
      messages: [
        { role: "user", content: [{ type: "text", text: "What is this?" }, image, linked] },
        { role: "assistant", content: "", toolCalls: [call] },
        { role: "tool", toolCallId: "a", content: "a chart", images: [image] },
      ],
    });
    expect(lines.slice(0, 3)).toEqual(["user: What is this?", "image data:image/png;base64,AA==", "image https://example.test/cat.jpg"]);
    expect(lines).toContain("result a a chart");
    expect(lines.at(-1)).toBe("image data:image/png;base64,AA==");
  });

  test("a request describes tools, with schemas that the API accepts", async () => {
    const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const either = {
      anyOf: [{ properties: { id: { type: "number" } }, required: ["id"] }, { required: ["name"] }],
      properties: { name: { type: "string" } },
    };
    const { tools } = await sent({
      tools: [{ name: "weather", parameters: city }, { name: "ping" }, { name: "either", parameters: either }],
    });
    expect(tools).toMatchObject([
      { name: "weather", parameters: city },
      { name: "ping", parameters: { type: "object", properties: {} } },
      { name: "either", parameters: { type: "object", properties: { id: { type: "number" }, name: { type: "string" } } } },
    ]);
    expect(tools[2]?.parameters).not.toHaveProperty("anyOf");
  });

  test.each(["auto", "none", "required", { name: "f" }] as const)("a request sets the tool choice %j", async (toolChoice) => {
    expect((await sent({ tools: [{ name: "f" }], toolChoice })).choice).toBe(typeof toolChoice === "object" ? "f" : toolChoice);
    expect((await sent({ tools: [], toolChoice })).choice).toBeUndefined();
  });

  test("a request contains no lone surrogates, which some servers cannot read", async () => {
    const content = "half \ud83d of 😀";
    const call = { id: "a", name: "f", arguments: { content }, argumentsText: JSON.stringify({ content }) };
    const { url, requests } = await endpoint(() => api.whole({ content: "ok" }));
    const messages: readonly ChatMessage[] = [
      { role: "system", content },
      { role: "user", content },
      { role: "assistant", content, toolCalls: [call] },
      { role: "tool", toolCallId: "a", content },
    ];
    await ask(apiModel(api, url), { messages });
    expect(requests[0]?.text).not.toMatch(/[^\\](?:\\\\)*\\ud83d/i);
    expect(requests[0]?.text).toContain("half \ufffd of 😀");
  });

  test.each([true, false])("thoughts are sent back unchanged and in place to the model that produced them (stream: %s)", async (stream) => {
    const { url, answer, requests } = await endpoint();
    answer(stream ? api.stream(sampleReply) : api.whole(sampleReply), ...Array<ScriptedAnswer>(3).fill(api.whole({ content: "ok" })));
    const first = await ask(apiModel(api, url), { ...hello, stream });
    const results = first.toolCalls.map(({ id }) => ({ role: "tool" as const, toolCallId: id, content: "" }));
    // The form in which a log restores the message.
    const request: ModelRequest = JSON.parse(
      JSON.stringify({ messages: [...hello.messages, { role: "assistant", ...first }, ...results] }),
    );
    await ask(apiModel(api, url), request);
    const { lines } = api.read(requests[1]?.body);
    expect(lines[1]).toMatch(/^thought .*The user wants weather\./);
    if (!api.name.includes("chat")) expect(lines[1]).toContain("sealed thought");
    expect(lines.slice(2, 5)).toEqual([
      `assistant: ${sampleReply.content}`,
      'call call_a weather {"city":"Köln 🌧","days":3}',
      "call call_b time {}",
    ]);
    for (const other of wireApis.filter(({ name }) => name.replace("azure ", "") !== api.name.replace("azure ", ""))) {
      const elsewhere = await endpoint(() => other.whole({ content: "ok" }));
      await ask(apiModel(other, elsewhere.url), request);
      expect(other.read(elsewhere.requests[0]?.body).lines.filter((line) => line.startsWith("thought"))).toEqual([]);
    }
  });

  test("no error contains the key, whatever the endpoint answers", async () => {
    const key = "sk-very-secret-key-0123456789";
    for (const credential of [{ apiKey: key }, { bearerToken: key }, { apiKey: "other", bearerToken: async () => key }]) {
      const { url, requests } = await endpoint(({ headers }) =>
        jsonAnswer({ error: { message: `bad ${JSON.stringify(headers)}` } }, { status: 401 }),
      );
      const error = await failure(ask(apiModel(api, url, credential)));
      expect(JSON.stringify(requests[0]?.headers)).toContain(key);
      expect(`${error.stack}${JSON.stringify(error)}`).not.toContain(key);
    }
  });
});
