import { describe, expect, test, vi } from "vitest";
import type { HookKind, SessionHooks } from "../../../src/session/hooks/hook-kinds.ts";
import { gateKinds, hookOptions } from "../../../src/session/hooks/hook-kinds.ts";
import { type FoldedKind, folds, readHookOutput } from "../../../src/session/hooks/hook-results.ts";
import type { HookRunner } from "../../../src/session/hooks/run-hooks.ts";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import { createTestEnvironment, deferred, openSession, recordEvents, settleMicrotasks, withThen } from "../session-kit.ts";

const tools = [
  { name: "good", handler: () => "fine" },
  { name: "bad", handler: () => ({ textResultForLlm: "no", resultType: "failure", error: "ENOENT" }) },
];

function open(hooks: SessionHooks, more: SessionOptions = {}) {
  const environment = createTestEnvironment();
  const session = openSession(environment, { tools, hooks, ...more });
  return { session, environment, warnings: recordEvents(session, "session.warning"), hooks: session.hooks };
}

/** For each kind that runs alone: the input of its caller and the output without hooks. */
const facts: { readonly [K in FoldedKind]: Parameters<(typeof folds)[K]["begin"]>[0] } = {
  userPromptSubmitted: { prompt: "hello" },
  userPromptTransformed: { prompt: "hello", transformedPrompt: "now: hello" },
  sessionStart: { source: "new", initialPrompt: "hello" },
  sessionEnd: { reason: "complete" },
  errorOccurred: { error: "no model", errorContext: "model_call", recoverable: true },
  agentStop: { transcriptPath: "/t/events.jsonl", stopReason: "end_turn", stop_hook_active: false },
  subagentStart: { agentName: "a", agentDisplayName: "A", agentDescription: "does a", transcriptPath: "/t" },
  subagentStop: { agentName: "a", agentDisplayName: "A", agentDescription: "does a", transcriptPath: "/t" },
  preMcpToolCall: { toolCallId: "c", serverName: "gh", toolName: "search", arguments: { q: 1 }, _meta: { progressToken: 1 } },
};
const foldedKinds = Object.keys(folds) as FoldedKind[];

function runKind(hooks: HookRunner, kind: FoldedKind, options?: Parameters<HookRunner["run"]>[2]): unknown {
  return hooks.run(kind, facts[kind] as never, options);
}

