import { expect, test } from "vitest";
import { runCli, skillDocument, workplace } from "./run-cli.ts";

const servers = {
  mcpServers: {
    good: { command: "node", args: ["server.mjs"], env: { TOKEN: "${PLANTED:-t}" } },
    bad: { command: 5 },
    remote: { type: "http", url: "" },
    off: { command: "x", disabled: true },
  },
};
const files = {
  "skillhost.json": JSON.stringify(servers, null, 1),
  ".vscode/mcp.json":
    '{\n  // ours\n  "servers": { "org": { "command": "x", "args": ["${input:org}"] }, "good": { "url": "https://a.example/", "note": 1 } },\n}',
  "skills/a/SKILL.md": skillDocument("a"),
  "skills/a/skill.json": JSON.stringify({ name: "a", mcpServers: { own: { command: "node", args: ["${CLAUDE_SKILL_DIR}/s.mjs"] } } }),
};

test("mcp list prints servers with transport, state and origin, why some need configuration, and starts none", async () => {
  using place = workplace(files);
  const { code, stdout } = await runCli(["list"], { cwd: place.path });
  expect(code).toBe(0);
  expect(stdout).toContain("\nMCP servers\n  good  stdio  not started  skillhost.json\n");
  expect(stdout).toContain("  bad  needs configuration  skillhost.json\n    skillhost.json:13:4 error MCP_FIELD_TYPE ");
  expect(stdout).toContain("  remote  http  needs configuration  skillhost.json\n    It has no URL. ");
  expect(stdout).toContain("  off  stdio  disabled  skillhost.json\n");
  expect(stdout).toContain("  own  stdio  not started  skill a\n");
  expect(stdout).toMatch(/^1 skill, 0 tools, 5 MCP servers\.\n$/m);
});

test("mcp list reads the files of any client, of which a later one takes precedence, and prints the same as data", async () => {
  using place = workplace(files);
  const { code, stdout } = await runCli(["list", "--json", "--mcp-config", ".vscode/mcp.json"], { cwd: place.path });
  expect(code).toBe(0);
  const { data, diagnostics } = JSON.parse(stdout);
  const byName = new Map(data.servers.map((server: { name: string }) => [server.name, server]));
  expect(byName.get("good")).toMatchObject({
    transport: "http",
    status: "pending",
    origin: { kind: "host" },
    file: place.at(".vscode/mcp.json"),
  });
  expect(byName.get("org")).toMatchObject({ status: "not_configured", transport: "stdio", error: expect.stringContaining("${input:org}") });
  expect(byName.get("own")).toMatchObject({ status: "pending", origin: { kind: "skill", source: "a" } });
  expect(diagnostics).toContainEqual(expect.objectContaining({ code: "MCP_NAME_TAKEN", file: place.at(".vscode/mcp.json") }));
});

test("mcp list prints no value of the environment", async () => {
  using place = workplace(files);
  const runs = await Promise.all(
    [["list"], ["list", "--json"]].map((argv) => runCli(argv, { cwd: place.path, env: { PLANTED: "hunter2" } })),
  );
  for (const { stdout, stderr } of runs) expect(stdout + stderr).not.toContain("hunter2");
});

test("an unreadable file is wrong usage, with the position of the error", async () => {
  using place = workplace({ "broken.json": '{ "mcpServers": { ', "other.json": '{ "name": "x" }' });
  const missing = await runCli(["list", "--mcp-config", "nope.json"], { cwd: place.path });
  expect(missing.code).toBe(2);
  expect(missing.stderr).toContain("nope.json error FILE_MISSING ");
  const broken = await runCli(["list", "--mcp-config", "broken.json"], { cwd: place.path });
  expect(broken.code).toBe(2);
  expect(broken.stderr).toMatch(/broken\.json:1:\d+ error JSON_SYNTAX /);
  const other = await runCli(["list", "--mcp-config", "other.json", "--json"], { cwd: place.path });
  expect(JSON.parse(other.stdout)).toMatchObject({ ok: false, error: { code: "MCP_CONFIG" }, diagnostics: [{ code: "MCP_CONFIG_NONE" }] });
});

test("mcpServers of the configuration must be an object", async () => {
  using place = workplace({ "skillhost.json": '{ "mcpServers": [] }' });
  const { code, stderr } = await runCli(["list"], { cwd: place.path });
  expect(code).toBe(2);
  expect(stderr).toContain("skillhost.json:1:3 error CONFIG_TYPE ");
});
