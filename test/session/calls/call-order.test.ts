import { describe, expect, test } from "vitest";
import type { CallOutcome } from "../../../src/session/calls/tool-call.ts";
import type { Session } from "../../../src/session/session.ts";
import { haveOneHiddenClass } from "../../hidden-class.ts";
import { createTestEnvironment, deferred, openSession, recordEvents, sessionWith, settleMicrotasks, sourceOf } from "../session-kit.ts";

const runAll = async (session: Session, ...calls: [name: string, args?: unknown][]): Promise<CallOutcome[]> => {
  const prepared = await session.prepare(calls.map(([name, args = {}], index) => ({ id: `c${index}`, name, arguments: args })));
  return Promise.all(prepared.map((each) => session.run(each)));
};

test("the calls of a message pass every stage in order", async () => {
  const steps: string[] = [];
  const step = (text: string): void => void steps.push(text);
  const tool = (name: string) => ({
    name,
    parameters: { type: "object", properties: { n: { type: "integer", default: 1 } } },
    handler: async () => {
      step(`execute ${name}`);
      return "done";
    },
  });
  const session = sessionWith([tool("a"), tool("b")], {
    onPermissionRequest: ({ toolName }) => {
      step(`ask ${toolName}`);
      return { kind: "approve-once" };
    },
    hooks: {
      onPreToolUse: async ({ toolName }) => step(`pre ${toolName}`),
      onPostToolUse: async ({ toolName }) => step(`post ${toolName}`),
      onPostToolUseFailure: ({ toolName }) => step(`failed ${toolName}`),
    },
  });
  session.on(({ type, data }) => {
    if (/^tool\.|^permission\./.test(type)) {
      const { toolName, toolCallId } = data as { toolName?: string; toolCallId?: string };
      step(`${type} ${toolName ?? toolCallId ?? ""}`.trim());
    }
  });
  await runAll(session, ["a"], ["b"]);
  expect(steps).toEqual([
    "tool.execution_start a",
    "pre a",
    "tool.execution_start b",
    "pre b",
    "permission.requested",
    "ask a",
    "permission.completed c0",
    "permission.requested",
    "ask b",
    "permission.completed c1",
    "execute a",
    "execute b",
    "post a",
    "post b",
    "tool.execution_complete c0",
    "tool.execution_complete c1",
  ]);
});

test("hook inputs share one hidden class", async () => {
  const seen: Record<string, object[]> = { pre: [], post: [], failed: [] };
  const session = sessionWith(
    [
      { name: "good", handler: () => "fine" },
      { name: "bad", handler: () => ({ resultType: "failure", textResultForLlm: "no" }) },
    ],
    {
      hooks: {
        onPreToolUse: (input) => void seen["pre"]?.push(input),
        onPostToolUse: (input) => void seen["post"]?.push(input),
        onPostToolUseFailure: (input) => void seen["failed"]?.push(input),
      },
    },
  );
  for (let n = 0; n < 1_000; n++) for (const name of ["good", "bad"]) await session.callTool(name, {});
  for (const inputs of Object.values(seen)) {
    const [one, other] = inputs.slice(-2) as [object, object];
    expect(haveOneHiddenClass(one, other)).toBe(true);
  }
});

describe("each call has one start and one end", () => {
  const counts = async (act: (session: Session) => Promise<unknown>, tools: object[], options: object = {}): Promise<[number, number]> => {
    const session = sessionWith(tools as never, options);
    const events = recordEvents(session, "tool.execution_start", "tool.execution_complete");
    await act(session);
    return [events.filter(({ type }) => type.endsWith("start")).length, events.filter(({ type }) => type.endsWith("complete")).length];
  };
  const throwing = {
    name: "t",
    handler: () => {
      throw new Error("x");
    },
  };

  test.each<[string, object[], object]>([
    ["a success", [{ name: "t", handler: () => "x" }], {}],
    ["an async success", [{ name: "t", handler: async () => "x" }], {}],
    ["a throw", [throwing], {}],
    ["a rejection", [{ name: "t", handler: () => Promise.reject(new Error("x")) }], {}],
    ["no such tool", [], {}],
    ["bad arguments", [{ name: "t", parameters: { type: "object", required: ["x"] }, handler: () => "x" }], {}],
    ["a denied permission", [{ name: "t", handler: () => "x" }], { onPermissionRequest: () => ({ kind: "reject" }) }],
    ["a hook's denial", [{ name: "t", handler: () => "x" }], { hooks: { onPreToolUse: () => ({ permissionDecision: "deny" }) } }],
    ["a hook that throws", [{ name: "t", handler: () => "x" }], { hooks: { onPreToolUse: () => Promise.reject(new Error("x")) } }],
    ["observers that throw", [throwing], { hooks: { onPostToolUseFailure: () => Promise.reject(new Error("x")) } }],
  ])("a call has one start and one end: %s", async (_title, tools, options) => {
    expect(await counts((session) => session.callTool("t"), tools, options)).toEqual([1, 1]);
  });
});

