import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { describe, expect, test } from "vitest";
import type { SessionOptions } from "../../src/session/session-config.ts";
import { fakeChat } from "../doubles/fake-chat.ts";
import { registerTracing } from "../doubles/memory-tracing.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { recordEvents } from "../session/session-kit.ts";
import { hostIn, nextEvent, openSession, say, serverNamed, sessionWith } from "./servers-kit.ts";

const mcpServers = { notes: serverNamed("n") };

describe("hooks before a call of a server's tool", () => {
  test("hooks run in order after the permission request, and the server receives the _meta of the last one", async () => {
    const order: unknown[] = [];
    const session = await sessionWith({
      mcpServers,
      onPermissionRequest: ({ kind, serverName }) => {
        order.push([kind, serverName]);
        return { kind: "approve-once" };
      },
      hooks: {
        onPreToolUse: () => void order.push("preToolUse"),
        onPreMcpToolCall: [
          ({ serverName, toolName, arguments: args, _meta }) => {
            order.push([serverName, toolName, args, _meta]);
            return { metaToUse: { tenant: "one" } };
          },
          async ({ _meta }) => {
            order.push(_meta);
            return { metaToUse: { ..._meta, "example.com/by": "two" } };
          },
        ],
        onPostToolUse: () => void order.push("postToolUse"),
      },
    });
    expect(await say(session, "notes/meta", { x: 1 })).toMatchObject({ tenant: "one", "example.com/by": "two" });
    expect(order).toEqual(["preToolUse", ["mcp", "notes"], ["notes", "meta", { x: 1 }, undefined], { tenant: "one" }, "postToolUse"]);
  });

  test("a hook that throws denies the call before it reaches the server, and does not run for other tools", async () => {
    const session = await sessionWith({
      mcpServers,
      tools: [{ name: "own", handler: () => "mine" }],
      hooks: {
        onPreMcpToolCall: () => {
          throw new Error("secret reason");
        },
      },
    });
    const events = recordEvents(session, "tool.execution_progress", "tool.execution_complete");
    const denied = await session.callTool("notes/report");
    expect(denied).toMatchObject({ resultType: "denied", textResultForLlm: "Denied by preMcpToolCall hook: the hook failed" });
    expect(events.map(({ type }) => type)).toEqual(["tool.execution_complete"]);
    expect(await say(session, "own")).toBe("mine");
  });

  test("events name the server of the tool", async () => {
    const session = await sessionWith({ mcpServers });
    const started = nextEvent(session, "tool.execution_start");
    await say(session, "notes/echo", { text: "x" });
    expect((await started).data).toMatchObject({ toolName: "notes-echo", mcpServerName: "notes", mcpToolName: "echo" });
  });
});

describe("the trace of a call", () => {
  test("a call has a client span within the tool's span, and the server receives its context in _meta", async () => {
    const spans = registerTracing({ contexts: true, traceState: "vendor=1" });
    const session = await sessionWith({ mcpServers });
    const meta = await say(session, "notes/meta");
    const [tool, call] = [
      spans.find(({ name }) => name === "execute_tool notes-meta"),
      spans.find(({ name }) => name === "tools/call meta"),
    ];
    expect(call).toMatchObject({
      kind: SpanKind.CLIENT,
      parentId: tool?.context.spanId,
      ended: 1,
      status: { code: SpanStatusCode.UNSET },
      attributes: {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "meta",
        "network.transport": "pipe",
        "gen_ai.conversation.id": session.id,
      },
    });
    const { traceId, spanId } = call!.context;
    expect(meta).toMatchObject({ traceparent: `00-${traceId}-${spanId}-01`, tracestate: "vendor=1" });
  });

  test("a failed span has the kind of error and no content", async () => {
    const spans = registerTracing();
    const session = await sessionWith({ mcpServers });
    await session.callTool("notes/echo", { text: "hunter2" });
    await session.callTool("notes/fail");
    const calls = spans.filter(({ name }) => name.startsWith("tools/call"));
    expect(calls.map(({ status, attributes }) => [status.code, attributes["error.type"]])).toEqual([
      [SpanStatusCode.UNSET, undefined],
      [SpanStatusCode.ERROR, "tool_error"],
    ]);
    expect(JSON.stringify(spans)).not.toContain("hunter2");
  });

  test("without tracing, the server receives no trace context", async () => {
    const session = await sessionWith({ mcpServers });
    const meta = (await say(session, "notes/meta")) as object;
    expect(Object.keys(meta).filter((key) => key.startsWith("trace"))).toEqual([]);
  });
});

