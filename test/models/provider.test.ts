import { describe, expect, test } from "vitest";
import { HostError } from "../../src/base/errors.ts";
import { createModel, listModels, type ModelOptions } from "../../src/models/provider.ts";
import { anthropicAnswer } from "../doubles/scripted-anthropic.ts";
import { chatAnswer, jsonAnswer } from "../doubles/scripted-model.ts";
import { responsesAnswer } from "../doubles/scripted-responses.ts";
import { ask, endpoint, failure, hello, modelAt } from "./models-kit.ts";

const signal = new AbortController().signal;
const thrown = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (error) {
    return error;
  }
};

test("a model has its name and endpoint, and sends nothing before the first request", async () => {
  const { url, requests } = await endpoint();
  const model = createModel({ type: "openai", baseUrl: url, model: "some/model:7b" });
  expect([model.id, model.address]).toEqual(["some/model:7b", new URL(url).host]);
  expect(requests.length).toBe(0);
});

test.each<[string, Record<string, unknown>, RegExp]>([
  ["no model", { model: undefined }, /^model is missing/],
  ["an empty model", { model: "" }, /^model must be a non-empty string/],
  ["no base URL", { baseUrl: undefined }, /^baseUrl is missing/],
  ["an invalid base URL", { baseUrl: "api.example.com/v1" }, /^baseUrl must be a URL that begins with http/],
  ["another protocol", { baseUrl: "file:///etc/passwd" }, /^baseUrl must be a URL that begins with http/],
  [
    "a password in the base URL",
    { baseUrl: "https://me:secret-word@example.com" },
    /^baseUrl must be a URL without user name and password/,
  ],
  ["another type", { type: "gemini" }, /^type must be one of "openai", "azure", "anthropic"/],
  ["another API", { wireApi: "messages" }, /^wireApi must be one of "completions", "responses"/],
  ["a token with a line break in it", { bearerToken: "secret-word\nx: y" }, /^bearerToken must be a string that is valid in a header/],
  ["an unknown option of Azure", { azure: { version: "1" } }, /^azure\.version is not one of the fields of azure: apiVersion/],
  ["a key with a line break in it", { apiKey: "secret-word\nx: y" }, /^apiKey must be a string that is valid in a header/],
  ["a key that is not a string", { apiKey: 5 }, /^apiKey must be/],
  ["headers that are not an object", { headers: ["a"] }, /^headers must be an object/],
  ["a header with a line break", { headers: { "x-a": "secret-word\r\ny: z" } }, /^In the headers, "x-a" has a value/],
  ["a header that is not a string", { headers: { "x-a": 5 } }, /^In the headers, "x-a" has a value/],
  ["an invalid header name", { headers: { "x a": "b" } }, /^In the headers, "x a" is not a valid header name/],
  ["a header of the connection", { headers: { "Content-Length": "5" } }, /^In the headers, "Content-Length" is reserved/],
  ["a fetch that is not a function", { fetch: "fetch" }, /^fetch must be a function/],
  ["a timeout of nothing", { idleTimeout: 0 }, /^idleTimeout must be a positive number/],
  ["fewer than no retries", { retries: -1 }, /^retries must be a non-negative integer/],
  ["an option that is not known", { baseURL: "x" }, /^baseURL is not one of the model options/],
])("refuses %s, by name and without its value", (_what, wrong, message) => {
  const error = thrown(() => createModel({ baseUrl: "https://example.com/v1", model: "m", ...wrong } as ModelOptions));
  expect(error).toBeInstanceOf(HostError);
  expect(error).toMatchObject({ code: "MODEL_OPTIONS", message: expect.stringMatching(message) });
  expect((error as Error).message).not.toContain("secret-word");
});

test("a request with an invalid header is refused and not sent", async () => {
  const { url, requests } = await endpoint();
  const reply = ask(modelAt(url), { ...hello, headers: { "x-a": "secret-word\n" } });
  await expect(reply).rejects.toMatchObject({ code: "MODEL_OPTIONS", message: expect.not.stringContaining("secret-word") });
  expect(requests.length).toBe(0);
});

describe("the base URL of a provider", () => {
  test.each(["/v1", "/v1/", "/v1//", "/v1/chat/completions", "/v1/chat/completions/", "/v1#part"])(
    "a provider finds the endpoint below the base URL %s",
    async (end) => {
      const { url, requests } = await endpoint(() => chatAnswer({ content: "ok" }));
      await ask(modelAt("", { baseUrl: url + end }));
      expect(requests.map(({ path }) => path)).toEqual(["/v1/chat/completions"]);
    },
  );

  test("a provider keeps another path and a query", async () => {
    const { url, requests } = await endpoint(() => chatAnswer({ content: "ok" }));
    await ask(modelAt("", { baseUrl: `${url}/openai/deployments/my%20one/?api-version=2025-01-01` }));
    expect(requests[0]?.path).toBe("/openai/deployments/my%20one/chat/completions?api-version=2025-01-01");
  });

  test("a provider whose base URL has no path tries it unchanged, then below /v1, and remembers the result", async () => {
    const plain = await endpoint(() => chatAnswer({ content: "ok" }));
    await ask(modelAt("", { baseUrl: plain.url }));
    expect(plain.requests.map(({ path }) => path)).toEqual(["/chat/completions"]);
    const below = await endpoint(({ path }) => (path.startsWith("/v1/") ? chatAnswer({ content: "ok" }) : { status: 404 }));
    const model = modelAt("", { baseUrl: `${below.url}/` });
    await ask(model);
    await ask(model);
    expect(below.requests.map(({ path }) => path)).toEqual(["/chat/completions", "/v1/chat/completions", "/v1/chat/completions"]);
  });

  test("a provider tries no other path when the model is unknown", async () => {
    const error = { message: "The model `x` does not exist", code: "model_not_found" };
    const { url, requests } = await endpoint(() => jsonAnswer({ error }, { status: 404 }));
    expect(await failure(ask(modelAt("", { baseUrl: url })))).toMatchObject({
      code: "MODEL_HTTP",
      status: 404,
      details: { providerCode: "model_not_found" },
    });
    expect(requests.length).toBe(1);
  });
});