describe("the gates of a call", () => {
  const neverRuns = {
    name: "t",
    handler: () => {
      throw new Error("it ran");
    },
  };

  test("a hook's denial takes precedence over a missing tool", async () => {
    const session = sessionWith([], {
      hooks: { onPreToolUse: () => ({ permissionDecision: "deny", permissionDecisionReason: "not today" }) },
    });
    const [outcome] = await runAll(session, ["nobody_knows_it"]);
    expect(outcome).toMatchObject({ code: "denied_by_hook", result: { resultType: "denied" }, endsTurn: false });
    expect(outcome?.result.textResultForLlm).toBe("Denied by preToolUse hook: not today");
  });

  test("a denial without a reason says so", async () => {
    const session = sessionWith([neverRuns], { hooks: { onPreToolUse: () => ({ permissionDecision: "deny" }) } });
    expect((await session.callTool("t")).textResultForLlm).toBe("Denied by preToolUse hook: No reason provided");
  });

  test.each<[string, unknown]>([
    [
      "throws",
      () => {
        throw new Error("secret");
      },
    ],
    ["rejects", () => Promise.reject(new Error("secret"))],
    ["returns an unknown decision", () => ({ permissionDecision: "maybe" })],
    [
      "returns what cannot be read",
      () =>
        Object.defineProperty({}, "permissionDecision", {
          get() {
            throw new Error("secret");
          },
        }),
    ],
  ])("a gate that %s denies the call", async (_title, onPreToolUse) => {
    const session = sessionWith([neverRuns], { hooks: { onPreToolUse } as never });
    const result = await session.callTool("t");
    expect(result).toMatchObject({ resultType: "denied", textResultForLlm: "Denied by preToolUse hook: the hook failed" });
  });

  test("hooks see each other's arguments, and the rewritten arguments are validated and approved", async () => {
    const seen: unknown[] = [];
    const tool = {
      name: "t",
      parameters: { type: "object", properties: { n: { type: "integer" }, deep: { type: "boolean", default: true } }, required: ["n"] },
      handler: (args: unknown) => JSON.stringify(args),
    };
    const session = sessionWith([tool], {
      onPermissionRequest: ({ toolArgs }) => {
        seen.push(["asked", toolArgs]);
        return { kind: "approve-once" };
      },
      hooks: {
        onPreToolUse: [
          ({ toolArgs }) => ({ modifiedArgs: { ...(toolArgs as object), n: 2 } }),
          ({ toolArgs }) => {
            seen.push(["second", toolArgs]);
            return { modifiedArgs: { n: 3 }, additionalContext: "rewritten" };
          },
        ],
      },
    });
    const [outcome] = await runAll(session, ["t", { n: "wrong" }]);
    expect(seen).toEqual([
      ["second", { n: 2 }],
      ["asked", { n: 3, deep: true }],
    ]);
    expect(outcome?.result.textResultForLlm).toBe('{"n":3,"deep":true}');
    expect(outcome?.arguments).toEqual({ n: 3 });
    expect(outcome?.messages).toEqual(["Additional context from preToolUse hook:\nrewritten"]);
  });

  test("arguments without changes or defaults stay the same object", async () => {
    const session = sessionWith([{ name: "t", parameters: { type: "object", properties: { n: { default: 1 } } }, handler: () => "x" }]);
    const args = { other: 1 };
    const [outcome] = await runAll(session, ["t", args]);
    expect(outcome?.arguments).toBe(args);
    expect(args).toEqual({ other: 1 });
  });

  test("a hook receives the details of the call", async () => {
    const inputs: unknown[] = [];
    const environment = createTestEnvironment();
    const session = openSession(environment, {
      tools: [{ name: "t", handler: () => "x" }],
      hooks: { onPreToolUse: (input, invocation) => void inputs.push(input, invocation) },
    });
    await session.callTool("t", { a: 1 });
    expect(inputs).toEqual([
      { sessionId: "session-1", timestamp: expect.any(Number), cwd: environment.folder, toolName: "t", toolArgs: { a: 1 } },
      { sessionId: "session-1" },
    ]);
  });

  test("hooks emit events", async () => {
    const session = sessionWith([{ name: "t", handler: () => "x" }], {
      hooks: {
        onPreToolUse: () => ({ permissionDecision: "allow" }),
        onPostToolUse: () => {
          throw new Error("broken");
        },
      },
    });
    const events = recordEvents(session, "hook.start", "hook.end");
    await session.callTool("t");
    expect(events.map(({ type, data }) => [type, data["hookType"], data["success"]])).toEqual([
      ["hook.start", "preToolUse", undefined],
      ["hook.end", "preToolUse", true],
      ["hook.start", "postToolUse", undefined],
      ["hook.end", "postToolUse", false],
    ]);
    expect(events[0]?.data["hookInvocationId"]).toBe(events[1]?.data["hookInvocationId"]);
    expect(events[3]?.data["error"]).toEqual({ message: "broken" });
  });
});

