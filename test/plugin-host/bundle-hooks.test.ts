import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parseHookConfig } from "../../src/formats/plugins/hook-config.ts";
import type { BundleDialect } from "../../src/formats/plugins/plugin-dialects.ts";
import { hookAnswer } from "../../src/plugin-host/bundles/hooks/hook-answer.ts";
import { createBundleHooks, createMatcher, type HookPlace } from "../../src/plugin-host/bundles/hooks/run-hook.ts";
import type { SessionHooks } from "../../src/session/hooks/hook-kinds.ts";
import { tempFolder } from "../skills/kit.ts";

type Input = Readonly<Record<string, unknown>>;

const commands = (dialect: BundleDialect, hooks: object) => parseHookConfig(JSON.stringify({ hooks }), { file: "f", dialect }).hooks;
const only = (dialect: BundleDialect, event: string, matcher?: string) =>
  commands(dialect, { [event]: [{ ...(matcher !== undefined && { matcher }), hooks: [{ type: "command", command: "x" }] }] })[0]!;

describe("matchers of each dialect, as documented", () => {
  test.each<[BundleDialect, string, string | undefined, string, boolean]>([
    ["claude", "PreToolUse", undefined, "anything", true],
    ["claude", "PreToolUse", "*", "anything", true],
    ["claude", "PreToolUse", "", "anything", true],
    ["claude", "PreToolUse", "Bash", "bash", true],
    ["claude", "PreToolUse", "Edit|Write", "create", true],
    ["claude", "PreToolUse", "MultiEdit", "edit", true],
    ["claude", "PreToolUse", "Edit, Write", "view", false],
    ["claude", "PreToolUse", "Ba", "bash", false],
    ["claude", "PreToolUse", "view", "view", true],
    ["claude", "PreToolUse", "^Ba.*", "bash", true],
    ["claude", "PreToolUse", "mcp__github__.*", "github-create_issue", true],
    ["claude", "PreToolUse", "mcp__my-hub__list", "my-hub-list", true],
    ["claude", "PreToolUse", "mcp__.*", "view", false],
    ["codex", "PreToolUse", "Ba", "bash", true],
    ["codex", "PreToolUse", "^apply", "bash", false],
    ["copilot", "preToolUse", "ba", "bash", false],
    ["copilot", "preToolUse", "ba.*|view", "bash", true],
    ["copilot", "preToolUse", "Bash", "bash", false],
    ["copilot", "PreToolUse", "Bash", "bash", true],
    ["copilot", "PreToolUse", "Ba.", "bash", false],
    ["gemini", "BeforeTool", "write_.*", "create", true],
    ["gemini", "BeforeTool", "run_shell", "bash", true],
    ["gemini", "AfterTool", "write_.*", "view", false],
  ])("%s %s %j on %s: %s", (dialect, event, matcher, toolName, fits) => {
    expect(createMatcher(only(dialect, event, matcher))?.({ toolName })).toBe(fits);
  });

  test.each<[BundleDialect, string, string, Input, boolean]>([
    ["claude", "SessionStart", "startup", { source: "new" }, true],
    ["claude", "SessionStart", "resume|clear", { source: "new" }, false],
    ["claude", "SessionStart", "resume", { source: "resume" }, true],
    ["claude", "SubagentStop", "reviewer", { agentName: "reviewer" }, true],
    ["claude", "Stop", "whatever", {}, true],
  ])("%s %s %j on %j: %s", (dialect, event, matcher, input, fits) => {
    expect(createMatcher(only(dialect, event, matcher))?.(input)).toBe(fits);
  });

  test.each(["(", "(?=Bash)", "(a)\\1", `${"a".repeat(2_001)}.`])("the matcher %j is refused as an invalid expression", (matcher) => {
    expect(createMatcher(only("claude", "PreToolUse", matcher))).toBeUndefined();
  });

  test("a matcher with exponential backtracking elsewhere is fast", () => {
    expect(createMatcher(only("codex", "PreToolUse", "(a+)+$"))?.({ toolName: `${"a".repeat(50_000)}!` })).toBe(false);
  });
});

