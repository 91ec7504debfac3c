import { SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { describe, expect, test } from "vitest";
import { createTelemetry } from "../../src/session/telemetry.ts";
import type { ToolContext, ToolInvocation } from "../../src/tools/tool.ts";
import { fakeChat } from "../doubles/fake-chat.ts";
import { type KeptSpan, registerTracing } from "../doubles/memory-tracing.ts";
import { createTestEnvironment, nextEvent, openSession, recordingLogger, sessionWith } from "./session-kit.ts";

const named = (spans: readonly KeptSpan[], name: string): KeptSpan => {
  const span = spans.find((one) => one.name === name);
  if (span === undefined) throw new Error(`No span is named ${name}; there are ${spans.map((one) => one.name).join(", ")}.`);
  return span;
};
const parentOf = (spans: readonly KeptSpan[], span: KeptSpan) => spans.find(({ context }) => context.spanId === span.parentId)?.name;
const traceKeys = (invocation: ToolInvocation) => Object.keys(invocation).filter((key) => key.startsWith("trace"));

describe("telemetry without a registered SDK", () => {
  test("without an SDK there is no telemetry, and handlers get no trace keys", async () => {
    let keys: string[] | undefined;
    const session = sessionWith([
      {
        name: "t",
        handler(_args: never, invocation: ToolInvocation) {
          keys = traceKeys(invocation);
        },
      },
    ]);
    await session.callTool("t");
    expect(keys).toEqual([]);
    expect(createTelemetry("s", recordingLogger([]))).toBeUndefined();
  });

  test("a registered SDK applies to later sessions until it is removed", () => {
    registerTracing();
    expect(createTelemetry("s", recordingLogger([]))).toBeDefined();
    trace.disable();
    expect(createTelemetry("s", recordingLogger([]))).toBeUndefined();
  });
});

describe("the spans of a turn", () => {
  test.each([false, true])("the span of an agent contains model and tool calls (context manager: %s)", async (contexts) => {
    const spans = registerTracing({ contexts });
    const chat = fakeChat({ calls: [{ name: "t", args: { secret: "hunter2" } }] }, "Done with hunter2.");
    const session = openSession(createTestEnvironment(), {
      tools: [{ name: "t", description: "For a test.", handler: () => "result hunter2" }],
      chatModel: chat,
    });
    await session.sendAndWait("The password is hunter2.");
    expect(spans.map(({ name }) => name)).toEqual(["invoke_agent", `chat ${chat.id}`, "execute_tool t", `chat ${chat.id}`]);
    expect(spans.slice(1).map((span) => parentOf(spans, span))).toEqual(["invoke_agent", "invoke_agent", "invoke_agent"]);
    expect(spans.map(({ ended, status }) => [ended, status.code])).toEqual(spans.map(() => [1, SpanStatusCode.UNSET]));
    expect(named(spans, "invoke_agent").attributes).toEqual({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.conversation.id": session.id,
    });
    expect(named(spans, "execute_tool t")).toMatchObject({
      kind: SpanKind.INTERNAL,
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "t",
        "gen_ai.tool.call.id": expect.any(String),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "For a test.",
      },
    });
    expect(named(spans, `chat ${chat.id}`)).toMatchObject({
      kind: SpanKind.CLIENT,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "custom",
        "gen_ai.request.model": chat.id,
        "gen_ai.response.finish_reasons": [expect.any(String)],
      },
    });
    expect(JSON.stringify(spans)).not.toContain("hunter2");
  });

  test("spans contain the usage of an answer and the address of the model", async () => {
    const spans = registerTracing();
    const plain = fakeChat("Hello.");
    const chat = {
      id: "m",
      address: "models.example:8443",
      complete: async (...given: Parameters<typeof plain.complete>) => ({
        ...(await plain.complete(...given)),
        model: "m-2",
        callId: "answer-1",
        usage: { inputTokens: 12, outputTokens: 3, cachedTokens: 8 },
      }),
    };
    await openSession(createTestEnvironment(), { chatModel: chat }).sendAndWait("Hi.");
    expect(named(spans, "chat m").attributes).toMatchObject({
      "server.address": "models.example",
      "server.port": 8443,
      "gen_ai.response.model": "m-2",
      "gen_ai.response.id": "answer-1",
      "gen_ai.usage.input_tokens": 12,
      "gen_ai.usage.output_tokens": 3,
      "gen_ai.usage.cache_read.input_tokens": 8,
    });
  });

  test("spans of a failed model end with the error's code and without its message", async () => {
    const spans = registerTracing();
    const broken = async (): Promise<never> => {
      throw Object.assign(new Error("The key hunter2 is wrong."), { code: "MODEL_UNAUTHORIZED" });
    };
    const session = openSession(createTestEnvironment(), { chatModel: { id: "m", address: "h", complete: broken } });
    await expect(session.sendAndWait("Hi.")).rejects.toThrow();
    for (const name of ["invoke_agent", "chat m"]) {
      expect(named(spans, name)).toMatchObject({
        ended: 1,
        status: { code: SpanStatusCode.ERROR },
        attributes: { "error.type": "MODEL_UNAUTHORIZED" },
      });
    }
    expect(JSON.stringify(spans)).not.toContain("hunter2");
  });
});