describe("observers after a call", () => {
  test("an observer may replace and extend the result, and one that fails is skipped", async () => {
    const session = sessionWith([{ name: "t", handler: () => "first" }], {
      hooks: {
        onPostToolUse: [
          () => {
            throw new Error("broken");
          },
          async ({ toolResult }) => ({ modifiedResult: `${toolResult.textResultForLlm} second`, additionalContext: "note one" }),
          ({ toolResult }) => ({
            modifiedResult: { textResultForLlm: `${toolResult.textResultForLlm} third`, resultType: "success" },
            additionalContext: "note two",
          }),
        ],
      },
    });
    const [outcome] = await runAll(session, ["t"]);
    const guidance = '\n\nTool "t" succeeded. Additional guidance from postToolUse hooks:\n';
    expect(outcome?.result.textResultForLlm).toBe(`first second third${guidance}note one${guidance}note two`);
    expect(outcome?.messages).toEqual([]);
  });

  test("failures have their own observers, whose guidance follows the result", async () => {
    const observed: unknown[] = [];
    const session = sessionWith(
      [{ name: "view", handler: () => ({ textResultForLlm: "no such file", resultType: "failure", error: "ENOENT" }) }],
      {
        hooks: {
          onPostToolUse: () => void observed.push("success"),
          onPostToolUseFailure: ({ error, toolName }) => {
            observed.push([toolName, error]);
            return { additionalContext: "try another" };
          },
        },
      },
    );
    const [outcome] = await runAll(session, ["view"]);
    expect(observed).toEqual([["view", "ENOENT"]]);
    expect(outcome?.messages).toEqual(['Tool "view" failed. Additional guidance from postToolUseFailure hooks:\ntry another']);
  });

  test("calls that never ran have no observers", async () => {
    let observed = 0;
    const session = sessionWith([{ name: "t", handler: () => "x" }], {
      onPermissionRequest: () => ({ kind: "reject" }),
      hooks: { onPostToolUse: () => void observed++, onPostToolUseFailure: () => void observed++ },
    });
    await runAll(session, ["t"], ["unknown"]);
    expect(observed).toBe(0);
  });
});

