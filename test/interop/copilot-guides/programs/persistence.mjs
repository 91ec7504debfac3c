// Multiple sessions, custom IDs, persistence and resume: also by another client, after the first runtime has ended.
import { approveAll, CopilotClient } from "@github/copilot-sdk";

const options = { gitHubToken: "token-of-the-guide", logLevel: "error" };
const first = new CopilotClient(options);
const config = { model: "claude-sonnet-4.5", onPermissionRequest: approveAll };
const one = await first.createSession({ ...config, sessionId: "my-custom-session-id" });
const two = await first.createSession(config);
console.log("id:", one.sessionId);
console.log("one:", (await one.sendAndWait({ prompt: "Remember the number 42." }))?.data.content);
console.log("two:", (await two.sendAndWait({ prompt: "Hello from session 2" }))?.data.content);
await one.disconnect();

const again = await first.resumeSession("my-custom-session-id", config);
console.log("again:", (await again.sendAndWait({ prompt: "Which number was it?" }))?.data.content);
console.log("last:", await first.getLastSessionId());
await first.stop();

const second = new CopilotClient(options);
await second.start();
const sessions = await second.listSessions({ cwd: process.cwd() });
console.log(
  "listed:",
  sessions.length,
  sessions.some(({ sessionId }) => sessionId === "my-custom-session-id"),
);
const resumed = await second.resumeSession("my-custom-session-id", { ...config, streaming: true });
const history = await resumed.getEvents();
console.log("history:", history.map(({ type }) => type).join(" "));
console.log("resumed:", (await resumed.sendAndWait({ prompt: "And doubled?" }))?.data.content);
const metadata = await second.getSessionMetadata("my-custom-session-id");
console.log("metadata:", metadata?.summary, metadata?.isRemote, metadata?.context?.cwd);
await resumed.disconnect();
await second.deleteSession("my-custom-session-id");
console.log(
  "deleted:",
  (await second.listSessions()).every(({ sessionId }) => sessionId !== "my-custom-session-id"),
);
await second.resumeSession("my-custom-session-id", config).catch((error) => console.log("error:", error.message));
await second.stop();
