import { describe, expect, test } from "vitest";
import { type McpConfigOptions, parseMcpConfig } from "../../../src/formats/mcp/mcp-config.ts";
import { createVariableLookup, detectDialect, type McpDialect } from "../../../src/formats/mcp/mcp-dialects.ts";

const file = "/project/.mcp.json";
const parse = (value: unknown, options: Partial<McpConfigOptions> = {}) =>
  parseMcpConfig(typeof value === "string" ? value : JSON.stringify(value), { file, ...options });
const names = (value: unknown, options?: Partial<McpConfigOptions>) =>
  parse(value, options).servers.map(({ name, state }) => `${name} ${state}`);
const codes = (value: unknown, options?: Partial<McpConfigOptions>) =>
  parse(value, options).diagnostics.map(({ severity, code }) => `${severity} ${code}`);

const entry = { command: "x" };

describe("finds the servers in every wrapper", () => {
  test.each<[what: string, value: unknown, found: readonly string[]]>([
    ["mcpServers", { mcpServers: { a: entry, b: { url: "https://b.example/" } } }, ["a ready", "b ready"]],
    [
      "mcpServers beside other keys, as in a plugin.json",
      { name: "p", author: { name: "n", url: "https://n.example" }, mcpServers: { a: entry } },
      ["a ready"],
    ],
    ["servers, as in VS Code", { inputs: [], servers: { a: entry } }, ["a ready"]],
    ["mcp_servers, as in Codex", { mcp_servers: { a: entry } }, ["a ready"]],
    ["mcp, as in OpenClaw", { id: "p", mcp: { server: { type: "sse", url: "https://a.example/mcp" } } }, ["server ready"]],
    ["mcp.servers, as in settings of editors", { "editor.fontSize": 12, mcp: { servers: { a: entry } } }, ["a ready"]],
    ["mcpServers beside settings called mcp", { mcp: { allowed: ["a"] }, mcpServers: { a: entry } }, ["a ready"]],
    ["a bare map", { a: entry, b: { httpUrl: "https://b.example/" } }, ["a ready", "b ready"]],
    ["a bare map with comments", { $schema: "x", _comment: "y", "// note": "z", a: entry }, ["a ready"]],
    [
      "a list, by id, name or number",
      { servers: [{ id: "a", name: "A", url: "https://a.example" }, { name: "B", command: "x" }, entry] },
      ["a ready", "B ready", "2 ready"],
    ],
    ["no server in the wrapper", { mcpServers: {} }, []],
    ["an empty object", {}, []],
  ])("%s", (_what, value, found) => {
    expect(names(value)).toEqual(found);
    expect(codes(value)).toEqual([]);
    expect(parseMcpConfig(value as object, { file }).servers).toEqual(parse(value).servers);
  });
});

test("a configuration without servers is reported", () => {
  expect(codes({ name: "plugin", version: "1.0.0" })).toEqual(["error MCP_CONFIG_NONE"]);
  expect(codes({ author: { name: "n", url: "https://n.example" }, name: "plugin" })).toEqual(["error MCP_CONFIG_NONE"]);
  expect(codes([])).toEqual(["error MCP_CONFIG_NONE"]);
  expect(codes("null")).toEqual(["error MCP_CONFIG_NONE"]);
  expect(codes({ mcpServers: "./mcp.json" })).toEqual(["info MCP_CONFIG_ELSEWHERE"]);
  expect(codes({ mcpServers: 5 })).toEqual(["error MCP_CONFIG_TYPE"]);
  expect(codes("{")).toEqual(["error JSON_SYNTAX"]);
  expect(codes("")).toEqual(["error JSON_SYNTAX"]);
  expect(codes(`"${"a".repeat(1_100_000)}"`)).toEqual(["error FILE_TOO_LARGE"]);
});

test("one server that cannot be used takes none of the others along, and is named with its place", () => {
  const text = `{
  "mcpServers": {
    "good": { "command": "x" },
    "bad": { "command": "x",
      "args": "-y" },
    "empty": { "type": "http", "url": "" },
    "also": { "url": "https://a.example/" }
  }
}`;
  const { servers, diagnostics } = parse(text);
  expect(servers.map(({ name, state }) => `${name} ${state}`)).toEqual(["good ready", "bad refused", "empty unconfigured", "also ready"]);
  expect(diagnostics).toEqual([
    {
      severity: "error",
      code: "MCP_FIELD_TYPE",
      message: 'MCP server "bad": "args" must be an array of strings, not text.',
      file,
      range: { start: { line: 5, column: 7 } },
      source: "bad",
    },
  ]);
});

test("comments and trailing commas are accepted, and faults are reported with their position", () => {
  const text = `\uFEFF// servers
{
  /* of this
     project */
  "servers": {
    "a": { "command": "x", "args": ["//no", "/*comment*/",], }, // last
  },
}
`;
  expect(names(text)).toEqual(["a ready"]);
  expect(parse(text).servers[0]).toMatchObject({ spec: { args: ["//no", "/*comment*/"] } });
  expect(codes(text)).toEqual([]);
  expect(parse("{ /* no end").diagnostics).toMatchObject([{ code: "JSON_SYNTAX", range: { start: { line: 1, column: 3 } } }]);
  expect(codes("{ / }")).toEqual(["error JSON_SYNTAX"]);
  expect(codes("{ # }")).toEqual(["error JSON_SYNTAX"]);
  expect(codes("[1,,]")).toEqual(["error JSON_SYNTAX"]);
});

