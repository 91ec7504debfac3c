// MCP servers: started by their command, filtered, and their tools named by a ToolSet.
import { CopilotClient, ToolSet } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const session = await client.createSession({
  model: "claude-sonnet-4.5",
  onPermissionRequest: (request) => {
    console.log("permission:", request.kind, request.serverName, request.toolName);
    return { kind: "approve-once" };
  },
  availableTools: new ToolSet().addMcp("records-look_up").addMcp("records-fail").addBuiltIn("view"),
  mcpServers: {
    records: {
      type: "local",
      command: process.execPath,
      args: ["server.mjs"],
      env: { PREFIX: "Record" },
      workingDirectory: process.cwd(),
      tools: ["look_up", "fail"],
      timeout: 20_000,
    },
    broken: { type: "stdio", command: "a-command-that-does-not-exist", args: [], tools: ["*"] },
  },
});
console.log("look_up:", (await session.sendAndWait({ prompt: "Look up record 7." }))?.data.content);
console.log("fail:", (await session.sendAndWait({ prompt: "Fail." }))?.data.content);
const { servers } = await session.rpc.mcp.list();
for (const { name, status } of servers.sort((a, b) => a.name.localeCompare(b.name))) console.log("server:", name, status);
await session.disconnect();
await client.stop();
