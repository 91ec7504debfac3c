import { getEventListeners } from "node:events";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { ModelFetch } from "../../src/models/http.ts";
import type { ModelError } from "../../src/models/model-error.ts";
import { chatAnswer, chatChunks, chatStreamAnswer, createGate, jsonAnswer, type ScriptedAnswer, sse } from "../doubles/scripted-model.ts";
import { ask, endpoint, failure, fetchSaying, handClock, hello, listen, modelAt, modelSaying } from "./models-kit.ts";

const ok = chatAnswer({ content: "ok" });
const refused = (status: number, headers: Record<string, string> = {}, error: unknown = { message: "no" }): ScriptedAnswer =>
  jsonAnswer({ error }, { status, headers });

describe("a request is sent again", () => {
  test.each([408, 409, 425, 429, 500, 502, 503, 504, 529])("a request is sent again after status %i", async (status) => {
    const { url, answer, requests } = await endpoint();
    answer(refused(status), refused(status), ok);
    const { reply, retries } = await listen(modelAt(url));
    expect(reply).toMatchObject({ content: "ok", attempts: 3 });
    expect(requests.length).toBe(3);
    expect(requests[2]?.text).toBe(requests[0]?.text);
    expect(retries).toMatchObject([
      { attempt: 1, error: { status } },
      { attempt: 2, error: { status } },
    ]);
  });

  test("a request is sent again after a connection that breaks before, in or after the headers", async () => {
    const { url, answer } = await endpoint();
    answer({ refuse: true }, { steps: ["reset"] }, { steps: ['{"choices":', "reset"] }, ok);
    const { reply, retries } = await listen(modelAt(url));
    expect(reply?.attempts).toBe(4);
    expect(retries.map(({ error }) => error.code)).toEqual(Array(3).fill("MODEL_UNREACHABLE"));
  });

  test("a request is sent again when no server listens at the address yet", async () => {
    const first = await endpoint();
    await first.close();
    const { error, retries } = await listen(modelAt(first.url, { retries: 2 }));
    expect(error).toMatchObject({ code: "MODEL_UNREACHABLE", retryable: true, details: { attempts: 3 } });
    expect(error?.message).toMatch(/^The model endpoint 127\.0\.0\.1:\d+ cannot be reached \(ECONNREFUSED\)\. Check the base URL/);
    expect(retries.length).toBe(2);
  });

  test("a request is sent again after a stream that broke before any of it was emitted", async () => {
    const { url, answer } = await endpoint();
    const start = chatChunks({ content: "one two three" }).map(sse).slice(0, 3);
    answer({ steps: [...start, "reset"] }, chatStreamAnswer({ content: "all of it" }));
    expect(await ask(modelAt(url), { ...hello, stream: true })).toMatchObject({ content: "all of it", attempts: 2 });
    answer({ steps: [": alive\n\n", "reset"] }, chatStreamAnswer({ content: "all of it" }));
    expect((await listen(modelAt(url))).reply).toMatchObject({ content: "all of it", attempts: 2 });
  });

  test("a request is sent again with a newly requested key", async () => {
    const { url, answer, requests } = await endpoint();
    answer(refused(503), ok);
    let count = 0;
    await ask(modelAt(url, { apiKey: async () => `key-number-${++count}` }));
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer key-number-1", "Bearer key-number-2"]);
  });
});

