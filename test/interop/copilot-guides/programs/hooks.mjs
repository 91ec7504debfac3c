// Hooks: every one that the guide names, with what each may return.
import { approveAll, CopilotClient, defineTool } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
let stops = 0;
const session = await client.createSession({
  model: "claude-sonnet-4.5",
  onPermissionRequest: approveAll,
  tools: [
    defineTool("look_up", {
      description: "Looks something up",
      parameters: { type: "object", properties: { id: { type: "string" } } },
      handler: ({ id }) => `Record ${id}`,
    }),
    defineTool("fail", {
      description: "Fails",
      parameters: { type: "object", properties: {} },
      handler: () => ({ textResultForLlm: "It failed.", resultType: "failure", error: "broken" }),
    }),
  ],
  hooks: {
    onPreToolUse: async (input) => {
      console.log("pre:", input.toolName, JSON.stringify(input.toolArgs));
      if (input.toolName === "view") return { permissionDecision: "deny", permissionDecisionReason: "No files today." };
      if (input.toolName !== "look_up") return undefined;
      return { permissionDecision: "allow", modifiedArgs: { id: "changed" }, additionalContext: "Extra context for the model" };
    },
    onPostToolUse: async (input) => {
      console.log("post:", input.toolName, input.toolResult.textResultForLlm);
      return { additionalContext: "Post-execution notes", modifiedResult: { ...input.toolResult, textResultForLlm: "A modified result" } };
    },
    onPostToolUseFailure: async (input) => {
      console.log("failure:", input.toolName, input.error);
      return { additionalContext: "Suggest checking inputs and retrying." };
    },
    onUserPromptSubmitted: async (input) => {
      console.log("prompt:", input.prompt);
      return { modifiedPrompt: `${input.prompt} Please.` };
    },
    onSessionStart: async (input) => {
      console.log("start:", input.source, input.initialPrompt);
      return { additionalContext: "Session initialization context" };
    },
    onSessionEnd: async (input) => console.log("end:", input.reason),
    onErrorOccurred: async (input) => {
      console.log("error:", input.errorContext, input.recoverable);
      return { errorHandling: "abort" };
    },
    onAgentStop: async (input) => {
      console.log("stop:", input.stopHookActive, input.stopReason);
      if (stops++ === 0) return { decision: "block", reason: "Run the final validation and fix any failures." };
      return undefined;
    },
  },
});
console.log("answer:", (await session.sendAndWait({ prompt: "Look up 7." }))?.data.content);
console.log("answer:", (await session.sendAndWait({ prompt: "Fail, and view a file." }))?.data.content);
await session.disconnect();
await client.stop();