const reply = (code: number | null, stdout: unknown = "", stderr = "") => ({
  code,
  stdout: typeof stdout === "string" ? stdout : JSON.stringify(stdout),
  stderr,
});
const withheld = expect.stringMatching(/^\[A hook blocked the user's message.*why\]$/);

describe("answers of each protocol, as documented", () => {
  const input = { toolName: "create", toolArgs: { path: "a", file_text: "b" } };
  const specific = (fields: object) => ({ hookSpecificOutput: fields });

  test.each<[BundleDialect, string, ReturnType<typeof reply>, unknown]>([
    // Claude Code: exit codes.
    ["claude", "PreToolUse", reply(0), undefined],
    ["claude", "PreToolUse", reply(0, "just a text"), undefined],
    ["claude", "PreToolUse", reply(1, { decision: "block" }, "bad"), undefined],
    ["claude", "PreToolUse", reply(2, "", " why\n"), { permissionDecision: "deny", permissionDecisionReason: "why" }],
    [
      "claude",
      "PreToolUse",
      reply(2),
      { permissionDecision: "deny", permissionDecisionReason: expect.stringContaining("without giving a reason") },
    ],
    ["claude", "PostToolUse", reply(2, "", "why"), { additionalContext: "why" }],
    ["claude", "UserPromptSubmit", reply(2, "", "why"), { modifiedPrompt: withheld }],
    ["claude", "Stop", reply(2, "", "why"), { decision: "block", reason: "why" }],
    ["claude", "SubagentStop", reply(2, "", "why"), { decision: "block", reason: "why" }],
    ["claude", "SessionStart", reply(2, "", "why"), undefined],
    // Claude Code: JSON.
    [
      "claude",
      "PreToolUse",
      reply(0, specific({ permissionDecision: "allow", permissionDecisionReason: "fine" })),
      { permissionDecision: "allow", permissionDecisionReason: "fine" },
    ],
    ["claude", "PreToolUse", reply(0, specific({ permissionDecision: "defer" })), {}],
    ["claude", "PreToolUse", reply(0, { decision: "approve" }), { permissionDecision: "allow" }],
    [
      "claude",
      "PreToolUse",
      reply(0, { decision: "block", reason: "why" }),
      { permissionDecision: "deny", permissionDecisionReason: "why" },
    ],
    [
      "claude",
      "PreToolUse",
      reply(0, { continue: false, stopReason: "why" }),
      { permissionDecision: "deny", permissionDecisionReason: "why" },
    ],
    [
      "claude",
      "PreToolUse",
      reply(0, specific({ updatedInput: { file_path: "c", content: "d" }, additionalContext: "ctx" })),
      { modifiedArgs: { path: "c", file_text: "d" }, additionalContext: "ctx" },
    ],
    [
      "claude",
      "PostToolUse",
      reply(0, { decision: "block", reason: "why", ...specific({ additionalContext: "ctx" }) }),
      { additionalContext: "why\n\nctx" },
    ],
    ["claude", "PostToolUse", reply(0, specific({ updatedToolOutput: "new" })), { modifiedResult: "new" }],
    ["claude", "UserPromptSubmit", reply(0, "plain context"), { additionalContext: "plain context" }],
    ["claude", "UserPromptSubmit", reply(0, { decision: "block", reason: "why" }), { modifiedPrompt: withheld }],
    ["claude", "SessionStart", reply(0, "plain context\n"), { additionalContext: "plain context" }],
    ["claude", "SessionStart", reply(0, specific({ additionalContext: "ctx" })), { additionalContext: "ctx" }],
    ["claude", "Stop", reply(0, { decision: "block", reason: "why" }), { decision: "block", reason: "why" }],
    ["claude", "Stop", reply(0, { decision: "block", reason: "why", continue: false }), undefined],
    ["claude", "Stop", reply(0, { decision: "approve" }), undefined],
    ["claude", "SessionEnd", reply(0, { decision: "block" }), undefined],
    ["codex", "UserPromptSubmit", reply(0, "plain context"), { additionalContext: "plain context" }],
    // Copilot.
    [
      "copilot",
      "preToolUse",
      reply(0, { permissionDecision: "deny", permissionDecisionReason: "why" }),
      { permissionDecision: "deny", permissionDecisionReason: "why" },
    ],
    ["copilot", "preToolUse", reply(0, { modifiedArgs: { path: "c" } }), { modifiedArgs: { path: "c" } }],
    [
      "copilot",
      "preToolUse",
      reply(2, { permissionDecision: "allow" }, "why"),
      { permissionDecision: "deny", permissionDecisionReason: "why" },
    ],
    [
      "copilot",
      "postToolUse",
      reply(0, { modifiedResult: { resultType: "success", textResultForLlm: "t" }, additionalContext: "ctx" }),
      { modifiedResult: { resultType: "success", textResultForLlm: "t" }, additionalContext: "ctx" },
    ],
    ["copilot", "postToolUse", reply(2, "", "why"), undefined],
    ["copilot", "postToolUseFailure", reply(2, "try this", "why"), { additionalContext: "try this" }],
    ["copilot", "userPromptSubmitted", reply(0, { modifiedPrompt: "other" }), undefined],
    [
      "copilot",
      "userPromptTransformed",
      reply(0, '{"type":"progress","message":"m"}\n{"modifiedTransformedPrompt":"t"}\n'),
      { modifiedTransformedPrompt: "t" },
    ],
    ["copilot", "agentStop", reply(0, { decision: "block", reason: "why" }), { decision: "block", reason: "why" }],
    ["copilot", "sessionStart", reply(0, "no json"), undefined],
    ["copilot", "sessionStart", reply(0, { additionalContext: null }), {}],
    ["copilot", "errorOccurred", reply(0, { errorHandling: "retry" }), undefined],
    // Gemini.
    [
      "gemini",
      "BeforeTool",
      reply(0, { decision: "deny", reason: "why" }),
      { permissionDecision: "deny", permissionDecisionReason: "why" },
    ],
    ["gemini", "BeforeTool", reply(0, specific({ tool_input: { file_path: "c" } })), { modifiedArgs: { path: "c", file_text: "b" } }],
    ["gemini", "AfterTool", reply(0, { decision: "deny", reason: "why" }), { modifiedResult: "why" }],
    ["gemini", "AfterTool", reply(2, "", "why"), { modifiedResult: "why" }],
    ["gemini", "AfterTool", reply(0, specific({ additionalContext: "ctx" })), { additionalContext: "ctx" }],
    ["gemini", "BeforeAgent", reply(0, { decision: "block", reason: "why" }), { modifiedPrompt: withheld }],
    ["gemini", "AfterAgent", reply(0, { decision: "deny", reason: "why" }), { decision: "block", reason: "why" }],
    ["gemini", "SessionStart", reply(0, "chatter"), undefined],
    // Values of wrong types are ignored; for a gate, the session refuses unknown decisions.
    ["claude", "PreToolUse", reply(0, { hookSpecificOutput: 7, reason: [] }), {}],
    ["claude", "PreToolUse", reply(0, specific({ permissionDecision: "perhaps" })), { permissionDecision: "perhaps" }],
    ["claude", "PreToolUse", reply(0, "[1]"), undefined],
  ])("%s %s %j: %j", (dialect, event, given, expected) => {
    expect(hookAnswer(only(dialect, event), input, given)).toEqual(expected);
  });

  test.each<[BundleDialect, string, ReturnType<typeof reply>]>([
    ["copilot", "preToolUse", reply(1, { permissionDecision: "allow" })],
    ["claude", "PreToolUse", reply(0, '{"hookSpecificOutput":')],
    ["claude", "Stop", reply(null)],
  ])("%s %s %j is an error, for which a gate denies", (dialect, event, given) => {
    expect(() => hookAnswer(only(dialect, event), input, given)).toThrow(expect.objectContaining({ code: "HOOK_COMMAND" }));
  });

  test("the text that a hook sends to a model is bounded", () => {
    const answer = hookAnswer(only("claude", "SessionStart"), {}, reply(0, "x".repeat(50_000)));
    expect((answer as { additionalContext: string }).additionalContext).toHaveLength(10_000);
  });
});

function hooksOf(
  dialect: BundleDialect,
  hooks: object,
  signal = new AbortController().signal,
): { run: SessionHooks; place: HookPlace; warnings: string[] } {
  const folder = tempFolder();
  const warnings: string[] = [];
  const log = { error() {}, warning: (message: string) => void warnings.push(message), info() {}, debug() {}, enabled: () => true };
  const data = { path: join(folder, "data"), ensure: () => join(folder, "data") };
  const place = { folder, workingDirectory: folder, data, signal, log };
  return { run: createBundleHooks(commands(dialect, hooks), place), place, warnings };
}

const node = (source: string, more: object = {}) => [{ hooks: [{ type: "command", command: "node", args: ["-e", source], ...more }] }];
const call = async (hooks: SessionHooks, option: keyof SessionHooks, input: Input) => {
  const [hook] = [hooks[option] ?? []].flat() as unknown as readonly ((input: Input) => unknown)[];
  return hook?.(input);
};
const base = (folder: string) => ({ sessionId: "s1", timestamp: 0, cwd: folder });

describe("programs of hooks", () => {
  const echo = `process.stdin.on("data", (d) => require("fs").writeFileSync("seen.json", d)); process.on("exit", () => { require("fs").writeFileSync("env.json", JSON.stringify(process.env)) })`;

  test("hook programs read their protocol's input and get a minimal environment", async () => {
    process.env["PLANTED_SECRET"] = "never";
    onTestFinished(() => void delete process.env["PLANTED_SECRET"]);
    const { run, place } = hooksOf("claude", { PreToolUse: node(echo, { env: { OWN: "${CLAUDE_PLUGIN_ROOT}/x" } }) });
    await call(run, "onPreToolUse", { ...base(place.folder), toolName: "create", toolArgs: { path: "a", file_text: "b" } });
    const read = (name: string) => JSON.parse(readFileSync(join(place.folder, name), "utf8"));
    expect(read("seen.json")).toEqual({
      session_id: "s1",
      transcript_path: "",
      cwd: place.folder,
      hook_event_name: "PreToolUse",
      timestamp: "1970-01-01T00:00:00.000Z",
      permission_mode: "default",
      tool_name: "Write",
      tool_input: { file_path: "a", content: "b" },
    });
    expect(read("env.json")).toMatchObject({
      CLAUDE_PLUGIN_ROOT: place.folder,
      CLAUDE_PROJECT_DIR: place.folder,
      OWN: `${place.folder}/x`,
    });
    expect(read("env.json")).not.toHaveProperty("PLANTED_SECRET");
  });

  test("hook programs read our unchanged input where the Copilot runtime's names are used", async () => {
    const { run, place } = hooksOf("copilot", { postToolUse: [{ exec: "node", args: ["-e", echo] }] });
    const input = {
      ...base(place.folder),
      toolName: "view",
      toolArgs: { path: "a" },
      toolResult: { resultType: "success", textResultForLlm: "t" },
    };
    await call(run, "onPostToolUse", input);
    expect(JSON.parse(readFileSync(join(place.folder, "seen.json"), "utf8"))).toEqual(input);
  });

  test("hook programs run in a shell, where paths are variables and need no quoting", async () => {
    const { run, place } = hooksOf("gemini", {
      SessionStart: [{ hooks: [{ command: 'echo "{\\"hookSpecificOutput\\":{\\"additionalContext\\":\\"${extensionPath}${/}x\\"}}"' }] }],
    });
    expect(await call(run, "onSessionStart", { ...base(place.folder), source: "new" })).toEqual({ additionalContext: `${place.folder}/x` });
  });

  test.each<[string, string, object, string]>([
    ["hangs", "setInterval(() => {}, 1000)", { timeout: 0.2 }, "took longer than its 0.2 seconds"],
    [
      "floods",
      "const x = 'x'.repeat(65536); for (let i = 0; i < 40; i++) process.stdout.write(x)",
      {},
      "answered with more than 1048576 bytes",
    ],
    ["ends in the middle of its answer", "process.stdout.write('{\"decision\":')", {}, "is not valid"],
    ["is killed", "process.kill(process.pid, 'SIGKILL')", {}, "ended by a signal"],
  ])("a program that %s fails, so that a gate denies", async (_what, source, more, says) => {
    const { run, place } = hooksOf("claude", { PreToolUse: node(source, more) });
    const input = { ...base(place.folder), toolName: "bash", toolArgs: {} };
    await expect(call(run, "onPreToolUse", input)).rejects.toThrow(
      expect.objectContaining({ code: "HOOK_COMMAND", message: expect.stringContaining(says) }),
    );
  });

  test("a program that cannot be started fails, and the error names it", async () => {
    const { run, place } = hooksOf("claude", { PreToolUse: [{ hooks: [{ command: "no-such-program-here", args: [] }] }] });
    await expect(call(run, "onPreToolUse", { ...base(place.folder), toolName: "bash", toolArgs: {} })).rejects.toThrow(
      "no-such-program-here was not found",
    );
  });

  test("another exit code is logged and decides nothing", async () => {
    const { run, place, warnings } = hooksOf("claude", { PreToolUse: node("process.stderr.write('oops'); process.exit(3)") });
    expect(await call(run, "onPreToolUse", { ...base(place.folder), toolName: "bash", toolArgs: {} })).toBeUndefined();
    expect(warnings).toEqual([expect.stringContaining("exit code 3")]);
  });

  test("a program for other tools is not started", async () => {
    const { run, place } = hooksOf("claude", { PreToolUse: [{ matcher: "Write", hooks: node(echo)[0]!.hooks }] });
    expect(await call(run, "onPreToolUse", { ...base(place.folder), toolName: "bash", toolArgs: {} })).toBeUndefined();
    expect(existsSync(join(place.folder, "seen.json"))).toBe(false);
  });

  test("hook programs end with their host", async () => {
    const closing = new AbortController();
    const { run, place } = hooksOf(
      "claude",
      { Stop: node("setInterval(() => {}, 1000); require('fs').writeFileSync('started', '')") },
      closing.signal,
    );
    const running = call(run, "onAgentStop", { ...base(place.folder), stop_hook_active: false });
    const ended = expect(running).rejects.toThrow("stopped with its host");
    await expect.poll(() => existsSync(join(place.folder, "started"))).toBe(true);
    closing.abort();
    await ended;
  });
});