describe("a traced call", () => {
  test("a handler gets its span in W3C format, also if permission was requested before", async () => {
    const spans = registerTracing({ traceState: "vendor=1" });
    const seen: (readonly [string[], string | undefined, string | undefined])[] = [];
    const look = ({ invocation }: ToolContext): void =>
      void seen.push([traceKeys(invocation), invocation.traceparent, invocation.tracestate]);
    const session = sessionWith([
      {
        name: "t",
        permission: (_args: never, context: ToolContext) => {
          look(context);
          return null;
        },
        handler: (_args: never, _invocation: ToolInvocation, context: ToolContext) => look(context),
      },
    ]);
    await session.callTool("t");
    const { traceId, spanId } = named(spans, "execute_tool t").context;
    expect(seen).toEqual([
      [[], undefined, undefined],
      [["traceparent", "tracestate"], `00-${traceId}-${spanId}-01`, "vendor=1"],
    ]);
  });

  test("a handler's span is the parent of the calls that it makes", async () => {
    const spans = registerTracing();
    const session = sessionWith([
      { name: "outer", handler: (_args: never, _invocation: ToolInvocation, context: ToolContext) => context.callTool("inner", {}) },
      { name: "inner", handler: () => "x" },
    ]);
    await session.callTool("outer");
    expect(parentOf(spans, named(spans, "execute_tool inner"))).toBe("execute_tool outer");
  });

  test("a handler's span is the parent of the program's own spans", async () => {
    const spans = registerTracing({ contexts: true });
    const handler = async (): Promise<void> => {
      await Promise.resolve();
      trace.getTracer("app").startSpan("query").end();
    };
    await sessionWith([{ name: "t", handler }]).callTool("t");
    expect(parentOf(spans, named(spans, "query"))).toBe("execute_tool t");
  });

  test.each([
    ["throws", () => Promise.reject(new Error("hunter2")), "threw"],
    ["fails", () => ({ resultType: "failure", textResultForLlm: "hunter2" }), "failure"],
    ["takes too long", () => new Promise(() => {}), "timeout"],
  ])("a span ends with an error when the handler %s", async (_how, handler, code) => {
    const spans = registerTracing();
    await sessionWith([{ name: "t", handler, timeout: 20 }]).callTool("t");
    expect(spans).toMatchObject([{ ended: 1, status: { code: SpanStatusCode.ERROR }, attributes: { "error.type": code } }]);
    expect(JSON.stringify(spans)).not.toContain("hunter2");
  });

  test("a call that does not run has no span", async () => {
    const spans = registerTracing();
    const session = sessionWith([{ name: "t", handler: () => "x" }], { onPermissionRequest: () => ({ kind: "reject" }) });
    await session.callTool("t");
    await session.callTool("missing");
    expect(spans).toEqual([]);
  });

  test("a call that a client answers passes its span to the client", async () => {
    const spans = registerTracing();
    const session = sessionWith([{ name: "pushed" }]);
    const requested = nextEvent(session, "external_tool.requested");
    const called = session.callTool("pushed");
    const { data } = await requested;
    const { traceId, spanId } = named(spans, "execute_tool pushed").context;
    expect(data).toMatchObject({ traceparent: `00-${traceId}-${spanId}-01` });
    session.respondToTool((data as { requestId: string }).requestId, { result: "x" });
    await called;
    expect(spans).toMatchObject([{ ended: 1, status: { code: SpanStatusCode.UNSET } }]);
  });

  test("a call runs although the SDK fails, and the failure is logged", async () => {
    registerTracing({ failWith: new Error("The exporter is broken.") });
    const environment = createTestEnvironment();
    const session = openSession(environment, { tools: [{ name: "t", handler: () => "x" }] });
    expect((await session.callTool("t")).textResultForLlm).toBe("x");
    expect(environment.lines).toMatchObject([{ level: "error", data: { span: "execute_tool t" } }]);
  });
});
