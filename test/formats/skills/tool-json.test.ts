import { describe, expect, test } from "vitest";
import { parseToolJson, toToolJson } from "../../../src/formats/skills/tool-json.ts";

const file = "/skills/review/tools/lint.json";
const parameters = { type: "object", properties: { path: { type: "string" }, level: { type: "integer" } } };
const parse = (value: object) => parseToolJson(JSON.stringify({ name: "lint", ...value }), file);
const found = (value: object) => parse(value).diagnostics.map(({ severity, code }) => `${severity} ${code}`);
const handler = (value: unknown) => parse({ parameters, handler: value });

test("a tool's JSON file: every field is read", () => {
  const definition = {
    name: "lint",
    title: "Lint",
    description: "Lints a file.",
    parameters,
    outputSchema: { type: "object" },
    annotations: { title: "Lint", readOnlyHint: true },
    overridesBuiltInTool: true,
    skipPermission: false,
    defer: "never",
    isTerminal: true,
    metadata: { team: "x" },
    timeout: 1500.5,
  };
  expect(parse({ ...definition, $schema: "x" })).toEqual({ tool: { definition }, diagnostics: [] });
});

test("a tool's JSON file needs nothing but a name", () => {
  expect(parse({})).toEqual({ tool: { definition: { name: "lint" } }, diagnostics: [] });
});

test("a tool's JSON file: inputSchema is an alias of parameters, which has precedence", () => {
  expect(parse({ inputSchema: parameters }).tool?.definition).toEqual({ name: "lint", parameters });
  const both = parse({ inputSchema: {}, parameters });
  expect(both).toMatchObject({
    tool: { definition: { parameters } },
    diagnostics: [{ severity: "warning", code: "TOOL_PARAMETERS_TWICE" }],
  });
  expect(both.tool?.definition).not.toHaveProperty("inputSchema");
});

test.each([
  { name: "" },
  { title: 1 },
  { description: null },
  { parameters: "x" },
  { parameters: [] },
  { parameters: { type: "array" } },
  { inputSchema: { type: ["object"] } },
  { outputSchema: true },
  { annotations: [] },
  { annotations: { readOnlyHint: "yes" } },
  { overridesBuiltInTool: "true" },
  { skipPermission: 1 },
  { defer: "always" },
  { isTerminal: "no" },
  { metadata: "x" },
  { timeout: "5s" },
  { timeout: 0 },
  { timeout: -1 },
  { timeout: 2 ** 31 },
])("a wrong value leaves no tool: %j", (value) => {
  const { tool, diagnostics } = parse(value);
  expect(tool).toBeUndefined();
  expect(diagnostics.filter(({ severity }) => severity === "error")).toHaveLength(1);
  expect(diagnostics[0]).toMatchObject({ file, range: { start: { line: 1 } } });
});

test("says where and what: a tool in the wrapper of another API", () => {
  const { tool, diagnostics } = parseToolJson('{"type": "function", "function": {"name": "lint"}}', file);
  expect(tool).toBeUndefined();
  expect(diagnostics[0]).toMatchObject({
    code: "TOOL_NAME_MISSING",
    message: expect.stringContaining('Move the contents of "function" to the top'),
  });
});

test("unknown keys are reported once", () => {
  expect(found({ strict: true, category: "x" })).toEqual(["info TOOL_UNKNOWN_KEYS"]);
});

test("syntax faults have their line and column", () => {
  expect(parseToolJson('{\n  "name": "lint",\n}', file).diagnostics).toMatchObject([
    { code: "JSON_SYNTAX", file, range: { start: { line: 2, column: 17 } } },
  ]);
  expect(parseToolJson("[1]", file).diagnostics).toMatchObject([{ severity: "error", code: "TOOL_FIELD_TYPE" }]);
});

