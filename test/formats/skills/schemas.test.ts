import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import { parseStoredCalls } from "../../../src/formats/calls/stored-calls.ts";
import { parseSkillManifest } from "../../../src/formats/skills/skill-manifest.ts";
import { parseToolJson } from "../../../src/formats/skills/tool-json.ts";

const schema = (name: string) => JSON.parse(readFileSync(new URL(`../../../schemas/${name}.schema.json`, import.meta.url), "utf8"));
const ajv = new Ajv({
  strict: true,
  strictRequired: false,
  strictTypes: false,
  schemas: [schema("skill"), schema("tool"), schema("calls")],
});
const isValidSkill = ajv.getSchema("skillhost/skill.schema.json")!;
const isValidCalls = ajv.getSchema("skillhost/calls.schema.json")!;
const isValidTool = ajv.getSchema("skillhost/tool.schema.json")!;

// What a parser calls information (keys it does not know) an editor need not underline.
const isClean = (diagnostics: readonly { severity: string }[]) => diagnostics.every(({ severity }) => severity === "info");

const tools: readonly [valid: boolean, tool: unknown][] = [
  [true, { name: "lint" }],
  [
    true,
    {
      $schema: "x",
      name: "lint",
      title: "Lint",
      description: "d",
      parameters: { type: "object", properties: {} },
      timeout: 1,
      defer: "auto",
    },
  ],
  [
    true,
    {
      name: "lint",
      inputSchema: {},
      outputSchema: {},
      annotations: { readOnlyHint: true },
      metadata: {},
      isTerminal: false,
      skipPermission: true,
    },
  ],
  [true, { name: "lint", handler: { module: "../a.ts", export: "run" } }],
  [true, { name: "lint", handler: { command: "x", args: ["a"], stdin: "b", cwd: "c", env: { D: "e" } } }],
  [true, { name: "lint", handler: { http: { method: "POST", url: "https://example.org/a", headers: { A: "b" }, body: [1] } } }],
  [true, { name: "lint", handler: { http: { url: "${env:BASE}/a" } } }],
  [true, { name: "lint", handler: { mcp: { server: "a", tool: "b" } } }],
  [true, { name: "lint", unknown: 1 }],
  [false, {}],
  [false, []],
  [false, { name: "" }],
  [false, { name: 1 }],
  [false, { name: "lint", description: null }],
  [false, { name: "lint", parameters: { type: "string" } }],
  [false, { name: "lint", parameters: [] }],
  [false, { name: "lint", parameters: {}, inputSchema: {} }],
  [false, { name: "lint", annotations: { destructiveHint: "no" } }],
  [false, { name: "lint", overridesBuiltInTool: "yes" }],
  [false, { name: "lint", defer: "always" }],
  [false, { name: "lint", timeout: 0 }],
  [false, { name: "lint", timeout: 2_147_483_648 }],
  [false, { name: "lint", handler: null }],
  [false, { name: "lint", handler: {} }],
  [false, { name: "lint", handler: { module: "a.ts", command: "b" } }],
  [false, { name: "lint", handler: { module: "/a.ts" } }],
  [false, { name: "lint", handler: { module: "a\\b.ts" } }],
  [false, { name: "lint", handler: { command: " " } }],
  [false, { name: "lint", handler: { command: "x", shell: true } }],
  [false, { name: "lint", handler: { command: "x", args: [1] } }],
  [false, { name: "lint", handler: { command: "x", cwd: "a/../../b" } }],
  [false, { name: "lint", handler: { command: "x", env: { A: 1 } } }],
  [false, { name: "lint", handler: { http: {} } }],
  [false, { name: "lint", handler: { http: { url: "ftp://example.org" } } }],
  [false, { name: "lint", handler: { http: { url: "https://${a}/" } } }],
  [false, { name: "lint", handler: { http: { url: "https://example.org", body: {} } } }],
  [false, { name: "lint", handler: { http: { url: "https://example.org", method: "GET", body: {} } } }],
  [false, { name: "lint", handler: { http: { url: "https://example.org", method: "FETCH" } } }],
  [false, { name: "lint", handler: { mcp: { server: "a" } } }],
  [false, { name: "lint", handler: { mcp: { server: "", tool: "b" } } }],
];

