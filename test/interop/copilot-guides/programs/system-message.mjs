// The system message: appended to, customised section by section with every action, and replaced.
import { approveAll, CopilotClient, SYSTEM_MESSAGE_SECTIONS } from "@github/copilot-sdk";

console.log("sections:", Object.keys(SYSTEM_MESSAGE_SECTIONS).join(" "));
const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const messages = [
  { content: "<workflow_rules>\n- Always check for security vulnerabilities\n</workflow_rules>" },
  { mode: "append", content: "Appended by mode." },
  {
    mode: "customize",
    sections: {
      identity: { action: "remove" },
      preamble: { action: "preserve" },
      tone: { action: "replace", content: "Respond in a warm, professional tone." },
      code_change_rules: { action: "remove" },
      guidelines: { action: "append", content: "\n* Always cite data sources" },
      safety: { action: "prepend", content: "Safety comes first." },
      environment_context: { action: (content) => `${content.length > 0 ? "Transformed." : "Empty."}` },
      no_such_section: { action: "replace", content: "Content of an unknown section." },
    },
    content: "Focus on financial analysis and reporting.",
  },
  { mode: "replace", content: "You are a helpful assistant." },
];
for (const systemMessage of messages) {
  const session = await client.createSession({ model: "claude-sonnet-4.5", onPermissionRequest: approveAll, systemMessage });
  console.log("answer:", (await session.sendAndWait({ prompt: "Who are you?" }))?.data.content);
  await session.disconnect();
}
await client.stop();
