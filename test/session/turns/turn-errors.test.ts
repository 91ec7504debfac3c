import { describe, expect, onTestFinished, test } from "vitest";
import { ModelError } from "../../../src/models/model-error.ts";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import { fakeChat } from "../../doubles/fake-chat.ts";
import {
  chatAnswer,
  chatChunks,
  chatStreamAnswer,
  jsonAnswer,
  type ScriptedAnswer,
  sse,
  startScriptedModel,
} from "../../doubles/scripted-model.ts";
import { hurriedClock } from "../../models/models-kit.ts";
import { createTestEnvironment, openSession, recordEvents } from "../session-kit.ts";

const secret = "sk-planted-0123456789abcdef";

async function sessionAt(answers: readonly ScriptedAnswer[], options: SessionOptions = {}) {
  const endpoint = await startScriptedModel();
  onTestFinished(() => endpoint.close());
  endpoint.answer(...answers);
  const provider = { type: "openai" as const, baseUrl: `${endpoint.url}/v1`, apiKey: secret, clock: hurriedClock(), random: () => 0 };
  return { endpoint, session: openSession(createTestEnvironment(), { model: "test-model", provider, ...options }) };
}

const many = (count: number, answer: ScriptedAnswer): ScriptedAnswer[] => Array.from({ length: count }, () => answer);
const trouble = (status: number, message: string): ScriptedAnswer => jsonAnswer({ error: { message } }, { status });

describe("turns with an HTTP endpoint", () => {
  test.each([false, true])("an endpoint serves a whole turn with tools (streaming: %s)", async (streaming) => {
    const say = streaming ? chatStreamAnswer : chatAnswer;
    const calls = {
      toolCalls: [
        { id: "c1", name: "add", arguments: { a: 1, b: 2 } },
        { id: "c2", name: "add", arguments: '{ "a": 3, "b": 4 }' },
      ],
    };
    const add = {
      name: "add",
      description: "adds",
      parameters: { type: "object" },
      handler: ({ a, b }: { a: number; b: number }) => a + b,
    };
    const { endpoint, session } = await sessionAt([say(calls), say({ content: "3 and 7" })], {
      tools: [add],
      streaming,
      excludedTools: ["builtin:*"],
    });
    expect((await session.sendAndWait({ prompt: "Add.", requestHeaders: { "x-wish": "1" } })).content).toBe("3 and 7");
    const [first, second] = endpoint.requests;
    expect(first?.headers).toMatchObject({ authorization: `Bearer ${secret}`, "x-wish": "1", "x-initiator": "user" });
    expect(second?.headers).toMatchObject({ "x-wish": "1", "x-initiator": "agent" });
    expect(first?.body.tools).toEqual([
      { type: "function", function: { name: "add", description: "adds", parameters: { type: "object", properties: {} } } },
    ]);
    // Ids and arguments are sent back exactly as the model wrote them.
    expect(second?.body.messages.slice(2)).toEqual([
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "c1", type: "function", function: { name: "add", arguments: '{"a":1,"b":2}' } },
          { id: "c2", type: "function", function: { name: "add", arguments: '{ "a": 3, "b": 4 }' } },
        ],
      },
      { role: "tool", tool_call_id: "c1", content: "3" },
      { role: "tool", tool_call_id: "c2", content: "7" },
    ]);
  });

  test.each<[string, readonly ScriptedAnswer[], object]>([
    ["429", many(4, trouble(429, "slow down")), { errorType: "rate_limit", errorCode: "MODEL_RATE_LIMITED", statusCode: 429 }],
    ["500", many(4, trouble(500, "oops")), { errorType: "query", errorCode: "MODEL_HTTP", statusCode: 500 }],
    ["401", [trouble(401, `bad key ${secret}`)], { errorType: "authentication", statusCode: 401 }],
    ["too long a conversation", [trouble(400, "maximum context length is 10 tokens")], { errorType: "context_limit", statusCode: 400 }],
    ["garbage", [{ steps: ["<html>nothing here</html>"] }], { errorType: "query", errorCode: "MODEL_BAD_ANSWER" }],
    ["JSON of another kind", [jsonAnswer([1, 2, 3])], { errorType: "query", errorCode: "MODEL_BAD_ANSWER" }],
    ["broken connections", many(4, { refuse: true }), { errorType: "query", errorCode: "MODEL_UNREACHABLE" }],
  ])("an endpoint that answers with %s ends the turn with session.error and idle, without secrets", async (_title, answers, data) => {
    const { session } = await sessionAt(answers);
    const events = recordEvents(session);
    await expect(session.sendAndWait("Go.")).rejects.toBeInstanceOf(ModelError);
    const kinds = events.map(({ type }) => type);
    expect(kinds.slice(-4)).toEqual(["assistant.turn_end", "session.error", "assistant.idle", "session.idle"]);
    expect(events.find(({ type }) => type === "session.error")?.data).toMatchObject({ ...data, message: expect.any(String) });
    expect(JSON.stringify(events)).not.toContain(secret);
  });

  test("an endpoint that stops within a stream ends the turn, and the conversation stays intact", async () => {
    const [head, piece] = chatChunks({ content: "Half an answer" });
    const cut = { headers: { "content-type": "text/event-stream" }, steps: [sse(head!), sse(piece!), "reset" as const] };
    const { endpoint, session } = await sessionAt([cut, chatStreamAnswer({ content: "Whole." })], { streaming: true });
    const events = recordEvents(session, "assistant.message_delta", "assistant.message", "session.error");
    await expect(session.sendAndWait("Go.")).rejects.toMatchObject({ details: { partial: { content: expect.stringContaining("Half") } } });
    expect(events.map(({ type }) => type)).toEqual(["assistant.message_delta", "session.error"]);
    expect((await session.sendAndWait("Again.")).content).toBe("Whole.");
    expect(endpoint.requests[1]?.body.messages.map((message: { content: string }) => message.content).slice(1)).toEqual(["Go.", "Again."]);
  });

  test("temporary errors are retried, and events report the retries", async () => {
    const { session } = await sessionAt([trouble(503, "busy"), chatAnswer({ content: "Hello." })]);
    const events = recordEvents(session, "model.call_failure", "session.error");
    expect((await session.sendAndWait("Go.")).content).toBe("Hello.");
    expect(events.map(({ type, data }) => [type, data["statusCode"], data["attempt"]])).toEqual([["model.call_failure", 503, 1]]);
  });

  test("aborting closes the endpoint's connection", async () => {
    const { endpoint, session } = await sessionAt([{ headers: { "content-type": "text/event-stream" }, steps: ["silence"] }], {
      streaming: true,
    });
    await session.send("Go.");
    const request = await endpoint.request(0);
    await session.abort();
    await request.closed;
  });
});

