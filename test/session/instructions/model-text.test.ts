import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CallOutcome } from "../../../src/session/calls/tool-call.ts";
import { failureGuidance, modelText, resultTypeOf, type SettledCode } from "../../../src/session/prompt/model-text.ts";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import type { ToolContext, ToolInvocation } from "../../../src/tools/tool.ts";
import { createTestEnvironment, openSession, recordEvents, withThen } from "../session-kit.ts";

describe("the sentences that a model reads", () => {
  test.each<[SettledCode, Parameters<typeof modelText>[1], string]>([
    ["unknown_tool", { tool: "X", available: ["a", "b", "c"] }, "Tool 'X' does not exist. Available tools that can be called are a, b, c."],
    ["unknown_tool", { tool: "X", available: [] }, "Tool 'X' does not exist."],
    ["vanished_tool", { tool: "X", available: ["a"] }, "Tool 'X' is no longer available. Available tools that can be called are a."],
    ["permission_rejected", { tool: "X" }, "The user rejected this tool call."],
    ["permission_unavailable", { tool: "X" }, "Permission denied and could not request permission from user"],
    ["denied_by_hook", { tool: "X", reason: "too late" }, "Denied by preToolUse hook: too late"],
    ["denied_by_hook", { tool: "X" }, "Denied by preToolUse hook: No reason provided"],
    ["threw", { tool: "X" }, "Invoking this tool produced an error. Detailed information is not available."],
    [
      "client_error",
      { tool: "get_user_location", argumentsJson: "{}" },
      "Failed to execute `get_user_location` tool with arguments: {} due to error: Error: Tool execution failed",
    ],
    ["timeout", { tool: "X", timeoutMs: 1500 }, "Tool 'X' did not finish within 1.5 seconds and was stopped."],
    [
      "invalid_arguments",
      {
        tool: "X",
        issues: [
          { path: "limit", message: "must be a number" },
          { path: "", message: "is not known" },
        ],
      },
      "Invalid arguments for tool 'X': limit: must be a number; is not known",
    ],
  ])("the outcome %s for the model", (code, facts, expected) => {
    expect(modelText(code, facts)).toBe(expected);
  });

  test("only a user's rejection ends a turn", () => {
    expect(resultTypeOf("permission_rejected")).toBe("rejected");
    expect(resultTypeOf("permission_unavailable")).toBe("denied");
    expect(resultTypeOf("timeout")).toBe("timeout");
    expect(resultTypeOf("unknown_tool")).toBe("failure");
  });

  test("an unknown tool name is shortened in the model's text", () => {
    expect(modelText("unknown_tool", { tool: "x".repeat(100_000) }).length).toBeLessThan(300);
  });

  test("guidance from hooks follows a failure", () => {
    expect(failureGuidance("view", "do this")).toBe('Tool "view" failed. Additional guidance from postToolUseFailure hooks:\ndo this');
  });
});

