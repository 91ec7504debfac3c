// A server on version 2 of the SDK, which supports both protocol eras. Tools: echo, confirm (asks the user), think (asks a model),
// progress, grow (adds a tool). Resource: note://one, changed by `touch`.
import { inputRequired, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const say = (value) => ({ content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }] });

function createServer() {
  const server = new McpServer(
    { name: "v2", version: "2.0.0" },
    {
      capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {} },
      instructions: "Speak either.",
    },
  );
  server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, ({ text }) => say(text));
  server.registerTool("confirm", { inputSchema: z.object({}) }, (_args, context) => {
    const answer = context.mcpReq.inputResponses?.who;
    if (answer !== undefined) return say(answer);
    const requestedSchema = {
      type: "object",
      properties: { name: { type: "string" }, color: { type: "string", default: "green" } },
      required: ["name"],
    };
    return inputRequired({ inputRequests: { who: inputRequired.elicit({ message: "Who are you?", requestedSchema }) } });
  });
  server.registerTool("meta", { inputSchema: z.object({}) }, (_args, context) => say(context.mcpReq._meta ?? {}));
  server.registerTool("progress", { inputSchema: z.object({}) }, async (_args, context) => {
    const progressToken = context.mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= 3; progress++) {
      await context.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
    }
    return say("done");
  });
  server.registerTool("wait", { inputSchema: z.object({}) }, (_args, context) => {
    return new Promise((resolve) => {
      context.mcpReq.signal.addEventListener("abort", () => {
        process.stderr.write("aborted\n");
        resolve(say("aborted"));
      });
    });
  });
  server.registerTool("grow", { inputSchema: z.object({}) }, () => {
    server.registerTool("grown", { inputSchema: z.object({}) }, () => say("grown"));
    return say("ok");
  });
  server.registerTool("touch", { inputSchema: z.object({}) }, async () => {
    await server.server.sendResourceUpdated({ uri: "note://one" });
    return say("ok");
  });
  server.registerResource("one", "note://one", {}, (uri) => ({ contents: [{ uri: uri.href, text: "first" }] }));
  return server;
}

serveStdio(createServer);
