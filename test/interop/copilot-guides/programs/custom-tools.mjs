// Tools: Zod and JSON schemas, every kind of result, replaced built-in tools, tools without a question, deferred tools, errors.
import { CopilotClient, defineTool } from "@github/copilot-sdk";
import { z } from "zod";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const session = await client.createSession({
  model: "claude-sonnet-4.5",
  onPermissionRequest: (request) => {
    console.log("permission:", request.kind, request.toolName);
    return { kind: "approve-once" };
  },
  tools: [
    defineTool("lookup_issue", {
      description: "Fetch issue details from our tracker",
      parameters: z.object({ id: z.string().describe("Issue identifier") }),
      handler: async ({ id }, invocation) => {
        console.log("lookup_issue:", id, invocation.toolName, invocation.toolCallId);
        return { id, title: "The printer is on fire", open: true };
      },
    }),
    defineTool("view", {
      description: "Custom file viewer with project-specific validation",
      parameters: z.object({ path: z.string() }),
      overridesBuiltInTool: true,
      handler: ({ path }) => `The content of ${path}`,
    }),
    defineTool("safe_lookup", {
      description: "A read-only lookup that needs no confirmation",
      parameters: z.object({ id: z.string() }),
      skipPermission: true,
      defer: "never",
      handler: ({ id }) => ({ textResultForLlm: `Record ${id}`, resultType: "success", sessionLog: "Looked up", toolTelemetry: {} }),
    }),
    defineTool("close_issue", {
      description: "Closes an issue",
      parameters: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
      defer: "auto",
      skipPermission: true,
      handler: () => ({ textResultForLlm: "The tracker is read-only.", resultType: "failure", error: "read-only" }),
    }),
    defineTool("explode", {
      description: "Always fails",
      skipPermission: true,
      handler: () => {
        throw new Error("The secret password is hunter2");
      },
    }),
  ],
});
session.on("tool.execution_complete", ({ data }) => console.log("tool:", data.success, data.result?.content ?? data.error?.message));
for (const prompt of ["Look up issue 7.", "View the file and the record.", "Close the issue.", "Explode."]) {
  const answer = await session.sendAndWait({ prompt });
  console.log("answer:", answer?.data.content);
}
await session.disconnect();
await client.stop();
