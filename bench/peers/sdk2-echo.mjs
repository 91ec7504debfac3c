// The same tool as the others, by the official SDK's second line as its guide has it.
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const count = Number(process.argv[2] ?? 1);
serveStdio(() => {
  const server = new McpServer({ name: "echo", version: "1.0.0" });
  for (let n = 0; n < count; n++) {
    const inputSchema = z.object({ text: z.string().describe("What to answer.") });
    server.registerTool(
      n === 0 ? "echo" : `echo_${n}`,
      { description: `Answers what it is given (${n}).`, inputSchema },
      async ({ text }) => ({
        content: [{ type: "text", text }],
      }),
    );
  }
  return server;
});
