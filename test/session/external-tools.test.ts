import { describe, expect, test } from "vitest";
import { createTestEnvironment, nextEvent, openSession, recordEvents, sessionWith, settleMicrotasks, sourceOf } from "./session-kit.ts";

const declared = {
  name: "locate",
  description: "finds a place",
  parameters: { type: "object", properties: { q: { type: "string", default: "here" } } },
};

describe("a client tool", () => {
  test("a call of a client tool is announced to the clients and waits for an answer", async () => {
    const environment = createTestEnvironment();
    const session = openSession(environment, { tools: [declared] });
    const requested = nextEvent(session, "external_tool.requested");
    const completed = nextEvent(session, "external_tool.completed");
    const call = session.callTool("locate", {}, { toolCallId: "call-1" });
    const { data } = await requested;
    expect(data).toEqual({
      requestId: expect.any(String),
      sessionId: "session-1",
      toolCallId: "call-1",
      toolName: "locate",
      arguments: { q: "here" },
      workingDirectory: environment.folder,
    });
    const requestId = String(data["requestId"]);
    expect(
      session.respondToTool(requestId, { result: { textResultForLlm: "Melbourne", resultType: "success", toolTelemetry: { hits: 1 } } }),
    ).toBe(true);
    expect(session.respondToTool(requestId, "again")).toBe(false);
    expect(await call).toMatchObject({ resultType: "success", textResultForLlm: "Melbourne", toolTelemetry: { hits: 1 } });
    expect((await completed).data).toEqual({ requestId });
  });

  test.each<[string, unknown, object]>([
    ["text", "plain", { resultType: "success", textResultForLlm: "plain" }],
    ["the empty text, which is a success", "", { resultType: "success", textResultForLlm: "" }],
    ["data", { city: "Oslo" }, { resultType: "success", textResultForLlm: '{"city":"Oslo"}' }],
    ["a wrapped result", { result: "wrapped" }, { textResultForLlm: "wrapped" }],
    ["nothing", { result: null }, { resultType: "failure", textResultForLlm: "Tool returned no result" }],
    [
      "a denial",
      { result: { textResultForLlm: "not allowed", resultType: "denied" } },
      { resultType: "denied", textResultForLlm: "not allowed" },
    ],
  ])("a client tool answers with %s", async (_title, answer, expected) => {
    const session = sessionWith([declared]);
    const call = session.callTool("locate");
    session.respondToTool(session.asks.pending[0]!.id, answer);
    expect(await call).toMatchObject(expected);
  });

  test.each<[string, unknown]>([
    ["an error text", { error: "Melbourne secret" }],
    ["an Error", new Error("Melbourne secret")],
  ])("neither the model nor events contain the text of a client that answers with %s", async (_title, answer) => {
    const environment = createTestEnvironment();
    const session = openSession(environment, { tools: [declared] });
    const events = recordEvents(session, "tool.execution_complete");
    const call = session.callTool("locate", {});
    session.respondToTool(session.asks.pending[0]!.id, answer);
    expect((await call).textResultForLlm).toBe(
      "Failed to execute `locate` tool with arguments: {} due to error: Error: Tool execution failed",
    );
    expect(events[0]?.data["error"]).toEqual({ message: "Tool execution failed", code: "failure" });
    expect(JSON.stringify(events)).not.toContain("Melbourne");
    expect(environment.lines.some(({ data }) => data["error"] === "Melbourne secret")).toBe(true);
  });

  test("arguments and permission are checked before the call of a client tool is announced", async () => {
    const session = sessionWith([{ ...declared, parameters: { type: "object", required: ["q"] } }], {
      onPermissionRequest: () => ({ kind: "reject" }),
    });
    const events = recordEvents(session, "external_tool.requested");
    expect((await session.callTool("locate", {})).textResultForLlm).toMatch(/^Invalid arguments for tool 'locate': q/);
    expect((await session.callTool("locate", { q: "x" })).resultType).toBe("rejected");
    expect(events).toEqual([]);
  });
});

