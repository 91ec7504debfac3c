// The tools of the HTTP benchmark by FastMCP.
import { createServer } from "node:http";
import { FastMCP } from "fastmcp";
import { z } from "zod";
import { announce, workload } from "../support/http-workload.mjs";

const server = new FastMCP({ name: "workload", version: "1.0.0" });
for (const { name, description, schema, run } of workload) {
  const parameters = z.object(Object.fromEntries(Object.entries(schema).map(([key, text]) => [key, z.string().describe(text)])));
  server.addTool({ name, description, parameters, execute: async (args) => run(args) });
}
// FastMCP does not report the port that it takes.
const probe = createServer();
await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
const { port } = probe.address();
await new Promise((resolve) => probe.close(resolve));
await server.start({ transportType: "httpStream", httpStream: { port, host: "127.0.0.1" } });
announce(`http://127.0.0.1:${port}/mcp`);
