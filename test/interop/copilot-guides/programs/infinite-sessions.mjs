// Infinite sessions: the workspace, thresholds, compaction on demand, and none.
import { existsSync } from "node:fs";
import { approveAll, CopilotClient } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const config = { model: "claude-sonnet-4.5", onPermissionRequest: approveAll };
const session = await client.createSession({
  ...config,
  infiniteSessions: { enabled: true, backgroundCompactionThreshold: 0.8, bufferExhaustionThreshold: 0.95 },
});
console.log("workspace:", session.workspacePath?.endsWith(session.sessionId), existsSync(session.workspacePath));
console.log("first:", (await session.sendAndWait({ prompt: "Remember the number 42." }))?.data.content);
console.log("second:", (await session.sendAndWait({ prompt: "Remember the number 43, too." }))?.data.content);
const compacted = await session.rpc.history.compact();
console.log("compacted:", compacted.success, compacted.messagesRemoved);
console.log("third:", (await session.sendAndWait({ prompt: "Which numbers?" }))?.data.content);
await session.disconnect();

const finite = await client.createSession({ ...config, infiniteSessions: { enabled: false } });
console.log("workspace:", finite.workspacePath);
console.log("finite:", (await finite.sendAndWait({ prompt: "Hello" }))?.data.content);
await finite.disconnect();
await client.stop();