describe("preparing and running calls", () => {
  test("calls run concurrently, and their outcomes keep the message's order", async () => {
    const first = deferred<string>();
    const second = deferred<string>();
    const session = sessionWith([
      { name: "a", handler: () => first.promise },
      { name: "b", handler: () => second.promise },
    ]);
    const outcomes = runAll(session, ["a"], ["b"]);
    await settleMicrotasks();
    second.resolve("two");
    await settleMicrotasks();
    first.resolve("one");
    expect((await outcomes).map(({ toolName, result }) => [toolName, result.textResultForLlm])).toEqual([
      ["a", "one"],
      ["b", "two"],
    ]);
  });

  test("a call that waits for permission does not block the others", async () => {
    const answer = deferred<unknown>();
    const session = sessionWith(
      [
        { name: "asks", handler: () => "asked" },
        { name: "runs", handler: () => "ran", skipPermission: true },
      ],
      {
        onPermissionRequest: () => answer.promise,
      },
    );
    const [asks, runs] = await session.prepare([
      { id: "1", name: "asks", arguments: {} },
      { id: "2", name: "runs", arguments: {} },
    ]);
    expect([asks?.kind, runs?.kind]).toEqual(["waiting", "run"]);
    expect((await session.run(runs!)).result.textResultForLlm).toBe("ran");
    const pending = session.run(asks!);
    answer.resolve({ kind: "approve-once" });
    expect((await pending).result.textResultForLlm).toBe("asked");
  });

  test("a prepared call runs only once", async () => {
    const session = sessionWith([{ name: "a", handler: () => "x" }]);
    const [prepared] = await session.prepare([{ id: "1", name: "a", arguments: {} }]);
    await session.run(prepared!);
    await expect(session.run(prepared!)).rejects.toMatchObject({ code: "CALL_TAKEN" });
    await expect(session.run({ kind: "run", call: { id: "1", name: "a", arguments: {} } })).rejects.toMatchObject({ code: "CALL_FOREIGN" });
  });

  test("a rejection ends the turn, a denial does not, and a terminal tool ends it on success", async () => {
    const session = sessionWith([
      { name: "rejects", handler: () => ({ textResultForLlm: "no", resultType: "rejected" }) },
      { name: "denies", handler: () => ({ textResultForLlm: "no", resultType: "denied" }) },
      { name: "last", isTerminal: true, handler: () => "bye" },
      { name: "almost", isTerminal: true, handler: () => null },
    ]);
    const outcomes = await runAll(session, ["rejects"], ["denies"], ["last"], ["almost"], ["unknown"]);
    expect(outcomes.map(({ code, endsTurn }) => [code, endsTurn])).toEqual([
      ["rejected", true],
      ["denied", false],
      ["success", true],
      ["failure", false],
      ["unknown_tool", false],
    ]);
  });

  test("a message uses the catalog of the time when it was prepared", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", { name: "a", handler: () => "old" }));
    const session = openSession(environment);
    const [prepared] = await session.prepare([{ id: "1", name: "a", arguments: {} }]);
    environment.publish(sourceOf("skill", "s", { name: "a", handler: () => "new" }));
    expect((await session.run(prepared!)).result.textResultForLlm).toBe("old");
    expect((await session.callTool("a")).textResultForLlm).toBe("new");
  });

  test("calls of another agent use its tools, and their events carry its id", async () => {
    const session = openSession(
      createTestEnvironment(sourceOf("skill", "s", { name: "a", handler: () => "a" }, { name: "b", handler: () => "b" })),
    );
    const narrow = openSession(createTestEnvironment(sourceOf("skill", "s", { name: "a", handler: () => "a" })));
    const inputs: string[] = [];
    await session.update({ hooks: { onPreToolUse: ({ sessionId }) => void inputs.push(sessionId) } });
    const events = recordEvents(session, "tool.execution_start", "tool.execution_complete", "hook.start");
    const agent = { catalog: narrow.catalog, agentId: "agent-1", turnId: "turn-9" };
    const prepared = await session.prepare(
      ["a", "b"].map((name) => ({ id: name, name, arguments: {} })),
      agent,
    );
    const outcomes = await Promise.all(prepared.map((each) => session.run(each)));
    expect(outcomes.map(({ code }) => code)).toEqual(["success", "unknown_tool"]);
    expect(events).toHaveLength(6);
    expect(events.every(({ agentId }) => agentId === "agent-1")).toBe(true);
    expect(events[0]?.data["turnId"]).toBe("turn-9");
    expect(inputs).toEqual(["agent-1", "agent-1"]);
  });
});

test("tool.execution_start and tool.execution_complete have these fields", async () => {
  const environment = createTestEnvironment({
    ...sourceOf("mcp", "github"),
    tools: sourceOf("mcp", "github", { name: "github-search", handler: () => ({ content: [{ type: "text", text: "found" }] }) }).tools,
  });
  const session = openSession(environment, { model: "m-1" });
  const events = recordEvents(session, "tool.execution_start", "tool.execution_complete");
  await session.callTool("github-search", { q: 1 }, { toolCallId: "call-1" });
  expect(events.map(({ data }) => data)).toEqual([
    {
      toolCallId: "call-1",
      toolName: "github-search",
      arguments: { q: 1 },
      mcpServerName: "github",
      mcpToolName: "github-search",
      model: "m-1",
    },
    {
      toolCallId: "call-1",
      success: true,
      result: { content: "found", detailedContent: "found", contents: [{ type: "text", text: "found" }] },
      toolTelemetry: {},
    },
  ]);
});
