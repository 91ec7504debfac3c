import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import type { LocalServerSpec } from "../../src/formats/mcp/mcp-server-spec.ts";
import type { ServerLease } from "../../src/mcp/supervisor/server-lease.ts";
import type { McpSupervisor } from "../../src/mcp/supervisor/supervisor.ts";
import { ServerView } from "../../src/mcp/views/server-view.ts";
import type { ToolResult } from "../../src/tools/tool.ts";
import { createMemoryApprovals } from "../../src/trust/approvals.ts";
import { patience } from "../slowness.ts";
import { contextOf, localSpec, never, nextChange } from "./fake-servers.ts";
import { realSupervisor } from "./tiny-servers.ts";

const script = fileURLToPath(new URL("./offers-server.mjs", import.meta.url));
const spec: LocalServerSpec = localSpec("offers", { command: process.execPath, args: [script], cwd: undefined, timeout: patience(20_000) });

let supervisor: McpSupervisor | undefined;

afterEach(async () => {
  await supervisor?.[Symbol.asyncDispose]();
});

async function open(): Promise<{ view: ServerView; lease: ServerLease }> {
  supervisor = realSupervisor();
  const lease = supervisor.acquire([spec]);
  const view = new ServerView(lease, { approvals: createMemoryApprovals() });
  await lease.ready(never, { waitMs: 30_000 });
  await view.ready(never);
  expect(lease.servers[0]!.status.error).toBeUndefined();
  return { view, lease };
}

async function call(view: ServerView, name: string, args: object = {}, updates: object[] = []): Promise<ToolResult> {
  const tool = view.snapshot.tools.find(({ definition }) => definition.name === name)!;
  return (await tool.execute(args, contextOf({ progress: (update) => updates.push(update) }))) as ToolResult;
}

test("everything that a server made with the official SDK has can be used through its view", async () => {
  const { view } = await open();
  const { snapshot } = view;
  expect(snapshot.diagnostics).toEqual([]);
  expect(snapshot.tools.map(({ definition }) => definition.name)).toEqual(["offers-read", "offers-fail", "offers-rename", "offers-tamper"]);
  expect(snapshot.instructions).toEqual([{ server: "offers", text: "Read before you write." }]);

  const updates: object[] = [];
  expect(await call(view, "offers-read", { path: "a" }, updates)).toMatchObject({
    resultType: "success",
    textResultForLlm: "content of a",
  });
  expect(updates).toEqual([{ progress: 1, total: 2, message: "half" }]);
  expect(await call(view, "offers-fail")).toMatchObject({ resultType: "failure", textResultForLlm: "no such file" });

  const context = { signal: never, services: {}, ask: () => Promise.reject(new Error("no user is available")) };
  const [prompt] = snapshot.prompts;
  expect((await prompt!.complete!("language", "py", { arguments: {}, signal: never })).values).toEqual(["python"]);
  expect((await prompt!.get({ language: "perl" }, context)).messages).toEqual([
    { role: "user", content: { type: "text", text: "Review this perl." } },
  ]);
  const notes = snapshot.resources.find(({ definition }) => definition.uri === "notes://all");
  expect(await notes!.read("notes://all", context)).toMatchObject([{ text: "All notes" }]);
  const note = snapshot.resourceTemplates.find((template) => template.match("notes://2026/may") !== undefined);
  expect(await note!.read("notes://2026/may", context)).toMatchObject([{ text: "may of 2026" }]);
});

test("a tool that a server changes while it is connected is held back until it is approved", async () => {
  const { view } = await open();
  const changed = nextChange(view);
  await call(view, "offers-rename");
  await changed;
  expect(view.snapshot.held).toMatchObject([{ kind: "tool", name: "read", diff: ['- description: "Reads."', '+ description: "Writes."'] }]);
  expect(view.snapshot.tools.map(({ definition }) => definition.name)).not.toContain("offers-read");
  await view.approve("offers", "read");
  expect(await call(view, "offers-read", { path: "b" })).toMatchObject({ textResultForLlm: "content of b" });
});

test("the skills of a server made with the official SDK are read and verified", async () => {
  const { view } = await open();
  const [skill] = view.snapshot.skills;
  expect(skill).toMatchObject({ name: "offers/refunds", description: '[MCP server "offers"] Refunds customers.' });
  expect(await skill!.instructions()).toContain("# Refunds");
  expect(Buffer.from(await skill!.read("notes/a b.md")).toString()).toBe("Note A");
  await expect(skill!.read("notes/b.md")).rejects.toMatchObject({ code: "SKILL_FILE_UNLISTED" });
  await call(view, "offers-tamper");
  // The official server refuses to give what it does not list, too.
  await expect(skill!.read("notes/a b.md")).rejects.toMatchObject({ code: expect.stringMatching(/^(SKILL_DIGEST|MCP_ERROR)$/) });
});
