import { describe, expect, test } from "vitest";
import type { WebSocket } from "ws";
import type { ChatMessage, ChatModel, ModelReply } from "../../src/models/model.ts";
import { createModel, type ModelOptions } from "../../src/models/provider.ts";
import { type ScriptedSocket, socketEvents, startScriptedSocket } from "../doubles/scripted-socket.ts";
import { ask, hello, modelAt } from "./models-kit.ts";

const over = (at: ScriptedSocket, more: Partial<ModelOptions> = {}): ChatModel =>
  modelAt(at.url, { wireApi: "responses", transport: "websockets", apiKey: "secret-key-1", ...more });

const user = (content: string): ChatMessage => ({ role: "user", content });

/** The conversation after a reply, with the results of its calls and the next message. */
function continued(before: readonly ChatMessage[], reply: ModelReply, ...more: readonly ChatMessage[]): readonly ChatMessage[] {
  const { content, toolCalls, replay } = reply;
  return [...before, { role: "assistant", content, toolCalls, ...(replay && { replay }) }, ...more];
}

const request = (model: ChatModel, messages: readonly ChatMessage[]): Promise<ModelReply> =>
  model.complete({ messages }, { signal: new AbortController().signal });

describe("the Responses API over WebSocket", () => {
  test("one connection serves a conversation, and later requests contain what was added", async () => {
    const at = await startScriptedSocket();
    at.answer(
      { reasoning: "Hm.", content: "I look.", toolCalls: [{ id: "call-1", name: "look", arguments: '{"a":1}' }] },
      { content: "Found." },
      { content: "Bye." },
    );
    const model = over(at, { headers: { "x-mine": "1" } });
    const first: readonly ChatMessage[] = [{ role: "system", content: "Be brief." }, user("Hi")];
    const one = await request(model, first);
    expect(one).toMatchObject({ content: "I look.", finishReason: "tool-calls", toolCalls: [{ id: "call-1", arguments: { a: 1 } }] });
    const second = continued(first, one, { role: "tool", toolCallId: "call-1", content: "A ledger." });
    const two = await request(model, second);
    await request(model, continued(second, two, user("Thanks")));
    expect(at.handshakes).toMatchObject([{ authorization: "Bearer secret-key-1", "x-mine": "1" }]);
    expect(at.handshakes[0]).not.toHaveProperty("content-type");
    expect(at.messages.map(({ connection }) => connection)).toEqual([0, 0, 0]);
    const [a, b, c] = at.messages.map(({ body }) => body);
    expect(a).toMatchObject({ type: "response.create", model: "test-model", instructions: "Be brief.", store: false });
    expect(a).not.toHaveProperty("stream");
    expect(a).not.toHaveProperty("previous_response_id");
    expect(b).toMatchObject({ previous_response_id: "resp_1", instructions: "Be brief." });
    expect(b.input).toEqual([{ type: "function_call_output", call_id: "call-1", output: "A ledger." }]);
    expect(c).toMatchObject({ previous_response_id: "resp_2", input: [{ role: "user", content: "Thanks" }] });
    expect(at.requests).toEqual([]);
  });

  test("the parts of an answer are passed on as they arrive", async () => {
    const at = await startScriptedSocket();
    at.answer({ content: "One two three." });
    const texts: string[] = [];
    const reply = await over(at).complete(hello, {
      signal: new AbortController().signal,
      onDelta: (delta) => void (delta.kind === "text" && texts.push(delta.text)),
    });
    expect(texts.length).toBeGreaterThan(1);
    expect(texts.join("")).toBe("One two three.");
    expect(reply.usage).toMatchObject({ inputTokens: 11, outputTokens: 7 });
  });

  test.each([
    ["has another beginning", [user("Other"), user("More")]],
    ["has other words of the model", [user("Hi"), { role: "assistant", content: "Changed." } as const, user("More")]],
    ["ends with the model's words", [user("Hi"), { role: "assistant", content: "Hello." } as const]],
  ])("a conversation that %s is sent as a whole", async (_how, messages) => {
    const at = await startScriptedSocket();
    at.answer({ content: "Hello." }, { content: "Again." });
    const model = over(at);
    await request(model, [user("Hi")]);
    expect((await request(model, messages)).content).toBe("Again.");
    expect(at.messages[1]?.body).not.toHaveProperty("previous_response_id");
    expect(at.messages[1]?.body.input).toHaveLength(messages.length);
    expect(at.handshakes).toHaveLength(1);
  });

  test("requests at the same time have connections of their own, which are used again", async () => {
    const at = await startScriptedSocket();
    const model = over(at);
    await Promise.all([request(model, [user("A")]), request(model, [user("B")])]);
    await request(model, [user("C")]);
    expect(at.handshakes).toHaveLength(2);
    expect(new Set(at.messages.map(({ connection }) => connection))).toEqual(new Set([0, 1]));
  });

  test("a conversation that the endpoint has forgotten is sent again as a whole", async () => {
    const at = await startScriptedSocket();
    const forgotten = (socket: WebSocket): void =>
      socket.send(JSON.stringify({ type: "error", status: 400, error: { code: "previous_response_not_found", message: "No." } }));
    at.answer({ content: "Hello." }, forgotten, { content: "Again." });
    const model = over(at);
    const one = await request(model, [user("Hi")]);
    expect((await request(model, continued([user("Hi")], one, user("More")))).content).toBe("Again.");
    expect(at.messages.map(({ body }) => [body.previous_response_id, body.input.length])).toEqual([
      [undefined, 1],
      ["resp_1", 1],
      [undefined, 3],
    ]);
  });

  test("a connection that was closed meanwhile, or has reached its limit, is replaced", async () => {
    const at = await startScriptedSocket();
    const full = (socket: WebSocket): void =>
      socket.send(JSON.stringify({ type: "error", status: 400, error: { code: "websocket_connection_limit_reached" } }));
    at.answer({ content: "One" }, { content: "Two" }, full, { content: "Three" });
    const model = over(at);
    await request(model, [user("A")]);
    await at.drop();
    expect((await request(model, [user("B")])).content).toBe("Two");
    expect((await request(model, [user("C")])).content).toBe("Three");
    expect(at.messages.map(({ connection }) => connection)).toEqual([0, 1, 1, 2]);
  });

  test("is used by a model that is listed for it, with who has caused a request", async () => {
    const listed = { data: [{ id: "test-model", supported_endpoints: ["/responses", "ws:/responses"] }] };
    const at = await startScriptedSocket({ http: (path) => (path.endsWith("/models") ? listed : undefined) });
    const model = over(at, { wireApi: "auto" });
    const headers = { "x-initiator": "agent" };
    await model.complete({ ...hello, headers }, { signal: new AbortController().signal });
    expect(at.requests.map(({ path }) => path)).toEqual(["/v1/chat/completions", "/v1/models"]);
    expect(at.messages[0]?.body).toMatchObject({ type: "response.create", initiator: "agent" });
  });
});

