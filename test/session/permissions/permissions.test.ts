import { describe, expect, test } from "vitest";
import type { PermissionAsk } from "../../../src/tools/tool.ts";
import { createTestEnvironment, nextEvent, openSession, recordEvents, sessionWith, sourceOf } from "../session-kit.ts";

const runs = { name: "t", description: "a tool", handler: () => "ran" };
const unavailable = "Permission denied and could not request permission from user";

describe("who decides about a call", () => {
  test("calls are denied if no client can be asked", async () => {
    const session = sessionWith([runs], { onPermissionRequest: undefined });
    const events = recordEvents(session, "permission.requested", "permission.completed", "tool.execution_complete");
    expect(await session.callTool("t")).toMatchObject({ resultType: "denied", textResultForLlm: unavailable });
    expect(events.map(({ type }) => type)).toEqual(["permission.requested", "permission.completed", "tool.execution_complete"]);
    expect(events[1]?.data["result"]).toEqual({ kind: "denied-no-approval-rule-and-could-not-request-from-user" });
    expect(events[2]?.data["error"]).toEqual({ message: unavailable, code: "denied" });
  });

  test("skipPermission skips the request for that tool only", async () => {
    const session = sessionWith(
      [
        { ...runs, skipPermission: true },
        { ...runs, name: "u" },
      ],
      { onPermissionRequest: undefined },
    );
    expect((await session.callTool("t")).textResultForLlm).toBe("ran");
    expect((await session.callTool("u")).resultType).toBe("denied");
  });

  test("a hook's allow skips the request, and its ask requires it even with skipPermission", async () => {
    const asked: PermissionAsk[] = [];
    const decisions = ["allow", "ask"] as const;
    let turn = 0;
    const session = sessionWith([{ ...runs, skipPermission: true }], {
      onPermissionRequest: (request) => {
        asked.push(request);
        return { kind: "approve-once" };
      },
      hooks: { onPreToolUse: () => ({ permissionDecision: decisions[turn++]!, permissionDecisionReason: "looks odd" }) },
    });
    await session.callTool("t");
    expect(asked).toEqual([]);
    await session.callTool("t", { a: 1 }, { toolCallId: "c" });
    expect(asked).toEqual([
      { kind: "hook", hookMessage: "looks odd", toolCallId: "c", toolName: "t", toolArgs: { a: 1 }, description: "a tool" },
    ]);
  });

  test("of several hooks, ask overrides allow and deny overrides both", async () => {
    let asked = 0;
    const hook = (permissionDecision: "allow" | "ask" | "deny") => () => ({ permissionDecision });
    const session = sessionWith([runs], {
      onPermissionRequest: () => {
        asked++;
        return { kind: "approve-once" };
      },
    });
    for (const [hooks, expected] of [
      [[hook("allow"), hook("ask")], "success"],
      [[hook("ask"), hook("allow")], "success"],
      [[hook("allow"), hook("deny")], "denied"],
    ] as const) {
      await session.update({ hooks: { onPreToolUse: hooks } });
      expect((await session.callTool("t")).resultType).toBe(expected);
    }
    expect(asked).toBe(2);
  });

  test("a permission request waits for a client if clients may still join", async () => {
    const session = sessionWith([runs], { onPermissionRequest: undefined, waitForAttachments: true });
    const requested = nextEvent(session, "permission.requested");
    const call = session.callTool("t");
    const requestId = String((await requested).data["requestId"]);
    const deaf = session.attach({ level: "connection", answers: ["tool"] });
    const client = session.attach({ level: "connection", answers: ["permission"] });
    expect(session.asks.answer(requestId, { kind: "approve-once" }, deaf.id)).toBe(false);
    expect(session.asks.answer(requestId, { kind: "approve-once" }, client.id)).toBe(true);
    expect((await call).textResultForLlm).toBe("ran");
  });

  test("a permission request waits while another attached client could answer", async () => {
    const session = sessionWith([runs], { onPermissionRequest: undefined, waitForAttachments: true });
    const one = session.attach({ level: "connection", name: "one", answers: ["permission"] });
    const two = session.attach({ level: "connection", name: "two", answers: ["permission"] });
    const call = session.callTool("t");
    const { id } = session.asks.pending[0]!;
    session.asks.answer(id, { kind: "user-not-available" }, one.id);
    expect(session.asks.pending).toHaveLength(1);
    session.asks.answer(id, { kind: "user-not-available" }, two.id);
    expect((await call).textResultForLlm).toBe(unavailable);
  });
});