describe("requests of a server during a call", () => {
  const sampled = { role: "assistant", content: { type: "text", text: "Blue." }, model: "m" };

  test("a request is refused when no handler answers", async () => {
    const session = await sessionWith({ mcpServers });
    expect(await say(session, "notes/sample")).toMatchObject({ refused: expect.any(String) });
    expect(await say(session, "notes/confirm")).not.toMatchObject({ action: "accept" });
  });

  test("a request reaches the program's handlers with the call that it belongs to", async () => {
    const asked: unknown[] = [];
    const options: SessionOptions = {
      mcpServers,
      onSamplingRequest: (request, { toolCallId }) => {
        asked.push([request["systemPrompt"], toolCallId]);
        return sampled;
      },
      onElicitationRequest: ({ message }, { toolCallId }) => {
        asked.push([message, toolCallId]);
        return { action: "accept", content: { ok: true } };
      },
    };
    const session = await sessionWith(options);
    const events = recordEvents(session, "sampling.requested", "sampling.completed", "elicitation.requested");
    expect(JSON.parse((await session.callTool("notes/sample", {}, { toolCallId: "c1" })).textResultForLlm)).toMatchObject(sampled);
    expect(JSON.parse((await session.callTool("notes/confirm", {}, { toolCallId: "c2" })).textResultForLlm)).toMatchObject({
      action: "accept",
    });
    expect(asked).toEqual([
      ["Be brief.", "c1"],
      ["Sure?", "c2"],
    ]);
    expect(events.map(({ type, data }) => [type, data["serverName"] ?? data["elicitationSource"], data["toolCallId"]])).toEqual([
      ["sampling.requested", "notes", "c1"],
      ["sampling.completed", undefined, undefined],
      ["elicitation.requested", "notes", "c2"],
    ]);
  });

  test("the session's model answers a request only if the policy allows it", async () => {
    const chat = fakeChat("Green.");
    const careful = await sessionWith({ mcpServers, chatModel: chat });
    expect(await say(careful, "notes/sample")).toMatchObject({ refused: expect.any(String) });
    expect(chat.requests).toHaveLength(0);
    const open = await sessionWith({ mcpServers, chatModel: chat }, { mcp: { sampling: "allow" } });
    expect(await say(open, "notes/sample")).toMatchObject({
      role: "assistant",
      content: { type: "text", text: "Green." },
      model: "fake-model",
    });
    expect(chat.requests).toMatchObject([
      {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: [{ type: "text", text: "Name a colour." }] },
        ],
        maxOutputTokens: 10,
      },
    ]);
  });

  test("a request that the policy denies reaches no handler", async () => {
    const asked: unknown[] = [];
    const handler = (): object => {
      asked.push("asked");
      return sampled;
    };
    const options = { mcpServers, onSamplingRequest: handler, onElicitationRequest: handler };
    const session = await sessionWith(options, { mcp: { sampling: "deny", elicitation: "deny" } });
    await session.callTool("notes/sample");
    await session.callTool("notes/confirm");
    expect(asked).toEqual([]);
  });
});

