// A small MCP server, written by hand: its only tool returns the arguments and the _meta of a call.
import { createInterface } from "node:readline";

const answer = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
const tool = { name: "echo", description: "Says what it got.", inputSchema: { type: "object", properties: { text: { type: "string" } } } };

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "meta", version: "1" } });
  } else if (method === "tools/list") answer(id, { tools: [tool] });
  else if (method === "tools/call") {
    const { progressToken: _token, ...meta } = params._meta ?? {};
    answer(id, { content: [{ type: "text", text: `${JSON.stringify(params.arguments)} with ${JSON.stringify(meta)}` }] });
  } else if (id !== undefined)
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "Unknown." } })}\n`);
});
