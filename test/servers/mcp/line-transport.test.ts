import { PassThrough } from "node:stream";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { LineTransport } from "../../../src/servers/mcp/serve-stdio.ts";

interface Wired {
  readonly input: PassThrough;
  readonly transport: LineTransport;
  readonly received: JSONRPCMessage[];
  readonly errors: string[];
  /** What was written, a text for each time. */
  readonly writes: string[];
}

async function wire(graceMs?: number): Promise<Wired> {
  const input = new PassThrough();
  const writes: string[] = [];
  const transport = new LineTransport({ input, output: { write: (text) => void writes.push(text) }, graceMs });
  const [received, errors]: [JSONRPCMessage[], string[]] = [[], []];
  transport.onmessage = (message) => void received.push(message);
  transport.onerror = ({ message }) => void errors.push(message);
  await transport.start();
  return { input, transport, received, errors, writes };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const ping = (id: number): object => ({ jsonrpc: "2.0", id, method: "ping" });

test("reads messages however they are cut, with empty lines and carriage returns between", async () => {
  const { input, received } = await wire();
  const text = `${JSON.stringify({ ...ping(1), params: { text: "ä€😀" } })}\r\n\n  \n${JSON.stringify(ping(2))}\n`;
  for (const byte of Buffer.from(text)) input.write(Buffer.of(byte));
  await turn();
  expect(received).toEqual([{ ...ping(1), params: { text: "ä€😀" } }, ping(2)]);
});

test("the transport ignores lines that are not messages, refuses invalid requests, and continues", async () => {
  const { input, received, errors } = await wire();
  const lines = [
    "not json",
    "{",
    "[]",
    '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    "7",
    "null",
    '"text"',
    '{"jsonrpc":"1.0","id":5,"method":"ping"}',
    '{"jsonrpc":"2.0","id":"six","method":7}',
    '{"jsonrpc":"2.0","id":8,"method":"ping","params":[1]}',
    '{"jsonrpc":"2.0","id":{},"method":"ping"}',
    '{"id":9}',
    JSON.stringify(ping(10)),
  ];
  input.write(`${lines.join("\n")}\n`);
  await turn();
  await turn();
  expect(received).toEqual([ping(10)]);
  expect(errors).toHaveLength(12);
});

test("answers a faulty request with the code for it", async () => {
  const { input, writes } = await wire();
  input.write('{"jsonrpc":"1.0","id":5,"method":"ping"}\n{"jsonrpc":"2.0","id":"six","method":7}\n');
  await turn();
  await turn();
  expect(
    writes
      .join("")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { id: 5, error: { code: -32600 } },
    { id: "six", error: { code: -32600 } },
  ]);
});

test("writes what is sent in one turn at once", async () => {
  const { transport, writes } = await wire();
  await Promise.all([1, 2, 3].map((id) => transport.send({ jsonrpc: "2.0", id, result: {} })));
  await turn();
  expect(writes).toHaveLength(1);
  expect(writes[0]?.split("\n")).toHaveLength(4);
});

test("closes when the input ends, once what was asked before is answered", async () => {
  const { input, transport, writes } = await wire();
  let isClosed = false;
  void transport.closed.then(() => {
    isClosed = true;
  });
  input.end(JSON.stringify(ping(1)));
  await new Promise((resolve) => input.once("end", resolve));
  await turn();
  expect(isClosed).toBe(false);
  await transport.send({ jsonrpc: "2.0", id: 1, result: {} });
  await transport.closed;
  expect(writes.join("")).toBe('{"jsonrpc":"2.0","id":1,"result":{}}\n');
  await expect(transport.send({ jsonrpc: "2.0", id: 2, result: {} })).rejects.toThrow("closed");
});

test("does not wait for ever for an answer when the input has ended, nor for a request that was cancelled", async () => {
  const hanging = await wire(1);
  hanging.input.end(`${JSON.stringify(ping(1))}\n`);
  await hanging.transport.closed;
  const cancelled = await wire(3_600_000);
  const notice = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
  cancelled.input.end(`${JSON.stringify(ping(1))}\n${JSON.stringify(notice)}\n`);
  await cancelled.transport.closed;
});

test("closes the connection at a message that is too long to be one", async () => {
  const { input, transport, errors } = await wire();
  const chunk = Buffer.alloc(1024 * 1024, "x");
  for (let count = 0; count < 17; count++) input.write(chunk);
  await transport.closed;
  expect(errors).toEqual([expect.stringContaining("longer than 16777216 bytes")]);
});

const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

test("the transport refuses deeply nested messages with an answer, and continues", async () => {
  const { input, received, writes } = await wire();
  // The message itself is one level.
  input.write(`{"jsonrpc":"2.0","id":1,"method":"ping","params":${nested(127)}}\n`);
  for (const depth of [128, 300_000]) input.write(`{"jsonrpc":"2.0","id":${depth},"method":"ping","params":${nested(depth)}}\n`);
  input.write(`${JSON.stringify(ping(2))}\n`);
  await turn();
  await turn();
  expect(received.map((message) => (message as { id?: unknown }).id)).toEqual([1, 2]);
  const answers = writes
    .join("")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(answers).toMatchObject(
    [128, 300_000].map((id) => ({ id, error: { code: -32600, message: expect.stringContaining("128 levels") } })),
  );
});

test("a message with too many values ends the connection", async () => {
  const { input, received, errors, transport } = await wire();
  input.write(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[${Array(600_000).fill("{}").join()}]}}\n`);
  await transport.closed;
  expect(received).toEqual([]);
  expect(errors).toEqual([expect.stringContaining("500000 values")]);
});

test("messages that arrive without a handler are delivered to the next handler in order", async () => {
  const { input, received, transport } = await wire();
  const first: JSONRPCMessage[] = [];
  transport.onmessage = (message) => {
    first.push(message);
    transport.onmessage = undefined;
    transport.takeBack(message);
  };
  for (const id of [1, 2]) input.write(`${JSON.stringify(ping(id))}\n`);
  await turn();
  await turn();
  expect([first, received]).toEqual([[ping(1)], []]);
  transport.onmessage = (message) => void received.push(message);
  input.write(`${JSON.stringify(ping(3))}\n`);
  await turn();
  expect(received).toEqual([ping(1), ping(2), ping(3)]);
});
