// Permissions: a handler that sees every kind of request, and every kind of answer.
import { CopilotClient, defineTool } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const answers = [];
const session = await client.createSession({
  model: "claude-sonnet-4.5",
  onPermissionRequest: (request) => {
    const { kind, toolName, fileName, fullCommandText, path } = request;
    console.log("permission:", kind, toolName, fileName, fullCommandText, path);
    if ("managedApprovalRequired" in request && request.managedApprovalRequired === true) return { kind: "no-result" };
    return answers.shift() ?? { kind: "approve-once" };
  },
  tools: [defineTool("look_up", { description: "Looks up", parameters: { type: "object", properties: {} }, handler: () => "Found." })],
});
session.on("tool.execution_complete", ({ data }) => console.log("tool:", data.success, data.result?.content ?? data.error?.message));
const ask = async (prompt, ...decisions) => {
  answers.push(...decisions);
  console.log("answer:", (await session.sendAndWait({ prompt }))?.data.content);
};
await ask("Run a command.", { kind: "approve-once" });
await ask("Write a file.", { kind: "approve-for-session" });
await ask("Write another file.");
await ask("Use the tool.", { kind: "approve-for-session", approval: { kind: "custom-tool", toolName: "look_up" } });
await ask("Use the tool again.");
await ask("No user is there.", { kind: "user-not-available" });
await ask("Delete everything.", { kind: "reject", feedback: "Shell commands are not allowed." });
await ask("Delete everything anyway.", { kind: "reject" });
await session.disconnect();
await client.stop();