test("a request has the key, the model's headers and its own, and later ones replace earlier ones", async () => {
  const { url, requests } = await endpoint(() => chatAnswer({ content: "ok" }));
  const headers = { "X-Org": "one", "X-Team": "red" };
  const model = modelAt(url, { apiKey: " the-key\n", headers });
  await ask(model, { ...hello, headers: { "x-org": "two", "User-Agent": "my-client/1" } });
  await ask(model, { ...hello, headers: { Authorization: "Basic abc" } });
  await ask(modelAt(url, { apiKey: "" }));
  expect(requests[0]?.headers).toMatchObject({
    authorization: "Bearer the-key",
    "x-org": "two",
    "x-team": "red",
    "user-agent": "my-client/1",
    "content-type": "application/json",
  });
  expect(requests[1]?.headers).toMatchObject({ authorization: "Basic abc", "x-org": "one" });
  expect(requests[2]?.headers).not.toHaveProperty("authorization");
  expect(requests[2]?.headers["user-agent"]).toMatch(/^skillhost\/\d/);
});

describe("an Azure provider", () => {
  const version = { azure: { apiVersion: "2025-01-01" } } as const;
  test.each<[string, string, Partial<ModelOptions>, string]>([
    ["a version, by its deployment", "", version, "/openai/deployments/test-model/chat/completions?api-version=2025-01-01"],
    ["no version, at the path of OpenAI", "", {}, "/openai/v1/chat/completions"],
    ["the Responses API and a version", "", { ...version, wireApi: "responses" }, "/openai/responses?api-version=2025-01-01"],
    ["the Responses API and no version", "/", { wireApi: "responses" }, "/openai/v1/responses"],
    ["the URL of its API", "/openai/v1/", {}, "/openai/v1/chat/completions"],
    ["a gateway", "/gateway/openai", version, "/gateway/openai/deployments/test-model/chat/completions?api-version=2025-01-01"],
    [
      "the name of its deployment",
      "",
      { ...version, wireModel: "my one" },
      "/openai/deployments/my%20one/chat/completions?api-version=2025-01-01",
    ],
    [
      "the URL that the portal shows",
      "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
      {},
      "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
    ],
  ])("an Azure provider finds the resource with %s", async (_what, end, more, path) => {
    const { url, requests } = await endpoint(({ path: asked }) =>
      (asked.includes("responses") ? responsesAnswer : chatAnswer)({ content: "ok" }),
    );
    await ask(modelAt("", { type: "azure", baseUrl: url + end, apiKey: "the-key", ...more }));
    expect(requests.map((request) => request.path)).toEqual([path]);
    expect(requests[0]?.headers).toMatchObject({ "api-key": "the-key" });
    expect(requests[0]?.headers).not.toHaveProperty("authorization");
  });

  test("a provider sends a token to an Azure resource as a bearer token", async () => {
    const { url, requests } = await endpoint(() => chatAnswer({ content: "ok" }));
    await ask(modelAt("", { type: "azure", baseUrl: url, apiKey: "the-key", bearerToken: async () => "the-token" }));
    expect(requests[0]?.headers).toMatchObject({ authorization: "Bearer the-token" });
    expect(requests[0]?.headers).not.toHaveProperty("api-key");
  });
});

describe("the base URL of an Anthropic provider", () => {
  test.each(["", "/", "/v1", "/v1/", "/v1/messages"])("an Anthropic provider finds the messages endpoint below %j", async (end) => {
    const { url, requests } = await endpoint(() => anthropicAnswer({ content: "ok" }));
    await ask(modelAt("", { type: "anthropic", baseUrl: url + end }));
    await ask(modelAt("", { type: "anthropic", baseUrl: `${url}/gateway${end}` }));
    expect(requests.map(({ path }) => path)).toEqual(["/v1/messages", "/gateway/v1/messages"]);
  });
});