const skills: readonly [valid: boolean, skill: unknown][] = [
  [true, { name: "review" }],
  [true, { name: "review", prompts: [], tools: [], enabled: true, promptMode: "eager" }],
  [true, { name: "review", version: "1.2.3", author: "A", engines: { skillhost: "^1", node: ">=20" }, requires: { a: "*" } }],
  [true, { name: "review", version: "v1.0.0-rc.1+x", author: { name: "A", email: "b" }, mcpServers: { a: { command: "b" } } }],
  [true, { name: "review", prompts: ["a.md", "./b/**/*.md", "...md"], tools: ["tools/*.json", { name: "x" }] }],
  [true, { name: "review", resources: ["resources/*.ts", "a.ts"] }],
  [true, { name: "review", keywords: ["x"] }],
  [false, { name: "review", resources: [{ uri: "x:y" }] }],
  [false, { name: "review", resources: ["../a.ts"] }],
  [false, {}],
  [false, null],
  [false, { name: " " }],
  [false, { name: "review", version: "1.0" }],
  [false, { name: "review", version: "01.0.0" }],
  [false, { name: "review", version: 1 }],
  [false, { name: "review", author: {} }],
  [false, { name: "review", author: { name: "A", url: 1 } }],
  [false, { name: "review", prompts: "a.md" }],
  [false, { name: "review", prompts: [{ name: "x" }] }],
  [false, { name: "review", prompts: ["../a.md"] }],
  [false, { name: "review", prompts: ["a/../b.md"] }],
  [false, { name: "review", prompts: ["/a.md"] }],
  [false, { name: "review", prompts: ["~/a.md"] }],
  [false, { name: "review", prompts: ["C:/a.md"] }],
  [false, { name: "review", prompts: [" "] }],
  [false, { name: "review", prompts: ["a\u0000"] }],
  [false, { name: "review", tools: [1] }],
  [false, { name: "review", mcpServers: [] }],
  [false, { name: "review", engines: "1" }],
  [false, { name: "review", requires: { a: 1 } }],
  [false, { name: "review", promptMode: "lazy" }],
  [false, { name: "review", enabled: "no" }],
  [false, { name: "review", displayName: null }],
];

const calls: readonly [valid: boolean, file: unknown][] = [
  [true, { calls: {} }],
  [true, { $schema: "x", calls: { a: { tool: "t" } } }],
  [true, { calls: { a: { tool: "t", arguments: { b: 1 }, automatic: true, expect: {} } } }],
  [
    true,
    { calls: { a: { tool: "t", expect: { ok: false, code: "failure", text: "", contains: ["x"], matches: "^a", structured: null } } } },
  ],
  [true, { calls: { a: { tool: "t", expect: { contains: "x", structured: [1], schema: { type: "string" } } } } }],
  [false, {}],
  [false, []],
  [false, { calls: [] }],
  [false, { call: {}, calls: {} }],
  [false, { calls: { " ": { tool: "t" } } }],
  [false, { calls: { [`a${"b".repeat(100)}`]: { tool: "t" } } }],
  [false, { calls: { a: {} } }],
  [false, { calls: { a: { tool: "" } } }],
  [false, { calls: { a: { tool: "t", arguments: [] } } }],
  [false, { calls: { a: { tool: "t", automatic: "yes" } } }],
  [false, { calls: { a: { tool: "t", auto: true } } }],
  [false, { calls: { a: { tool: "t", expect: { contain: "x" } } } }],
  [false, { calls: { a: { tool: "t", expect: { contains: [""] } } } }],
  [false, { calls: { a: { tool: "t", expect: { code: "fine" } } } }],
  [false, { calls: { a: { tool: "t", expect: { matches: 1 } } } }],
  [false, { calls: { a: { tool: "t", expect: { schema: true } } } }],
];

describe("the published schemas and the parsers agree", () => {
  test.each(tools)("%s: tool %j", (valid, tool) => {
    const { tool: read, diagnostics } = parseToolJson(JSON.stringify(tool), "t.json");
    expect(isClean(diagnostics) && read !== undefined).toBe(valid);
    expect(isValidTool(tool)).toBe(valid);
    expect(isValidSkill({ name: "review", tools: [tool] })).toBe(valid);
  });

  test.each(calls)("%s: calls %j", (valid, file) => {
    expect(isClean(parseStoredCalls(JSON.stringify(file), "calls.json").diagnostics)).toBe(valid);
    expect(isValidCalls(file)).toBe(valid);
  });

  test.each(skills)("%s: skill %j", (valid, skill) => {
    const { manifest, diagnostics } = parseSkillManifest(JSON.stringify(skill), "skill.json");
    expect(isClean(diagnostics) && manifest !== undefined).toBe(valid);
    expect(isValidSkill(skill)).toBe(valid);
  });
});

test("the schemas describe every field, for the editors that complete them", () => {
  const { properties } = schema("skill");
  for (const [name, field] of Object.entries<{ description?: string }>(properties)) {
    if (name !== "$schema" && name !== "author") expect(field.description, name).toEqual(expect.any(String));
  }
});
