// Calls two tools as a model would to "get the details of user 123 and welcome them".
// Run it after `npm run build`: node examples/conversation.mjs
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHost } from "skillhost";

const workingDirectory = await mkdtemp(join(tmpdir(), "conversation-"));
const skillDirectories = [fileURLToPath(new URL(".", import.meta.url))];
const host = await createHost({ skillDirectories, workingDirectory, watch: false });
const session = await host.createSession({
  persist: false,
  availableTools: ["users/get_user", "skill:notifications"],
  // Allows looking up users, and writing if the tool states its intention.
  onPermissionRequest({ kind, toolName, intention }) {
    if (toolName === "get_user") return { kind: "approve-once" };
    if (kind !== "write" || typeof intention !== "string") return { kind: "reject", feedback: "State what would be written." };
    console.log(`allowed: ${intention}`);
    return { kind: "approve-once" };
  },
});

try {
  const found = await session.callTool("get_user", { id: 123 });
  console.log(`get_user: ${found.textResultForLlm}`);
  const { id, name } = JSON.parse(found.textResultForLlm);
  const sent = await session.callTool("send_notification", { userId: id, message: `Welcome, ${name}!` });
  console.log(`send_notification: ${sent.textResultForLlm}`);
} finally {
  await host.close();
  await rm(workingDirectory, { recursive: true });
}
