import { describe, expect, test } from "vitest";
import type { ToolContext, ToolInvocation } from "../../../src/tools/tool.ts";
import {
  createTestEnvironment,
  deferred,
  openSession,
  recordEvents,
  sessionWith,
  settleMicrotasks,
  sourceOf,
  withThen,
} from "../session-kit.ts";

type Handler = (args: unknown, invocation: ToolInvocation, context: ToolContext) => unknown;
const tool = (name: string, handler: Handler, extra: object = {}) => ({ name, handler, ...extra });

describe("the arguments of a handler", () => {
  test("the invocation has exactly these keys, including a signal that is created on demand", async () => {
    let invocation: ToolInvocation | undefined;
    const environment = createTestEnvironment();
    const schema = { type: "object", properties: { n: { default: 1 } } };
    const session = openSession(environment, {
      tools: [
        tool(
          "t",
          (_args, given) => {
            invocation = given;
            return "x";
          },
          { parameters: schema },
        ),
      ],
    });
    await session.callTool("t", { m: 2 }, { toolCallId: "call-1" });
    expect(Object.keys(invocation!).sort()).toEqual(["arguments", "sessionId", "signal", "toolCallId", "toolName", "workingDirectory"]);
    expect({ ...invocation }).toEqual({
      sessionId: "session-1",
      toolCallId: "call-1",
      toolName: "t",
      arguments: { m: 2, n: 1 },
      signal: expect.any(AbortSignal),
      workingDirectory: environment.folder,
    });
    expect("traceparent" in invocation!).toBe(false);
    expect(invocation!.signal).toBe(invocation!.signal);
    expect(invocation!.signal.aborted).toBe(false);
  });

  test("a handler may take none, one, two or all of its arguments, sync or async", async () => {
    const session = sessionWith([
      tool("none", () => "none"),
      tool("one", async (args) => (args as { a: number }).a),
      tool("two", (_args, { toolName }) => toolName),
      tool("all", async (args, invocation, context) => args === invocation.arguments && invocation === context.invocation),
    ]);
    const texts = await Promise.all(
      ["none", "one", "two", "all"].map(async (name) => (await session.callTool(name, { a: 1 })).textResultForLlm),
    );
    expect(texts).toEqual(["none", "1", "two", "true"]);
  });

  test("the functions of the context can be destructured", async () => {
    const session = sessionWith([
      tool("outer", async (_args, _invocation, { callTool, progress, fileChanged }) => {
        progress({ message: "working" });
        fileChanged("/a/file", "content");
        return (await callTool("inner", {})).textResultForLlm;
      }),
      tool("inner", () => "from inside"),
    ]);
    const events = recordEvents(session, "tool.execution_progress", "session.workspace_file_changed");
    const changes: object[] = [];
    session.onFileChanged((change) => changes.push(change));
    expect((await session.callTool("outer", {}, { toolCallId: "c" })).textResultForLlm).toBe("from inside");
    expect(events.map(({ type, data }) => [type, data])).toEqual([
      ["tool.execution_progress", { toolCallId: "c", progressMessage: "working" }],
      ["session.workspace_file_changed", { operation: "update", path: "/a/file" }],
    ]);
    expect(changes).toEqual([{ path: "/a/file", content: "content", toolCallId: "c" }]);
  });
});

test("output so far is an event as long as something in it is new, and not progress for the caller", async () => {
  const report: Handler = (_args, _invocation, { progress }) => {
    for (const partialOutput of ["ä", "ä", "ää", "äää", "ääää"]) progress({ partialOutput, message: "unused" });
    // As from a tool of another process.
    progress({ partialOutput: 5 as never, message: "working" });
    return "Done.";
  };
  const session = sessionWith([tool("long", report)], { largeOutput: { maxSizeBytes: 5 } });
  const events = recordEvents(session, "tool.execution_progress", "tool.execution_partial_result");
  const heard: object[] = [];
  await session.callTool("long", {}, { toolCallId: "c", onProgress: (update) => heard.push(update) });
  expect(events.map(({ type, data }) => [type, data])).toEqual([
    ["tool.execution_partial_result", { toolCallId: "c", partialOutput: "ä" }],
    ["tool.execution_partial_result", { toolCallId: "c", partialOutput: "ää" }],
    ["tool.execution_progress", { toolCallId: "c", progressMessage: "working" }],
  ]);
  expect(events[0]?.ephemeral).toBe(true);
  expect(heard).toEqual([{ partialOutput: 5, message: "working" }]);
});

