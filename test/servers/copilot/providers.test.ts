import { afterEach, describe, expect, test } from "vitest";
import { chatAnswer, jsonAnswer, type ScriptedModel, startScriptedModel } from "../../doubles/scripted-model.ts";
import { responsesStreamAnswer } from "../../doubles/scripted-responses.ts";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;
let other: ScriptedModel | undefined;

afterEach(async () => {
  await served?.[Symbol.asyncDispose]();
  await other?.close();
  other = undefined;
});

async function begin(options: object = {}): Promise<{ readonly client: TestClient; readonly sessionId: string }> {
  served = await Served.start();
  const client = await served.connect();
  return { client, sessionId: await client.create({ model: "m", ...options }) };
}

describe("session.provider.add", () => {
  test("adds a model that can be listed, selected and left again", async () => {
    const { client, sessionId } = await begin();
    other = await startScriptedModel(() => chatAnswer({ content: "From the other." }));
    const provider = { name: "mine", baseUrl: `${other.url}/v1`, apiKey: "key-of-mine", headers: { "x-team": "a" } };
    const model = { id: "big", provider: "mine", wireModel: "big-2", name: "Big", maxContextWindowTokens: 9000 };
    const { models } = await client.request("session.provider.add", { sessionId, providers: [provider], models: [model] });
    expect(models).toMatchObject([{ id: "mine/big", name: "Big", capabilities: { limits: { max_context_window_tokens: 9000 } } }]);
    await client.request("session.model.switchTo", { sessionId, modelId: "mine/big" });
    await client.say(sessionId, "Hello");
    const [request] = other.requests;
    expect(request).toMatchObject({ path: "/v1/chat/completions", body: { model: "big-2" } });
    expect(request?.headers).toMatchObject({ authorization: "Bearer key-of-mine", "x-team": "a" });
    expect(served.model.requests.filter(({ method }) => method === "POST")).toEqual([]);
    await client.request("session.model.switchTo", { sessionId, modelId: "m" });
    served.says("From the first.");
    await client.say(sessionId, "Hello");
    expect(served.asked.model).toBe("m");
  });

  test("lists the model although its provider has no list", async () => {
    const { client, sessionId } = await begin();
    const providers = [{ name: "mine", baseUrl: "http://127.0.0.1:1/v1" }];
    await client.request("session.provider.add", { sessionId, providers });
    await client.request("session.provider.add", { sessionId, models: [{ id: "big", provider: "mine" }] });
    served.model.answer(jsonAnswer({ data: [{ id: "m" }] }));
    const { list } = await client.request("session.model.list", { sessionId });
    expect(list.map(({ id }: Json) => id)).toEqual(["mine/big", "m"]);
  });

  test.each([
    ["a name that exists", { providers: [{ name: "old", baseUrl: "http://a.test" }] }, "exists already"],
    [
      "a name twice",
      {
        providers: [
          { name: "a", baseUrl: "http://a.test" },
          { name: "a", baseUrl: "http://a.test" },
        ],
      },
      "exists already",
    ],
    ["a name with a slash", { providers: [{ name: "a/b", baseUrl: "http://a.test" }] }, "name of a provider"],
    ["no name", { providers: [{ baseUrl: "http://a.test" }] }, "name of a provider"],
    ["no address", { providers: [{ name: "a" }] }, "baseUrl"],
    ["an address of another kind", { providers: [{ name: "a", baseUrl: "file:///etc/passwd" }] }, "baseUrl"],
    ["an unknown type", { providers: [{ name: "a", baseUrl: "http://a.test", type: "other" }] }, "type"],
    ["a model of an unknown provider", { models: [{ id: "m", provider: "none" }] }, "does not have"],
    ["a model without id", { models: [{ provider: "old" }] }, '"id"'],
    ["a model that exists", { models: [{ id: "m", provider: "old" }] }, "exists already"],
    ["lists of the wrong kind", { providers: {} }, "array of objects"],
    ["a wrong model beside a right provider", { providers: [{ name: "new", baseUrl: "http://a.test" }], models: [{ id: 1 }] }, '"id"'],
  ])("refuses %s, and adds nothing", async (_, added, reason) => {
    const { client, sessionId } = await begin();
    const old = { providers: [{ name: "old", baseUrl: "http://old.test" }], models: [{ id: "m", provider: "old" }] };
    await client.request("session.provider.add", { sessionId, ...old });
    expect((await client.refusal("session.provider.add", { sessionId, ...added })).message).toContain(reason);
    const again = { providers: [{ name: "new", baseUrl: "http://new.test" }], models: [{ id: "m", provider: "new" }] };
    expect((await client.request("session.provider.add", { sessionId, ...again })).models).toHaveLength(1);
  });
});

