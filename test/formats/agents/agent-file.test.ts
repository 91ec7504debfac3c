import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseAgentFile } from "../../../src/formats/agents/agent-file.ts";
import { createVariableLookup } from "../../../src/formats/mcp/mcp-dialects.ts";
import { resolveSessionConfig } from "../../../src/session/session-config.ts";
import { rounds } from "../../rounds.ts";

const variables = createVariableLookup({ environment: { TOKEN: "s3cret" } });
const read = (text: string, file = "/p/.claude/agents/reviewer.md") => parseAgentFile(text, file, { variables });
const withFields = (yaml: string, file?: string) => read(`---\ndescription: d\n${yaml}\n---\nDo it.\n`, file);
const codes = (yaml: string) => withFields(yaml).diagnostics.map(({ severity, code }) => `${severity} ${code}`);

test("an agent file of Claude Code is read", () => {
  const { agent, diagnostics, excludedTools, userInvocable } = read(`---
name: code-reviewer
description: Reviews code. Use proactively.
tools: Read, Grep, Glob, Bash, mcp__github__create_issue, mcp__memory
model: inherit
skills: style, security
effort: high
color: red
---

You review code.
`);
  expect(agent).toEqual({
    name: "code-reviewer",
    description: "Reviews code. Use proactively.",
    prompt: "You review code.",
    tools: ["view", "grep", "glob", "bash", "github/create_issue", "memory/*"],
    skills: ["style", "security"],
    reasoningEffort: "high",
  });
  expect({ excludedTools, userInvocable }).toEqual({ excludedTools: [], userInvocable: true });
  expect(diagnostics).toMatchObject([{ severity: "info", code: "AGENT_KEYS_UNKNOWN", range: { start: { line: 8 } } }]);
});

test("reads an agent of Copilot, with a title for a name and servers of its own", () => {
  const { agent, diagnostics } = read(
    `---
name: Release Manager
description: Releases.
target: github-copilot
tools: ['read', 'custom-mcp/tool-1', 'my_tool']
disable-model-invocation: true
mcp-servers:
  custom-mcp:
    type: 'local'
    command: 'some-command'
    args: ['--arg1']
    tools: ["*"]
    env:
      A: $TOKEN
      B: \${{ secrets.TOKEN }}
      C: \${MISSING:-c}
  broken:
    type: http
    url: ""
---
Release it.
`,
    "C:\\p\\.github\\agents\\release.agent.md",
  );
  expect(agent).toEqual({
    name: "release",
    displayName: "Release Manager",
    description: "Releases.",
    prompt: "Release it.",
    tools: ["view", "read", "custom-mcp/tool-1", "my_tool"],
    infer: false,
    mcpServers: { "custom-mcp": { type: "stdio", command: "some-command", args: ["--arg1"], env: { A: "s3cret", B: "s3cret", C: "c" } } },
  });
  expect(diagnostics.map(({ code }) => code)).toEqual(["MCP_UNCONFIGURED", "AGENT_KEYS_UNKNOWN"]);
  expect(JSON.stringify(diagnostics)).not.toContain("s3cret");
});

test("reads an agent of VS Code, whose header may be missing", () => {
  const header =
    "description: Plans.\nmodel: ['Claude Opus 4.5 (copilot)', 'GPT-5.2']\nagents: ['a']\nhandoffs:\n  - label: Go\n    agent: x";
  const { agent, diagnostics } = read(`---\n${header}\n---\nPlan.`, "/p/.github/agents/planner.agent.md");
  expect(agent).toEqual({ name: "planner", description: "Plans.", prompt: "Plan.", model: "Claude Opus 4.5" });
  expect(diagnostics.map(({ severity, code }) => `${severity} ${code}`)).toEqual([
    "info AGENT_MODEL",
    "warning AGENT_KEY_UNSUPPORTED",
    "info AGENT_KEYS_UNKNOWN",
  ]);
  expect(read("Only a prompt.", "/p/x.agent.md").agent).toEqual({ name: "x", prompt: "Only a prompt." });
});

test("a file without front matter has its name, and its text as the prompt", () => {
  const { agent, diagnostics } = read("# Reviewer\n\nYou review.\n", "/p/agents/code reviewer.md");
  expect(agent).toEqual({ name: "code reviewer", prompt: "# Reviewer\n\nYou review." });
  expect(diagnostics).toMatchObject([{ severity: "warning", code: "AGENT_DESCRIPTION_MISSING" }]);
});

