// Custom agents: one that the model may start as a sub-agent with its own tools and model, and one that is selected.
import { approveAll, CopilotClient, defineTool } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const session = await client.createSession({
  model: "claude-sonnet-4.5",
  onPermissionRequest: approveAll,
  tools: [
    defineTool("count_files", {
      description: "Counts files",
      parameters: { type: "object", properties: {} },
      handler: () => "There are 3 files.",
    }),
    defineTool("secret_tool", { description: "Only for agents", parameters: { type: "object", properties: {} }, handler: () => "secret" }),
  ],
  defaultAgent: { excludedTools: ["secret_tool"] },
  customAgents: [
    {
      name: "counter",
      displayName: "Counter",
      description: "Counts the files of a project",
      tools: ["count_files"],
      prompt: "You count files.",
      infer: true,
      model: "claude-sonnet-4.5",
    },
    { name: "editor", displayName: "Editor", description: "Edits texts", tools: null, prompt: "You edit texts.", infer: false },
  ],
});
console.log("agents:", (await session.rpc.agent.list()).agents.map(({ name }) => name).join(", "));
console.log("delegated:", (await session.sendAndWait({ prompt: "Have the counter count the files." }))?.data.content);
await session.rpc.agent.select({ name: "editor" });
console.log("current:", (await session.rpc.agent.getCurrent()).agent?.name);
console.log("edited:", (await session.sendAndWait({ prompt: "Edit this text." }))?.data.content);
await session.rpc.agent.deselect();
await session.disconnect();
await client.stop();