test("a provider of the Responses API also tries its base URL unchanged and below /v1", async () => {
  const { url, requests } = await endpoint(({ path }) => (path.startsWith("/v1/") ? responsesAnswer({ content: "ok" }) : { status: 404 }));
  await ask(modelAt("", { baseUrl: url, wireApi: "responses" }));
  await ask(modelAt("", { baseUrl: `${url}/v1/responses/`, wireApi: "responses" }));
  expect(requests.map(({ path }) => path)).toEqual(["/responses", "/v1/responses", "/v1/responses"]);
});

test("a model may have another name at its endpoint, and its own name decides what it supports", async () => {
  const { url, requests } = await endpoint(() => chatAnswer({ content: "ok" }));
  const named = (more: Partial<ModelOptions>) => modelAt(url, { model: "mine", ...more });
  const models = [named({}), named({ modelId: "gpt-4.1" }), named({ modelId: "gpt-4.1", wireModel: "prod-1", maxPromptTokens: 5_000 })];
  for (const model of models) await ask(model);
  expect(models.map(({ id, contextWindow }) => [id, contextWindow])).toEqual([
    ["mine", undefined],
    ["mine", 1_047_576],
    ["mine", 5_000],
  ]);
  expect(requests.map(({ body }) => body.model)).toEqual(["mine", "gpt-4.1", "prod-1"]);
});

test.each([
  ["gpt-5-mini", 400_000],
  ["openai/gpt-4o", 128_000],
  ["o3", 200_000],
  ["claude-sonnet-4.5", 200_000],
  ["gemini-2.5-pro", 1_048_576],
  ["qwen3", undefined],
])("the context window of %s is known", (model, expected) => {
  expect(createModel({ baseUrl: "http://localhost:1", model }).contextWindow).toBe(expected);
});

test("the provider's output limit applies unless a request sets one", async () => {
  const { url, requests } = await endpoint(() => chatAnswer({ content: "ok" }));
  const model = modelAt(url, { maxOutputTokens: 100 });
  await ask(model);
  await ask(model, { ...hello, maxOutputTokens: 7 });
  expect(requests.map(({ body }) => body.max_tokens)).toEqual([100, 7]);
});

test("the models of Anthropic and of Azure are listed", async () => {
  const data = [
    {
      type: "model",
      id: "claude-x",
      display_name: "Claude X",
      max_input_tokens: 1_000_000,
      max_tokens: 64_000,
      capabilities: { image_input: { supported: true } },
    },
    { type: "model", id: "claude-y", display_name: "Claude Y", max_input_tokens: null, capabilities: null },
  ];
  const { url, requests } = await endpoint(() => jsonAnswer({ data, has_more: false }));
  expect(await listModels({ type: "anthropic", baseUrl: url, apiKey: "the-key" }, { signal })).toEqual([
    { id: "claude-x", name: "Claude X", contextWindow: 1_000_000, maxOutputTokens: 64_000, vision: true },
    { id: "claude-y", name: "Claude Y" },
  ]);
  await listModels({ type: "azure", baseUrl: url }, { signal });
  await listModels({ type: "azure", baseUrl: url, azure: { apiVersion: "2025-01-01" } }, { signal });
  expect(requests.map(({ path }) => path)).toEqual(["/v1/models?limit=1000", "/openai/v1/models", "/openai/models?api-version=2025-01-01"]);
  expect(requests[0]?.headers).toMatchObject({ "x-api-key": "the-key", "anthropic-version": "2023-06-01" });
});

test("the models of an endpoint are listed with the details that each dialect provides", async () => {
  const data = [
    { id: "plain", object: "model" },
    {
      id: "a",
      name: "A",
      context_length: 8_192,
      architecture: { input_modalities: ["text", "image"] },
      top_provider: { max_completion_tokens: 100 },
    },
    { id: "b", max_model_len: 4_096 },
    { id: "c", capabilities: { limits: { max_context_window_tokens: 128_000, max_output_tokens: 16_384 }, supports: { vision: false } } },
    { id: "d", context_window: -5, name: 5 },
    { id: "" },
    { name: "nameless" },
    null,
  ];
  const { url, requests } = await endpoint(() => jsonAnswer({ object: "list", data }));
  expect(await listModels({ baseUrl: `${url}/v1`, apiKey: "the-key" }, { signal })).toEqual([
    { id: "plain" },
    { id: "a", name: "A", contextWindow: 8_192, maxOutputTokens: 100, vision: true },
    { id: "b", contextWindow: 4_096 },
    { id: "c", contextWindow: 128_000, maxOutputTokens: 16_384, vision: false },
    { id: "d" },
  ]);
  expect(requests[0]).toMatchObject({ method: "GET", path: "/v1/models", text: "", headers: { authorization: "Bearer the-key" } });
});

test("listing the models of an endpoint without a list is an error", async () => {
  const bodies = ["{}", '{"data":5}', "<html>", "data: {}\n\n", ""];
  for (const body of bodies) {
    const { url } = await endpoint(() => ({ steps: [body] }));
    expect(await failure(listModels({ baseUrl: url, retries: 0 }, { signal }))).toMatchObject({ code: "MODEL_BAD_ANSWER" });
  }
  const { url } = await endpoint(() => ({ status: 401 }));
  expect(await failure(listModels({ baseUrl: url }, { signal }))).toMatchObject({ code: "MODEL_AUTH" });
});