describe("faults do not expose details of the host to the model", () => {
  const secret = "hunter2-planted-secret";
  const boom = (): never => {
    const error = new Error(`ECONNREFUSED 10.1.2.3:5432 while reading /home/me/.ssh/id_rsa with ${secret}`);
    throw Object.assign(error, { path: "/home/me/.ssh/id_rsa", address: "10.1.2.3" });
  };
  const reject = async (): Promise<never> => boom();
  const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

  const faults: [title: string, tool: object, options?: SessionOptions][] = [
    ["a throw", { handler: boom }],
    ["a rejection", { handler: reject }],
    [
      "a thrown text",
      {
        handler: () => {
          throw `${secret} /home/me/x`;
        },
      },
    ],
    [
      "a returned error",
      {
        handler: () => {
          try {
            boom();
          } catch (error) {
            return error;
          }
        },
      },
    ],
    ["a result whose getter throws", { handler: () => Object.defineProperty({}, "textResultForLlm", { get: boom, enumerable: true }) }],
    ["a result whose toJSON throws", { handler: () => ({ toJSON: boom }) }],
    ["a thenable whose then throws", { handler: () => withThen({ value: boom }) }],
    [
      "a failure with a cause",
      { handler: () => ({ textResultForLlm: "no luck", resultType: "failure", error: `${secret} /home/me/x`, sessionLog: secret }) },
    ],
    [
      "an MCP result with _meta",
      { handler: () => ({ content: [{ type: "text", text: "fine" }], _meta: { host: "10.1.2.3:5432", secret } }) },
    ],
    ["a check that throws", { handler: () => "x", permission: boom }],
    ["a check that rejects", { handler: () => "x", permission: reject }],
    ["a gate that throws", { handler: () => "x" }, { hooks: { onPreToolUse: boom } }],
    ["a gate that rejects", { handler: () => "x" }, { hooks: { onPreToolUse: reject } }],
    ["an observer that throws", { handler: () => "x" }, { hooks: { onPostToolUse: boom } }],
    ["an observer that rejects", { handler: () => "x" }, { hooks: { onPostToolUse: reject } }],
    ["a failure observer that throws", { handler: boom }, { hooks: { onPostToolUseFailure: boom } }],
    ["a permission handler that throws", { handler: () => "x", skipPermission: false }, { onPermissionRequest: boom }],
    ["a permission handler that rejects", { handler: () => "x", skipPermission: false }, { onPermissionRequest: reject }],
    ["bad arguments", { handler: () => "x", parameters: { ...schema, properties: { n: { type: "integer" } } } }],
    ["a deadline", { handler: () => new Promise(() => {}), timeout: 1 }],
    [
      "an unanswered ask",
      { handler: (_: unknown, __: ToolInvocation, { ask }: ToolContext) => ask("userInput", { question: "?" }) },
      { onUserInputRequest: reject },
    ],
    [
      "a call of a tool that throws",
      { handler: async (_: unknown, __: ToolInvocation, { callTool }: ToolContext) => callTool("inner", {}) },
    ],
    ["an external tool's callback that throws", {}],
  ];

  const leaks = new RegExp(`${secret}|/home/|id_rsa|10\\.1\\.2\\.3|:5432|\\bat .*:\\d+:\\d+|node_modules|${process.cwd()}|session-test-`);
  const textOf = ({ result: { textResultForLlm, binaryResultsForLlm, structuredContent }, messages }: CallOutcome): string =>
    JSON.stringify([textResultForLlm, binaryResultsForLlm, structuredContent, messages]);

  test.each(faults)("the model sees no details of %s", async (_title, tool, options = {}) => {
    const environment = createTestEnvironment();
    const session = openSession(environment, { ...options, tools: [{ name: "inner", handler: boom }] });
    const client = session.attach({ level: "connection", answers: ["tool"], handlers: { tool: boom } });
    client.setTools([{ name: "t", description: "d", ...tool }]);
    const [prepared] = await session.prepare([{ id: "c", name: "t", arguments: { n: "not a number" } }]);
    expect(textOf(await session.run(prepared!))).not.toMatch(leaks);
  });

  test("the log contains all details of the faults", async () => {
    const environment = createTestEnvironment();
    const session = openSession(environment, { tools: [{ name: "t", handler: boom }] });
    const events = recordEvents(session, "tool.execution_complete");
    await session.callTool("t");
    const logged = environment.lines.find(({ level }) => level === "error");
    expect(logged?.data["error"]).toMatchObject({ message: expect.stringContaining(secret) });
    expect(logged?.data["stack"]).toMatch(/\bat /);
    expect(JSON.stringify(events[0]?.data["error"])).toContain("ECONNREFUSED");
    // The model reads these texts; the details beside them are for readers of the log.
    expect(events[0]?.data["result"]).toMatchObject({ content: expect.not.stringContaining(secret) });
  });

  test("a tool's session log reaches events and the log but not the model", async () => {
    const environment = createTestEnvironment();
    const result = { textResultForLlm: "3 rows", resultType: "success", sessionLog: "SELECT secret", toolTelemetry: { rows: 3 } };
    const session = openSession(environment, { tools: [{ name: "t", handler: () => result }] });
    const events = recordEvents(session, "tool.execution_complete");
    const [prepared] = await session.prepare([{ id: "c", name: "t", arguments: {} }]);
    const outcome = await session.run(prepared!);
    expect(textOf(outcome)).not.toContain("SELECT");
    expect(events[0]?.data).toMatchObject({
      sessionLog: "SELECT secret",
      toolTelemetry: { rows: 3 },
      result: { detailedContent: "SELECT secret" },
    });
    expect(environment.lines.some(({ data }) => data["sessionLog"] === "SELECT secret")).toBe(true);
  });
});