test.each(["README.md", "readme.md", "CHANGELOG.md"])("%s without front matter is not an agent", (name) => {
  const { agent, diagnostics } = read("# Agents\n\nThis folder has agents.\n", `/p/agents/${name}`);
  expect(agent).toBeUndefined();
  expect(diagnostics).toMatchObject([{ severity: "info", code: "AGENT_FRONT_MATTER_MISSING" }]);
});

describe("the tools of an agent file", () => {
  test.each<[yaml: string, tools: readonly string[] | undefined]>([
    ["", undefined],
    ["tools:", undefined],
    ["tools: ['*']", undefined],
    ["tools: []", []],
    ["tools: {}", []],
    ["tools: Write", ["create", "edit"]],
    ["tools: [execute, agent]", ["bash", "powershell", "execute", "task", "agent"]],
    ["tools: [skill, 'github/*']", ["skill", "github/*"]],
    ["tools: [constructor, __proto__]", ["constructor", "__proto__"]],
  ])("%j", (yaml, tools) => {
    expect(withFields(yaml).agent?.tools).toEqual(tools);
  });

  test("an invalid tool name is omitted with a warning", () => {
    expect(withFields("tools: ['a/', '/b', 'x*', 'a:b', 'mcp:*', 'skill:s', '**', ok]").agent?.tools).toEqual(["mcp:*", "skill:s", "ok"]);
    expect(codes("tools: ['x*']")).toEqual(["warning AGENT_TOOL_NAME"]);
  });

  test("a tool with limits that cannot be kept is left out, and said so", () => {
    expect(withFields("tools: Read, Bash(git status), Task(worker)").agent?.tools).toEqual(["view"]);
    expect(codes("tools: Read, Bash(git status)")).toEqual(["warning AGENT_TOOL_LIMIT"]);
  });

  test("forbidden tools are listed separately, and limits apply as a whole", () => {
    const { agent, excludedTools } = withFields("disallowedTools: Write, Bash(rm:*), mcp__github");
    expect(agent).not.toHaveProperty("tools");
    expect(excludedTools).toEqual(["create", "edit", "bash", "github/*"]);
  });
});

test("says what is missing, what has another type and what would hold the agent to something", () => {
  expect(read("---\nname: x\n---\n").diagnostics.map(({ code }) => code)).toEqual(["AGENT_DESCRIPTION_MISSING", "AGENT_PROMPT_EMPTY"]);
  expect(codes("model: {a: 1}")).toEqual(["warning AGENT_FIELD_TYPE"]);
  expect(codes("model: sonnet")).toEqual(["info AGENT_MODEL"]);
  expect(codes("permissionMode: plan\nmaxTurns: 3")).toEqual(["warning AGENT_KEY_UNSUPPORTED", "warning AGENT_KEY_UNSUPPORTED"]);
  expect(codes("mcpServers: 5")).toEqual(["warning AGENT_FIELD_TYPE"]);
  expect(codes("mcpServers: [github]")).toEqual(["info AGENT_SERVER_NAMED"]);
  expect(codes("mcpServers:\n  a: { command: 5 }")).toEqual(["warning MCP_FIELD_TYPE"]);
});

test("user-invocable, infer and the newer word for it", () => {
  expect(withFields("user-invocable: false").userInvocable).toBe(false);
  expect(withFields("user-invokable: false").userInvocable).toBe(false);
  expect(withFields("infer: false").agent?.infer).toBe(false);
  expect(withFields("infer: true\ndisable-model-invocation: true").agent?.infer).toBe(false);
});

test("every text is an agent that a session takes, or none, and nothing is thrown", () => {
  const yaml = fc.array(
    fc.tuple(
      fc.constantFrom(
        "name",
        "description",
        "tools",
        "model",
        "mcp-servers",
        "mcpServers",
        "skills",
        "infer",
        "__proto__",
        "disallowedTools",
      ),
      fc.constantFrom(
        "a",
        "[a, 'b']",
        "{a: {command: x}}",
        "[{a: {url: 'https://a.example'}}]",
        "5",
        "''",
        "[[1]]",
        "null",
        '"\\0"',
        "{a: {command: [x], env: [1]}}",
        "*x",
        "|\n  long\n  text",
      ),
    ),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(yaml, fc.string({ maxLength: 40 }), (fields, body) => {
      const text = `---\n${fields.map(([key, value]) => `${key}: ${value}`).join("\n")}\n---\n${body}`;
      const { agent, diagnostics } = parseAgentFile(text, "/p/a.agent.md");
      if (agent === undefined) expect.fail(JSON.stringify(diagnostics));
      resolveSessionConfig({ customAgents: [agent], agent: agent.name }, { sessionId: "s", workingDirectory: "/" });
    }),
    { numRuns: rounds(300, 3_000) },
  );
});
