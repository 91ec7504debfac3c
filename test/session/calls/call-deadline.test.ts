import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ToolContext, ToolInvocation } from "../../../src/tools/tool.ts";
import { createTestEnvironment, deferred, openSession, recordEvents, sessionWith } from "../session-kit.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const hangs = (extra: object = {}) => ({ name: "hangs", handler: () => new Promise<never>(() => {}), ...extra });
const advance = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

/** Whether a promise has settled already. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol("open");
  await advance(0);
  return (await Promise.race([promise, Promise.resolve(open)])) !== open;
}

describe("the deadline of a call", () => {
  test.each<[string, object, object, number]>([
    ["120 seconds by default", {}, {}, 120_000],
    ["as long as the session says", {}, { toolTimeout: 5000 }, 5000],
    ["as long as the tool says", { timeout: 700 }, { toolTimeout: 5000 }, 700],
  ])("the deadline of a call: %s", async (_title, tool, options, limit) => {
    const session = sessionWith([hangs(tool)], options);
    const call = session.callTool("hangs");
    await advance(limit - 1);
    expect(await isSettled(call)).toBe(false);
    await advance(1);
    expect(await call).toMatchObject({
      resultType: "timeout",
      textResultForLlm: `Tool 'hangs' did not finish within ${limit / 1000} seconds and was stopped.`,
    });
  });

  test("a call may have no deadline at all", async () => {
    const session = sessionWith([hangs()], { toolTimeout: Number.POSITIVE_INFINITY });
    const call = session.callTool("hangs");
    await advance(2 ** 31 + 1000);
    expect(await isSettled(call)).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a deadline longer than the maximum of a timer is respected", async () => {
    const session = sessionWith([hangs({ timeout: 2 ** 31 + 5000 })]);
    const call = session.callTool("hangs");
    await advance(2 ** 31);
    expect(await isSettled(call)).toBe(false);
    await advance(5000);
    expect((await call).resultType).toBe("timeout");
  });
});

test("at the deadline the signal fires, the failure hook runs, success is false and a late result is dropped", async () => {
  const late = deferred<string>();
  let signal: AbortSignal | undefined;
  const errors: string[] = [];
  const session = sessionWith(
    [
      {
        name: "slow",
        timeout: 1000,
        handler: (_args: unknown, invocation: ToolInvocation) => {
          signal = invocation.signal;
          return late.promise;
        },
      },
    ],
    { hooks: { onPostToolUseFailure: ({ error }) => void errors.push(error) } },
  );
  const events = recordEvents(session, "tool.execution_complete");
  const call = session.callTool("slow");
  expect(signal?.aborted).toBe(false);
  await advance(1000);
  expect(signal?.aborted).toBe(true);
  expect(signal?.reason).toMatchObject({ name: "TimeoutError" });
  const result = await call;
  late.resolve("too late");
  await advance(0);
  expect(result.resultType).toBe("timeout");
  expect(errors).toEqual(["The deadline of 1000 ms passed."]);
  expect(events).toHaveLength(1);
  expect(events[0]?.data).toMatchObject({ success: false, error: { code: "timeout" } });
});

test("a rejection after the deadline is dropped silently", async () => {
  const late = deferred<string>();
  const session = sessionWith([{ name: "slow", timeout: 10, handler: () => late.promise }]);
  const call = session.callTool("slow");
  await advance(10);
  await call;
  late.reject(new Error("rejected late"));
  await advance(0);
});

test("a handler that reads its signal only after the deadline finds it aborted", async () => {
  let invocation: ToolInvocation | undefined;
  const session = sessionWith([
    {
      name: "slow",
      timeout: 10,
      handler: (_args: unknown, given: ToolInvocation) => {
        invocation = given;
        return new Promise(() => {});
      },
    },
  ]);
  const call = session.callTool("slow");
  await advance(10);
  await call;
  expect(invocation?.signal.aborted).toBe(true);
});

describe("pauses of a call's deadline", () => {
  const asksWhileRunning = (kind: "userInput" | "permission") => ({
    name: "asks",
    timeout: 1000,
    handler: async (_args: unknown, _invocation: ToolInvocation, context: ToolContext) => {
      await context.ask(kind as "userInput", { question: "?" });
      return new Promise<never>(() => {});
    },
  });

  test("the deadline pauses while a question is open and resumes afterwards", async () => {
    const answer = deferred<unknown>();
    const session = sessionWith([asksWhileRunning("userInput")], { onUserInputRequest: () => answer.promise });
    const call = session.callTool("asks");
    await advance(60_000);
    expect(await isSettled(call)).toBe(false);
    answer.resolve({ answer: "yes" });
    await advance(999);
    expect(await isSettled(call)).toBe(false);
    await advance(1);
    expect((await call).resultType).toBe("timeout");
  });

  test("the time before a question counts towards the deadline", async () => {
    const answer = deferred<unknown>();
    const start = deferred();
    const session = sessionWith(
      [
        {
          name: "asks",
          timeout: 1000,
          handler: async (_args: unknown, _invocation: ToolInvocation, context: ToolContext) => {
            await start.promise;
            await context.ask("userInput", { question: "?" });
            return new Promise<never>(() => {});
          },
        },
      ],
      { onUserInputRequest: () => answer.promise },
    );
    const call = session.callTool("asks");
    await advance(600);
    start.resolve();
    await advance(60_000);
    answer.resolve({ answer: "yes" });
    await advance(399);
    expect(await isSettled(call)).toBe(false);
    await advance(1);
    expect((await call).resultType).toBe("timeout");
  });

  test("the deadline pauses while an inner tool waits for the user", async () => {
    const answer = deferred<unknown>();
    const session = sessionWith(
      [
        {
          name: "outer",
          timeout: 1000,
          skipPermission: true,
          handler: async (_args: unknown, _invocation: ToolInvocation, context: ToolContext) =>
            (await context.callTool("inner", {})).textResultForLlm,
        },
        { name: "inner", handler: () => "inner ran" },
      ],
      { onPermissionRequest: () => answer.promise },
    );
    const call = session.callTool("outer");
    await advance(60_000);
    expect(await isSettled(call)).toBe(false);
    answer.resolve({ kind: "approve-once" });
    expect((await call).textResultForLlm).toBe("inner ran");
  });

  test("the deadline does not start before permission is given", async () => {
    const answer = deferred<unknown>();
    const session = sessionWith([{ name: "t", timeout: 1000, handler: () => "ran" }], { onPermissionRequest: () => answer.promise });
    const call = session.callTool("t");
    await advance(600_000);
    answer.resolve({ kind: "approve-once" });
    expect((await call).textResultForLlm).toBe("ran");
  });

  test("a client tool has no running deadline", async () => {
    const session = sessionWith([{ name: "declared", timeout: 1000 }]);
    const call = session.callTool("declared");
    await advance(600_000);
    expect(await isSettled(call)).toBe(false);
    session.respondToTool(session.asks.pending[0]!.id, "answered");
    expect((await call).textResultForLlm).toBe("answered");
  });
});

test("progress restarts the deadline, also for the calling tool, and emits an event", async () => {
  let context: ToolContext | undefined;
  const session = sessionWith([
    {
      name: "outer",
      timeout: 1000,
      handler: async (_args: unknown, _invocation: ToolInvocation, own: ToolContext) => (await own.callTool("inner", {})).textResultForLlm,
    },
    {
      name: "inner",
      timeout: 1000,
      handler: (_args: unknown, _invocation: ToolInvocation, own: ToolContext) => {
        context = own;
        return new Promise(() => {});
      },
    },
  ]);
  const events = recordEvents(session, "tool.execution_progress");
  const call = session.callTool("outer");
  for (let round = 0; round < 5; round++) {
    await advance(900);
    expect(await isSettled(call)).toBe(false);
    context?.progress({ progress: round, total: 5 });
  }
  await advance(1000);
  expect(await isSettled(call)).toBe(true);
  expect(events.map(({ data }) => data["progressMessage"])).toEqual(["0/5", "1/5", "2/5", "3/5", "4/5"]);
  context?.progress({ message: "still here" });
  expect(events).toHaveLength(5);
});

test("an inner call ends when its caller reaches the deadline", async () => {
  let inner: AbortSignal | undefined;
  const session = sessionWith([
    {
      name: "outer",
      timeout: 1000,
      handler: (_args: unknown, _invocation: ToolInvocation, { callTool }: ToolContext) => callTool("inner", {}),
    },
    {
      name: "inner",
      handler: (_args: unknown, { signal }: ToolInvocation) => {
        inner = signal;
        return new Promise(() => {});
      },
    },
  ]);
  const events = recordEvents(session, "tool.execution_complete");
  const call = session.callTool("outer");
  await advance(1000);
  expect((await call).resultType).toBe("timeout");
  await advance(0);
  expect(inner?.aborted).toBe(true);
  expect(events).toHaveLength(2);
  expect(vi.getTimerCount()).toBe(0);
});

test("many calls share one timer, end at their own deadlines and leave no timer", async () => {
  const limits = [500, 100, 900, 100, 300];
  const session = sessionWith(limits.map((timeout, index) => hangs({ name: `t${index}`, timeout })));
  const ended: number[] = [];
  const calls = limits.map((_limit, index) => session.callTool(`t${index}`).then(() => ended.push(index)));
  expect(vi.getTimerCount()).toBe(1);
  await advance(100);
  expect(ended).toEqual([1, 3]);
  await advance(400);
  expect(ended).toEqual([1, 3, 4, 0]);
  await advance(400);
  await Promise.all(calls);
  expect(vi.getTimerCount()).toBe(0);
});

test("calls that return leave no timer", async () => {
  const session = openSession(createTestEnvironment(), { tools: [{ name: "t", handler: async () => "x" }] });
  await Promise.all(Array.from({ length: 50 }, () => session.callTool("t")));
  expect(vi.getTimerCount()).toBe(0);
});
