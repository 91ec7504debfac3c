import { defineTool } from "skillhost";
import { describe, expect, test } from "vitest";
import { sessionWith } from "../session-kit.ts";

const tool = (name: string, handler: () => unknown) => defineTool(name, { skipPermission: true, handler });
const session = () =>
  sessionWith([
    tool("text", () => "plain"),
    tool("data", () => ({ city: "Oslo", list: [1, 2] })),
    tool("mcp", () => ({ content: [{ type: "text", text: "12 degrees" }], structuredContent: { degrees: 12 } })),
    tool("throws", () => {
      throw new Error("no");
    }),
    defineTool("caller", {
      skipPermission: true,
      handler: async (_args, _invocation, { callTool }) => {
        const data = await callTool("data", {});
        const none = await callTool("nothing", {});
        return [data.ok, data.json<{ city: string }>().city, none.ok, none.text.slice(0, 14)];
      },
    }),
    defineTool("forwards", { skipPermission: true, handler: (_args, _invocation, { callTool }) => callTool("mcp", {}) }),
  ]);

describe("the result of callTool", () => {
  test("ok and text say how a call went, and json reads text or structured content", async () => {
    const own = session();
    const text = await own.callTool("text");
    expect([text.ok, text.text]).toEqual([true, "plain"]);
    expect((await own.callTool("data")).json<{ city: string }>().city).toBe("Oslo");
    expect((await own.callTool("mcp")).json()).toEqual({ degrees: 12 });
  });

  test("json of a text or of a failure throws and quotes the beginning of it", async () => {
    const own = session();
    const text = await own.callTool("text");
    expect(() => text.json()).toThrow(expect.objectContaining({ code: "RESULT_NOT_JSON", message: expect.stringContaining('"plain"') }));
    const failed = await own.callTool("throws");
    expect(failed.ok).toBe(false);
    expect(() => failed.json()).toThrow(expect.objectContaining({ code: "RESULT_FAILED", message: expect.stringContaining("failure") }));
    const unknown = await own.callTool("nothing");
    expect([unknown.ok, unknown.text]).toEqual([false, unknown.textResultForLlm]);
  });

  test("the getters are not part of the data, so a result is written and compared as before", async () => {
    const result = await session().callTool("text");
    expect(Object.keys(result)).toEqual(["resultType", "textResultForLlm"]);
    expect(JSON.parse(JSON.stringify(result))).toEqual({ resultType: "success", textResultForLlm: "plain" });
    expect({ ...result }).not.toHaveProperty("ok");
  });

  test("a handler that calls a tool reads the same, and may return what it got", async () => {
    const own = session();
    expect((await own.callTool("caller")).json()).toEqual([true, "Oslo", false, "Tool 'nothing'"]);
    expect((await own.callTool("forwards")).json()).toEqual({ degrees: 12 });
  });
});