describe("results that are too long", () => {
  const long = `${"line of text 0123456789\n".repeat(4000)}the end ✓`;
  const overLimit = (options: SessionOptions = {}, environment = createTestEnvironment()) =>
    openSession(environment, { tools: [{ name: "t", handler: () => long }], ...options });

  test("a long result is stored in the session's folder, and the model reads its beginning and how to continue", async () => {
    const environment = createTestEnvironment();
    const text = (await overLimit({}, environment).callTool("t", {}, { toolCallId: "../../evil id" })).textResultForLlm;
    const file = join(environment.folder, "session-1", "outputs", "output-_evil_id.txt");
    expect(text.length).toBeLessThan(9000);
    expect(text.startsWith(long.slice(0, 8000))).toBe(true);
    expect(text.slice(-200)).toContain(
      `[The output has ${Buffer.byteLength(long)} bytes and is cut here. The full output is in ${file}: read it in parts.]`,
    );
    expect(readFileSync(file, "utf8")).toBe(long);
  });

  test("a result at the limit is not cut, and one with one byte more is", async () => {
    const exact = "é".repeat(25_600);
    const session = openSession(createTestEnvironment(), {
      tools: [
        { name: "exact", handler: () => exact },
        { name: "more", handler: () => `${exact}x` },
      ],
    });
    expect((await session.callTool("exact")).textResultForLlm).toBe(exact);
    expect((await session.callTool("more")).textResultForLlm).toContain("51201 bytes");
  });

  test("the excerpt ends between two characters", async () => {
    const session = openSession(createTestEnvironment(), {
      tools: [{ name: "t", handler: () => `x${"𝄞".repeat(100)}` }],
      largeOutput: { maxSizeBytes: 100 },
    });
    const [head] = (await session.callTool("t")).textResultForLlm.split("\n\n");
    expect(head).toBe(`x${"𝄞".repeat(24)}`);
  });

  test("the limit, the folder and the cutting itself are options", async () => {
    const environment = createTestEnvironment();
    expect((await overLimit({ largeOutput: { enabled: false } }).callTool("t")).textResultForLlm).toBe(long);
    expect((await overLimit({ largeOutput: { maxSizeBytes: 1_000_000 } }).callTool("t")).textResultForLlm).toBe(long);
    await overLimit({ largeOutput: { outputDir: "kept" } }, environment).callTool("t", {}, { toolCallId: "c" });
    expect(readFileSync(join(environment.folder, "kept", "output-c.txt"), "utf8")).toBe(long);
  });

  test("if the folder is not writable, the rest is lost but the call succeeds", async () => {
    const environment = createTestEnvironment();
    mkdirSync(join(environment.folder, "session-1"));
    writeFileSync(join(environment.folder, "session-1", "outputs"), "a file in the way");
    const text = (await overLimit({}, environment).callTool("t")).textResultForLlm;
    expect(text).toContain("could not be saved");
    expect(text).not.toContain(environment.folder);
    expect(environment.lines.some(({ level }) => level === "error")).toBe(true);
  });

  test("a replacement by observers is cut, too", async () => {
    const session = openSession(createTestEnvironment(), {
      tools: [{ name: "t", handler: () => "short" }],
      hooks: { onPostToolUse: () => ({ modifiedResult: long }) },
    });
    expect((await session.callTool("t")).textResultForLlm).toContain("is cut here");
  });
});
