import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { createGate, type ScriptedAnswer } from "../doubles/scripted-model.ts";
import { ask, endpoint, failure, hello, modelAt } from "./models-kit.ts";

const text = '{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}';
const coded = (coding: string, bytes: Buffer): ScriptedAnswer => ({
  headers: { "content-type": "application/json", "content-encoding": coding },
  steps: [bytes],
});

test.each([
  ["gzip", gzipSync(text)],
  ["X-GZIP", gzipSync(text)],
  ["deflate", deflateSync(text)],
  ["br", brotliCompressSync(text)],
  ["br, gzip", gzipSync(brotliCompressSync(text))],
])("fetch reads an answer whose content-encoding is %s", async (coding, bytes) => {
  const { url, answer } = await endpoint();
  answer(coded(coding, bytes));
  expect(await ask(modelAt(url))).toMatchObject({ content: "ok", attempts: 1 });
});

test("an answer with too many content encodings is not decoded", async () => {
  const { url, answer } = await endpoint();
  answer(coded(Array(1_000).fill("gzip").join(","), gzipSync(text)));
  expect(await failure(ask(modelAt(url)))).toMatchObject({ code: "MODEL_BAD_ANSWER", retryable: false });
});

test("bytes that do not match their content-encoding are a bad answer", async () => {
  const { url, answer } = await endpoint();
  answer(coded("gzip", Buffer.from(text)));
  const error = await failure(ask(modelAt(url)));
  expect(error).toMatchObject({ code: "MODEL_BAD_ANSWER", retryable: false });
  expect(error.message).toMatch(/cannot be decoded \(Z_DATA_ERROR\)/);
});

test("a request with an aborted signal is not sent", async () => {
  const { url, requests } = await endpoint();
  const model = modelAt(url);
  expect(await failure(model.complete(hello, { signal: AbortSignal.abort() }))).toMatchObject({ code: "MODEL_ABORTED" });
  expect(requests.length).toBe(0);
});

test("the next request reuses the connection, and an aborted request closes its own", async () => {
  const { createServer } = await import("node:http");
  const connections: unknown[] = [];
  const arrived = createGate();
  const server = createServer((request, response) => {
    connections.push(request.socket);
    if (connections.length === 3) arrived.open();
    else request.resume().on("end", () => response.setHeader("content-type", "application/json").end(text));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as { readonly port: number };
  const model = modelAt(`http://127.0.0.1:${address.port}`);
  try {
    await ask(model);
    await ask(model);
    const givenUp = new AbortController();
    const third = failure(model.complete(hello, { signal: givenUp.signal }));
    await arrived.opened;
    givenUp.abort();
    expect(await third).toMatchObject({ code: "MODEL_ABORTED" });
    await ask(model);
    expect(connections[1]).toBe(connections[0]);
    expect(connections[2]).toBe(connections[0]);
    expect(connections[3]).not.toBe(connections[0]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
