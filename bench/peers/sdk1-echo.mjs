// The same tool as the others, by the least that the official SDK's first line offers: two request handlers.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const count = Number(process.argv[2] ?? 1);
const tools = Array.from({ length: count }, (_, n) => ({
  name: n === 0 ? "echo" : `echo_${n}`,
  description: `Answers what it is given (${n}).`,
  inputSchema: { type: "object", properties: { text: { type: "string", description: "What to answer." } }, required: ["text"] },
}));
const server = new Server({ name: "echo", version: "1.0.0" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools }));
server.setRequestHandler(CallToolRequestSchema, async ({ params }) => ({ content: [{ type: "text", text: params.arguments.text }] }));
await server.connect(new StdioServerTransport());