describe("handlers of a tool's JSON file", () => {
  test.each([
    ["a module", { module: "./lint.ts" }, { kind: "module", module: "./lint.ts" }],
    ["a module above", { module: "../src/lint.ts", export: "run" }, { kind: "module", module: "../src/lint.ts", export: "run" }],
    ["a command", { command: "eslint" }, { kind: "command", command: "eslint", args: [] }],
    [
      "a command with everything",
      { command: "./bin/lint", args: ["--level", "${level}"], stdin: "${path}", cwd: "work", env: { MODE: "ci" } },
      { kind: "command", command: "./bin/lint", args: ["--level", "${level}"], stdin: "${path}", cwd: "work", env: { MODE: "ci" } },
    ],
    ["a request", { http: { url: "https://example.org/a" } }, { kind: "http", method: "GET", url: "https://example.org/a" }],
    [
      "a request with everything",
      {
        http: {
          method: "post",
          url: "http://127.0.0.1:8080/${path}?l=${level:-3}",
          headers: { "X-Key": "${env:KEY}" },
          body: { p: ["${path}"] },
        },
      },
      {
        kind: "http",
        method: "POST",
        url: "http://127.0.0.1:8080/${path}?l=${level:-3}",
        headers: { "X-Key": "${env:KEY}" },
        body: { p: ["${path}"] },
      },
    ],
    ["a host from the environment", { http: { url: "${env:BASE}/x" } }, { kind: "http", method: "GET", url: "${env:BASE}/x" }],
    [
      "a port from the environment",
      { http: { url: "http://localhost:${env:PORT}/x" } },
      { kind: "http", method: "GET", url: "http://localhost:${env:PORT}/x" },
    ],
    ["a server's tool", { mcp: { server: "files", tool: "read" } }, { kind: "mcp", server: "files", tool: "read" }],
  ])("%s", (_what, value, expected) => {
    expect(handler(value)).toEqual({ tool: { definition: { name: "lint", parameters }, handler: expected }, diagnostics: [] });
  });

  test.each([
    ["null", null],
    ["text", "lint.ts"],
    ["nothing", {}],
    ["two forms", { module: "a.ts", command: "b" }],
    ["an empty module", { module: "" }],
    ["an absolute module", { module: "/a.ts" }],
    ["a module that is a list", { module: ["a.ts"] }],
    ["an empty export", { module: "a.ts", export: "" }],
    ["an empty command", { command: " " }],
    ["a NUL in an argument", { command: "x", args: ["a\0"] }],
    ["arguments as text", { command: "x", args: "a b" }],
    ["a number among them", { command: "x", args: ["-n", 5] }],
    ["a list on stdin", { command: "x", stdin: ["a"] }],
    ["a directory outside", { command: "x", cwd: "../.." }],
    ["a number in the environment", { command: "x", env: { A: 1 } }],
    ["a request that is text", { http: "https://example.org" }],
    ["a request without a url", { http: { method: "GET" } }],
    ["another scheme", { http: { url: "file:///etc/passwd" } }],
    ["an invalid url", { http: { url: "https://exa mple.org:x/" } }],
    ["a host that the model would choose", { http: { url: "https://${path}/x" } }],
    ["a port that the model would choose", { http: { url: "https://example.org:${level}/x" } }],
    ["a url that the model would choose", { http: { url: "${path}" } }],
    ["a url without end", { http: { url: `https://example.org/${"x".repeat(9_000)}` } }],
    ["an unknown method", { http: { method: "BREW", url: "https://example.org" } }],
    ["a body without a method", { http: { url: "https://example.org", body: {} } }],
    ["a header that cannot be sent", { http: { url: "https://example.org", headers: { "a b": "c" } } }],
    ["a header of two lines", { http: { url: "https://example.org", headers: { a: "b\r\nc: d" } } }],
    ["a server without a tool", { mcp: { server: "files" } }],
    ["a server that is empty", { mcp: { server: "", tool: "x" } }],
    ["a server as text", { mcp: "files/read" }],
  ])("that cannot work leave no tool: %s", (_what, value) => {
    const { tool, diagnostics } = handler(value);
    expect(tool).toBeUndefined();
    expect(diagnostics.length).toBeGreaterThan(0);
    expect(diagnostics[0]).toMatchObject({ severity: "error", file, range: { start: { line: 1 } } });
  });

  test.each([
    ["an argument that is not a parameter", { command: "x", args: ["${file}"] }, "TOOL_PLACEHOLDER_UNKNOWN"],
    ["a placeholder inside an argument", { command: "x", args: ["--p=${path}"] }, "TOOL_PLACEHOLDER_PARTIAL"],
    ["a placeholder inside stdin", { command: "x", stdin: "p: ${path}" }, "TOOL_PLACEHOLDER_PARTIAL"],
    ["a placeholder as command", { command: "${path}" }, "TOOL_PLACEHOLDER_UNUSED"],
    ["a placeholder in the environment", { command: "x", env: { A: "${path}" } }, "TOOL_PLACEHOLDER_UNUSED"],
    ["an unknown one in a url", { http: { url: "https://example.org/${file}" } }, "TOOL_PLACEHOLDER_UNKNOWN"],
    ["an unknown one in a header", { http: { url: "https://example.org/", headers: { a: "x ${file}" } } }, "TOOL_PLACEHOLDER_UNKNOWN"],
    [
      "an unknown one in a body",
      { http: { method: "PUT", url: "https://example.org/", body: { a: [{ b: "${file}" }] } } },
      "TOOL_PLACEHOLDER_UNKNOWN",
    ],
    ["another key", { command: "x", shell: true }, "TOOL_HANDLER_KEY"],
  ])("are taken with a warning: %s", (_what, value, code) => {
    const { tool, diagnostics } = handler(value);
    expect(tool?.handler).toBeDefined();
    expect(diagnostics).toMatchObject([{ severity: "warning", code, file }]);
  });

  test("any placeholder may be right when the parameters are open", () => {
    for (const open of [{ type: "object", additionalProperties: true }, { $ref: "#/$defs/a" }, { type: "object", anyOf: [{}] }]) {
      expect(parse({ parameters: open, handler: { command: "x", args: ["${file}"] } }).diagnostics).toEqual([]);
    }
    expect(found({ handler: { command: "x", args: ["${file}"] } })).toEqual(["warning TOOL_PLACEHOLDER_UNKNOWN"]);
    expect(
      found({ parameters: { type: "object", additionalProperties: false }, handler: { command: "x", args: ["${constructor}"] } }),
    ).toEqual(["warning TOOL_PLACEHOLDER_UNKNOWN"]);
  });
});

