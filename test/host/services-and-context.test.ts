import { createHost, definePlugin, type HostOptions, type SessionOptions, serveMcp, type ToolInvocation } from "skillhost";
import { describe, expect, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { fakeChat } from "../doubles/fake-chat.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { skillMd, tempFolder } from "../skills/kit.ts";

// As a skill's author writes it: one file with a tool, a prompt and a resource.
const module = `import { definePrompt, defineResource, defineTool } from "skillhost";
const seen = ({ services, context }) => JSON.stringify({ greeting: services.greet?.("Ada"), user: context?.user });
export const who = defineTool("who", { skipPermission: true, handler: (_args, invocation) => seen(invocation) });
export const nested = defineTool("nested", { skipPermission: true, handler: async (_args, _invocation, { callTool }) => (await callTool("who", {})).textResultForLlm });
export const keys = defineTool("keys", { skipPermission: true, handler: (_args, invocation) => JSON.stringify(Object.keys({ ...invocation }).sort()) });
export const ask = definePrompt("ask", { handler: (_args, context) => seen(context) });
export const page = defineResource("page://one", { read: (_uri, _variables, context) => seen(context) });
`;

const services = { greet: (name: string) => `Hello, ${name}.` };
const context = { user: "u1" };
const both = JSON.stringify({ greeting: "Hello, Ada.", user: "u1" });

async function openHost(options: HostOptions = {}) {
  const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/all.ts": module });
  return createHost({ skillDirectories: [root], watch: false, logger: silentLogger, trust: { folders: true }, ...options });
}

async function seenIn(options: HostOptions, sessionOptions: SessionOptions): Promise<string> {
  await using host = await openHost(options);
  const session = await host.createSession(sessionOptions);
  return (await session.callTool("who", {})).textResultForLlm;
}

describe("services of the host and the context of a session", () => {
  test("handlers of a skill's tools, prompts and resources read them, also in nested calls", async () => {
    await using host = await openHost({ services });
    const session = await host.createSession({ context });
    expect((await session.callTool("who", {})).textResultForLlm).toBe(both);
    expect((await session.callTool("nested", {})).textResultForLlm).toBe(both);
    expect((await session.getPrompt("ask")).messages).toMatchObject([{ content: { text: both } }]);
    expect(await session.readResource("page://one")).toMatchObject([{ text: both }]);
  });

  test("without them, the services are an empty object and the context is undefined", async () => {
    expect(await seenIn({}, {})).toBe("{}");
    expect(await seenIn({ services }, {})).toBe(JSON.stringify({ greeting: "Hello, Ada." }));
    expect(await seenIn({}, { context })).toBe(JSON.stringify({ user: "u1" }));
  });

  test("each session has its own context, and update replaces it for later calls", async () => {
    await using host = await openHost({ services });
    const one = await host.createSession({ context });
    const two = await host.createSession({ context: { user: "u2" } });
    expect((await two.callTool("who", {})).textResultForLlm).toContain('"u2"');
    await one.update({ context: { user: "u3" } });
    expect((await one.callTool("who", {})).textResultForLlm).toContain('"u3"');
    expect((await two.callTool("who", {})).textResultForLlm).toContain('"u2"');
  });

  test("they are not own keys of an invocation, and no event or log contains them", async () => {
    const folder = emptyFolder();
    await using host = await openHost({ services: { ...services, secret: "s3cret" }, sessionsDirectory: folder });
    const session = await host.createSession({ context: { ...context, token: "t0ken" } });
    const keys = JSON.parse((await session.callTool("keys", {})).textResultForLlm);
    expect(keys).toEqual(["arguments", "sessionId", "signal", "toolCallId", "toolName", "workingDirectory"]);
    const exported = await host.exportSession(session.id);
    expect(exported).toContain("session.start");
    expect(exported).not.toMatch(/s3cret|t0ken|u1/);
  });

  test("a session that is resumed in the same process keeps its context, in another program it has what that gives", async () => {
    const folder = emptyFolder();
    const options = { services, sessionsDirectory: folder };
    await using host = await openHost(options);
    const session = await host.createSession({ context });
    await session.disconnect();
    const resumed = await host.resumeSession(session.id);
    expect((await resumed.callTool("who", {})).textResultForLlm).toBe(both);
    await resumed.disconnect();
    await using other = await openHost(options);
    const elsewhere = await other.resumeSession(session.id, { context: { user: "u9" } });
    expect((await elsewhere.callTool("who", {})).textResultForLlm).toContain('"u9"');
  });

  test("tools that a sub-agent calls, that a plugin defines and that the program passes read the same", async () => {
    const seenBy = (_args: unknown, invocation: ToolInvocation) => JSON.stringify([invocation.services, invocation.context]);
    const plugin = definePlugin({
      name: "p",
      activate: (api) => void api.addTools([{ name: "of-plugin", handler: seenBy }]),
    });
    const chat = fakeChat(
      { calls: [{ name: "task", args: { agent_type: "helper", description: "d", prompt: "Go." } }] },
      { calls: [{ name: "own", args: {} }] },
      { content: "Done." },
      { content: "All done." },
    );
    await using host = await openHost({ services: { a: 1 }, plugins: [plugin] });
    const heard: string[] = [];
    const own = { name: "own", handler: (args: unknown, invocation: ToolInvocation) => void heard.push(seenBy(args, invocation)) };
    const session = await host.createSession({
      context,
      chatModel: chat,
      tools: [own],
      customAgents: [{ name: "helper", prompt: "You help." }],
      onPermissionRequest: () => ({ kind: "approve-once" }),
    });
    expect((await session.callTool("of-plugin", {})).textResultForLlm).toBe('[{"a":1},{"user":"u1"}]');
    await session.sendAndWait("Go.");
    expect(heard).toEqual(['[{"a":1},{"user":"u1"}]']);
  });

  test("a session that is served over MCP has the context that the server was started with", async () => {
    await using host = await openHost({ services });
    await using server = await serveMcp(host, { transport: "http", port: 0, session: { context } });
    const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "who", arguments: {} } };
    const headers = {
      authorization: `Bearer ${server.token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    const hello = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } };
    const begun = await fetch(server.url, {
      method: "POST",
      headers,
      body: JSON.stringify({ ...body, method: "initialize", params: hello }),
    });
    await begun.text();
    const session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" };
    const answer = await fetch(server.url, { method: "POST", headers: { ...headers, ...session }, body: JSON.stringify(body) });
    expect(await answer.text()).toContain(JSON.stringify(both).slice(1, -1));
  });

  test.each([
    ["services", { services: "db" }, {}, "HOST_OPTIONS", /services must be an object/],
    ["context", {}, { context: [] }, "SESSION_OPTIONS", /context must be an object/],
  ])("an option %s that is not an object is refused by its name", async (_name, options, sessionOptions, code, message) => {
    await expect(seenIn(options as never, sessionOptions as never)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });
});
