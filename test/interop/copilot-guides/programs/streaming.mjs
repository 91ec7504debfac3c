// Streaming: pieces of the answer and of the reasoning as they come, then both complete.
import { approveAll, CopilotClient } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const session = await client.createSession({ model: "claude-sonnet-4.5", streaming: true, onPermissionRequest: approveAll });
let text = "";
let reasoning = "";
const done = new Promise((resolve) => {
  session.on("assistant.message_delta", (event) => {
    text += event.data.deltaContent;
  });
  session.on("assistant.reasoning_delta", (event) => {
    reasoning += event.data.deltaContent;
  });
  session.on("assistant.message", (event) => console.log("message:", event.data.content));
  session.on("assistant.reasoning", (event) => console.log("reasoning:", event.data.content));
  session.on("session.idle", () => resolve());
});
await session.send({ prompt: "Write a short story" });
await done;
console.log("streamed text:", text);
console.log("streamed reasoning:", reasoning);
await session.disconnect();
await client.stop();
