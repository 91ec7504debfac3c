import { describe, expect, test } from "vitest";
import { createVariableLookup, expandVariables, type McpDialect, maxValueLength, rulesOf } from "../../../src/formats/mcp/mcp-dialects.ts";
import { parseServerSpec } from "../../../src/formats/mcp/parse-server-spec.ts";

const lookup = createVariableLookup({
  environment: { A: "alpha", B: "beta", EMPTY: "", AGAIN: "${A}", PLUGIN_DATA: "from the environment" },
  places: { workspace: "/work", home: "/home/me", folder: "/plugin", separator: "/" },
  inputs: { org: "acme" },
  settings: { key: "k" },
});
const expand = (text: string, dialect: McpDialect) => expandVariables(text, rulesOf(dialect), lookup).text;

describe("each dialect fills the forms that it defines, and leaves the others", () => {
  const all =
    "${A} ${M:-m} ${env:A} $A ${{ secrets.A }} ${workspaceFolder} ${userHome} ${CLAUDE_PLUGIN_ROOT} ${PLUGIN_ROOT} ${extensionPath}${/}x ${user_config.key} ${input:org} ${CLAUDE_SKILL_DIR}";
  test.each<[McpDialect, string]>([
    ["session", all],
    ["codex", all],
    [
      "claude",
      "alpha m ${env:A} $A ${{ secrets.A }} ${workspaceFolder} ${userHome} /plugin /plugin ${extensionPath}${/}x k acme ${CLAUDE_SKILL_DIR}",
    ],
    [
      "copilot",
      "alpha m ${env:A} alpha ${{ secrets.A }} ${workspaceFolder} ${userHome} /plugin /plugin ${extensionPath}${/}x ${user_config.key} acme ${CLAUDE_SKILL_DIR}",
    ],
    [
      "agent",
      "alpha m ${env:A} alpha alpha ${workspaceFolder} ${userHome} /plugin /plugin ${extensionPath}${/}x ${user_config.key} ${input:org} ${CLAUDE_SKILL_DIR}",
    ],
    [
      "vscode",
      "${A} ${M:-m} alpha $A ${{ secrets.A }} /work /home/me ${CLAUDE_PLUGIN_ROOT} ${PLUGIN_ROOT} ${extensionPath}/x ${user_config.key} acme ${CLAUDE_SKILL_DIR}",
    ],
    [
      "gemini",
      "alpha m ${env:A} alpha ${{ secrets.A }} ${workspaceFolder} ${userHome} ${CLAUDE_PLUGIN_ROOT} ${PLUGIN_ROOT} /plugin/x ${user_config.key} ${input:org} ${CLAUDE_SKILL_DIR}",
    ],
    [
      "skill",
      "alpha m alpha $A ${{ secrets.A }} /work /home/me ${CLAUDE_PLUGIN_ROOT} ${PLUGIN_ROOT} ${extensionPath}${/}x ${user_config.key} ${input:org} /plugin",
    ],
    [
      "agent-plugins",
      "${A} ${M:-m} ${env:A} $A ${{ secrets.A }} ${workspaceFolder} ${userHome} ${CLAUDE_PLUGIN_ROOT} /plugin ${extensionPath}${/}x ${user_config.key} ${input:org} ${CLAUDE_SKILL_DIR}",
    ],
  ])("%s", (dialect, filled) => {
    expect(expand(all, dialect)).toBe(filled);
  });
});

test("a default counts where the variable is not set; set and empty is a value", () => {
  expect(expand("[${M:-d}] [${M:-}] [${A:-d}] [${EMPTY:-d}] [${M:-a b:c}]", "claude")).toBe("[d] [] [alpha] [] [a b:c]");
});

test("what was filled in is not read again, and nothing nests", () => {
  expect(expand("${AGAIN}", "claude")).toBe("${A}");
  expect(expand("${M:-${A}}", "claude")).toBe("${A}");
});

test("a place that is not known may be a variable of the environment", () => {
  expect(expand("${PLUGIN_DATA}", "claude")).toBe("from the environment");
  expect(expand("${PLUGIN_DATA}", "agent-plugins")).toBe("${PLUGIN_DATA}");
});

test("variables without a value and unsupported variables are reported by name only", () => {
  expect(expandVariables("${M} ${env:A} $5 $a", rulesOf("claude"), lookup)).toEqual({
    text: "${M} ${env:A} $5 $a",
    unresolved: [{ reference: { kind: "environment", name: "M" }, placeholder: "${M}" }],
    undefinedForms: ["${env:A}"],
  });
  expect(expandVariables("Bearer $TOKEN", rulesOf("claude"), lookup).undefinedForms).toEqual(["$TOKEN"]);
});

test("inherited properties of objects are not variables", () => {
  for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty"]) {
    expect(expand(`\${${name}} \${input:${name}} \${${name}:-x}`, "claude")).toBe(`\${${name}} \${input:${name}} x`);
  }
});

test("a text of nothing but long values stops growing", () => {
  const long = createVariableLookup({ environment: { L: "x".repeat(100_000) } });
  const { text } = expandVariables("${L}".repeat(10_000), rulesOf("claude"), long);
  expect(text.length).toBeLessThan(maxValueLength + 200_000);
});

test("an unset variable stays literal in env, args and headers, with a warning that names it", () => {
  const { server, diagnostics } = parseServerSpec(
    "s",
    { command: "x", env: { K: "${M}" }, args: ["${env:M}"] },
    { dialect: "claude", variables: lookup },
  );
  expect(server).toMatchObject({ state: "ready", spec: { env: { K: "${M}" }, args: ["${env:M}"] } });
  expect(diagnostics.map(({ code }) => code).sort()).toEqual(["MCP_VARIABLE_UNKNOWN", "MCP_VARIABLE_UNSET"]);
});

test("only the fields that a dialect names are filled", () => {
  const value = { type: "streamable-http", url: "https://a.example/${PLUGIN_ROOT}", headers: { A: "${PLUGIN_ROOT}" } };
  expect(parseServerSpec("s", value, { dialect: "agent-plugins", variables: lookup }).server).toMatchObject({
    spec: { url: value.url, headers: value.headers },
  });
});