describe("an endpoint without WebSockets", () => {
  const answer = { id: "r", status: "completed", output: [{ type: "message", content: [{ type: "output_text", text: "HTTP" }] }] };

  test.each([403, 404, 500, 200])("that answers the handshake with %i is asked over HTTP from then on", async (status) => {
    const at = await startScriptedSocket({ refuse: () => status, http: () => answer });
    const model = over(at);
    expect((await request(model, [user("A")])).content).toBe("HTTP");
    expect((await request(model, [user("B")])).content).toBe("HTTP");
    expect(at.handshakes).toHaveLength(1);
    expect(at.requests.map(({ path }) => path)).toEqual(["/v1/responses", "/v1/responses"]);
  });

  test.each([
    [401, "MODEL_AUTH"],
    [429, "MODEL_RATE_LIMITED"],
  ])("that refuses the key or the rate by %i is not", async (status, code) => {
    const at = await startScriptedSocket({ refuse: () => status, http: () => answer });
    const error = await request(over(at, { retries: 0 }), [user("A")]).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code, status, message: expect.stringContaining("No upgrade") });
    expect(String(error)).not.toContain("secret-key-1");
    expect(at.requests).toEqual([]);
  });

  test("that closes each new connection without an answer is asked over HTTP, and tried again next time", async () => {
    const at = await startScriptedSocket({ http: () => answer });
    at.answer((socket) => socket.close(1011, "overloaded"), { content: "Socket" });
    const model = over(at);
    expect((await request(model, [user("A")])).content).toBe("HTTP");
    expect((await request(model, [user("B")])).content).toBe("Socket");
  });
});

