import { expect, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import type { ServerTraffic } from "../../src/host/session-server-sets.ts";
import { scriptedModel } from "../../src/models/scripted-model.ts";
import { approveAll } from "../../src/tools/tool.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { putAll, skillMd, tempFolder } from "../skills/kit.ts";
import { hostIn, serverNamed } from "./servers-kit.ts";

const tool = (name: string, text: string): string =>
  `import { defineTool } from "skillhost";\nexport default defineTool("${name}", { description: "${text}", handler: () => "${text}" });\n`;

test("a host lists the tools of all sources with the rule that decided their names", async () => {
  const folder = tempFolder({
    "skills/one/SKILL.md": skillMd("one"),
    "skills/one/tools/greet.ts": tool("greet", "first"),
    "skills/two/SKILL.md": skillMd("two"),
    "skills/two/tools/greet.ts": tool("greet", "second"),
  });
  const host = await hostIn(folder, { skillDirectories: ["./skills"], mcpServers: { notes: serverNamed("n") } });
  await host.connectServers();
  const greets = host.tools.filter(({ name }) => name === "greet");
  expect(greets.map(({ state }) => state).sort()).toEqual(["lost", "wins"]);
  expect(greets.every(({ rule, definition }) => rule !== "" && definition.name === "greet")).toBe(true);
  expect(host.tools.find(({ nativeName }) => nativeName === "echo")).toMatchObject({ kind: "mcp", source: "notes", name: "notes-echo" });
});

test("a host announces its sessions before anything happens in them, with what opened them", async () => {
  await using host = await createHost({ skillDirectories: [], plugins: [], watch: false, logger: silentLogger });
  const seen: string[] = [];
  host.on("session.opened", ({ session, client }) => {
    seen.push(`opened ${session.id} by ${client}`);
    session.on((event) => seen.push(`${session.id} ${event.type}`));
  });
  host.on("session.closed", ({ sessionId }) => seen.push(`closed ${sessionId}`));
  const first = await host.createSession({ sessionId: "a" });
  await host.createSession({ sessionId: "b" }, { client: "mcp" });
  expect(host.openSessions.map(({ session, client }) => [session.id, client])).toEqual([
    ["a", "library"],
    ["b", "mcp"],
  ]);
  await first.disconnect();
  expect(host.openSessions.map(({ session }) => session.id)).toEqual(["b"]);
  expect(seen[0]).toBe("opened a by library");
  expect(seen).toContain("opened b by mcp");
  expect(seen.at(-1)).toBe("closed a");
});

test("changed is emitted once for the changes of a turn, also for skills that are disabled", async () => {
  const folder = tempFolder({ "skills/one/SKILL.md": skillMd("one"), "skills/two/SKILL.md": skillMd("two") });
  const host = await hostIn(folder, { skillDirectories: ["./skills"] });
  let count = 0;
  host.on("changed", () => count++);
  host.disableSkill("one");
  host.disableSkill("two");
  await new Promise(setImmediate);
  expect(count).toBe(1);
  putAll(folder, { "skills/three/SKILL.md": skillMd("three") });
  await host.reload();
  await new Promise(setImmediate);
  expect(count).toBe(2);
});

test("the messages of MCP servers are passed on while something listens, and a server can be restarted", async () => {
  const host = await hostIn(emptyFolder(), { mcpServers: { notes: serverNamed("n") } });
  await host.connectServers();
  const traffic: ServerTraffic[] = [];
  const listening = host.on("server.message", (message) => traffic.push(message));
  const session = await host.createSession({ onPermissionRequest: approveAll });
  await session.callTool("notes/echo", { text: "hello" });
  const calls = traffic.filter(({ message }) => message["method"] === "tools/call");
  expect(calls).toMatchObject([{ server: "notes", direction: "sent", message: { params: { arguments: { text: "hello" } } } }]);
  expect(traffic.find(({ direction, message }) => direction === "received" && message["id"] === calls[0]?.message["id"])).toBeDefined();
  listening[Symbol.dispose]();
  const before = traffic.length;
  await session.callTool("notes/echo", { text: "again" });
  expect(traffic).toHaveLength(before);
  const [{ pid } = {}] = host.listServers();
  await host.restartServer("notes");
  expect(host.listServers()).toMatchObject([{ name: "notes", status: "connected" }]);
  expect(host.listServers()[0]?.pid).not.toBe(pid);
  await expect(host.restartServer("missing")).rejects.toMatchObject({ code: "MCP_SERVER_UNKNOWN" });
});

test("a session keeps the last request as its model got it", async () => {
  const chatModel = scriptedModel("Hello");
  await using host = await createHost({ skillDirectories: [], plugins: [], watch: false, logger: silentLogger });
  const session = await host.createSession({ chatModel });
  expect(session.conversation.lastRequest).toBeUndefined();
  await session.sendAndWait("Hi");
  expect(session.conversation.lastRequest?.request).toBe(chatModel.requests[0]);
});
