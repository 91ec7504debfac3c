import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { chatStreamAnswer } from "../../doubles/scripted-model.ts";
import { patience } from "../../slowness.ts";
import { calling, event, eventsOf, Runtime, type Sdk } from "./sdk-kit.ts";

let runtime: Runtime;
let sdk: Sdk;

beforeAll(async () => {
  runtime = await Runtime.start();
  sdk = runtime.sdk;
}, patience(120_000));

afterEach(() => runtime.clear());
afterAll(() => runtime[Symbol.asyncDispose]());

const weather = (handler: (args: Sdk, invocation: Sdk) => unknown, more: object = {}): Sdk =>
  sdk.defineTool("get_weather", {
    description: "Returns the weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    handler,
    ...more,
  });

const rolesAsked = (): string[] => runtime.asked.messages.map(({ role }: Sdk) => role);

describe("a turn", () => {
  test("a turn emits its events in order, chains the stored ones, and marks the ephemeral ones", async () => {
    const session = await runtime.session({ tools: [weather(({ city }) => `Sunny in ${city}.`)] });
    const events = eventsOf(session);
    runtime.says(calling("get_weather", { city: "Oslo" }), "It is sunny.");
    const answer = await session.sendAndWait("How is the weather?");
    expect(answer.data.content).toBe("It is sunny.");
    const names = events.map(({ type }) => type);
    const order = [
      "session.managed_settings_resolved",
      "user.message",
      "session.title_changed",
      "system.message",
      "assistant.turn_start",
      "session.usage_info",
      "model.call_start",
      "assistant.usage",
      "assistant.message",
      "tool.execution_start",
      "permission.requested",
      "permission.completed",
      "external_tool.requested",
      "external_tool.completed",
      "tool.execution_complete",
      "assistant.turn_end",
      "assistant.idle",
      "session.idle",
    ];
    expect(names.filter((name, index) => order.includes(name) && names.indexOf(name) === index)).toEqual(order);
    for (const { id, timestamp, data } of events) {
      expect([typeof id, Number.isNaN(Date.parse(timestamp)), typeof data]).toEqual(["string", false, "object"]);
    }
    const passing = new Set(events.filter(({ ephemeral }) => ephemeral === true).map(({ type }) => type));
    for (const type of ["session.idle", "session.title_changed", "assistant.usage", "session.tools_updated"])
      expect(passing).toContain(type);
    const kept = await session.getEvents();
    expect(kept.map(({ parentId }: Sdk) => parentId)).toEqual([null, ...kept.slice(0, -1).map(({ id }: Sdk) => id)]);
    expect(kept.map(({ type }: Sdk) => type).filter((type: string) => passing.has(type))).toEqual([]);
    expect(new Set(events.filter(({ ephemeral }) => ephemeral !== true).map(({ id }) => id))).toEqual(
      new Set(kept.map(({ id }: Sdk) => id).filter((id: string) => events.some((one) => one.id === id))),
    );
  });

  test("a turn streams and is aborted, and the session continues", async () => {
    const session = await runtime.session({ streaming: true });
    const pieces: string[] = [];
    session.on("assistant.message_delta", ({ data }: Sdk) => void pieces.push(data.deltaContent));
    runtime.answers(chatStreamAnswer({ content: "One two three." }), { steps: ["silence"] }, chatStreamAnswer({ content: "Again." }));
    await session.sendAndWait("Count");
    expect(pieces.join("")).toBe("One two three.");
    const started = event(session, "assistant.turn_start");
    const idle = event(session, "session.idle", ({ aborted }) => aborted === true);
    const before = runtime.requests.length;
    await session.send("Wait");
    await started;
    await expect.poll(() => runtime.requests.length).toBe(before + 1);
    await session.abort();
    await idle;
    expect((await session.sendAndWait("Continue")).data.content).toBe("Again.");
  });

  test("a request to the model has the application's name and headers, and results without their envelope", async () => {
    const session = await runtime.session({ clientName: "my-app", tools: [weather(() => ({ sky: "clear" }), { skipPermission: true })] });
    runtime.says(calling("get_weather", { city: "Oslo" }), "Clear.");
    await session.sendAndWait({ prompt: "Weather?", requestHeaders: { "x-mine": "1" } });
    const { headers } = runtime.requests.at(-1)!;
    expect(headers).toMatchObject({ "x-mine": "1", authorization: "Bearer token-of-the-test" });
    expect(headers["user-agent"]).toContain("my-app");
    expect(rolesAsked()).toEqual(["system", "user", "assistant", "tool"]);
    expect(runtime.lastToolResult).toBe('{"sky":"clear"}');
    expect(runtime.asked.stream).not.toBe(true);
  });
});