/** Sends the first events of an answer. */
function startOf(socket: WebSocket, count = 4): void {
  for (const event of socketEvents({ content: "One two three." }, "resp_x").slice(0, count)) socket.send(JSON.stringify(event));
}

describe("an endpoint that misbehaves", () => {
  test("by closing in the middle of an answer is asked again, and its error has what was received", async () => {
    const at = await startScriptedSocket();
    const closing = (socket: WebSocket): void => {
      startOf(socket);
      socket.close(1011, "shutting down");
    };
    at.answer(closing, { content: "Whole." }, closing);
    const model = over(at, { retries: 1 });
    expect((await request(model, [user("A")])).content).toBe("Whole.");
    const error = await request(over(at, { retries: 0 }), [user("B")]).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "MODEL_UNREACHABLE", retryable: true, details: { partial: { content: "One " } } });
    expect(String(error)).toContain("closed with code 1011: shutting down");
  });

  test("by ending the stream without a word about it", async () => {
    const at = await startScriptedSocket();
    at.answer((socket) => {
      startOf(socket);
      socket.close(1000);
    });
    await expect(request(over(at, { retries: 0 }), [user("A")])).rejects.toMatchObject({ code: "MODEL_BAD_ANSWER", retryable: true });
  });

  test("by sending binary messages: JSON is read, anything else is an error", async () => {
    const at = await startScriptedSocket();
    at.answer(
      (socket) => {
        for (const event of socketEvents({ content: "Bytes." }, "r")) socket.send(Buffer.from(JSON.stringify(event, undefined, 2)));
      },
      (socket) => socket.send(Buffer.from([0, 255, 13, 10, 128, 7])),
    );
    const model = over(at, { retries: 0 });
    expect((await request(model, [user("A")])).content).toBe("Bytes.");
    await expect(request(model, [user("B")])).rejects.toMatchObject({
      code: "MODEL_BAD_ANSWER",
      message: expect.stringContaining("not JSON"),
    });
  });

  test("by one message of 100 MB, which is refused by its announced length", async () => {
    const at = await startScriptedSocket();
    at.answer((socket) => socket.send(Buffer.alloc(100 * 1024 * 1024, 32)));
    const before = process.memoryUsage().arrayBuffers;
    await expect(request(over(at, { retries: 0 }), [user("A")])).rejects.toMatchObject({
      code: "MODEL_BAD_ANSWER",
      retryable: false,
      message: expect.stringContaining("WS_ERR_UNSUPPORTED_MESSAGE_LENGTH"),
    });
    // The server's own copy, and not a second one.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(180 * 1024 * 1024);
  });

  test("by 100 MB in small messages, which end at the limit of an answer", async () => {
    const at = await startScriptedSocket();
    let sent = 0;
    const event = JSON.stringify({ type: "response.output_text.delta", output_index: 0, delta: "x".repeat(64 * 1024) });
    const flood = (socket: WebSocket): void => {
      const more = (error?: Error | null): void => {
        if (error || socket.readyState !== socket.OPEN || sent > 100 * 1024 * 1024) return;
        sent += event.length;
        socket.send(event, more);
      };
      more();
    };
    at.answer(flood);
    const limited = request(over(at, { retries: 0, maxAnswerBytes: 4 * 1024 * 1024 }), [user("A")]);
    await expect(limited).rejects.toMatchObject({ code: "MODEL_BAD_ANSWER", message: expect.stringContaining("more than 4194304 bytes") });
    expect(sent).toBeLessThan(60 * 1024 * 1024);
  });

  test("by never answering: within the time limit, or until the request is aborted", async () => {
    const at = await startScriptedSocket();
    const closed = new Promise<number>((resolve) => at.answer((socket) => void socket.on("close", resolve)));
    const model = createModel({
      baseUrl: `${at.url}/v1`,
      model: "m",
      wireApi: "responses",
      transport: "websockets",
      retries: 0,
      responseTimeout: 50,
    });
    await expect(request(model, [user("A")])).rejects.toMatchObject({
      code: "MODEL_UNREACHABLE",
      message: expect.stringContaining("50 ms"),
    });
    await closed;
    const aborting = new AbortController();
    at.answer(() => aborting.abort());
    const aborted = over(at).complete({ messages: [user("B")] }, { signal: aborting.signal });
    await expect(aborted).rejects.toMatchObject({ code: "MODEL_ABORTED" });
  });

  test("by falling silent in the middle", async () => {
    const at = await startScriptedSocket();
    at.answer((socket) => startOf(socket));
    const model = createModel({
      baseUrl: `${at.url}/v1`,
      model: "m",
      wireApi: "responses",
      transport: "websockets",
      retries: 0,
      idleTimeout: 50,
    });
    await expect(request(model, [user("A")])).rejects.toMatchObject({ message: expect.stringContaining("sent nothing more for 50 ms") });
  });

  test.each([
    [
      { type: "error", status: 400, error: { code: "bad", message: "No such model." } },
      { code: "MODEL_HTTP", status: 400 },
    ],
    [{ type: "error", status: 429, error: { code: "rate_limit_exceeded" } }, { code: "MODEL_RATE_LIMITED" }],
    [{ type: "error", error: { code: "invalid_api_key", message: "Wrong." } }, { code: "MODEL_AUTH" }],
    [{ type: "error", status: "many", message: "Broken." }, { code: "MODEL_HTTP" }],
    [
      { type: "response.failed", response: { status: "failed", error: { code: "server_error", message: "Oops." } } },
      { code: "MODEL_HTTP" },
    ],
    [[], { code: "MODEL_BAD_ANSWER" }],
    [null, { code: "MODEL_BAD_ANSWER" }],
  ])("by the message %j", async (message, expected) => {
    const at = await startScriptedSocket();
    at.answer((socket) => {
      socket.send(JSON.stringify(message));
      if (message === null || Array.isArray(message)) socket.close(1000);
    });
    await expect(request(over(at, { retries: 0 }), [user("A")])).rejects.toMatchObject(expected);
  });
});

describe("the option transport", () => {
  test.each([
    [{ wireApi: "completions" }, 'requires wireApi "responses" or "auto"'],
    [{}, 'requires wireApi "responses" or "auto"'],
    [{ type: "azure", wireApi: "responses" }, 'is supported for the provider type "openai" only, not for "azure"'],
    [{ wireApi: "responses", transport: "carrier pigeon" }, "transport must be"],
  ] as [Partial<ModelOptions>, string][])("with %j is refused", (options, message) => {
    const create = (): ChatModel => createModel({ baseUrl: "http://a.test/v1", model: "m", transport: "websockets", ...options });
    expect(create).toThrow(message);
  });

  test("http uses no connection", async () => {
    const at = await startScriptedSocket({ http: () => ({ id: "r", status: "completed", output: [] }) });
    await ask(over(at, { transport: "http" }));
    expect(at.handshakes).toEqual([]);
  });
});
