import { afterEach, describe, expect, test } from "vitest";
import { workspaceTools } from "../../../plugins/workspace-tools/plugin.ts";
import { anthropicAnswer } from "../../doubles/scripted-anthropic.ts";
import { chatAnswer, chatStreamAnswer } from "../../doubles/scripted-model.ts";
import { responsesAnswer } from "../../doubles/scripted-responses.ts";
import { calling, Served, type TestClient } from "./wire-kit.ts";

let served: Served;
afterEach(() => served[Symbol.asyncDispose]());

describe("events as the official runtime of SDK 1.0.14 sends them", () => {
  test("reasoning is emitted as a whole after its message, with the id of its pieces", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ model: "m", streaming: true });
    served.model.answer(chatStreamAnswer({ reasoning: "Hm, yes.", content: "Yes." }));
    await client.say(sessionId, "Really?");
    const types = client.events.map(({ event }) => event.type);
    const { reasoningId } = (await client.event("assistant.reasoning_delta")).data;
    const { data, ephemeral } = await client.event("assistant.reasoning");
    expect(data).toEqual({ reasoningId, content: "Hm, yes." });
    expect(ephemeral).toBe(true);
    expect(types.indexOf("assistant.reasoning")).toBe(types.indexOf("assistant.message") + 1);
  });

  test("a reply without reasoning has none", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ model: "m" });
    served.says("Yes.");
    await client.say(sessionId, "Really?");
    expect(client.count("assistant.reasoning")).toBe(0);
  });

  test("the usage of a reply with calls names the reason as the endpoint does", async () => {
    served = await Served.start();
    const client = await served.connect();
    client.serve({ look: () => "Found." });
    const tool = { name: "look", description: "Looks.", parameters: { type: "object", properties: {} } };
    const sessionId = await client.create({ model: "m", tools: [tool] });
    served.says(calling("look"), "Done.");
    await client.say(sessionId, "Look.");
    const reasons = client.events.flatMap(({ event }) => (event.type === "assistant.usage" ? [event.data["finishReason"]] : []));
    expect(reasons).toEqual(["tool_calls", "stop"]);
  });

  test("the usage says which API was asked, for whom and with what limit, and which tools the model called", async () => {
    served = await Served.start();
    const client = await served.connect();
    client.serve({ look: () => "Found.", hear: () => "Heard." });
    const parameters = { type: "object", properties: {} };
    const tools = ["look", "hear"].map((name) => ({ name, description: "A sense.", parameters }));
    const capabilities = { limits: { max_context_window_tokens: 9000 } };
    const sessionId = await client.create({ model: "m", tools, modelCapabilities: capabilities });
    const calls = ["look", "hear", "look"].map((name, index) => ({ id: `call-${index}`, name, arguments: {} }));
    served.says({ toolCalls: calls }, "Done.");
    await client.say(sessionId, "Look, and hear.");
    const same = { apiEndpoint: "/chat/completions", transport: "http", interactionType: "conversation-agent", isByok: false };
    expect(usageOf(client)).toMatchObject([
      { ...same, maxPromptTokens: 9000, numToolCalls: 3, toolCounts: { look: 2, hear: 1 } },
      { ...same, maxPromptTokens: 9000, numToolCalls: 0, toolCounts: {} },
    ]);
    const { toolDefinitionsTokens } = (await client.event("session.usage_info")).data;
    expect(toolDefinitionsTokens).toBeGreaterThan(0);
    expect(usageOf(client)[0]?.["toolTokenCount"]).toBe(toolDefinitionsTokens);
  });

  test("the usage of a sub-agent has its own type of interaction", async () => {
    served = await Served.start();
    const client = await served.connect();
    client.serve();
    const sessionId = await client.create({ model: "m" });
    const args = { agent_type: "general-purpose", name: "one", description: "Do", prompt: "Do it.", mode: "sync" };
    served.says(calling("task", args), "Did it.", "Done.");
    await client.say(sessionId, "Go");
    const types = usageOf(client).map(({ interactionType }) => interactionType);
    expect(types).toEqual(["conversation-agent", "conversation-subagent", "conversation-agent"]);
  });

  test.each([
    ["anthropic", {}, anthropicAnswer({ content: "Yes." }), "/v1/messages"],
    ["openai", { wireApi: "responses" }, responsesAnswer({ content: "Yes." }), "/responses"],
    ["openai", { wireApi: "completions" }, chatAnswer({ content: "Yes." }), "/chat/completions"],
  ])("the usage says that a model is at a provider of the client: %s %o", async (type, more, answer, apiEndpoint) => {
    served = await Served.start({ server: { environment: {} } });
    const client = await served.connect();
    const provider = { type, baseUrl: `${served.model.url}/v1`, apiKey: "key", ...more };
    const sessionId = await client.create({ model: "m", provider });
    served.model.answer(answer);
    await client.say(sessionId, "Really?");
    expect(usageOf(client)).toMatchObject([{ apiEndpoint, transport: "http", isByok: true }]);
  });

  test("a session that is resumed in the middle of its conversation keeps its title", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ model: "m" });
    served.says("One.", "Two.");
    await client.say(sessionId, "First?");
    await client.request("session.destroy", { sessionId });
    await client.request("session.resume", { sessionId, model: "m" });
    await client.say(sessionId, "Second?");
    const titles = client.events.flatMap(({ event }) => (event.type === "session.title_changed" ? [event.data["title"]] : []));
    expect(titles).toEqual(["First?"]);
  });

  test("what a hook adds for the model is not a message of the user for clients, live or stored", async () => {
    served = await Served.start();
    const client = await served.connect();
    client.answers("hooks.invoke", ({ hookType }) =>
      hookType === "sessionStart" ? { output: { additionalContext: "It is Monday." } } : {},
    );
    const sessionId = await client.create({ model: "m", hooks: true });
    served.says("Hello.");
    await client.say(sessionId, "Hi.");
    const shown = client.events.flatMap(({ event }) => (event.type === "user.message" ? [event.data["content"]] : []));
    expect(shown).toEqual(["Hi."]);
    const { events } = await client.request("session.getMessages", { sessionId });
    expect(events.filter(({ type }: { type: string }) => type === "user.message")).toHaveLength(1);
    expect(JSON.stringify(served.asked.messages)).toContain("It is Monday.");
  });
});

