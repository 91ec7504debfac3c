import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { calling, type Json, Served, type TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

const declared = { tools: [{ ...weather, skipPermission: true }] };

/** A client whose tool is being called has gone without a word. */
async function abandoned(options: object = declared): Promise<{ sessionId: string; requestId: unknown; next: TestClient }> {
  served = await Served.start();
  const first = await served.connect();
  const sessionId = await first.create({ model: "m", ...options });
  served.says(calling("get_weather", { city: "Oslo" }), "Thank you.");
  await first.request("session.send", { sessionId, prompt: "Weather?" });
  const { data } = await first.eventually(
    () => first.events.find(({ event }) => event.type === "external_tool.requested" || event.type === "permission.requested")?.event,
  );
  const next = await served.connect();
  first.drop();
  await expect.poll(() => served.server.clients.size).toBe(1);
  return { sessionId, requestId: data["requestId"], next };
}

describe("a session whose only client has gone", () => {
  test("a turn continues when another client answers the pending call with continuePendingWork", async () => {
    const { sessionId, requestId, next } = await abandoned();
    await next.request("session.resume", { sessionId, requestPermission: true, ...declared, continuePendingWork: true });
    expect(await next.request("session.tools.handlePendingToolCall", { sessionId, requestId, result: "Sun." })).toEqual({ success: true });
    await next.event("session.idle");
    expect(served.asked.messages.at(-1)).toMatchObject({ role: "tool", content: "Sun." });
  });

  test("does so for a client that brings no tools, too", async () => {
    const { sessionId, requestId, next } = await abandoned();
    await next.request("session.resume", { sessionId, requestPermission: true, continuePendingWork: true });
    await next.request("session.tools.handlePendingToolCall", { sessionId, requestId, result: "Rain." });
    await next.event("session.idle");
    expect(served.asked.messages.at(-1)).toMatchObject({ content: "Rain." });
  });

  test("ends the call when another comes that does not continue the work", async () => {
    const { sessionId, requestId, next } = await abandoned();
    await next.request("session.resume", { sessionId, requestPermission: true, ...declared });
    await next.event("session.idle");
    expect(served.asked.messages.at(-1).content).toContain("disconnected before it answered");
    expect(await next.request("session.tools.handlePendingToolCall", { sessionId, requestId, result: "Sun." })).toEqual({ success: false });
  });

  test("asks the next client for a permission that was open", async () => {
    const { sessionId, requestId, next } = await abandoned({ tools: [weather] });
    next.serve({ get_weather: () => "Snow." });
    await next.request("session.resume", { sessionId, requestPermission: true, tools: [weather], continuePendingWork: true });
    const asked = await next.event("permission.requested");
    expect(asked.data["requestId"]).toBe(requestId);
    await next.event("session.idle");
    expect(served.asked.messages.at(-1).content).toBe("Snow.");
  });
});

describe("a session that its client suspends", () => {
  test("waits with its open call for the client that resumes it", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ model: "m", ...declared });
    served.says(calling("get_weather", { city: "Oslo" }), "Thank you.");
    await client.request("session.send", { sessionId, prompt: "Weather?" });
    const { requestId } = (await client.event("external_tool.requested")).data;
    await client.request("session.suspend", { sessionId });
    await client.request("session.resume", { sessionId, requestPermission: true, ...declared, continuePendingWork: true });
    expect(await client.request("session.tools.handlePendingToolCall", { sessionId, requestId, result: "Sun." })).toEqual({
      success: true,
    });
    await client.event("session.idle");
    expect(served.asked.messages.at(-1)).toMatchObject({ role: "tool", content: "Sun." });
  });
});

describe("folders of plugins", () => {
  const files = {
    "plug/plugin.json": JSON.stringify({ name: "plug", version: "1.2.3", description: "A plugin." }),
    "plug/skills/sing/SKILL.md": "---\nname: sing\ndescription: Sings.\n---\nSing.\n",
    "plug/agents/bard.md": "---\nname: bard\ndescription: A bard.\n---\nYou are a bard.\n",
    "plug/hooks.json": JSON.stringify({
      version: 1,
      hooks: { preToolUse: [{ type: "command", bash: `echo '{"permissionDecision":"deny","permissionDecisionReason":"No songs."}'` }] },
    }),
  };

  async function plugged(options: object): Promise<{ client: TestClient; sessionId: string }> {
    served = await Served.start({ files });
    const client = await served.connect();
    client.serve({ get_weather: () => "Sun." });
    return { client, sessionId: await client.create({ model: "m", pluginDirectories: [join(served.folder, "plug")], ...options }) };
  }

  test("bring their skills, agents and hooks to the session that names them", async () => {
    const { client, sessionId } = await plugged({ tools: [weather] });
    expect((await client.request("session.skills.list", { sessionId })).skills.map(({ name }: Json) => name)).toEqual(["sing"]);
    expect((await client.request("session.agent.list", { sessionId })).agents.map(({ name }: Json) => name)).toEqual(["bard"]);
    const { plugins } = await client.request("session.plugins.list", { sessionId });
    expect(plugins).toEqual([{ name: "plug", marketplace: "", version: "1.2.3", enabled: true }]);
    served.says(calling("get_weather", { city: "Oslo" }), "Well.");
    await client.say(sessionId, "Weather?");
    expect(served.asked.messages.at(-1).content).toBe("Denied by preToolUse hook: No songs.");
  });

  test("stay when a second client comes and when the first one goes", async () => {
    const { client, sessionId } = await plugged({ tools: [weather], hooks: true });
    client.answers("hooks.invoke", () => ({}));
    const second = await served.connect();
    await second.request("session.resume", { sessionId, requestPermission: true });
    await client.request("session.destroy", { sessionId });
    await second.request("session.tools.set", { sessionId, tools: [{ ...weather, skipPermission: true }] });
    expect((await second.request("session.skills.list", { sessionId })).skills).toHaveLength(1);
    served.says(calling("get_weather", { city: "Oslo" }), "Well.");
    await second.say(sessionId, "Weather?");
    expect(served.asked.messages.at(-1).content).toBe("Denied by preToolUse hook: No songs.");
  });
});
