// The tools of the HTTP benchmark by the official SDK's second line, with sessions: one server for each client, kept between requests.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { localhostHostValidation, localhostOriginValidation, NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { announce, workload } from "../support/http-workload.mjs";

const isHostAllowed = localhostHostValidation();
const isOriginAllowed = localhostOriginValidation();
const sessions = new Map();

const http = createServer(async (request, response) => {
  if (!isHostAllowed(request, response) || !isOriginAllowed(request, response)) return;
  const transport = sessions.get(request.headers["mcp-session-id"]) ?? (await open());
  await transport.handleRequest(request, response);
});
http.listen(0, "127.0.0.1", () => announce(`http://127.0.0.1:${http.address().port}/mcp`));

async function open() {
  const server = new McpServer({ name: "workload", version: "1.0.0" });
  for (const { name, description, schema, run } of workload) {
    const inputSchema = z.object(Object.fromEntries(Object.entries(schema).map(([key, text]) => [key, z.string().describe(text)])));
    server.registerTool(name, { description, inputSchema }, async (args) => ({ content: [{ type: "text", text: await run(args) }] }));
  }
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}
