import { afterEach, expect, test } from "vitest";
import { workspaceTools } from "../../../plugins/workspace-tools/plugin.ts";
import { calling, type Json, Served, type TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

const reader = { name: "reader", displayName: "Reader", description: "Reads.", prompt: "You read aloud.", tools: ["get_weather"] };

async function session(options: object = {}): Promise<{ readonly client: TestClient; readonly sessionId: string }> {
  served = await Served.start();
  const client = await served.connect();
  return { client, sessionId: await client.create({ model: "m", customAgents: [reader], tools: [weather], ...options }) };
}

const task = (mode: string): ReturnType<typeof calling> =>
  calling("task", { agent_type: "reader", name: "read-it", description: "Read", prompt: "Read the sky.", mode }, "call-task");

test("a sub-agent's events carry the parent's call, and its hooks the parent's session with that call inside", async () => {
  const { client, sessionId } = await session({ hooks: true });
  const asked: Json[] = [];
  client.answers("hooks.invoke", (request) => {
    asked.push(request);
    return request.hookType === "preToolUse" ? { output: { permissionDecision: "allow" } } : {};
  });
  client.serve({ get_weather: ({ city }) => `Sun in ${city}.` });
  served.says(task("sync"), calling("get_weather", { city: "Oslo" }, "call-inner"), "It is sunny.", "The agent says: sunny.");
  await client.say(sessionId, "Go");
  const ofChild = client.events.filter(({ event }) => event.agentId !== undefined).map(({ event }) => event);
  expect(new Set(ofChild.map(({ agentId }) => agentId))).toEqual(new Set(["call-task"]));
  const kinds = ofChild.map(({ type }) => type);
  expect(kinds.filter((type) => type.startsWith("subagent."))).toEqual(["subagent.started", "subagent.completed"]);
  expect(kinds).toEqual(expect.arrayContaining(["system.message", "user.message", "tool.execution_start", "assistant.message"]));
  const inner = asked.filter(({ input }) => input.toolName === "get_weather");
  expect(inner.map(({ hookType, sessionId: envelope, input }) => [hookType, envelope, input.sessionId])).toEqual([
    ["preToolUse", sessionId, "call-task"],
    ["postToolUse", sessionId, "call-task"],
  ]);
  expect(asked.map(({ hookType }) => hookType)).toEqual(expect.arrayContaining(["subagentStart", "subagentStop"]));
  const child = served.model.requests[1]!.body;
  expect(child.messages[0].content).toContain("You read aloud.");
  expect(child.tools.map((tool: Json) => tool.function.name)).toContain("get_weather");
  expect(served.asked.messages.at(-1)).toMatchObject({ role: "tool", tool_call_id: "call-task", content: "It is sunny." });
});

test("the end of a background agent is a notification to clients and a message to the model", async () => {
  const { client, sessionId } = await session();
  served.says(task("background"), "It is sunny.", "It is sunny.", "Noted.");
  await client.request("session.send", { sessionId, prompt: "Go" });
  const { data } = await client.event("system.notification");
  expect(data["kind"]).toEqual({ type: "agent_completed", agentId: "read-it", agentType: "reader", status: "completed" });
  await client.event("assistant.message", (event) => event.data["content"] === "Noted.");
  await client.event("session.idle");
  const started = served.model.requests.flatMap(({ body }) => body.messages).find(({ role }: Json) => role === "tool");
  expect(started.content).toBe(
    "Agent started in background with agent_id: read-it. You'll be notified when it completes. Tell the user you're waiting and end your response, or continue unrelated work until notified.",
  );
  expect(served.asked.messages.find(({ content }: Json) => content === data["content"])).toMatchObject({ role: "user" });
  expect(client.count("session.background_tasks_changed")).toBeGreaterThanOrEqual(2);
  const { events } = await client.request("session.getMessages", { sessionId });
  expect(events.filter(({ type }: Json) => type === "system.notification")).toHaveLength(1);
});

test("the session is idle for clients once the agent's notification is answered; assistant.idle comes before", async () => {
  const { client, sessionId } = await session();
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  client.serve({ get_weather: () => held.then(() => "Sun.") });
  served.says(task("background"), calling("get_weather", { city: "Oslo" }, "call-inner"), "I wait.");
  await client.request("session.send", { sessionId, prompt: "Go" });
  await client.event("assistant.idle");
  await client.event("external_tool.requested");
  const activity = await client.request("session.metadata.activity", { sessionId });
  expect(activity).toEqual({ abortable: false, hasActiveWork: true });
  expect(await client.request("session.interruptMainTurn", { sessionId })).toEqual({ interrupted: false });
  served.says("It is sunny.", "Noted.");
  expect(client.count("session.idle")).toBe(0);
  release();
  await client.event("session.idle");
  const types = client.types();
  const last = (type: string): number => types.lastIndexOf(type);
  expect(last("subagent.completed")).toBeLessThan(last("system.notification"));
  expect(last("system.notification")).toBeLessThan(last("assistant.message"));
  expect(last("assistant.message")).toBeLessThan(last("session.idle"));
  expect(client.events.filter(({ event }) => event.type === "assistant.message").at(-1)?.event.data["content"]).toBe("Noted.");
  expect([client.count("assistant.idle"), client.count("session.idle")]).toEqual([2, 1]);
  expect(await client.request("session.metadata.activity", { sessionId })).toEqual({ abortable: false, hasActiveWork: false });
});

test("a command that is still attached keeps the session from being idle until it ends; one that was started with async does not", async () => {
  served = await Served.start({ host: { plugins: [workspaceTools] } });
  const client = await served.connect();
  client.serve();
  const sessionId = await client.create({ model: "m" });
  const bash = (mode: string) => {
    const command = 'until [ -e "go" ]; do sleep 0.02; done';
    return calling("bash", { command, description: "Waits", mode, initial_wait: 0 }, `call-${mode}`);
  };
  served.says(bash("async"), "It runs.");
  await client.say(sessionId, "Go");
  served.says(bash("sync"), "It runs, too.");
  await client.request("session.send", { sessionId, prompt: "Continue" });
  await client.eventually(() => (client.count("assistant.idle") === 2 ? true : undefined));
  expect(await client.request("session.metadata.activity", { sessionId })).toEqual({ abortable: false, hasActiveWork: true });
  expect(client.count("session.idle")).toBe(1);
  served.write("go", "");
  await client.eventually(() => (client.count("session.idle") === 2 ? true : undefined));
});
