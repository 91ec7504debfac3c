import { PassThrough } from "node:stream";
import { Server } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { FastPathServer } from "../../../src/servers/mcp/fast-path-server.ts";
import { LineTransport } from "../../../src/servers/mcp/serve-stdio.ts";

// Neither is part of the SDK's interface. When one changes, look at lean-server.ts: calls would be checked twice again.
test("the SDK's server still has the members that ours goes around", () => {
  const members = Server.prototype as unknown as Readonly<Record<string, unknown>>;
  expect([typeof members["_onrequest"], typeof members["_wrapHandler"]]).toEqual(["function", "function"]);
});

test("calls go to their handler without being looked through again, and answers come back", async () => {
  const server = new FastPathServer({ name: "s", version: "1" }, { capabilities: { tools: {} } });
  let dispatched = 0;
  const members = server as unknown as { _onrequest(...given: unknown[]): void };
  const dispatch = members._onrequest.bind(server);
  members._onrequest = (...given) => {
    dispatched++;
    dispatch(...given);
  };
  server.setRequestHandler("tools/call", () => ({ content: [] }));
  const input = new PassThrough();
  const written: string[] = [];
  await server.connect(new LineTransport({ input, output: { write: (text) => void written.push(text) } }));
  const initialize = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } };
  input.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: initialize })}\n`);
  input.write(`${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "x", arguments: {} } })}\n`);
  await expect.poll(() => written.join("")).toContain('"id":2');
  expect(dispatched).toBe(2);
  await server.close();
});
