// The tools of the HTTP benchmark by the official SDK's first line, with sessions, and by its low-level server.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { announce, jsonSchemaOf, workload } from "../support/http-workload.mjs";

const tools = workload.map((tool) => ({ name: tool.name, description: tool.description, inputSchema: jsonSchemaOf(tool) }));
const byName = new Map(workload.map((tool) => [tool.name, tool]));
const sessions = new Map();

const http = createServer(async (request, response) => {
  const transport = sessions.get(request.headers["mcp-session-id"]) ?? (await open());
  await transport.handleRequest(request, response);
});
http.listen(0, "127.0.0.1", () => announce(`http://127.0.0.1:${http.address().port}/mcp`));

async function open() {
  const server = new Server({ name: "workload", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    return { content: [{ type: "text", text: await byName.get(params.name).run(params.arguments) }] };
  });
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}
