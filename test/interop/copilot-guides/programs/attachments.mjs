// Attachments: files, folders, selections, images of a path, and images as data.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { approveAll, CopilotClient } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const session = await client.createSession({ model: "claude-sonnet-4.5", onPermissionRequest: approveAll });
const path = (name) => join(process.cwd(), name);
const messages = [
  { prompt: "Analyze this file", attachments: [{ type: "file", path: path("file.js"), displayName: "My File" }] },
  { prompt: "And this folder", attachments: [{ type: "directory", path: path("docs"), displayName: "Docs" }] },
  {
    prompt: "What does this do?",
    attachments: [
      {
        type: "selection",
        filePath: path("file.js"),
        displayName: "file.js",
        text: "const answer = 42;",
        selection: { start: { line: 0, character: 0 }, end: { line: 0, character: 18 } },
      },
    ],
  },
  { prompt: "What's in this image?", attachments: [{ type: "file", path: path("dot.png") }] },
  {
    prompt: "And in this one?",
    attachments: [{ type: "blob", data: readFileSync("dot.png").toString("base64"), mimeType: "image/png", displayName: "dot" }],
  },
  { prompt: "Look at the image yourself." },
  { prompt: "Context updated", source: "system" },
];
for (const message of messages) console.log("answer:", (await session.sendAndWait(message))?.data.content);
await session.disconnect();
await client.stop();
