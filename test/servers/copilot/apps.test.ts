import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

// A server of the protocol with a handshake, with a page and tools that say whom they are for.
const shop = `
import { createInterface } from "node:readline";
const schema = { type: "object", properties: { item: { type: "string" } } };
const tools = [
  { name: "show_cart", description: "Shows the cart.", inputSchema: schema, _meta: { ui: { resourceUri: "ui://shop/cart" } } },
  { name: "add_item", description: "Adds.", inputSchema: schema, _meta: { ui: { resourceUri: "ui://shop/cart", visibility: ["app"] } } },
  { name: "audit", description: "For models only.", inputSchema: schema, _meta: { ui: { visibility: ["model"] } } },
];
const answers = {
  initialize: () => ({ protocolVersion: "2025-06-18", capabilities: { tools: {}, resources: {} }, serverInfo: { name: "shop", version: "1" } }),
  "tools/list": () => ({ tools }),
  "tools/call": ({ name, arguments: args }) => name === "show_cart"
    ? { content: [{ type: "text", text: "no" }], isError: true }
    : { content: [{ type: "text", text: "added " + args.item }], structuredContent: { count: 1 } },
  "resources/list": () => ({ resources: [{ uri: "ui://shop/cart", name: "cart", mimeType: "text/html" }] }),
  "resources/templates/list": () => ({ resourceTemplates: [] }),
  "resources/read": ({ uri }) => ({ contents: [{ uri, mimeType: "text/html", text: "<p>cart</p>" }] }),
  ping: () => ({}),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const reply = answer ? { result: answer(params) } : { error: { code: -32601, message: "no such method" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...reply }) + "\\n");
}
`;

async function session(options: object = {}): Promise<{ readonly client: TestClient; readonly sessionId: string }> {
  served = await Served.start({ files: { "shop.mjs": shop } });
  const client = await served.connect();
  client.serve();
  const server = { type: "local", command: process.execPath, args: [join(served.folder, "shop.mjs")], tools: ["*"] };
  return { client, sessionId: await client.create({ model: "m", mcpServers: { shop: server }, ...options }) };
}

/** A server with resources and templates, whose texts say whose they are. */
const notes = `
import { createInterface } from "node:readline";
const [name, ...uris] = process.argv.slice(2);
const answers = {
  initialize: () => ({ protocolVersion: "2025-06-18", capabilities: { resources: {} }, serverInfo: { name, version: "1" } }),
  "resources/list": () => ({ resources: uris.map((uri) => ({ uri, name: uri })) }),
  "resources/templates/list": () => ({ resourceTemplates: [{ uriTemplate: "note://all/{id}", name: "notes of " + name }] }),
  "resources/read": ({ uri }) => ({ contents: [{ uri, text: name + " says" }] }),
  ping: () => ({}),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const reply = answer ? { result: answer(params) } : { error: { code: -32601, message: "no such method" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...reply }) + "\\n");
}
`;

const own = { serverName: "shop", originServerName: "shop" };

describe("MCP Apps", () => {
  test("a page may list and call the tools of its own server that are for pages", async () => {
    const { client, sessionId } = await session({ requestMcpApps: true });
    const { tools } = await client.request("session.mcp.apps.listTools", { sessionId, ...own });
    expect(tools.map(({ name }: Json) => name)).toEqual(["add_item", "show_cart"]);
    expect(tools[1]).toMatchObject({ inputSchema: { type: "object" }, _meta: { ui: { resourceUri: "ui://shop/cart" } } });
    const call = { sessionId, ...own, toolName: "add_item", arguments: { item: "tea" } };
    const added = await client.request("session.mcp.apps.callTool", call);
    expect(added).toMatchObject({ content: [{ type: "text", text: "added tea" }], structuredContent: { count: 1 } });
    expect(added.isError).toBeUndefined();
    const { data } = await client.event("mcp_app.tool_call_complete");
    expect(data).toMatchObject({ serverName: "shop", toolName: "add_item", success: true, arguments: { item: "tea" } });
    expect(await client.request("session.mcp.apps.callTool", { ...call, toolName: "show_cart" })).toMatchObject({ isError: true });
    expect((await client.refusal("session.mcp.apps.callTool", { ...call, toolName: "audit" })).message).toContain("no tool");
    const { contents } = await client.request("session.mcp.apps.readResource", { sessionId, serverName: "shop", uri: "ui://shop/cart" });
    expect(contents).toMatchObject([{ uri: "ui://shop/cart", mimeType: "text/html", text: "<p>cart</p>" }]);
  });

  test("a page of another server may call nothing", async () => {
    const { client, sessionId } = await session({ requestMcpApps: true });
    const stranger = { sessionId, serverName: "shop", originServerName: "other", toolName: "add_item" };
    for (const method of ["session.mcp.apps.listTools", "session.mcp.apps.callTool"]) {
      expect((await client.refusal(method, stranger)).message).toContain("must not call tools");
    }
    expect((await client.refusal("session.mcp.apps.listTools", { sessionId, serverName: "shop" })).message).toContain("originServerName");
  });

  test("the host context of pages is stored, and the state is diagnosed", async () => {
    const { client, sessionId } = await session({ requestMcpApps: true });
    await client.request("session.mcp.apps.setHostContext", { sessionId, context: { theme: "dark", locale: "nb-NO" } });
    expect(await client.request("session.mcp.apps.getHostContext", { sessionId })).toEqual({ context: { theme: "dark", locale: "nb-NO" } });
    expect(await client.request("session.mcp.apps.diagnose", { sessionId, serverName: "shop" })).toMatchObject({
      capability: { sessionHasMcpApps: true },
      server: { connected: true, toolCount: 3, toolsWithUiMeta: 3, sampleToolNames: ["add_item", "audit", "show_cart"] },
    });
    expect(await client.request("session.mcp.apps.diagnose", { sessionId, serverName: "gone" })).toMatchObject({
      server: { connected: false },
    });
  });

  test("are refused to a session whose client shows none", async () => {
    const { client, sessionId } = await session();
    expect((await client.refusal("session.mcp.apps.getHostContext", { sessionId })).message).toContain("not enabled");
    const resumed = await client.request("session.resume", { sessionId, requestMcpApps: true, requestPermission: true });
    expect(resumed.capabilities.ui.mcpApps).toBe(true);
  });
});

