// The tools of the HTTP benchmark by Node's HTTP server alone: each request is parsed, its tool runs, and the result is written.
// No server of MCP can be faster.
import { createServer } from "node:http";
import { announce, workload } from "../support/http-workload.mjs";

const byName = new Map(workload.map((tool) => [tool.name, tool]));

const http = createServer((incoming, outgoing) => {
  const pieces = [];
  incoming.on("data", (piece) => pieces.push(piece));
  incoming.on("end", async () => {
    const { id, method, params } = JSON.parse(Buffer.concat(pieces).toString());
    const result =
      method === "tools/call" ? { content: [{ type: "text", text: await byName.get(params.name).run(params.arguments) }] } : {};
    const body = JSON.stringify({ jsonrpc: "2.0", id, result });
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body), "Mcp-Session-Id": "none" };
    outgoing.writeHead(200, headers).end(body);
  });
});
http.listen(0, "127.0.0.1", () => announce(`http://127.0.0.1:${http.address().port}/mcp`));
