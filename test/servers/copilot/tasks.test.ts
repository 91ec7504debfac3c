import { afterEach, expect, test } from "vitest";
import { calling, type Json, Served, type TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

const reader = { name: "reader", displayName: "Reader", description: "Reads.", prompt: "You read aloud.", tools: ["get_weather"] };
const start = { agentType: "reader", name: "read-it", prompt: "Read the sky." };

interface Begun {
  readonly client: TestClient;
  readonly ask: (method: string, params?: object) => Promise<Json>;
  readonly sessionId: string;
  /** Lets the agent's tool return. */
  readonly release: () => void;
}

async function begin(): Promise<Begun> {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", customAgents: [reader], tools: [weather] });
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  client.serve({ get_weather: () => held.then(() => "Sun.") });
  const ask = (method: string, params: object = {}): Promise<Json> => client.request(method, { sessionId, ...params });
  return { client, ask, sessionId, release };
}

test("a client starts an agent, follows it, sends it a message and forgets it", async () => {
  const { client, ask, release } = await begin();
  served.says(calling("get_weather", { city: "Oslo" }, "call-inner"));
  const { agentId } = await ask("session.tasks.startAgent", { ...start, description: "Reads the sky" });
  await client.event("external_tool.requested");
  expect((await ask("session.tasks.list")).tasks).toMatchObject([
    {
      type: "agent",
      id: "read-it",
      agentType: "reader",
      displayName: "Reader",
      description: "Reads the sky",
      prompt: "Read the sky.",
      status: "running",
      executionMode: "background",
    },
  ]);
  const { progress } = await ask("session.tasks.getProgress", { id: agentId });
  expect(progress.recentActivity.map(({ message }: Json) => message)).toEqual(["▸ get_weather"]);
  expect(await ask("session.tasks.remove", { id: agentId })).toEqual({ removed: false });
  served.says("It is sunny.", "Noted.");
  const settled = ask("session.tasks.waitForPending");
  release();
  expect(await settled).toEqual({});
  const [done] = (await ask("session.tasks.list")).tasks;
  expect(done).toMatchObject({ status: "completed", result: "It is sunny.", latestResponse: "It is sunny." });
  expect(Date.parse(done.completedAt)).toBeGreaterThanOrEqual(Date.parse(done.startedAt));

  served.says("Cloudy now.", "Noted again.");
  expect(await ask("session.tasks.sendMessage", { id: agentId, message: "And now?" })).toEqual({ sent: true });
  await ask("session.tasks.waitForPending");
  expect((await ask("session.tasks.list")).tasks[0]).toMatchObject({ status: "completed", result: "Cloudy now.", prompt: "Read the sky." });
  expect(await ask("session.tasks.remove", { id: agentId })).toEqual({ removed: true });
  expect(await ask("session.tasks.list")).toEqual({ tasks: [] });
  expect(await ask("session.tasks.sendMessage", { id: agentId, message: "Still there?" })).toMatchObject({ sent: false });
});

test.each(["session.tasks.cancel", "session.cancelAllBackgroundAgents"])("%s stops a running agent once", async (method) => {
  const { client, ask } = await begin();
  served.says(calling("get_weather", { city: "Oslo" }, "call-inner"), "Noted.");
  const { agentId } = await ask("session.tasks.startAgent", start);
  await client.event("external_tool.requested");
  expect(await ask(method, { id: agentId })).toEqual(method === "session.tasks.cancel" ? { cancelled: true } : 1);
  await ask("session.tasks.waitForPending");
  expect((await ask("session.tasks.list")).tasks).toMatchObject([{ id: agentId, status: "cancelled" }]);
  expect(await ask(method, { id: agentId })).toEqual(method === "session.tasks.cancel" ? { cancelled: false } : 0);
});

test("an agent that the model waits for is listed as such, and cannot continue in the background", async () => {
  const { client, ask, release } = await begin();
  const task = { agent_type: "reader", name: "read-it", description: "Read", prompt: "Read the sky.", mode: "sync" };
  served.says(calling("task", task, "call-task"), calling("get_weather", { city: "Oslo" }, "call-inner"), "Sunny.", "Done.");
  await ask("session.send", { prompt: "Go" });
  await client.event("external_tool.requested");
  expect((await ask("session.tasks.list")).tasks).toMatchObject([
    { id: "read-it", toolCallId: "call-task", executionMode: "sync", canPromoteToBackground: false },
  ]);
  expect(await ask("session.tasks.getCurrentPromotable")).toEqual({});
  expect(await ask("session.tasks.promoteCurrentToBackground")).toEqual({});
  expect(await ask("session.tasks.promoteToBackground", { id: "read-it" })).toEqual({ promoted: false });
  // Only those that work in the background are stopped.
  expect(await ask("session.cancelAllBackgroundAgents")).toBe(0);
  release();
  await ask("session.tasks.waitForPending");
});

test("bad input names what is wrong, and starts nothing", async () => {
  const { client, ask, sessionId } = await begin();
  for (const params of [{}, { agentType: "reader" }, { ...start, prompt: 7 }, { ...start, agentType: "no-such-agent" }]) {
    expect((await client.refusal("session.tasks.startAgent", { sessionId, ...params })).code).toBe(-32602);
  }
  expect((await client.refusal("session.tasks.startAgent", { sessionId, ...start, agentType: "none" })).message).toContain('"none"');
  expect(await ask("session.tasks.list")).toEqual({ tasks: [] });
  expect(await ask("session.tasks.getProgress", { id: "none" })).toEqual({ progress: null });
  expect(await ask("session.tasks.cancel", { id: "none" })).toEqual({ cancelled: false });
  expect(await ask("session.tasks.remove", { id: "none" })).toEqual({ removed: false });
  expect(await ask("session.tasks.refresh")).toEqual({});
  expect(await ask("session.tasks.waitForPending")).toEqual({});
});

test("the end of the session ends a wait for its agents", async () => {
  const { client, ask, sessionId } = await begin();
  served.says(calling("get_weather", { city: "Oslo" }, "call-inner"));
  await ask("session.tasks.startAgent", start);
  await client.event("external_tool.requested");
  const wait = client.refusal("session.tasks.waitForPending", { sessionId });
  await client.request("session.destroy", { sessionId });
  expect((await wait).message).toContain("The session has ended.");
});

test("a fleet is a message that has the model share the work among agents", async () => {
  const { client, ask } = await begin();
  served.says("Dispatched.");
  expect(await ask("session.fleet.start", { prompt: "Port the tests." })).toEqual({ started: true });
  await client.event("session.idle");
  const { content } = served.asked.messages.at(-1);
  expect(content).toMatch(/^You are now in fleet mode\. [\s\S]*User request: Port the tests\.$/);
  expect((await client.refusal("session.fleet.start", { sessionId: "missing" })).message).toContain("missing");
});

test("no fleet is started without a tool that starts agents", async () => {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", excludedTools: ["task"] });
  expect(await client.request("session.fleet.start", { sessionId })).toEqual({ started: false });
  expect(client.count("user.message")).toBe(0);
});
