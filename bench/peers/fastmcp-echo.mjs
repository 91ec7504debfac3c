// The same tool as the others, by FastMCP.
import { FastMCP } from "fastmcp";
import { z } from "zod";

const count = Number(process.argv[2] ?? 1);
const server = new FastMCP({ name: "echo", version: "1.0.0" });
for (let n = 0; n < count; n++) {
  server.addTool({
    name: n === 0 ? "echo" : `echo_${n}`,
    description: `Answers what it is given (${n}).`,
    parameters: z.object({ text: z.string().describe("What to answer.") }),
    execute: async ({ text }) => text,
  });
}
await server.start({ transportType: "stdio" });