describe("sampling", () => {
  const request = { messages: [{ role: "user", content: { type: "text", text: "A haiku." } }], maxTokens: 50 };

  test("the session's model writes what a server wants written", async () => {
    const { client, sessionId } = await session();
    served.says("Old pond.");
    const done = await client.request("session.mcp.executeSampling", {
      sessionId,
      requestId: "s1",
      serverName: "shop",
      mcpRequestId: 1,
      request,
    });
    expect(done).toMatchObject({ action: "success", result: { role: "assistant", content: { type: "text", text: "Old pond." } } });
    const failed = await client.request("session.mcp.executeSampling", {
      sessionId,
      requestId: "s2",
      serverName: "shop",
      mcpRequestId: 2,
      request: {},
    });
    expect(failed).toMatchObject({ action: "failure", error: expect.stringContaining("no messages") });
  });

  test("what is cancelled says so, and nothing else can be", async () => {
    const { client, sessionId } = await session();
    served.model.answer({ steps: ["silence"] });
    const running = client.request("session.mcp.executeSampling", {
      sessionId,
      requestId: "s1",
      serverName: "shop",
      mcpRequestId: 1,
      request,
    });
    await served.model.request(0);
    expect(await client.request("session.mcp.cancelSamplingExecution", { sessionId, requestId: "s1" })).toEqual({ cancelled: true });
    expect(await running).toEqual({ action: "cancelled" });
    expect(await client.request("session.mcp.cancelSamplingExecution", { sessionId, requestId: "s1" })).toEqual({ cancelled: false });
  });
});

describe("approvals for a place", () => {
  test("hold for calls that were not made yet", async () => {
    const { client, sessionId } = await session();
    const { locationKey } = await client.request("session.permissions.locations.resolve", { sessionId, workingDirectory: served.folder });
    const approval = { kind: "mcp", serverName: "shop", toolName: null };
    expect(await client.request("session.permissions.locations.addToolApproval", { sessionId, locationKey, approval })).toEqual({
      success: true,
    });
    served.says({ toolCalls: [{ id: "c1", name: "shop-add_item", arguments: { item: "tea" } }] }, "Done.");
    await client.say(sessionId, "Buy tea.");
    expect(client.types()).not.toContain("permission.requested");
    const nothing = { kind: "custom-tool", toolName: "nope" };
    expect(
      (await client.refusal("session.permissions.locations.addToolApproval", { sessionId, locationKey, approval: nothing })).message,
    ).toContain("does not match a tool");
  });
});

describe("the prompt of an agent", () => {
  test("can be another for a session's own agent and for a built-in one", async () => {
    const { client, sessionId } = await session({ customAgents: [{ name: "poet", prompt: "Rhyme." }], agent: "poet" });
    await client.request("session.agent.setPrompt", { sessionId, id: "poet", prompt: "Never rhyme." });
    served.says("Prose.");
    await client.say(sessionId, "Hi.");
    expect(served.asked.messages[0].content).toContain("Never rhyme.");
    await client.request("session.agent.setPrompt", { sessionId, id: "explore", prompt: "Look twice." });
    expect(served.server.sessions.get(sessionId)?.session.config.agents.all.get("explore")?.prompt).toBe("Look twice.");
    expect((await client.refusal("session.agent.setPrompt", { sessionId, id: "missing", prompt: "x" })).message).toContain("no agent");
  });
});

describe("resources of one of several servers", () => {
  test.each(["session.mcp.apps.readResource", "session.mcp.resources.read"])(
    "%s reads what that server offers, and nothing of others",
    async (method) => {
      served = await Served.start({ files: { "notes.mjs": notes } });
      const client = await served.connect();
      const server = (...args: string[]): object => ({ command: process.execPath, args: [join(served.folder, "notes.mjs"), ...args] });
      const mcpServers = { alpha: server("alpha", "ui://same", "ui://alpha"), beta: server("beta", "ui://same", "ui://beta") };
      const sessionId = await client.create({ model: "m", mcpServers, requestMcpApps: true });
      const read = async (serverName: string, uri: string): Promise<Json> =>
        (await client.request(method, { sessionId, serverName, uri })).contents[0].text;
      for (const name of ["alpha", "beta"]) {
        expect(await read(name, "ui://same")).toBe(`${name} says`);
        expect(await read(name, `ui://${name}`)).toBe(`${name} says`);
        expect(await read(name, "note://all/1")).toBe(`${name} says`);
        const { resources } = await client.request("session.mcp.resources.list", { sessionId, serverName: name });
        expect(resources.map(({ uri }: Json) => uri)).toEqual(["ui://same", `ui://${name}`]);
      }
      for (const [serverName, uri] of [
        ["alpha", "ui://beta"],
        ["beta", "ui://alpha"],
        ["alpha", "ui://missing"],
      ] as const)
        expect((await client.refusal(method, { sessionId, serverName, uri })).message).toContain(uri);
    },
  );
});