describe("session.provider.getEndpoint", () => {
  const provider = { type: "openai", baseUrl: "http://models.test/v1", apiKey: "secret-key", headers: { "x-a": "1" } };

  test("returns the client's own provider", async () => {
    const { client, sessionId } = await begin({ provider });
    expect(await client.request("session.provider.getEndpoint", { sessionId })).toEqual({
      ...provider,
      wireApi: "completions",
      transport: "http",
    });
  });

  test("returns the one of a declared model, with a bearer token as a header", async () => {
    const { client, sessionId } = await begin({
      provider,
      providers: [{ name: "b", type: "anthropic", baseUrl: "http://b.test", bearerToken: "token-b", apiKey: "unused" }],
    });
    await client.request("session.provider.add", { sessionId, models: [{ id: "x", provider: "b" }] });
    expect(await client.request("session.provider.getEndpoint", { sessionId, modelId: "b/x" })).toEqual({
      type: "anthropic",
      baseUrl: "http://b.test",
      headers: { authorization: "Bearer token-b" },
    });
  });

  test("never returns the runtime's endpoint, nor another client's", async () => {
    const { client, sessionId } = await begin();
    const { message } = await client.refusal("session.provider.getEndpoint", { sessionId });
    expect(message).toContain("provider that this client gave");
    const given = await client.create({ model: "m", provider });
    const second = await served.connect();
    await second.request("session.resume", { sessionId: given });
    const refused = await second.refusal("session.provider.getEndpoint", { sessionId: given });
    expect(refused.message).toContain("provider that this client gave");
    expect(refused.message).not.toContain("secret-key");
  });
});

test("a model that the endpoint of the environment lists for /responses only is asked there", async () => {
  const { client, sessionId } = await begin();
  served.model.answer(
    { status: 404 },
    { status: 404 },
    jsonAnswer({ data: [{ id: "m", supported_endpoints: ["/responses"] }] }),
    responsesStreamAnswer({ content: "By the other API." }),
  );
  await client.say(sessionId, "Hello");
  expect(served.model.requests.at(-1)?.path).toContain("/responses");
  expect(client.events.filter(({ event }) => event.type === "assistant.message").at(-1)?.event.data).toMatchObject({
    content: "By the other API.",
  });
});

describe("methods without an equivalent", () => {
  test.each([
    ["catalog.search", { query: "git" }, { kind: "unavailable", reason: "authority-not-configured" }],
    ["mcp.planInstall", {}, { kind: "unavailable", reason: "planning-unavailable" }],
    ["session.settings.evaluatePredicate", { name: "chronicleEnabled" }, { enabled: false }],
    ["session.settings.snapshot", {}, { model: { model: "m" } }],
    ["session.mcp.moveLoadingToBackground", {}, { movedToBackground: false }],
    ["session.mcp.configureGitHub", { authInfo: {} }, { changed: false }],
    ["extensions.discover", {}, { extensions: [], mode: "load_only" }],
  ])("%s answers honestly", async (method, params, answer) => {
    const { client, sessionId } = await begin();
    expect(await client.request(method, { sessionId, ...params })).toMatchObject(answer);
  });
});
