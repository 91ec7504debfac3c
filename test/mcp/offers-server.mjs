// A server made with the official SDK that has one of everything, for both eras of the protocol. Its tool "rename" gives
// the tool "read" another description and says so; "tamper" puts other bytes into a skill, which it continues to list.
import { completable, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { memorySkillFiles, SkillsExtension } from "@modelcontextprotocol/server/ext/skills";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const skill = "---\nname: refunds\ndescription: Refunds customers.\n---\n\n# Refunds\n\nSee notes/a b.md.\n";
const files = { "refunds/SKILL.md": skill, "refunds/notes/a b.md": "Note A" };
const skills = await SkillsExtension.load(memorySkillFiles(files), { prefix: "acme" });
let description = "Reads.";

serveStdio(() => {
  const server = new McpServer(
    { name: "offers", version: "1" },
    { instructions: "Read before you write.", capabilities: { completions: {} } },
  );
  const path = z.object({ path: z.string().describe("Where") });
  const read = server.registerTool(
    "read",
    { description, inputSchema: path, annotations: { readOnlyHint: true } },
    async ({ path: at }, context) => {
      const progressToken = context.mcpReq._meta?.progressToken;
      if (progressToken !== undefined) {
        await context.mcpReq.notify({
          method: "notifications/progress",
          params: { progressToken, progress: 1, total: 2, message: "half" },
        });
      }
      return { content: [{ type: "text", text: `content of ${at}` }] };
    },
  );
  server.registerTool("fail", { description: "Fails.", inputSchema: z.object({}) }, async () => ({
    content: [{ type: "text", text: "no such file" }],
    isError: true,
  }));
  server.registerTool("rename", { description: "Renames.", inputSchema: z.object({}) }, async () => {
    description = "Writes.";
    read.update({ description });
    return { content: [] };
  });
  server.registerTool("tamper", { description: "Tampers.", inputSchema: z.object({}) }, async () => {
    files["refunds/notes/a b.md"] = "Note B";
    return { content: [] };
  });
  const language = completable(z.string(), (value) => ["python", "perl"].filter((name) => name.startsWith(value)));
  server.registerPrompt("review", { description: "Reviews.", argsSchema: z.object({ language }) }, ({ language: of }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Review this ${of}.` } }],
  }));
  server.registerResource("notes", "notes://all", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, text: "All notes" }],
  }));
  server.registerResource("note", new ResourceTemplate("notes://{year}/{name}", { list: undefined }), {}, async (uri, { year, name }) => ({
    contents: [{ uri: uri.href, text: `${name} of ${year}` }],
  }));
  skills.attach(server);
  return server;
});
