// Error handling: a model that refuses, a session without a model, a wrong option, and a session that is unknown.
import { approveAll, CopilotClient } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const tried = (what, promise) =>
  promise.then(
    (value) => console.log(what, "worked:", value?.data?.content),
    (error) => console.log(what, "failed:", error.message),
  );
const session = await client.createSession({ model: "claude-sonnet-4.5", onPermissionRequest: approveAll });
session.on("session.error", ({ data }) => console.log("session.error:", data.errorType, data.statusCode));
const idle = new Promise((resolve) => session.on("session.idle", resolve));
await tried("refused", session.sendAndWait({ prompt: "Hello" }));
await idle;
await tried("again", session.sendAndWait({ prompt: "Hello" }));
await session.disconnect();
await tried("disconnected", session.send({ prompt: "Hello" }));
const unnamed = await client.createSession({ onPermissionRequest: approveAll });
await tried("unnamed", unnamed.sendAndWait({ prompt: "Hello" }));
await tried("unknown session", client.resumeSession("no-such-session", { onPermissionRequest: approveAll }));
await tried("unknown model", unnamed.setModel("no-such-model"));
await client.stop();