test("a name that is there twice is reported, and the last one counts", () => {
  const text = '{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"},"__proto__":{"command":"z"}}}';
  expect(parse(text).servers).toMatchObject([{ name: "a", spec: { command: "y" } }]);
  expect(codes(text)).toEqual(["warning JSON_DUPLICATE_KEY", "warning JSON_KEY_REFUSED"]);
  expect(
    codes({
      servers: [
        { id: "a", url: "https://a.example" },
        { id: "a", url: "https://b.example" },
      ],
    }),
  ).toEqual(["warning MCP_NAME_TAKEN"]);
});

test("of five thousand servers and as many faults, a limited number is read and reported", () => {
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`s${index}`, { command: 5 }]));
  const { servers, diagnostics } = parse({ mcpServers: many });
  expect(servers).toHaveLength(1_000);
  expect(diagnostics).toHaveLength(100);
  expect(diagnostics[0]?.code).toBe("MCP_TOO_MANY");
});

test("the defaults of a file's own inputs are used, but never those of passwords; others are named with what they are", () => {
  const value = {
    inputs: [
      { id: "org", type: "promptString", description: "Your organization", default: "acme" },
      { id: "key", type: "promptString", password: true, default: "pw" },
      { id: "team", type: "promptString", description: "Your team" },
    ],
    servers: {
      a: { command: "x", args: ["${input:org}"] },
      b: { command: "x", env: { KEY: "${input:key}" } },
      c: { command: "x", args: ["--team=${input:team}"] },
    },
  };
  const { servers, dialect } = parse(value);
  expect(dialect).toBe("vscode");
  expect(servers).toMatchObject([
    { state: "ready", spec: { args: ["acme"] } },
    { state: "unconfigured", server: { type: "stdio", reason: expect.stringContaining('"${input:key}" in "env" → "KEY"') } },
    { state: "unconfigured", server: { reason: expect.stringContaining('"Your team"') } },
  ]);
  const given = parse(value, { variables: createVariableLookup({ inputs: { key: "k", team: "t", org: "o" } }) }).servers;
  expect(given).toMatchObject([{ spec: { args: ["o"] } }, { spec: { env: { KEY: "k" } } }, { spec: { args: ["--team=t"] } }]);
});

test("reads the servers at a place that is named", () => {
  const value = { name: "package", skillhost: { mcpServers: { a: { command: 5 } } } };
  const { servers, diagnostics } = parse(JSON.stringify(value, null, 1), { at: ["skillhost", "mcpServers"], dialect: "skillhost" });
  expect(servers).toEqual([{ name: "a", state: "refused" }]);
  expect(diagnostics).toMatchObject([{ code: "MCP_FIELD_TYPE", range: { start: { line: 6 } } }]);
  expect(parse(value, { at: ["nothing"] })).toMatchObject({ servers: [], diagnostics: [] });
});

describe("whose file it is decides which variables it has", () => {
  test.each<[file: string, value: unknown, dialect: McpDialect]>([
    ["/p/.mcp.json", { mcpServers: {} }, "claude"],
    ["/p/.claude-plugin/plugin.json", { mcpServers: {} }, "claude"],
    ["C:\\p\\.vscode\\mcp.json", { servers: {} }, "vscode"],
    ["/p/mcp.json", { servers: { a: entry } }, "vscode"],
    ["/p/mcp.json", { mcpServers: { a: entry }, inputs: [] }, "vscode"],
    ["/p/mcp.json", { mcpServers: { a: entry } }, "claude"],
    ["/home/me/.cursor/mcp.json", { mcpServers: {} }, "cursor"],
    ["/p/gemini-extension.json", { mcpServers: {} }, "gemini"],
    ["/home/me/.gemini/settings.json", { mcpServers: {} }, "gemini"],
    ["/p/.codex-plugin/.mcp.json", { mcpServers: {} }, "codex"],
    ["/p/x.json", { mcp_servers: {} }, "codex"],
    ["/home/me/.copilot/mcp-config.json", { mcpServers: {} }, "copilot"],
    ["/p/openclaw.plugin.json", { mcp: {} }, "openclaw"],
    ["/p/mcp.json", { $schema: "https://agent-plugins.org/schemas/1.0.0/mcp.json", mcpServers: {} }, "agent-plugins"],
    ["/p/skill.json", { mcpServers: {} }, "skill"],
    ["/p/skillhost.json", { mcpServers: {} }, "skillhost"],
  ])("%s %j", (path, value, dialect) => {
    expect(detectDialect(path, value)).toBe(dialect);
    expect(parse(value, { file: path }).dialect).toBe(dialect);
  });
});