describe("tools that call tools", () => {
  test("an inner call passes every gate and is reported as a child of the outer call", async () => {
    const asked: string[] = [];
    const session = sessionWith(
      [
        tool("outer", async (_args, _invocation, { callTool }) => callTool("inner", { n: 1 }), { skipPermission: true }),
        tool("inner", () => "x"),
      ],
      { onPermissionRequest: ({ toolName }) => void asked.push(toolName) },
    );
    const events = recordEvents(session, "tool.execution_start", "tool.execution_complete");
    const result = await session.callTool("outer", {}, { toolCallId: "outer-1" });
    expect(asked).toEqual(["inner"]);
    expect(result).toMatchObject({ resultType: "denied" });
    expect(events.map(({ type, data }) => [type, data["parentToolCallId"]])).toEqual([
      ["tool.execution_start", undefined],
      ["tool.execution_start", "outer-1"],
      ["tool.execution_complete", "outer-1"],
      ["tool.execution_complete", undefined],
    ]);
  });

  test("a tool is found as source/tool, even if it was added after the call began", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", { name: "a", handler: () => "a" }));
    const goOn = deferred();
    const session = openSession(environment, {
      tools: [
        tool("outer", async (_args, _invocation, { callTool }) => {
          await goOn.promise;
          return (await callTool("late/b", {})).textResultForLlm;
        }),
      ],
    });
    const call = session.callTool("outer");
    environment.publish(sourceOf("skill", "late", { name: "b", handler: () => "came later" }));
    goOn.resolve();
    expect((await call).textResultForLlm).toBe("came later");
    expect((await session.callTool("late/b")).textResultForLlm).toBe("came later");
    expect((await session.callTool("late/c")).textResultForLlm).toMatch(/^Tool 'late\/c' does not exist\./);
  });

  test("calls of tools that call each other in a loop are ended", async () => {
    let depth = 0;
    const session = sessionWith([
      tool("loop", async (_args, _invocation, { callTool }) => {
        depth++;
        return (await callTool("loop", {})).textResultForLlm;
      }),
    ]);
    expect((await session.callTool("loop")).textResultForLlm).toBe("Tool 'loop' was not called: tool calls are nested too deeply.");
    expect(depth).toBe(8);
  });

  test("an inner call is cancelled when the outer call can no longer wait for it", async () => {
    const signals: AbortSignal[] = [];
    const inner = deferred();
    const session = sessionWith([
      tool("outer", async (_args, _invocation, { callTool }) => callTool("inner", {})),
      tool("inner", (_args, { signal }) => {
        signals.push(signal);
        inner.resolve();
        return new Promise(() => {});
      }),
    ]);
    const controller = new AbortController();
    const call = session.callTool("outer", {}, { signal: controller.signal });
    await inner.promise;
    controller.abort();
    expect((await call).textResultForLlm).toBe("The execution of this tool, or a previous tool was interrupted.");
    expect(signals[0]?.aborted).toBe(true);
  });
});

test("a finished call can no longer call tools, ask or report progress", async () => {
  let context: ToolContext | undefined;
  const session = sessionWith([
    tool("t", (_args, _invocation, given) => {
      context = given;
      return "done";
    }),
  ]);
  const events = recordEvents(session);
  await session.callTool("t");
  const eventCount = events.length;
  expect((await context!.callTool("t", {})).textResultForLlm).toBe("The execution of this tool, or a previous tool was interrupted.");
  await expect(context!.ask("userInput", { question: "?" })).rejects.toMatchObject({ code: "ASK_UNANSWERED" });
  context!.progress({ message: "x" });
  expect(events).toHaveLength(eventCount);
});

test("an unanswered question rejects, and the handler may continue without the answer", async () => {
  const session = sessionWith([
    tool("t", async (_args, _invocation, { ask }) => {
      try {
        await ask("userInput", { question: "colour?" });
        return "answered";
      } catch (error) {
        return (error as { code: string }).code;
      }
    }),
  ]);
  const events = recordEvents(session, "user_input.requested", "user_input.completed");
  expect((await session.callTool("t", {}, { toolCallId: "c" })).textResultForLlm).toBe("ASK_UNANSWERED");
  expect(events[0]?.data).toMatchObject({ question: "colour?", toolCallId: "c" });
  await session.update({ onUserInputRequest: ({ question }) => ({ answer: `${question} blue` }) });
  expect((await session.callTool("t")).textResultForLlm).toBe("answered");
});

test("a cancelled call is settled at once, and its signal fires", async () => {
  const started = deferred<AbortSignal>();
  const session = sessionWith([
    tool("t", (_args, { signal }) => {
      started.resolve(signal);
      return new Promise(() => {});
    }),
  ]);
  const controller = new AbortController();
  const call = session.callTool("t", {}, { signal: controller.signal });
  const signal = await started.promise;
  controller.abort();
  expect((await call).resultType).toBe("failure");
  expect(signal.reason).toMatchObject({ name: "AbortError" });
  expect((await session.callTool("t", {}, { signal: controller.signal })).textResultForLlm).toBe(
    "The execution of this tool, or a previous tool was interrupted.",
  );
});

test("a thenable that a handler returns is awaited like a promise", async () => {
  const thenable = withThen({ value: (resolve: (value: string) => void) => queueMicrotask(() => resolve("from a thenable")) });
  const hostile = withThen({
    enumerable: true,
    get() {
      throw new Error("boo");
    },
  });
  const session = sessionWith([tool("good", () => thenable), tool("bad", () => hostile)]);
  expect((await session.callTool("good")).textResultForLlm).toBe("from a thenable");
  expect((await session.callTool("bad")).resultType).not.toBe("success");
  await settleMicrotasks();
});