describe("the answers to a permission request", () => {
  test.each<[unknown, string, string]>([
    [{ kind: "approve-once" }, "success", "approved"],
    [{ kind: "approve-for-session" }, "success", "approved-for-session"],
    [{ kind: "approve-for-location", approval: {}, locationKey: "/x" }, "success", "approved-for-location"],
    [{ kind: "approve-permanently", domain: "example.org" }, "success", "approved"],
    [{ decision: "allow" }, "success", "approved"],
    [{ kind: "reject" }, "permission_rejected", "denied-interactively-by-user"],
    [{ kind: "reject", feedback: 7 }, "permission_rejected", "denied-interactively-by-user"],
    [{ decision: "deny", reason: "policy" }, "permission_denied", "denied-interactively-by-user"],
    [{ kind: "user-not-available" }, "permission_unavailable", "denied-no-approval-rule-and-could-not-request-from-user"],
    [{ kind: "no-result" }, "permission_unavailable", "denied-no-approval-rule-and-could-not-request-from-user"],
    [{ kind: "approved" }, "permission_unavailable", "denied-no-approval-rule-and-could-not-request-from-user"],
    [true, "permission_unavailable", "denied-no-approval-rule-and-could-not-request-from-user"],
    [undefined, "permission_unavailable", "denied-no-approval-rule-and-could-not-request-from-user"],
  ])("the permission answer %j", async (answer, code, completed) => {
    for (const onPermissionRequest of [() => answer, async () => answer]) {
      const session = sessionWith([runs], { onPermissionRequest });
      const events = recordEvents(session, "permission.completed");
      const [prepared] = await session.prepare([{ id: "1", name: "t", arguments: {} }]);
      expect((await session.run(prepared!)).code).toBe(code);
      expect(events[0]?.data["result"]).toMatchObject({ kind: completed });
    }
  });

  test("the model reads the standard sentences, and only a rejection without feedback ends the turn", async () => {
    const outcomeOf = async (answer: unknown) => {
      const session = sessionWith([runs], { onPermissionRequest: () => answer });
      const [prepared] = await session.prepare([{ id: "1", name: "t", arguments: {} }]);
      const { result, endsTurn } = await session.run(prepared!);
      return [result.textResultForLlm, result.resultType, endsTurn];
    };
    expect(await outcomeOf({ kind: "reject" })).toEqual(["The user rejected this tool call.", "rejected", true]);
    expect(await outcomeOf({ kind: "reject", feedback: "Use grep." })).toEqual([
      "The user rejected this tool call. User feedback: Use grep.",
      "denied",
      false,
    ]);
    expect(await outcomeOf({ decision: "deny", reason: "policy" })).toEqual(["Permission denied: policy", "denied", false]);
    expect(await outcomeOf({ kind: "user-not-available" })).toEqual([unavailable, "denied", false]);
  });

  test("an unclear answer denies the call and is reported to the operator", async () => {
    const environment = createTestEnvironment();
    const session = openSession(environment, { tools: [runs], onPermissionRequest: () => ({ kind: "yes please" }) });
    const warnings = recordEvents(session, "session.warning");
    expect((await session.callTool("t")).textResultForLlm).toBe(unavailable);
    expect(warnings[0]?.data).toMatchObject({ warningType: "permission", message: expect.stringContaining('"approve-once"') });
    expect(environment.lines.some(({ level, message }) => level === "warning" && message.includes('"t"'))).toBe(true);
  });

  test("a handler that throws or rejects denies the call", async () => {
    const handlers = [
      () => {
        throw new Error("secret");
      },
      () => Promise.reject(new Error("secret")),
    ];
    for (const onPermissionRequest of handlers) {
      expect((await sessionWith([runs], { onPermissionRequest }).callTool("t")).textResultForLlm).toBe(unavailable);
    }
  });

  test("an approval for the session holds for that tool only", async () => {
    const asked: string[] = [];
    const session = sessionWith([runs, { ...runs, name: "u" }], {
      onPermissionRequest: ({ toolName }) => {
        asked.push(toolName);
        return { kind: "approve-for-session" };
      },
    });
    for (const name of ["t", "t", "u", "t", "u"]) await session.callTool(name);
    expect(asked).toEqual(["t", "u"]);
  });
});

describe("the content of a permission request", () => {
  const askedFor = async (source: Parameters<typeof createTestEnvironment>[0], name: string, args: object): Promise<unknown> => {
    const requests: unknown[] = [];
    const session = openSession(createTestEnvironment(source), { onPermissionRequest: (given) => void requests.push(given) });
    await session.callTool(name, args, { toolCallId: "c" });
    return requests[0];
  };

  test("a tool without a description of its calls is described by known facts", async () => {
    expect(await askedFor(sourceOf("skill", "s", runs), "t", { a: 1 })).toEqual({
      kind: "custom-tool",
      toolCallId: "c",
      toolName: "t",
      toolArgs: { a: 1 },
      args: { a: 1 },
      description: "a tool",
      toolDescription: "a tool",
    });
  });

  test("the request of a server's tool names its server", async () => {
    const source = sourceOf("mcp", "github", {
      name: "github-search",
      annotations: { readOnlyHint: true, title: "Search" },
      handler: () => "x",
    });
    expect(await askedFor(source, "github-search", {})).toMatchObject({
      kind: "mcp",
      serverName: "github",
      toolName: "github-search",
      toolTitle: "Search",
      readOnly: true,
    });
  });

  test("a tool's own description is part of the request and cannot fake another call", async () => {
    const tool = {
      ...runs,
      permission: (args: never) => ({
        kind: "shell",
        fullCommandText: `run ${JSON.stringify(args)}`,
        toolName: "harmless",
        toolCallId: "x",
      }),
    };
    expect(await askedFor(sourceOf("skill", "s", tool), "t", { a: 1 })).toEqual({
      kind: "shell",
      fullCommandText: 'run {"a":1}',
      toolCallId: "c",
      toolName: "t",
      toolArgs: { a: 1 },
      description: "a tool",
    });
  });

  test("a tool that needs no permission is not asked about", async () => {
    const tools = [
      { ...runs, permission: () => null },
      { ...runs, name: "u", permission: async () => null },
    ];
    const session = sessionWith(tools, { onPermissionRequest: undefined });
    expect((await session.callTool("t")).textResultForLlm).toBe("ran");
    expect((await session.callTool("u")).textResultForLlm).toBe("ran");
  });

  test.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("secret");
      },
    ],
    ["rejects", () => Promise.reject(new Error("secret"))],
    ["returns no request", () => ({ no: "kind" })],
    ["returns nothing", () => undefined],
  ])("a tool whose permission function %s is denied", async (_title, permission) => {
    const session = sessionWith([{ ...runs, permission: permission as never }]);
    expect(await session.callTool("t")).toMatchObject({
      resultType: "denied",
      textResultForLlm: "Permission denied: the permission check of tool 't' failed.",
    });
  });
});