describe("a request is not sent again", () => {
  test.each([
    [400, "MODEL_HTTP"],
    [401, "MODEL_AUTH"],
    [402, "MODEL_HTTP"],
    [403, "MODEL_AUTH"],
    [404, "MODEL_HTTP"],
    [413, "MODEL_CONTEXT_TOO_LONG"],
    [422, "MODEL_HTTP"],
    [501, "MODEL_HTTP"],
  ])("a request is not sent again after status %i", async (status, code) => {
    const { url, answer, requests } = await endpoint();
    answer(refused(status, { "x-request-id": "req-1" }));
    const error = await failure(ask(modelAt(url)));
    expect(error).toMatchObject({ code, status, retryable: false, details: { requestId: "req-1", providerMessage: "no", attempts: 1 } });
    expect(requests.length).toBe(1);
  });

  test("a request is not sent again after part of the answer was emitted, and the error contains that part", async () => {
    const { url, answer, requests } = await endpoint();
    const chunks = chatChunks({ reasoning: "Hm. ", content: "one two three" }).map(sse);
    answer({ steps: [...chunks.slice(0, 4), "reset"] });
    const { error, deltas } = await listen(modelAt(url));
    expect(error).toMatchObject({
      code: "MODEL_UNREACHABLE",
      retryable: true,
      details: { partial: { content: "one two ", reasoning: "Hm. " } },
    });
    expect(deltas.length).toBe(3);
    expect(requests.length).toBe(1);
  });

  test("a request is not sent again when the quota is exhausted or the endpoint forbids it", async () => {
    const { url, answer, requests } = await endpoint();
    answer(
      refused(429, {}, { message: "You exceeded your current quota", code: "insufficient_quota" }),
      refused(500, { "x-should-retry": "false" }),
    );
    const model = modelAt(url);
    expect(await failure(ask(model))).toMatchObject({ code: "MODEL_RATE_LIMITED", retryable: false });
    expect(await failure(ask(model))).toMatchObject({ code: "MODEL_HTTP", retryable: false });
    expect(requests.length).toBe(2);
  });

  test("a request is not sent again more often than the retry limit", async () => {
    const { url, requests } = await endpoint(() => refused(503));
    for (const [retries, expected] of [
      [0, 1],
      [2, 4],
      [undefined, 8],
    ] as const) {
      const error = await failure(ask(modelAt(url, { retries })));
      expect(error).toMatchObject({ code: "MODEL_HTTP", status: 503, retryable: true });
      expect(requests.length).toBe(expected);
    }
  });

  test("a request is not sent again when a listener throws, and the caller gets the listener's error", async () => {
    const { url, requests } = await endpoint(() => chatStreamAnswer({ content: "Hi" }));
    const mine = new Error("mine");
    const onDelta = (): never => {
      throw mine;
    };
    await expect(modelAt(url).complete(hello, { signal: new AbortController().signal, onDelta })).rejects.toBe(mine);
    expect(requests.length).toBe(1);
  });
});

test.each<[string, Record<string, string>, number]>([
  ["seconds", { "retry-after": "7" }, 7_000],
  ["fractions of seconds", { "retry-after": "0.25" }, 250],
  ["milliseconds", { "retry-after-ms": "321", "retry-after": "9" }, 321],
  ["a date", { "retry-after": new Date(1_000_000 + 9_000).toUTCString() }, 9_000],
  ["a date that is over", { "retry-after": "Thu, 01 Jan 1970 00:00:01 GMT" }, 0],
  ["no more than a minute", { "retry-after": "86400" }, 60_000],
  ["nothing that can be understood", { "retry-after": "soon" }, 250],
  ["a negative number", { "retry-after": "-5" }, 250],
  ["a number that is not decimal", { "retry-after": "0x10" }, 250],
])("a retry waits as long as the endpoint asks: %s", async (_what, headers, delay) => {
  const { url, answer } = await endpoint();
  answer(refused(429, headers), ok);
  const { retries } = await listen(modelAt(url));
  expect(retries.map((retry) => retry.delay)).toEqual([delay]);
  expect(retries[0]?.error.code).toBe("MODEL_RATE_LIMITED");
});

test("each retry waits longer, up to a limit, with a random share between half and all of the delay", async () => {
  const { url } = await endpoint(() => refused(503));
  const delays = async (random: number): Promise<readonly number[]> =>
    (await listen(modelAt(url, { retries: 6, random: () => random }))).retries.map(({ delay }) => delay);
  expect(await delays(0)).toEqual([250, 500, 1_000, 2_000, 4_000, 4_000]);
  expect(await delays(1)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 8_000]);
});