describe.skipIf(process.platform === "win32")("the output of a running command", () => {
  const begin = async (options: object = {}): Promise<{ readonly client: TestClient; readonly sessionId: string }> => {
    served = await Served.start({ host: { plugins: [workspaceTools] } });
    const client = await served.connect();
    client.serve();
    return { client, sessionId: await client.create({ model: "m", workingDirectory: served.folder, ...options }) };
  };
  const run = (command: string) => calling("bash", { command, description: "Runs" });

  test("is emitted as a whole while it runs, and before the call is complete", async () => {
    const { client, sessionId } = await begin();
    served.says(run("echo first; until [ -e go ]; do sleep 0.02; done; echo last"), "Done.");
    const ending = client.say(sessionId, "Run it.");
    const early = await client.event(partialResult, ({ data }) => data["partialOutput"] !== "");
    expect(early).toMatchObject({ ephemeral: true, data: { toolCallId: "call-1", partialOutput: "first\n" } });
    expect(client.count("tool.execution_complete")).toBe(0);
    served.write("go", "");
    await ending;
    const types = client.types().filter((type) => type.startsWith("tool."));
    expect(types.slice(-2)).toEqual([partialResult, "tool.execution_complete"]);
    expect(partialOutputs(client).at(-1)).toBe("first\nlast\n");
    const { events } = await client.request("session.getMessages", { sessionId });
    expect(events.map(({ type }: { type: string }) => type)).not.toContain(partialResult);
  });

  test("is cut to the bytes that a result may have, between two characters", async () => {
    const { client, sessionId } = await begin({ largeOutput: { maxSizeBytes: 1001 } });
    served.says(run("printf 'ä%.0s' $(seq 400); until [ -e go ]; do sleep 0.02; done; printf 'ä%.0s' $(seq 2000)"), "Done.");
    const ending = client.say(sessionId, "Run it.");
    const early = await client.event(partialResult, ({ data }) => data["partialOutput"] !== "");
    expect(early.data["partialOutput"]).toBe("ä".repeat(400));
    served.write("go", "");
    await ending;
    expect(partialOutputs(client).at(-1)).toBe("ä".repeat(500));
  });
});

const partialResult = "tool.execution_partial_result";

function partialOutputs(client: TestClient): readonly unknown[] {
  return client.events.flatMap(({ event }) => (event.type === partialResult ? [event.data["partialOutput"]] : []));
}

function usageOf(client: TestClient): readonly Readonly<Record<string, unknown>>[] {
  return client.events.flatMap(({ event }) => (event.type === "assistant.usage" ? [event.data] : []));
}
