import { afterEach, describe, expect, test } from "vitest";
import { calling, type Json, Served, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

describe("a client of protocol 2", () => {
  test("gets calls and permissions as requests", async () => {
    served = await Served.start();
    const client = served.open();
    expect(await client.request("ping", {})).toMatchObject({ protocolVersion: 2 });
    const asked: Json[] = [];
    client.answers("permission.request", (request) => {
      asked.push(request);
      return { result: { kind: asked.length === 1 ? "approved" : "denied-interactively-by-user" } };
    });
    client.answers("tool.call", (request) => {
      asked.push(request);
      return { result: { textResultForLlm: "Sun.", resultType: "success", toolTelemetry: {} } };
    });
    const sessionId = await client.create({ model: "m", tools: [weather] });
    served.says(calling("get_weather", { city: "Oslo" }), "Thank you.");
    await client.say(sessionId, "Weather?");
    expect(asked).toEqual([
      { sessionId, permissionRequest: expect.objectContaining({ kind: "custom-tool", toolCallId: "call-1" }) },
      { sessionId, toolCallId: "call-1", toolName: "get_weather", arguments: { city: "Oslo" } },
    ]);
    expect(served.asked.messages.at(-1).content).toBe("Sun.");
    served.says(calling("get_weather", { city: "Rome" }, "call-2"));
    await client.say(sessionId, "And Rome?");
    expect(asked).toHaveLength(3);
    expect(client.events.findLast(({ event }) => event.type === "tool.execution_complete")?.event.data["error"]).toMatchObject({
      code: "rejected",
    });
  });

  test("whose tool fails leaves a failure that says nothing of why", async () => {
    served = await Served.start();
    const client = served.open();
    await client.request("ping", {});
    client.answers("tool.call", () => {
      throw new Error("secret reason");
    });
    const sessionId = await client.create({ model: "m", tools: [{ ...weather, skipPermission: true }] });
    served.says(calling("get_weather", { city: "Oslo" }), "Sorry.");
    await client.say(sessionId, "Weather?");
    expect(served.asked.messages.at(-1).content).toContain("Tool execution failed");
    expect(JSON.stringify(served.asked)).not.toContain("secret reason");
  });

  test("and one of 3 share a session, each in its own way", async () => {
    served = await Served.start();
    const [old, young] = [served.open(), await served.connect()];
    await old.request("ping", {});
    old.answers("tool.call", () => ({ result: "old" }));
    old.answers("permission.request", () => ({ result: { kind: "approved" } }));
    young.serve({ new_tool: () => "young" });
    const sessionId = await young.create({ model: "m", requestPermission: true, tools: [{ name: "new_tool" }] });
    await old.request("session.resume", { sessionId, tools: [{ name: "old_tool" }] });
    const both = {
      toolCalls: [
        { id: "1", name: "new_tool", arguments: {} },
        { id: "2", name: "old_tool", arguments: {} },
      ],
    };
    served.says(both, "Both.");
    await young.say(sessionId, "Both");
    expect(served.asked.messages.slice(-2).map(({ content }: Json) => content)).toEqual(["young", "old"]);
  });
});
