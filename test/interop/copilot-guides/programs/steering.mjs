// Messages while a turn runs: waiting ones, ones that steer it, and its end by abort.
import { approveAll, CopilotClient, defineTool } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
let during = async () => {};
const session = await client.createSession({
  model: "claude-sonnet-4.5",
  onPermissionRequest: approveAll,
  tools: [
    defineTool("work", {
      description: "Works",
      parameters: { type: "object", properties: {} },
      handler: async () => {
        await during();
        return "Worked.";
      },
    }),
  ],
});
session.on("assistant.message", ({ data }) => data.content && console.log("answer:", data.content));
const idle = () => new Promise((resolve) => session.on("session.idle", ({ data }) => resolve(data.aborted === true)));
during = async () => {
  await session.send({ prompt: "Only the first page.", mode: "immediate" });
  await session.send({ prompt: "Then the summary.", mode: "enqueue" });
};
let ended = idle();
await session.send({ prompt: "Work." });
console.log("aborted:", await ended);

// An answer of the tool would race with the end of the turn.
during = () => {
  void session.abort();
  return new Promise(() => {});
};
ended = idle();
await session.send({ prompt: "Work until I stop you." });
console.log("aborted:", await ended);
console.log("after:", (await session.sendAndWait({ prompt: "Still there?" }))?.data.content);
await session.disconnect();
await client.stop();
