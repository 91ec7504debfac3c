import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { defineTool } from "skillhost";
import { z } from "zod";

const fileName = "notifications.jsonl";

// `permission` describes what the call would do, so that the decision can depend on the message.
const send = defineTool("send_notification", {
  description: "Sends a notification to a user by adding it to the project's outbox. Each call sends one notification.",
  parameters: z.object({
    userId: z.number().int().describe("Id of the user to notify."),
    message: z.string().trim().min(1).max(500).describe("Text of the notification, in one or two sentences."),
  }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
  permission: ({ userId, message }) => ({ kind: "write", fileName, intention: `Notify user ${userId}: ${message}` }),
  async handler({ userId, message }, { workingDirectory }, { fileChanged }) {
    const file = join(workingDirectory, fileName);
    await appendFile(file, `${JSON.stringify({ userId, message, sentAt: new Date().toISOString() })}\n`);
    const outbox = await readFile(file, "utf8");
    // Updates editors and servers that have the file open.
    fileChanged(file, outbox);
    return `The notification for user ${userId} is number ${outbox.split("\n").length - 1} in the outbox.`;
  },
});

const list = defineTool("list_notifications", {
  description: "Lists the notifications in the project's outbox, oldest first.",
  skipPermission: true,
  annotations: { readOnlyHint: true, idempotentHint: true },
  async handler(_args, { workingDirectory }) {
    const outbox = await readFile(join(workingDirectory, fileName), "utf8").catch(() => "");
    return outbox === "" ? "No notifications sent yet." : outbox.trimEnd();
  },
});

// One module, two tools.
export default [send, list];