describe("the input of each hook kind", () => {
  test.each(foldedKinds)("the hook %s receives its own fields, session, time and folder", async (kind) => {
    const received: unknown[] = [];
    const { environment, hooks } = open({ [hookOptions[kind]]: (...given: unknown[]) => void received.push(...given) });
    const begin = Date.now();
    await runKind(hooks, kind);
    const [input, invocation] = received as [Record<string, unknown>, unknown];
    expect(input).toEqual({ sessionId: "session-1", timestamp: expect.any(Number), cwd: environment.folder, ...facts[kind] });
    expect(Number(input["timestamp"])).toBeGreaterThanOrEqual(begin);
    expect(invocation).toEqual({ sessionId: "session-1" });
  });

  test.each<[HookKind, string, object]>([
    ["preToolUse", "good", { toolName: "good", toolArgs: { a: 1 } }],
    ["postToolUse", "good", { toolName: "good", toolArgs: { a: 1 }, toolResult: { resultType: "success", textResultForLlm: "fine" } }],
    ["postToolUseFailure", "bad", { toolName: "bad", toolArgs: { a: 1 }, error: "ENOENT" }],
  ])("the tool hook %s receives its own fields, session, time and folder", async (kind, tool, own) => {
    const received: unknown[] = [];
    const { session, environment } = open({ [hookOptions[kind]]: (input: unknown) => void received.push(input) });
    await session.callTool(tool, { a: 1 });
    expect(received).toEqual([{ sessionId: "session-1", timestamp: expect.any(Number), cwd: environment.folder, ...own }]);
  });

  test("hooks of a sub-agent have its session, and their events its id", async () => {
    const received: unknown[] = [];
    const { session, hooks } = open({ onAgentStop: (input) => void received.push(input.sessionId) });
    const events = recordEvents(session, "hook.start", "hook.end");
    await runKind(hooks, "agentStop", { agentId: "call-7" });
    expect(received).toEqual(["call-7"]);
    expect(events.map(({ agentId }) => agentId)).toEqual(["call-7", "call-7"]);
  });

  test("every hook kind has an option with the name in the Copilot SDK", () => {
    const named = (kind: string): string => `on${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
    for (const [kind, option] of Object.entries(hookOptions)) expect(option).toBe(named(kind));
    expect(Object.keys(hookOptions).sort()).toEqual([...foldedKinds, "preToolUse", "postToolUse", "postToolUseFailure"].sort());
  });
});

describe("the combined output of a hook kind", () => {
  const cases: [string, FoldedKind, unknown[], unknown][] = [
    ["nothing", "userPromptSubmitted", [undefined, null, {}], { prompt: "hello", additionalContext: [] }],
    [
      "prompts, each on what the one before made of it",
      "userPromptSubmitted",
      [
        { modifiedPrompt: "one" },
        ({ prompt }: { prompt: string }) => ({ modifiedPrompt: `${prompt} two`, additionalContext: "note" }),
        { additionalContext: "more" },
      ],
      { prompt: "one two", additionalContext: ["note", "more"] },
    ],
    ["an empty prompt", "userPromptSubmitted", [{ modifiedPrompt: "", additionalContext: "" }], { prompt: "", additionalContext: [] }],
    [
      "a transformed prompt",
      "userPromptTransformed",
      [
        { modifiedTransformedPrompt: "x" },
        (input: { prompt: string; transformedPrompt: string }) => ({
          modifiedTransformedPrompt: `${input.prompt}/${input.transformedPrompt}`,
        }),
      ],
      { transformedPrompt: "hello/x" },
    ],
    ["contexts", "sessionStart", [{ additionalContext: "one" }, {}, { additionalContext: "two" }], { additionalContext: ["one", "two"] }],
    ["contexts for a sub-agent", "subagentStart", [{ additionalContext: "one" }], { additionalContext: ["one"] }],
    ["nothing at the end", "sessionEnd", [{ anything: 1 }], {}],
    ["no block", "agentStop", [{ decision: "allow", reason: "x" }, undefined], { blockedBy: undefined }],
    [
      "the first block",
      "agentStop",
      [{}, { decision: "block", reason: "one" }, { decision: "block", reason: "two" }, { decision: "allow" }],
      { blockedBy: "one" },
    ],
    ["a sub-agent's block", "subagentStop", [{ decision: "block", reason: "continue" }], { blockedBy: "continue" }],
    [
      "no handling",
      "errorOccurred",
      [undefined, { userNotification: "sorry" }],
      { errorHandling: undefined, retryCount: undefined, userNotifications: ["sorry"] },
    ],
    [
      "a retry",
      "errorOccurred",
      [{ errorHandling: "retry", retryCount: 3 }],
      { errorHandling: "retry", retryCount: 3, userNotifications: [] },
    ],
    [
      "the most careful handling",
      "errorOccurred",
      [
        { errorHandling: "retry", retryCount: 3, userNotification: "a" },
        { errorHandling: "abort", userNotification: "b" },
        { errorHandling: "skip" },
      ],
      { errorHandling: "abort", retryCount: undefined, userNotifications: ["a", "b"] },
    ],
    ["kept metadata", "preMcpToolCall", [undefined, {}], { isDenied: false, meta: { progressToken: 1 } }],
    ["replaced metadata", "preMcpToolCall", [{ metaToUse: { a: 1 } }], { isDenied: false, meta: { a: 1 } }],
    ["removed metadata", "preMcpToolCall", [{ metaToUse: { a: 1 } }, { metaToUse: null }], { isDenied: false, meta: undefined }],
    [
      "metadata as the hook before left it",
      "preMcpToolCall",
      [{ metaToUse: null }, (input: object) => ({ metaToUse: { had: Object.hasOwn(input, "_meta") } })],
      { isDenied: false, meta: { had: false } },
    ],
  ];
  test.each(cases)("%s (%s)", async (_title, kind, answers, expected) => {
    for (const isAsync of [false, true]) {
      const answering = answers.map((answer) => (input: unknown) => {
        const output: unknown = typeof answer === "function" ? answer(input) : answer;
        return isAsync ? Promise.resolve(output) : output;
      });
      const { hooks, warnings } = open({ [hookOptions[kind]]: answering });
      const result = runKind(hooks, kind);
      expect(result instanceof Promise).toBe(isAsync && answers.length > 0);
      expect(await result).toEqual(expected);
      expect(warnings).toEqual([]);
    }
  });

  test("without hooks of the kind, the caller's values are returned synchronously", () => {
    const { hooks } = open({});
    expect(runKind(hooks, "userPromptSubmitted")).toEqual({ prompt: "hello", additionalContext: [] });
    expect(runKind(hooks, "preMcpToolCall")).toEqual({ isDenied: false, meta: { progressToken: 1 } });
  });

  test("after an update, the new hooks run", async () => {
    const { session, hooks } = open({ onUserPromptSubmitted: () => ({ modifiedPrompt: "old" }) });
    await session.update({ hooks: { onUserPromptSubmitted: () => ({ modifiedPrompt: "new" }) } });
    expect(await runKind(hooks, "userPromptSubmitted")).toMatchObject({ prompt: "new" });
  });
});

describe("hooks that fail", () => {
  const faults: [string, () => unknown][] = [
    [
      "throws",
      () => {
        throw new Error("secret of the hook");
      },
    ],
    ["rejects", () => Promise.reject(new Error("secret of the hook"))],
    ["rejects with undefined", () => Promise.reject(undefined)],
    ["returns a text", () => "allow"],
    ["returns true", async () => true],
    ["returns an array", () => [{ metaToUse: null }]],
    ["returns a function", () => () => ({})],
    [
      "returns a promise that throws when it is asked",
      () =>
        withThen({
          value: () => {
            throw new Error("odd");
          },
        }),
    ],
  ];
  const outcomeOf = (kind: FoldedKind): unknown =>
    gateKinds.has(kind) ? { isDenied: true, meta: undefined } : folds[kind].begin(facts[kind] as never);

  test.each(foldedKinds.flatMap((kind) => faults.map(([title, hook]) => [kind, title, hook] as const)))(
    "%s: a hook that %s denies at a gate, is skipped as an observer, and is reported",
    async (kind, _title, hook) => {
      const { hooks, warnings, environment, session } = open({ [hookOptions[kind]]: hook });
      const ends = recordEvents(session, "hook.end");
      expect(await runKind(hooks, kind)).toEqual(outcomeOf(kind));
      const effect = gateKinds.has(kind) ? "the action that it guards was blocked" : "it was ignored";
      expect(warnings.map(({ data }) => data)).toEqual([{ warningType: "hook", message: expect.stringContaining(effect) }]);
      expect(JSON.stringify(warnings)).not.toContain("secret");
      expect(ends.map(({ data }) => [data["success"], typeof (data["error"] as { message: string }).message])).toEqual([[false, "string"]]);
      expect(environment.lines.filter(({ level }) => level === "error")).toHaveLength(1);
    },
  );

  test.each<[HookKind, unknown]>([
    ["preToolUse", { permissionDecision: "maybe" }],
    ["preToolUse", { permissionDecision: true }],
    ["preToolUse", { permissionDecisionReason: {} }],
    ["preToolUse", { additionalContext: 7 }],
    ["preMcpToolCall", { metaToUse: "none" }],
    ["preMcpToolCall", { metaToUse: [1] }],
    ["postToolUse", { additionalContext: [] }],
    ["postToolUseFailure", { additionalContext: 0 }],
    ["userPromptSubmitted", { modifiedPrompt: 7 }],
    ["userPromptTransformed", { modifiedTransformedPrompt: {} }],
    ["sessionStart", { additionalContext: {} }],
    ["errorOccurred", { errorHandling: "panic" }],
    ["errorOccurred", { errorHandling: "retry", retryCount: -1 }],
    ["errorOccurred", { retryCount: Number.POSITIVE_INFINITY }],
    ["agentStop", { decision: "deny" }],
    ["agentStop", { decision: "block" }],
    ["agentStop", { decision: "block", reason: "" }],
    ["subagentStop", { decision: "block", reason: null }],
  ])("the hook %s rejects the invalid output %j", (kind, output) => {
    expect(readHookOutput(kind, output)).toMatchObject({ ok: false, problem: expect.stringMatching(/^its |^it blocks/) });
  });

  test("null, unknown and inherited fields are accepted, and null removes metadata", () => {
    class Answer {
      get permissionDecision(): string {
        return "deny";
      }
    }
    expect(readHookOutput("preToolUse", new Answer())).toEqual({ ok: true, output: { permissionDecision: "deny" } });
    expect(readHookOutput("preToolUse", { permissionDecision: null, modifiedArgs: null, later: 1 })).toEqual({ ok: true, output: {} });
    expect(readHookOutput("preMcpToolCall", { metaToUse: null })).toEqual({ ok: true, output: { metaToUse: null } });
    expect(readHookOutput("sessionEnd", { anything: 1 })).toEqual({ ok: true, output: {} });
  });

  test("the other hooks run after a failed observer, but not after a failed gate", async () => {
    const ran: string[] = [];
    const boom = (): never => {
      throw new Error("x");
    };
    const { hooks } = open({
      onSessionStart: [boom, () => ({ additionalContext: "on" })],
      onPreMcpToolCall: [boom, () => void ran.push("after")],
    });
    expect(await runKind(hooks, "sessionStart")).toEqual({ additionalContext: ["on"] });
    expect(await runKind(hooks, "preMcpToolCall")).toEqual({ isDenied: true, meta: undefined });
    expect(ran).toEqual([]);
  });
});

describe("hooks that hang", () => {
  const hangs = (): Promise<never> => new Promise(() => {});

  test.each<[FoldedKind, unknown]>([
    ["preMcpToolCall", { isDenied: true, meta: undefined }],
    ["userPromptSubmitted", { prompt: "hello more", additionalContext: [] }],
  ])("the hook %s is awaited until hookTimeout", async (kind, expected) => {
    const next = ({ prompt }: { prompt?: string }) => ({ modifiedPrompt: `${prompt} more` });
    const { hooks, session, warnings } = open({ [hookOptions[kind]]: [hangs, next] }, { hookTimeout: 20 });
    const ends = recordEvents(session, "hook.end");
    expect(await runKind(hooks, kind)).toEqual(expected);
    expect(ends[0]?.data).toMatchObject({ success: false, error: { message: expect.stringContaining("hookTimeout") } });
    expect(warnings).toHaveLength(1);
  });

  test("a gate that hangs denies the call, and an observer that hangs keeps the result", async () => {
    const gate = open({ onPreToolUse: hangs }, { hookTimeout: 20 });
    expect(await gate.session.callTool("good")).toMatchObject({
      resultType: "denied",
      textResultForLlm: "Denied by preToolUse hook: the hook failed",
    });
    const observer = open({ onPostToolUse: hangs }, { hookTimeout: 20 });
    expect(await observer.session.callTool("good")).toMatchObject({ resultType: "success", textResultForLlm: "fine" });
  });

  test("an output after the timeout changes nothing and is reported once", async () => {
    const late = deferred<object>();
    const { hooks, session } = open({ onUserPromptSubmitted: () => late.promise }, { hookTimeout: 20 });
    const ends = recordEvents(session, "hook.end");
    expect(await runKind(hooks, "userPromptSubmitted")).toMatchObject({ prompt: "hello" });
    late.resolve({ modifiedPrompt: "too late" });
    await settleMicrotasks();
    expect(ends).toHaveLength(1);
  });

  test("the default hookTimeout is a minute, and a hook that returned leaves no timer", async () => {
    vi.useFakeTimers();
    try {
      const { hooks } = open({ onSessionStart: [async () => ({}), hangs] });
      const run = runKind(hooks, "sessionStart") as Promise<unknown>;
      let isOver = false;
      void run.then(() => {
        isOver = true;
      });
      await vi.advanceTimersByTimeAsync(59_000);
      expect(isOver).toBe(false);
      await vi.advanceTimersByTimeAsync(2_000);
      expect(isOver).toBe(true);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("a caller may stop waiting, which is not an error and prevents later hooks", async () => {
    const ran: string[] = [];
    const { hooks, warnings, environment } = open({ onSessionStart: [hangs, () => void ran.push("second")], onPreMcpToolCall: hangs });
    const abort = new AbortController();
    const runs = [runKind(hooks, "sessionStart", abort), runKind(hooks, "preMcpToolCall", { signal: abort.signal })];
    abort.abort();
    expect(await Promise.all(runs)).toEqual([{ additionalContext: [] }, { isDenied: true, meta: undefined }]);
    expect(await runKind(hooks, "sessionStart", { signal: abort.signal })).toEqual({ additionalContext: [] });
    expect([ran, warnings, environment.lines.filter(({ level }) => level === "error")]).toEqual([[], [], []]);
  });

  test("a session that ends does not wait for hooks", async () => {
    const { session, hooks } = open({ onSessionEnd: hangs, onPreMcpToolCall: hangs });
    const runs = [runKind(hooks, "sessionEnd"), runKind(hooks, "preMcpToolCall")];
    await session.disconnect();
    expect(await Promise.all(runs)).toEqual([{}, { isDenied: true, meta: undefined }]);
    expect(await runKind(hooks, "preMcpToolCall")).toEqual({ isDenied: true, meta: undefined });
  });
});

test("events contain the input and output of hooks and are not built without a listener", async () => {
  const { session, hooks } = open({ onAgentStop: () => ({ decision: "block", reason: "continue", extra: 1 }) });
  const events = recordEvents(session, "hook.start", "hook.end");
  await runKind(hooks, "agentStop");
  const [start, end] = events.map(({ data }) => data);
  expect(start).toEqual({ hookInvocationId: expect.any(String), hookType: "agentStop", input: expect.objectContaining(facts.agentStop) });
  expect(end).toEqual({
    hookInvocationId: start?.["hookInvocationId"],
    hookType: "agentStop",
    success: true,
    output: { decision: "block", reason: "continue" },
  });
});
