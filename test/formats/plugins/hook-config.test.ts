import { describe, expect, test } from "vitest";
import { parseHookConfig } from "../../../src/formats/plugins/hook-config.ts";
import type { BundleDialect } from "../../../src/formats/plugins/plugin-dialects.ts";

const parse = (dialect: BundleDialect, value: unknown) =>
  parseHookConfig(typeof value === "string" ? value : JSON.stringify(value), { file: "/p/hooks.json", dialect });
const codes = (dialect: BundleDialect, value: unknown) =>
  parse(dialect, value).diagnostics.map(({ severity, code }) => `${severity} ${code}`);
const run = { type: "command", command: "x" };

describe("the forms of hooks", () => {
  test("Claude Code: matchers with their hooks, seconds, and a program without a shell", () => {
    const { hooks, diagnostics } = parse("claude", {
      hooks: {
        PreToolUse: [
          {
            matcher: "Edit|Write",
            hooks: [
              { ...run, timeout: 5 },
              { ...run, args: ["a b"], async: true },
            ],
          },
        ],
        Stop: [{ hooks: [run] }],
      },
    });
    expect(diagnostics).toEqual([]);
    expect(hooks).toEqual([
      {
        event: "PreToolUse",
        moment: "preToolUse",
        protocol: "claude",
        dialect: "claude",
        matcher: "Edit|Write",
        program: { kind: "shell", bash: "x", powershell: "x" },
        cwd: undefined,
        env: {},
        timeout: 5_000,
        isAsync: false,
      },
      expect.objectContaining({ program: { kind: "program", command: "x", args: ["a b"] }, isAsync: true }),
      expect.objectContaining({ moment: "agentStop", matcher: undefined, timeout: 60_000 }),
    ]);
  });

  test("Copilot: hooks without groups, by system, with folder and environment; and Claude Code's names", () => {
    const { hooks } = parse("copilot", {
      version: 1,
      hooks: {
        preToolUse: [{ bash: "b", powershell: "p", cwd: "sub", env: { A: "1" }, timeoutSec: 7, timeout: 9, matcher: "bash" }],
        PreToolUse: [{ hooks: [{ command: "c" }] }],
        errorOccurred: [{ exec: "node", args: ["x.mjs"] }],
      },
    });
    expect(hooks).toMatchObject([
      { protocol: "copilot", program: { bash: "b", powershell: "p" }, cwd: "sub", env: { A: "1" }, timeout: 7_000, matcher: "bash" },
      { protocol: "claude", program: { kind: "shell", bash: "c", powershell: "c" }, timeout: 30_000 },
      { moment: "errorOccurred", program: { kind: "program", command: "node", args: ["x.mjs"] } },
    ]);
  });

  test("Gemini: its own events, and milliseconds", () => {
    const events = ["BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionStart", "SessionEnd"];
    const { hooks } = parse("gemini", {
      hooks: Object.fromEntries(events.map((event) => [event, [{ hooks: [{ ...run, timeout: 1_500 }] }]])),
    });
    expect(hooks.map(({ moment }) => moment)).toEqual([
      "preToolUse",
      "postToolUse",
      "userPromptSubmitted",
      "agentStop",
      "sessionStart",
      "sessionEnd",
    ]);
    expect(hooks.every(({ timeout, protocol }) => timeout === 1_500 && protocol === "gemini")).toBe(true);
  });

  test("inline in a manifest, with or without the wrapper", () => {
    const text = JSON.stringify({ name: "p", hooks: { Stop: [{ hooks: [run] }] } });
    const wrapped = JSON.stringify({ name: "p", hooks: { description: "d", hooks: { Stop: [run] } } });
    for (const manifest of [text, wrapped])
      expect(parseHookConfig(manifest, { file: "f", dialect: "codex", at: ["hooks"] }).hooks).toMatchObject([
        { event: "Stop", dialect: "codex" },
      ]);
  });

  test("a file that switches all off has none", () => {
    expect(parse("copilot", { disableAllHooks: true, hooks: { sessionStart: [run] } })).toEqual({
      hooks: [],
      isWhole: true,
      diagnostics: [],
    });
  });
});

describe("what cannot be used is left out by itself", () => {
  const withStop = (hook: unknown) => ({ hooks: { Stop: [{ hooks: [run] }, hook] } });

  test.each<[string, unknown, string]>([
    ["an event without counterpart", { hooks: { PreCompact: [run], Stop: [run] } }, "warning HOOK_EVENT_UNSUPPORTED"],
    ["an unknown event", { hooks: { OnTuesday: [run], Stop: [run] } }, "warning HOOK_EVENT_UNSUPPORTED"],
    ["another dialect's event", { hooks: { BeforeTool: [run], Stop: [run] } }, "warning HOOK_EVENT_UNSUPPORTED"],
    ["an event that is not a list", { hooks: { SessionEnd: {}, Stop: [run] } }, "error HOOKS_TYPE"],
    ["a hook that is not an object", withStop(7), "error HOOKS_TYPE"],
    ["a group that is not a list", withStop({ hooks: {} }), "error HOOKS_TYPE"],
    ["a type that is not run", withStop({ type: "prompt", prompt: "?" }), "error HOOK_TYPE_UNSUPPORTED"],
    ["no command", withStop({ type: "command" }), "error HOOK_COMMAND_MISSING"],
    ["a command that is not a string", withStop({ command: ["x"] }), "error HOOK_FIELD_TYPE"],
    ["arguments that are not strings", withStop({ command: "x", args: [1] }), "error HOOK_FIELD_TYPE"],
    ["a matcher that is not a string", withStop({ ...run, matcher: 7 }), "error HOOK_FIELD_TYPE"],
    ["a timeout below zero", withStop({ ...run, timeout: -1 }), "error HOOK_FIELD_TYPE"],
    ["an environment that is not a map of strings", withStop({ ...run, env: { A: 1 } }), "error HOOK_FIELD_TYPE"],
  ])("%s", (_what, value, expected) => {
    const { hooks, diagnostics } = parse("claude", value);
    expect(hooks).toHaveLength(1);
    expect(diagnostics.map(({ severity, code, range }) => [`${severity} ${code}`, range?.start.line])).toEqual([[expected, 1]]);
  });

  test("a condition is reported and has no effect", () => {
    const { hooks } = parse("claude", { hooks: { PreToolUse: [{ hooks: [{ ...run, if: "Bash(git *)" }] }] } });
    expect(hooks).toHaveLength(1);
    expect(codes("claude", { hooks: { PreToolUse: [{ hooks: [{ ...run, if: "Bash(git *)" }] }] } })).toEqual([
      "warning HOOK_CONDITION_UNSUPPORTED",
    ]);
  });

  test.each<[unknown, string]>([
    [{ hooks: [] }, "error HOOKS_TYPE"],
    [{ Stop: [run] }, "error HOOKS_TYPE"],
    [[], "error HOOKS_TYPE"],
    ["{", "error JSON_SYNTAX"],
    [`{"hooks":{"Stop":"${"x".repeat(1_100_000)}"}}`, "error FILE_TOO_LARGE"],
    [{ hooks: { Stop: Array.from({ length: 501 }, () => ({ hooks: [run, run] })) } }, "error HOOKS_TOO_MANY"],
  ])("a whole file: %j", (value, expected) => {
    expect(codes("claude", value)).toEqual([expected]);
    expect(parse("claude", value).hooks.length).toBeLessThanOrEqual(500);
  });

  test("a timeout has an end", () => {
    expect(parse("claude", { hooks: { Stop: [{ ...run, timeout: 1e12 }] } }).hooks[0]?.timeout).toBe(3_600_000);
  });
});