describe("a tool that is a value already", () => {
  test("is read the same way, without places", () => {
    const { tool, diagnostics } = toToolJson({ name: "lint", strict: true, handler: { command: "eslint" } }, file);
    expect(tool).toEqual({ definition: { name: "lint" }, handler: { kind: "command", command: "eslint", args: [] } });
    expect(diagnostics).toMatchObject([{ code: "TOOL_UNKNOWN_KEYS", file }]);
    expect(diagnostics[0]).not.toHaveProperty("range");
  });

  const cyclic: Record<string, unknown> = { name: "lint" };
  cyclic["metadata"] = cyclic;
  test.each([
    ["text", "lint"],
    ["undefined", undefined],
    ["a function", () => 1],
    ["a cycle", cyclic],
    [
      "a getter that throws",
      Object.defineProperty({}, "name", {
        enumerable: true,
        get: () => {
          throw new Error("no");
        },
      }),
    ],
    ["a BigInt inside", { name: "lint", timeout: 5n }],
  ])("that is not valid JSON is refused: %s", (_what, value) => {
    const { tool, diagnostics } = toToolJson(value, file);
    expect(tool).toBeUndefined();
    expect(diagnostics).toMatchObject([{ severity: "error", code: "TOOL_FIELD_TYPE", file }]);
  });

  test("cannot be changed afterwards through what was passed in", () => {
    const schema = { type: "object", properties: {} as Record<string, unknown> };
    const { tool } = toToolJson({ name: "lint", parameters: schema }, file);
    schema.properties["x"] = {};
    expect(tool?.definition.parameters).toEqual({ type: "object", properties: {} });
  });
});