describe("tool results", () => {
  const image = { data: "aGk=", mimeType: "image/png", type: "image", description: "A dot" };

  test.each<[what: string, handler: () => unknown, text: string, complete: object]>([
    ["a text", () => "Sun.", "Sun.", { success: true, result: { content: "Sun." } }],
    ["an empty text", () => "", "", { success: true }],
    ["nothing", () => undefined, "", { success: true }],
    ["an object", () => ({ sky: "clear" }), '{"sky":"clear"}', { success: true }],
    ["a number", () => 7, "7", { success: true }],
    ["a promise", () => Promise.resolve("Later."), "Later.", { success: true }],
    [
      "an object with fields for the log only",
      () => ({ textResultForLlm: "Sun.", resultType: "success", toolTelemetry: { rows: 1 }, sessionLog: "looked it up" }),
      "Sun.",
      { success: true, toolTelemetry: { rows: 1 } },
    ],
    [
      "a failure",
      () => ({ textResultForLlm: "Service unavailable", resultType: "failure", error: "ECONNREFUSED" }),
      "Service unavailable",
      { success: false, error: { message: "ECONNREFUSED", code: "failure" } },
    ],
    [
      "a denial",
      () => ({ textResultForLlm: "Not for you.", resultType: "denied" }),
      "Not for you.",
      { success: false, error: { message: "Not for you.", code: "denied" } },
    ],
    [
      "a thrown error",
      () => {
        throw new Error("Melbourne");
      },
      'Failed to execute `get_weather` tool with arguments: {"city":"Oslo"} due to error: Error: Tool execution failed',
      { success: false, error: { message: "Tool execution failed", code: "failure" } },
    ],
  ])("the model reads exactly the text of a tool result that is %s", async (_what, handler, text, complete) => {
    const session = await runtime.session({ tools: [weather(handler, { skipPermission: true })] });
    const completed = event(session, "tool.execution_complete");
    runtime.says(calling("get_weather", { city: "Oslo" }), "So.");
    expect((await session.sendAndWait("Weather?")).data.content).toBe("So.");
    expect(runtime.lastToolResult).toBe(text);
    expect((await completed).data).toMatchObject(complete);
    expect(JSON.stringify(runtime.asked)).not.toMatch(/Melbourne|ECONNREFUSED|looked it up/);
  });

  test("a call that times out fails, and the model reads the text of its result", async () => {
    const handler = (): object => ({ textResultForLlm: "It took too long.", resultType: "timeout" });
    const session = await runtime.session({ tools: [weather(handler, { skipPermission: true })] });
    const completed = event(session, "tool.execution_complete");
    runtime.says(calling("get_weather", { city: "Oslo" }), "So.");
    await session.sendAndWait("Weather?");
    expect((await completed).data).toMatchObject({ success: false, error: { code: "timeout" } });
    expect(runtime.lastToolResult).toBe("It took too long.");
  });

  test("a rejected result ends the turn", async () => {
    const handler = (): object => ({ textResultForLlm: "No.", resultType: "rejected" });
    const session = await runtime.session({ tools: [weather(handler, { skipPermission: true })] });
    const completed = event(session, "tool.execution_complete");
    const before = runtime.requests.length;
    runtime.says(calling("get_weather", { city: "Oslo" }), "Never said.");
    await session.sendAndWait("Weather?");
    expect((await completed).data).toMatchObject({ success: false, error: { code: "rejected", message: "No." } });
    expect(runtime.requests).toHaveLength(before + 1);
  });

  test("a model with vision gets the image of a result", async () => {
    const handler = (): object => ({ textResultForLlm: "A dot.", resultType: "success", binaryResultsForLlm: [image] });
    const session = await runtime.session({
      tools: [weather(handler, { skipPermission: true })],
      modelCapabilities: { supports: { vision: true } },
    });
    runtime.says(calling("get_weather", { city: "Oslo" }), "Seen.");
    await session.sendAndWait("Draw");
    expect(JSON.stringify(runtime.asked.messages)).toContain("data:image/png;base64,aGk=");
  });

  test("the results of parallel calls are in the model's order, whichever call ends first", async () => {
    let release: () => void = () => {};
    const second = new Promise<void>((resolve) => {
      release = resolve;
    });
    const first = sdk.defineTool("first", { description: "First.", skipPermission: true, handler: () => second.then(() => "one") });
    const other = sdk.defineTool("other", {
      description: "Other.",
      skipPermission: true,
      handler: () => {
        release();
        return "two";
      },
    });
    const session = await runtime.session({ tools: [first, other] });
    const calls = [
      { id: "a", name: "first", arguments: {} },
      { id: "b", name: "other", arguments: {} },
    ];
    runtime.says({ toolCalls: calls }, "Both.");
    await session.sendAndWait("Both");
    expect(runtime.asked.messages.slice(-2).map(({ tool_call_id, content }: Sdk) => [tool_call_id, content])).toEqual([
      ["a", "one"],
      ["b", "two"],
    ]);
  });

  test("a call of an unknown tool fails with the list of available tools", async () => {
    const session = await runtime.session({ tools: [weather(() => "Sun.")], availableTools: new sdk.ToolSet().addCustom("*") });
    const completed = event(session, "tool.execution_complete");
    runtime.says(calling("report_intent"), "Sorry.");
    await session.sendAndWait("Hi");
    expect(runtime.lastToolResult).toBe("Tool 'report_intent' does not exist. Available tools that can be called are get_weather.");
    expect((await completed).data.error).toEqual({ message: "Tool 'report_intent' does not exist.", code: "failure" });
  });

  test("the application answers a call of a tool without a handler at any time", async () => {
    const session = await runtime.session({ tools: [{ name: "sign_off", description: "Asks the boss.", skipPermission: true }] });
    runtime.says(calling("sign_off"), "Signed.");
    const requested = event(session, "external_tool.requested");
    const answer = session.sendAndWait("Ask");
    const { requestId } = (await requested).data;
    expect(await session.rpc.tools.handlePendingToolCall({ requestId, result: "Yes." })).toEqual({ success: true });
    expect((await answer).data.content).toBe("Signed.");
    expect(runtime.lastToolResult).toBe("Yes.");
  });

  test("a call of a terminal tool ends the turn", async () => {
    const session = await runtime.session({ tools: [weather(() => "Done.", { skipPermission: true, isTerminal: true })] });
    const before = runtime.requests.length;
    runtime.says(calling("get_weather", { city: "Oslo" }));
    await session.sendAndWait("Finish");
    expect(runtime.requests).toHaveLength(before + 1);
  });

  test("a replaced list of tools is in the next request to the model, and a name with a dot is refused", async () => {
    const session = await runtime.session({
      tools: [weather(() => "Sun.", { skipPermission: true })],
      availableTools: new sdk.ToolSet().addCustom("*"),
    });
    runtime.says("Hi.", "Ho.");
    await session.sendAndWait("Hi");
    await session.connection.sendRequest("session.tools.set", {
      sessionId: session.sessionId,
      tools: [{ name: "get_time", description: "Time." }],
    });
    await session.sendAndWait("And now?");
    expect(runtime.asked.tools.map((tool: Sdk) => tool.function.name)).toEqual(["get_time"]);
    expect(runtime.asked.messages.at(-1).content).toContain(
      "<tools_changed_notice>\nTools no longer available: get_weather\n\nImportant: Do not attempt to call tools that are no longer available unless you've been notified that they're available again.\n</tools_changed_notice>",
    );
    await expect(runtime.session({ tools: [sdk.defineTool("my.tool", { description: "x", handler: () => "" })] })).rejects.toThrow(
      /my\.tool/,
    );
  });
});
