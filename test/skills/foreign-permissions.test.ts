import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readForeignPermissions } from "../../src/formats/skills/foreign-permissions.ts";
import { callableTools, isDeclaredTool } from "../../src/formats/skills/skill-permissions.ts";
import { openKit, put, tempFolder, toolSource } from "./kit.ts";

const read = (allowedTools: readonly string[], text?: string) =>
  readForeignPermissions({ document: "SKILL.md", allowedTools, sidecar: text === undefined ? undefined : { file: "openai.yaml", text } });

const codex = `permissions:
  network: false
  fs_read: [./data, ../shared]
  fs_write:
    - ./output
dependencies:
  tools:
    - { type: mcp, value: github, transport: streamable_http, url: "https://example.com/mcp" }
    - { type: env_var, value: REPORT_TOKEN }
    - { type: cli, value: git }
`;

describe("what a skill declares for other hosts", () => {
  test("becomes permissions", () => {
    expect(read(["Read", "Bash(git:*)", "mcp__jira__find", "mcp__linear", "fetch_page"], codex)).toEqual({
      permissions: {
        env: ["REPORT_TOKEN"],
        read: ["./data", "../shared"],
        write: ["./output"],
        tools: ["view", "jira/find", "linear/*", "fetch_page"],
        servers: ["github"],
      },
      diagnostics: [],
    });
    expect(read([], "permissions: { file_system: { read: [/srv/data], write: [] } }").permissions).toEqual({
      env: [],
      read: ["/srv/data"],
    });
  });

  test.each([
    ["nothing", [], undefined],
    ["tools with patterns for arguments only", ["Bash(git:*)"], undefined],
    ["an empty file", [], ""],
    ["other settings", [], "interface: { display_name: Report }\npolicy: { allow_implicit_invocation: false }"],
    ["values of other types", [], "permissions: [network]\ndependencies: { tools: none }"],
  ] as const)("is nothing for %s", (_what, allowedTools, text) => {
    expect(read(allowedTools, text)).toEqual({ diagnostics: [] });
  });

  test.each([
    ["network access without hosts", "permissions: { network: true }", /without naming hosts/],
    ["network access in the later form", "permissions: { network: { enabled: true } }", /without naming hosts/],
    ["invalid YAML", "permissions: { network: ", /not valid YAML/],
    ["a list", "- permissions", /must contain a mapping/],
    ["a path that is not text", "permissions: { fs_read: [5] }", /In "read" of "permissions": 5 is not a path/],
    ["a server with a pattern", "dependencies: { tools: [{ type: mcp, value: '*' }] }", /In "servers" .* is not the name of an MCP server/],
    [
      "a variable with an invalid name",
      "dependencies: { tools: [{ type: env_var, value: A=B }] }",
      /In "env" .* is not the name of a variable/,
    ],
  ])("is less and reported for %s", (_what, text, message) => {
    const { permissions, diagnostics } = read([], text);
    expect(Object.values(permissions ?? {}).flat()).toEqual([]);
    expect(diagnostics).toEqual([
      { severity: "warning", code: "SKILL_FOREIGN_PERMISSIONS", file: "openai.yaml", message: expect.stringMatching(message) },
    ]);
  });

  test("names servers, whose tools may be called", () => {
    const tools = callableTools({ tools: ["find"], servers: ["github"] });
    const names = ["find", "github/search", "github", "git/search", "githubs/search", "other/search"];
    expect(names.filter((name) => isDeclaredTool(tools, name))).toEqual(["find", "github/search"]);
  });

  test("counts for skills with code whose manifest declares nothing, and is read again when it changes", async () => {
    const head = (name: string) => `---\nname: ${name}\ndescription: A skill for the test.\nallowed-tools: fetch_page\n---\nAnswer.\n`;
    const manifest = { name: "own", version: "1.0.0", permissions: { tools: ["own_tool"] } };
    const root = tempFolder({
      "code/SKILL.md": head("code"),
      "code/tools/say.ts": toolSource("say", '"hello"'),
      "own/SKILL.md": head("own"),
      "own/skill.json": JSON.stringify(manifest),
      "own/tools/answer.ts": toolSource("answer", '"hello"'),
      "text/SKILL.md": head("text"),
      "text/agents/openai.yaml": codex,
    });
    const kit = await openKit([root], { watch: false });
    const declared = () => Object.fromEntries(kit.host.skills.map(({ name, permissions }) => [name, permissions]));
    expect(declared()).toEqual({ code: { env: [], tools: ["fetch_page"] }, own: { env: [], tools: ["own_tool"] }, text: undefined });
    for (const servers of ["jira", "linear"]) {
      put(join(root, "code/agents/openai.yaml"), `dependencies: { tools: [{ type: mcp, value: ${servers} }] }\n`);
      await kit.host.reload();
      expect(declared()["code"]).toEqual({ env: [], tools: ["fetch_page"], servers: [servers] });
    }
  });
});