describe("turns with a model in this process", () => {
  test("a model that throws ends the turn with session.error", async () => {
    const chat = fakeChat(() => {
      throw new Error(`secret ${secret}`);
    }, "Hello.");
    const session = openSession(createTestEnvironment(), { chatModel: chat });
    const errors = recordEvents(session, "session.error");
    await expect(session.sendAndWait("Go.")).rejects.toThrow("secret");
    expect(errors.map(({ data }) => data)).toEqual([{ errorType: "unknown", message: "secret [redacted]" }]);
    expect((await session.sendAndWait("Again.")).content).toBe("Hello.");
  });

  test("a model that returns an invalid answer ends the turn with session.error", async () => {
    for (const complete of [() => undefined, async () => null, async () => ({ content: 1, toolCalls: "many" })]) {
      const session = openSession(createTestEnvironment(), { chatModel: { id: "odd", address: "odd", complete: complete as never } });
      const errors = recordEvents(session, "session.error");
      await expect(session.sendAndWait("Go.")).rejects.toThrow();
      expect(errors).toHaveLength(1);
    }
  });
});

describe("errorOccurred hooks", () => {
  test("errorOccurred hooks may retry the request up to their limit", async () => {
    const chat = fakeChat(() => {
      throw new Error("no");
    });
    const received: unknown[] = [];
    const session = openSession(createTestEnvironment(), {
      chatModel: chat,
      hooks: {
        onErrorOccurred: ({ error, errorContext, recoverable }) => {
          received.push([error, errorContext, recoverable]);
          return { errorHandling: "retry", retryCount: 2, userNotification: "Trying again." };
        },
      },
    });
    const events = recordEvents(session, "session.info", "session.error");
    await expect(session.sendAndWait("Go.")).rejects.toThrow("no");
    expect(chat.requests).toHaveLength(3);
    expect(received).toEqual(Array.from({ length: 3 }, () => ["no", "model_call", false]));
    expect(events.map(({ type }) => type)).toEqual(["session.info", "session.info", "session.info", "session.error"]);
  });
});

describe("errors that the model reads", () => {
  test("errors contain no path, address, stack or secret for the model", async () => {
    const path = "/srv/planted/secret-folder/file.ts";
    const planted = new Error(`ENOENT: ${path} at 10.1.2.3:5432 with ${secret}`);
    const fail = () => {
      throw planted;
    };
    const calls = ["throws", "rejects", "vanished", "badPermission", "badHook", "badCheck"].map((name, index) => ({
      id: `c${index}`,
      name,
    }));
    const chat = fakeChat({ calls }, "Done.");
    const session = openSession(createTestEnvironment(), {
      tools: [
        { name: "throws", handler: fail },
        { name: "rejects", handler: () => Promise.reject(planted) },
        { name: "badPermission", permission: fail, handler: () => "never" },
        { name: "badHook", handler: () => "never" },
        {
          name: "badCheck",
          parameters: { type: "object" },
          handler: () => ({ textResultForLlm: "It failed.", resultType: "failure", error: String(planted), sessionLog: path }),
        },
      ],
      chatModel: chat,
      provider: { baseUrl: "http://10.1.2.3:5432", apiKey: secret },
      hooks: { onPreToolUse: ({ toolName }) => (toolName === "badHook" ? fail() : undefined) },
    });
    await session.sendAndWait("Go.");
    const bound = JSON.stringify(chat.requests);
    expect(chat.requests[1]?.messages.filter(({ role }) => role === "tool")).toHaveLength(calls.length);
    for (const word of [path, "planted", "10.1.2.3", secret, "ENOENT", ".ts:", "node:internal"]) expect(bound).not.toContain(word);
  });
});