describe("the owner of a client tool", () => {
  test("only the client that pushed the tool may answer", async () => {
    const session = openSession();
    const owner = session.attach({ level: "connection", name: "owner", answers: ["tool"] });
    const other = session.attach({ level: "connection", name: "other", answers: ["tool"] });
    owner.setTools([declared]);
    const call = session.callTool("locate");
    const { id } = session.asks.pending[0]!;
    expect(session.respondToTool(id, "not mine")).toBe(false);
    expect(session.asks.answer(id, { result: "not mine either" }, other.id)).toBe(false);
    expect(session.asks.answer(id, { result: "mine" }, owner.id)).toBe(true);
    expect((await call).textResultForLlm).toBe("mine");
  });

  test("when a client leaves, only its own pending calls fail", async () => {
    const session = openSession();
    const leaving = session.attach({ level: "connection", name: "leaving", answers: ["tool"] });
    const staying = session.attach({ level: "connection", name: "staying", answers: ["tool"] });
    leaving.setTools([declared]);
    staying.setTools([{ name: "other" }]);
    const lost = session.callTool("locate");
    const kept = session.callTool("other");
    await leaving[Symbol.asyncDispose]();
    expect(await lost).toMatchObject({
      resultType: "failure",
      textResultForLlm: "The client that provides tool 'locate' disconnected before it answered.",
    });
    const [ask] = session.asks.pending;
    session.asks.answer(ask!.id, { result: "still here" }, staying.id);
    expect((await kept).textResultForLlm).toBe("still here");
    expect((await session.callTool("locate")).textResultForLlm).toBe(
      "Tool 'locate' is no longer available. Available tools that can be called are other.",
    );
  });

  test("of two clients that pushed the same tool, one may leave", async () => {
    const session = openSession();
    const one = session.attach({ level: "connection", name: "one", answers: ["tool"] });
    const two = session.attach({ level: "connection", name: "two", answers: ["tool"] });
    one.setTools([declared]);
    two.setTools([declared]);
    const call = session.callTool("locate");
    await one[Symbol.asyncDispose]();
    expect(session.asks.answer(session.asks.pending[0]!.id, { result: "two" }, two.id)).toBe(true);
    expect((await call).textResultForLlm).toBe("two");
  });

  test("a client that pushed a client tool may answer its calls without handling other requests", async () => {
    const session = openSession();
    const client = session.attach({ level: "connection", answers: [] });
    client.setTools([declared]);
    const call = session.callTool("locate");
    expect(session.asks.answer(session.asks.pending[0]!.id, { result: "mine" }, client.id)).toBe(true);
    expect((await call).textResultForLlm).toBe("mine");
  });

  test("a client in this process answers by its callback", async () => {
    const session = openSession();
    const client = session.attach({
      level: "extension",
      answers: ["tool"],
      handlers: { tool: async ({ toolName, arguments: args }) => ({ result: `${toolName} ${JSON.stringify(args)}` }) },
    });
    client.setTools([declared]);
    expect((await session.callTool("locate", { q: "x" })).textResultForLlm).toBe('locate {"q":"x"}');
  });

  test("any attached client may answer a client tool of a skill, which ends with the session", async () => {
    const session = openSession(createTestEnvironment(sourceOf("skill", "s", declared)));
    const client = session.attach({ level: "connection", answers: ["tool"] });
    const answered = session.callTool("locate");
    session.asks.answer(session.asks.pending[0]!.id, { result: "theirs" }, client.id);
    expect((await answered).textResultForLlm).toBe("theirs");
    const pending = session.callTool("locate");
    await client[Symbol.asyncDispose]();
    await settleMicrotasks();
    expect(session.asks.pending).toHaveLength(1);
    await session.disconnect();
    expect(await pending).toMatchObject({ resultType: "failure", textResultForLlm: "The session ended before tool 'locate' answered." });
  });

  test("a client that left between permission and call is not awaited", async () => {
    const session = openSession();
    const client = session.attach({ level: "connection", answers: ["tool"] });
    client.setTools([declared]);
    const [prepared] = await session.prepare([{ id: "1", name: "locate", arguments: {} }]);
    await client[Symbol.asyncDispose]();
    expect((await session.run(prepared!)).code).toBe("owner_gone");
  });
});