describe("an abort", () => {
  const cases: Record<string, (gate: Promise<void>) => ScriptedAnswer> = {
    "before the headers": (gate) => ({ before: gate }),
    "before the body": () => ({ steps: ["silence"] }),
    "in the middle of a stream": () => ({ steps: [sse({ choices: [{ delta: { content: "x" } }] }), "silence"] }),
    "in the middle of JSON": () => ({ steps: ['{"choices":[', "silence"] }),
    "in an error that does not end": () => ({ status: 500, steps: ['{"error":', "silence"] }),
  };
  test.each(Object.entries(cases))("an abort %s ends the request and its connection", async (_when, scripted) => {
    const { url, answer, request } = await endpoint();
    const gate = createGate();
    answer(scripted(gate.opened));
    const controller = new AbortController();
    const reply = listen(modelAt(url, { clock: handClock() }), hello, controller.signal);
    const seen = await request(0);
    controller.abort(new Error("enough"));
    expect((await reply).error).toMatchObject({ code: "MODEL_ABORTED", retryable: false });
    await seen.closed;
    gate.open();
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  test("an abort ends the wait before a retry", async () => {
    const { url, answer, requests } = await endpoint();
    answer(refused(503));
    const controller = new AbortController();
    const reply = modelAt(url, { clock: handClock() }).complete(hello, {
      signal: controller.signal,
      onRetry: () => setImmediate(() => controller.abort()),
    });
    expect(await failure(reply)).toMatchObject({ code: "MODEL_ABORTED" });
    expect(requests.length).toBe(1);
  });

  test("an abort ends the wait for a key, and an aborted signal sends no request", async () => {
    const { url, requests } = await endpoint();
    const controller = new AbortController();
    const asked = createGate();
    const apiKey = (): Promise<string> => {
      asked.open();
      return new Promise(() => {});
    };
    const reply = ask2(modelAt(url, { apiKey }), controller.signal);
    await asked.opened;
    controller.abort();
    expect((await reply).code).toBe("MODEL_ABORTED");
    expect((await ask2(modelAt(url), AbortSignal.abort())).code).toBe("MODEL_ABORTED");
    expect(requests.length).toBe(0);
  });

  test("an abort takes effect although the injected fetch and its bodies ignore the signal", async () => {
    const deaf = { fetch: () => new Promise<never>(() => {}), clock: handClock() };
    const stuck = {
      async *[Symbol.asyncIterator]() {
        yield new TextEncoder().encode(": alive\n\n");
        await new Promise(() => {});
      },
    };
    const started = createGate();
    const half = async () => {
      started.open();
      return { status: 200, headers: { get: () => null }, body: stuck };
    };
    const controller = new AbortController();
    const replies = [
      ask2(modelAt("http://model.test", deaf), controller.signal),
      ask2(modelAt("http://model.test", { fetch: half, clock: handClock() }), controller.signal),
    ];
    await started.opened;
    setImmediate(() => controller.abort());
    expect((await Promise.all(replies)).map(({ code }) => code)).toEqual(["MODEL_ABORTED", "MODEL_ABORTED"]);
  });

  const ask2 = (model: ReturnType<typeof modelAt>, signal: AbortSignal): Promise<ModelError> => failure(model.complete(hello, { signal }));
});

describe("limits", () => {
  const limits = { responseTimeout: 111_111, idleTimeout: 222_222, retries: 0 };

  test("an answer that does not begin in time is an error", async () => {
    const { url, answer, request } = await endpoint();
    const gate = createGate();
    answer({ before: gate.opened });
    const clock = handClock();
    const reply = failure(ask(modelAt(url, { ...limits, clock })));
    const seen = await request(0);
    await clock.elapse(111_111);
    expect(await reply).toMatchObject({ code: "MODEL_UNREACHABLE", retryable: true });
    expect((await reply).message).toMatch(/did not answer within 111111 ms/);
    await seen.closed;
    gate.open();
  });

  test("an answer that stalls is an error, and each piece restarts the time limit", async () => {
    const { url, answer } = await endpoint();
    const clock = handClock();
    const chunk = sse({ choices: [{ delta: { content: "x" } }] });
    answer({ steps: [chunk, "silence"] });
    const heard = createGate();
    const reply = failure(
      modelAt(url, { ...limits, clock }).complete(hello, { signal: new AbortController().signal, onDelta: heard.open }),
    );
    await heard.opened;
    expect(clock.restarts(222_222)).toBe(1);
    await clock.elapse(222_222);
    expect(await reply).toMatchObject({ code: "MODEL_UNREACHABLE", details: { partial: { content: "x" } } });
  });

  test("an answer that stalls or breaks after the model's final event is complete", async () => {
    const { url, answer } = await endpoint();
    const clock = handClock();
    const chunks = [sse({ choices: [{ delta: { content: "x" }, finish_reason: "stop" }] })];
    answer({ steps: [...chunks, "silence"] }, { steps: [...chunks, "reset"] });
    const heard = createGate();
    const reply = modelAt(url, { ...limits, clock }).complete(hello, { signal: new AbortController().signal, onDelta: heard.open });
    await heard.opened;
    await clock.elapse(222_222);
    expect(await reply).toMatchObject({ content: "x", finishReason: "stop" });
    expect((await listen(modelAt(url, limits))).reply).toMatchObject({ content: "x", finishReason: "stop" });
  });

  test("the body of an error response is awaited only for a short time", async () => {
    const { url, answer } = await endpoint();
    const clock = handClock();
    answer({ status: 400, steps: ["It is all", "silence"] });
    const reply = failure(ask(modelAt(url, { ...limits, clock })));
    await clock.elapse(5_000);
    expect(await reply).toMatchObject({ code: "MODEL_HTTP", status: 400 });
  });

  test("an answer with too many bytes after decompression is an error", async () => {
    const { url, answer } = await endpoint();
    const big = sse({ choices: [{ delta: { content: "x".repeat(1_000) } }] }).repeat(100);
    answer(
      { steps: [big] },
      { headers: { "content-encoding": "gzip" }, steps: [gzipSync(big)] },
      { steps: [`{"choices":[{"message":{"content":"${"x".repeat(100_000)}"}}]}`] },
    );
    const model = modelAt(url, { maxAnswerBytes: 50_000 });
    for (let index = 0; index < 3; index++) {
      const error = await failure(ask(model));
      expect(error).toMatchObject({ code: "MODEL_BAD_ANSWER", retryable: false });
      expect(error.message).toMatch(/more than 50000 bytes/);
    }
  });

  test("an answer of twenty megabytes is read", async () => {
    const text = "x".repeat(20_000);
    const pieces = Array(1_000).fill(sse({ choices: [{ delta: { content: text } }] }));
    const reply = await ask(modelSaying([...pieces, sse("[DONE]")]));
    expect(reply.content.length).toBe(20_000_000);
  });

  test("a line or an event with too many characters is an error", async () => {
    const half = new Uint8Array(5 * 1024 * 1024).fill(0x78);
    for (const pieces of [
      ["data: ", half, half],
      ["data: ", half, "\ndata: ", half, "\n\n"],
      [": ", half, half],
    ]) {
      const error = await failure(ask(modelSaying(pieces, { retries: 0 })));
      expect(error).toMatchObject({ code: "MODEL_BAD_ANSWER", retryable: false });
      expect(error.message).toMatch(/an event of more than 8388608 characters/);
    }
  });

  test("a body of only empty pieces ends", async () => {
    const body = {
      async *[Symbol.asyncIterator]() {
        for (;;) yield new Uint8Array(0);
      },
    };
    const fetch = async () => ({ status: 200, headers: { get: () => null }, body });
    expect(await failure(ask(modelAt("http://model.test", { fetch, maxAnswerBytes: 10_000 })))).toMatchObject({ code: "MODEL_BAD_ANSWER" });
  });
});

test("an injected fetch learns through its signal and its body that the answer is no longer needed", async () => {
  for (const pieces of [["x".repeat(2_000), "y"], ["data: [DONE]\n\n"], ["{}"]]) {
    const body = fetchSaying(pieces);
    const ended: string[] = [];
    let signal: AbortSignal | undefined;
    const fetch: ModelFetch = async (url, request) => {
      signal = request.signal;
      const answer = await body(url, request);
      return { ...answer, body: watched(answer.body ?? [], () => ended.push("body")) };
    };
    await failure(ask(modelAt("http://model.test", { fetch, maxAnswerBytes: 1_000, retries: 0 })));
    expect(signal?.aborted).toBe(true);
    expect(ended).toEqual(["body"]);
  }
});

test("an answer of a thousand pieces leaves no listeners on the signal", async () => {
  const text = fetchSaying(Array(1_000).fill(": alive\n\n"));
  let left: number | undefined;
  const fetch: ModelFetch = async (url, request) => {
    const answer = await text(url, request);
    return { ...answer, body: watched(answer.body ?? [], () => (left = getEventListeners(request.signal, "abort").length)) };
  };
  await failure(ask(modelAt("http://model.test", { fetch, retries: 0 })));
  expect(left).toBeLessThan(5);
});

async function* watched(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, ended: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield* pieces;
  } finally {
    ended();
  }
}

describe("secrets stay inside", () => {
  const key = "sk-very-secret-key-0123456789";
  const header = "other/secret=value+9";
  const secretOptions = { apiKey: key, headers: { "x-gateway-key": `Token ${header}` }, retries: 0 };

  const show = (error: unknown): string => inspect(error, { depth: 10, showHidden: true }) + (error as Error).stack + JSON.stringify(error);

  test.each<[string, ScriptedAnswer]>([
    ["an error that quotes the key", refused(401, {}, { message: `Incorrect API key provided: ${key}`, code: key, type: header })],
    ["a text that quotes a header", { status: 400, steps: [`bad header ${header}`] }],
    ["a redirect to an address with the key", { status: 302, headers: { location: `http://${key}.test/?key=${key}` } }],
    ["an event that is not valid JSON", { steps: [`data: ${key}\n\n`] }],
    ["an error in a stream", { steps: [sse({ error: { message: `${key} is bad` } })] }],
    ["a content type", { headers: { "content-type": key }, steps: ["nothing"] }],
    ["a request id", refused(400, { "x-request-id": `id-of-${key}` })],
  ])("an error contains no secrets when the answer is %s", async (_what, answer) => {
    const { url } = await endpoint(() => answer);
    const error = await failure(ask(modelAt(url, secretOptions)));
    expect(show(error)).not.toContain(key);
    expect(show(error)).not.toContain(header);
  });

  test("an error contains no secrets when the transport's error quotes the request", async () => {
    const fetch = async (_url: string, request: object): Promise<never> => {
      throw Object.assign(new Error(`cannot send ${JSON.stringify(request)}`), { request, cause: new Error(`for ${key}`) });
    };
    const error = await failure(ask(modelAt("http://model.test", { ...secretOptions, fetch })));
    expect(error.code).toBe("MODEL_UNREACHABLE");
    expect(show(error)).not.toContain(key);
    expect(show(error)).not.toContain(header);
  });

  test("an error contains no secrets when the URL contains the key", async () => {
    const { url } = await endpoint(({ path }) => refused(404, {}, { message: `No such path: ${path}` }));
    const error = await failure(ask(modelAt("", { ...secretOptions, baseUrl: `${url}/v1?api-version=3&subscription=${key}` })));
    expect(error.message).toContain("api-version=3");
    expect(show(error)).not.toContain(key);
  });

  test("an error contains no secrets when the function for the key fails or returns no key", async () => {
    const { url, requests } = await endpoint();
    const functions = [
      () => {
        throw new Error(`no ${key}`);
      },
      async () => {
        throw new Error(`no ${key}`);
      },
      () => `${key}\nx`,
      () => "",
      () => 5 as unknown as string,
    ];
    for (const apiKey of functions) {
      const error = await failure(ask(modelAt(url, { ...secretOptions, apiKey })));
      expect(error).toMatchObject({ code: "MODEL_AUTH", retryable: false });
      expect(show(error)).not.toContain(key);
    }
    expect(requests.length).toBe(0);
  });
});

test("an error message gives the endpoint's answer in one line of bounded length, and how to fix it", async () => {
  const { url, answer } = await endpoint();
  const model = modelAt(url, { retries: 0 });
  const messageOf = async (scripted: ScriptedAnswer): Promise<string> => {
    answer(scripted);
    return (await failure(ask(model))).message.replace(/127\.0\.0\.1:\d+/, "HOST");
  };
  expect(await messageOf(refused(401, {}, { message: "Wrong key." }))).toBe(
    "The model endpoint HOST answered 401: Wrong key. Check the API key, and that it may use this model.",
  );
  expect(await messageOf(refused(404, {}, "no such model"))).toBe(
    "The model endpoint HOST answered 404: no such model. Check the base URL and the name of the model.",
  );
  expect(await messageOf(jsonAnswer({ detail: [{ loc: ["body"], msg: "field\n required" }] }, { status: 422 }))).toBe(
    "The model endpoint HOST answered 422: field required. Check the model's name and options.",
  );
  expect(await messageOf({ status: 502, steps: ["<html><body>Bad gateway</body></html>"] })).toBe(
    "The model endpoint HOST answered 502. Try again later.",
  );
  expect(await messageOf({ status: 307, headers: { location: "https://elsewhere.test/v1/x" } })).toBe(
    "The model endpoint HOST redirects to https://elsewhere.test (307), which is not followed. Use the target of the redirect as the base URL.",
  );
  expect((await messageOf({ status: 400, steps: ["\u001b[31mx\u0000".repeat(10_000)] })).length).toBeLessThan(700);
});

test.each([
  [400, { message: "This model's maximum context length is 8192 tokens.", code: "context_length_exceeded" }],
  [400, { message: "prompt is too long: 213462 tokens > 200000 maximum" }],
  [400, { message: "the request exceeds the available context size", type: "exceed_context_size_error" }],
  [400, { message: "The input token count (1196265) exceeds the maximum number of tokens allowed" }],
  [422, { message: "Please reduce the length of the messages or completion." }],
  [413, { message: "Payload too large" }],
])("knows a conversation that is too long by what is said of it: %i %j", async (status, error) => {
  const { url, requests } = await endpoint(() => refused(status, {}, error));
  expect(await failure(ask(modelAt(url)))).toMatchObject({ code: "MODEL_CONTEXT_TOO_LONG", status, retryable: false });
  expect(requests.length).toBe(1);
});

test("an injected fetch transports the request and the answer", async () => {
  const seen: unknown[] = [];
  const answer = fetchSaying([JSON.stringify({ choices: [{ message: { content: "routed" }, finish_reason: "stop" }] })]);
  const model = modelAt("http://model.test", {
    apiKey: "the-key",
    fetch: (url, request) => {
      seen.push(url, { ...request, signal: request.signal instanceof AbortSignal });
      return answer(url, request);
    },
  });
  expect((await ask(model, { ...hello, headers: { "X-Initiator": "agent" } })).content).toBe("routed");
  expect(seen).toEqual([
    "http://model.test/v1/chat/completions",
    {
      method: "POST",
      redirect: "manual",
      signal: true,
      body: JSON.stringify({ model: "test-model", messages: hello.messages }),
      headers: {
        accept: "application/json, text/event-stream",
        authorization: "Bearer the-key",
        "content-type": "application/json",
        "user-agent": expect.stringMatching(/^skillhost\//),
        "x-initiator": "agent",
      },
    },
  ]);
});
