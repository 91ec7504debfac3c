// A server on version 1 of the SDK, which supports the old protocol only. Tools: echo, confirm (asks the user), think (asks a model).
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "v1", version: "1.0.0" });
server.registerTool("echo", { description: "Says it again.", inputSchema: { text: z.string() } }, ({ text }) => ({
  content: [{ type: "text", text }],
}));
server.registerTool("confirm", { description: "Asks first." }, async () => {
  const requestedSchema = {
    type: "object",
    properties: { name: { type: "string" }, color: { type: "string", default: "green" } },
    required: ["name"],
  };
  const answer = await server.server.elicitInput({ message: "Who are you?", requestedSchema });
  return { content: [{ type: "text", text: JSON.stringify(answer) }] };
});
server.registerTool("think", { description: "Asks a model." }, async () => {
  const messages = [{ role: "user", content: { type: "text", text: "Two words, please." } }];
  const answer = await server.server.createMessage({ messages, maxTokens: 10 });
  return { content: [{ type: "text", text: answer.content.text }] };
});
await server.connect(new StdioServerTransport());
