import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { defineTool } from "skillhost";
import { z } from "zod";

const fileName = "notifications.jsonl";

// What a call would do, for whoever must allow it: the answer may depend on the text that is to be sent.
const send = defineTool("send_notification", {
  description: "Sends a notification to a user by adding it to the outbox of the project. Sends one each time it is called.",
  parameters: z.object({
    userId: z.number().int().describe("The id of the user to notify."),
    message: z.string().trim().min(1).max(500).describe("What to tell them, in one or two sentences."),
  }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
  permission: ({ userId, message }) => ({ kind: "write", fileName, intention: `Notify user ${userId}: ${message}` }),
  async handler({ userId, message }, { workingDirectory }, { fileChanged }) {
    const file = join(workingDirectory, fileName);
    await appendFile(file, `${JSON.stringify({ userId, message, sentAt: new Date().toISOString() })}\n`);
    const outbox = await readFile(file, "utf8");
    // Editors and servers that have the file open see the same as the disk.
    fileChanged(file, outbox);
    return `The notification for user ${userId} is number ${outbox.split("\n").length - 1} in the outbox.`;
  },
});

const list = defineTool("list_notifications", {
  description: "Lists the notifications in the outbox of the project, oldest first.",
  skipPermission: true,
  annotations: { readOnlyHint: true, idempotentHint: true },
  async handler(_args, { workingDirectory }) {
    const outbox = await readFile(join(workingDirectory, fileName), "utf8").catch(() => "");
    return outbox === "" ? "Nothing was sent yet." : outbox.trimEnd();
  },
});

// One module, two tools.
export default [send, list];