describe("the caller of a tool", () => {
  test("a caller receives progress and log lines in order, and none after the call has settled", async () => {
    const session = await sessionWith({ mcpServers });
    const events = recordEvents(session, "tool.execution_progress", "session.custom_notification");
    const heard: unknown[] = [];
    await session.callTool("notes/report", {}, { toolCallId: "c", onProgress: (update, call) => heard.push([update, call.toolCallId]) });
    expect(heard).toContainEqual([{ progress: 1, total: 2, message: "half" }, "c"]);
    expect(heard).toContainEqual([{ progress: 2, total: 2 }, "c"]);
    expect(events.filter(({ type }) => type === "tool.execution_progress").map(({ data }) => data["progressMessage"])).toEqual([
      "half",
      "2/2",
    ]);
  });

  test("a caller receives the log lines of a handler, which are not progress", async () => {
    const session = await sessionWith({
      tools: [
        {
          name: "t",
          handler: (_args: never, _invocation: unknown, { progress }: { progress(update: object): void }) => {
            progress({ level: "warning", message: "nearly full", data: { left: 3 } });
            return "x";
          },
        },
      ],
    });
    const events = recordEvents(session, "tool.execution_progress", "session.custom_notification");
    const heard: unknown[] = [];
    await session.callTool("t", {}, { toolCallId: "c", onProgress: (update) => heard.push(update) });
    expect(heard).toEqual([{ level: "warning", message: "nearly full", data: { left: 3 } }]);
    expect(events).toMatchObject([
      {
        type: "session.custom_notification",
        ephemeral: true,
        data: {
          name: "tool.log",
          source: "skillhost",
          payload: { toolCallId: "c", toolName: "t", level: "warning", message: "nearly full" },
        },
      },
    ]);
  });

  test("a caller is asked before attached clients, which get what it leaves unanswered", async () => {
    const asked: string[] = [];
    const session = await sessionWith({
      mcpServers,
      onPermissionRequest: () => {
        asked.push("program");
        return { kind: "approve-once" };
      },
    });
    const answers = (kind: string) => ({
      permission: () => {
        asked.push("caller");
        return { kind };
      },
    });
    expect((await session.callTool("notes/echo", { text: "x" }, { answers: answers("approve-once") })).resultType).toBe("success");
    expect((await session.callTool("notes/echo", { text: "x" }, { answers: answers("reject") })).resultType).toBe("rejected");
    expect(asked.splice(0)).toEqual(["caller", "caller"]);
    expect((await session.callTool("notes/echo", { text: "x" }, { answers: answers("no-result") })).resultType).toBe("success");
    expect(asked).toEqual(["caller", "program"]);
  });
});

describe("the instructions of a server", () => {
  test("the instructions of a server are part of the instructions of a session's model", async () => {
    const chat = fakeChat("Hello.");
    const session = await openSession(await hostIn(emptyFolder(), { mcpServers }), { chatModel: chat });
    await session.sendAndWait("Hi.");
    expect(chat.requests[0]!.messages[0]!.content).toContain('<server name="notes">\nI am n.\n</server>');
    expect(chat.requests[0]!.tools?.map(({ name }) => name)).toContain("notes-echo");
  });

  test("changed instructions are withheld until the user approves them", async () => {
    const host = await hostIn(emptyFolder(), { mcpServers });
    const session = await openSession(host);
    await session.ready();
    const withdrawn = nextEvent(session, "session.tools_updated", () => !session.catalog.executables.has("notes-echo"));
    await say(session, "notes/change");
    await withdrawn;
    expect((await session.callTool("notes/echo", { text: "x" })).resultType).toBe("failure");
    expect(host.listServers()).toMatchObject([{ name: "notes", held: [{ kind: "tool", name: "echo", reason: "changed" }] }]);
    expect(host.listServers()[0]!.held[0]!.diff).toContain("with a new description");
    expect(await host.approveServer("notes", "echo")).toBe(1);
    expect(await say(session, "notes/echo", { text: "back" })).toBe("back");
    await expect(host.approveServer("strange")).rejects.toThrow('MCP server "strange" does not exist');
  });
});
