// Quick start and manual server control: start, ask, read the history, list the models, stop.
import { approveAll, CopilotClient } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const lifecycle = new Set();
client.onLifecycle((event) => lifecycle.add(event.type));
await client.start();
console.log("ping:", (await client.ping("hello")).message);
console.log("models:", (await client.listModels()).map(({ id }) => id).join(", "));
console.log("signed in:", (await client.getAuthStatus()).isAuthenticated);

const session = await client.createSession({ model: "claude-sonnet-4.5", onPermissionRequest: approveAll });
const done = new Promise((resolve) => {
  session.on("assistant.message", (event) => console.log("answer:", event.data.content));
  session.on("session.idle", () => resolve());
});
await session.send({ prompt: "What is 2+2?" });
await done;

const second = await session.sendAndWait({ prompt: "And 3+3?" });
console.log("second:", second?.data.content);
console.log("history:", (await session.getEvents()).map(({ type }) => type).join(" "));
console.log("lifecycle:", [...lifecycle].sort().join(", "));
await session.disconnect();
console.log("errors:", (await client.stop()).length);
