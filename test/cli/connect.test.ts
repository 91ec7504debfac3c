import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { parse as parseToml } from "smol-toml";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isOwnEntry } from "../../src/cli/connect/client-entry.ts";
import { mcpClients } from "../../src/cli/connect/mcp-clients.ts";
import { parseJson } from "../../src/formats/text/json-document.ts";
import { buildPackage } from "../built-package.ts";
import { patience } from "../slowness.ts";
import { runCli, skillDocument, toolModule, workplace } from "./run-cli.ts";

// Where the sources would be installed: nothing here starts it.
const ownProgram = fileURLToPath(new URL("../../dist/cli/bin.js", import.meta.url));

let home: ReturnType<typeof workplace>;

beforeEach(() => {
  home = workplace();
  vi.stubEnv("HOME", home.path);
  vi.stubEnv("USERPROFILE", home.path);
});

afterEach(() => {
  vi.unstubAllEnvs();
  home[Symbol.dispose]();
});

const names = mcpClients.map(({ name }) => name);
const project = () => workplace({ "skills/a/SKILL.md": skillDocument("a") });
const settings = (text: string, file: string): Record<string, unknown> =>
  (file.endsWith(".toml") ? parseToml(text) : parseJson(text, { comments: true }).document!.value) as Record<string, unknown>;
const read = (file: string): Record<string, unknown> => settings(readFileSync(file, "utf8"), file);

/** The project's file of a client in a folder, or else the user's. */
function fileOf(name: string, folder: string, scope: "project" | "user" = "project"): string {
  const client = mcpClients.find((each) => each.name === name)!;
  const places = { platform: process.platform, home: home.path, env: {}, project: folder };
  return (scope === "project" ? client.project?.(places) : undefined) ?? client.user(places);
}

const keyOf = (name: string): string => mcpClients.find((each) => each.name === name)!.key;

/** Files of each client as their users have them: with comments, other entries and other settings. */
const samples: Readonly<Record<string, string>> = {
  "claude-code":
    '{\n  "mcpServers": {\n    "github": {\n      "type": "http",\n      "url": "https://api.githubcopilot.com/mcp/"\n    }\n  }\n}\n',
  "claude-desktop":
    '{\n  "globalShortcut": "Ctrl+Space",\n  "mcpServers": {\n    "filesystem": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"] }\n  }\n}',
  vscode:
    '// Servers of this workspace.\n{\n\t"inputs": [{ "type": "promptString", "id": "key", "description": "API key", "password": true }],\n\t"servers": {\n\t\t"github": { "type": "http", "url": "https://api.githubcopilot.com/mcp" }, // remote\n\t},\n}\n',
  cursor: '{\r\n  "mcpServers": {\r\n    "linear": { "url": "https://mcp.linear.app/sse" }\r\n  }\r\n}\r\n',
  codex:
    '# Codex\nmodel = "gpt-5-codex"\napproval_policy = "on-request"\n\n[mcp_servers.context7]\ncommand = "npx"\nargs = ["-y", "@upstash/context7-mcp"]\n\n[mcp_servers.context7.env]\nKEY = "value"\n\n[projects."/home/me/work"]\ntrust_level = "trusted"\n',
  gemini:
    '{\n  "theme": "GitHub",\n  "mcpServers": {\n    "docs": { "httpUrl": "https://example.com/mcp", "timeout": 5000 }\n  },\n  "ui": { "hideBanner": true }\n}\n',
  windsurf: '{\n    "mcpServers": {\n        "slack": { "serverUrl": "https://example.com/sse", "disabled": true }\n    }\n}\n',
  zed: '// Zed settings\n{\n  "theme": "One Dark", // dark\n  "context_servers": {\n    "svelte": {\n      "source": "custom",\n      "command": "npx",\n      "args": ["-y", "@sveltejs/mcp"],\n      "env": {},\n    },\n  },\n  "vim_mode": true,\n}\n',
};

test.each(names)("%s: connect adds one entry to a file with other settings, and disconnect restores it", async (name) => {
  using place = project();
  const file = fileOf(name, place.path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, samples[name]!);
  const connected = await runCli(["connect", name, "--yes"], { cwd: place.path });
  expect(connected).toMatchObject({ code: 0 });
  expect(connected.stderr).toMatch(/^ +\+.*skillhost/m);
  const { [keyOf(name)]: servers, ...rest } = read(file);
  const { [keyOf(name)]: before, ...restBefore } = settings(samples[name]!, file);
  const { skillhost: entry, ...others } = servers as Record<string, Record<string, unknown>>;
  expect({ rest, others }).toEqual({ rest: restBefore, others: before });
  expect(entry).toMatchObject({ command: process.execPath, args: [ownProgram, "mcp", "--skills", place.at("skills")] });
  expect(isOwnEntry(entry)).toBe(true);
  // A second time there is nothing to do.
  const again = await runCli(["connect", name], { cwd: place.path });
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("is already connected") });
  expect((await runCli(["disconnect", name, "--yes"], { cwd: place.path })).code).toBe(0);
  expect(readFileSync(file, "utf8")).toBe(samples[name]);
  expect(await runCli(["disconnect", name], { cwd: place.path })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("is not connected"),
  });
});

test.each(names)("%s: connect creates the file where there is none", async (name) => {
  using place = project();
  const { code, stdout } = await runCli(["connect", name, "--yes", "--json", "--user"], { cwd: place.path });
  expect(code).toBe(0);
  const { data } = JSON.parse(stdout);
  expect(data).toMatchObject({ client: name, changed: true, files: [fileOf(name, place.path, "user")] });
  expect(read(data.file)[keyOf(name)]).toEqual({ skillhost: data.entry });
  // It may get tokens of other servers later.
  if (process.platform !== "win32") expect(statSync(data.file).mode & 0o777).toBe(0o600);
});

test("the files of the clients lie where each platform has them", () => {
  const places = (platform: NodeJS.Platform, env = {}) => ({ platform, home: "/h", env, project: "/p" });
  const user = (platform: NodeJS.Platform, env = {}): readonly string[] =>
    mcpClients.map((client) => client.user(places(platform, env)).replaceAll("\\", "/"));
  expect(user("linux")).toEqual([
    "/h/.claude.json",
    "/h/.config/Claude/claude_desktop_config.json",
    "/h/.config/Code/User/mcp.json",
    "/h/.cursor/mcp.json",
    "/h/.codex/config.toml",
    "/h/.gemini/settings.json",
    "/h/.codeium/windsurf/mcp_config.json",
    "/h/.config/zed/settings.json",
  ]);
  expect(user("darwin")).toContain("/h/Library/Application Support/Claude/claude_desktop_config.json");
  expect(user("darwin")).toContain("/h/Library/Application Support/Code/User/mcp.json");
  expect(user("win32", { APPDATA: "/r" })).toEqual(
    expect.arrayContaining(["/r/Claude/claude_desktop_config.json", "/r/Code/User/mcp.json", "/r/Zed/settings.json"]),
  );
  expect(user("linux", { CODEX_HOME: "/c", CLAUDE_CONFIG_DIR: "/d", XDG_CONFIG_HOME: "/x" })).toEqual(
    expect.arrayContaining(["/c/config.toml", "/d/.claude.json", "/x/Code/User/mcp.json", "/x/zed/settings.json"]),
  );
});

test("connect asks on a terminal, and changes nothing without a yes", async () => {
  using place = project();
  const file = fileOf("cursor", place.path);
  const questions: string[] = [];
  const answer = (question: string): string => {
    questions.push(question);
    return "n";
  };
  expect((await runCli(["connect", "cursor"], { cwd: place.path, isTTY: true, answer })).code).toBe(1);
  expect(questions).toEqual(["Connect Cursor? [y/N] "]);
  expect(existsSync(file)).toBe(false);
  const piped = await runCli(["connect", "cursor"], { cwd: place.path });
  expect(piped).toMatchObject({ code: 1, stderr: expect.stringContaining("run again with --yes") });
  expect(existsSync(file)).toBe(false);
  expect((await runCli(["connect", "cursor"], { cwd: place.path, isTTY: true, answer: () => "y" })).code).toBe(0);
  expect(existsSync(file)).toBe(true);
});

test("--print writes nothing and prints the entry in the client's form", async () => {
  using place = project();
  const json = await runCli(["connect", "vscode", "--print"], { cwd: place.path });
  expect(JSON.parse(json.stdout)).toEqual({
    servers: {
      skillhost: { type: "stdio", command: process.execPath, args: [ownProgram, "mcp", "--skills", place.at("skills")], cwd: place.path },
    },
  });
  expect(json.stderr).toContain("In .vscode/mcp.json:");
  const toml = await runCli(["connect", "codex", "--print", "--npx", "--allow", "a", "--allow", "b"], { cwd: place.path });
  expect(parseToml(toml.stdout)).toEqual({
    mcp_servers: {
      skillhost: {
        command: "npx",
        args: ["-y", "skillhost", "mcp", "--skills", place.at("skills"), "--allow", "a", "--allow", "b"],
        cwd: place.path,
      },
    },
  });
  expect(existsSync(place.at(".vscode"))).toBe(false);
});

test("npx is started through a shell on Windows", async () => {
  using place = project();
  vi.spyOn(process, "platform", "get").mockReturnValue("win32");
  const { stdout } = await runCli(["connect", "claude-code", "--print", "--npx"], { cwd: place.path });
  vi.restoreAllMocks();
  expect(JSON.parse(stdout).mcpServers.skillhost).toMatchObject({
    command: "cmd",
    args: expect.arrayContaining(["/c", "npx", "-y", "skillhost"]),
  });
});

test("a project with a configuration is served with it", async () => {
  using place = workplace({ "skillhost.json": '{ "skillDirectories": ["./lib"] }', "lib/a/SKILL.md": skillDocument("a") });
  const { stdout } = await runCli(["connect", "claude-code", "--print"], { cwd: place.path, env: { SKILLHOST_HOME: "own" } });
  expect(JSON.parse(stdout).mcpServers.skillhost).toMatchObject({
    args: [ownProgram, "mcp", "--config", place.at("skillhost.json")],
    env: { SKILLHOST_HOME: place.at("own") },
  });
});

test("two projects need two names with one client, and an entry of another program is never replaced", async () => {
  using one = project();
  using two = project();
  expect((await runCli(["connect", "windsurf", "--yes"], { cwd: one.path })).code).toBe(0);
  const file = fileOf("windsurf", one.path);
  const before = readFileSync(file, "utf8");
  const taken = await runCli(["connect", "windsurf", "--yes"], { cwd: two.path });
  expect(taken).toMatchObject({ code: 1, stderr: expect.stringContaining("serves other skills") });
  expect(taken.stderr).toContain("--name");
  expect(readFileSync(file, "utf8")).toBe(before);
  expect((await runCli(["connect", "windsurf", "--yes", "--name", "second"], { cwd: two.path })).code).toBe(0);
  expect(Object.keys(read(file)["mcpServers"] as object)).toEqual(["skillhost", "second"]);
  expect((await runCli(["connect", "windsurf", "--yes", "--replace"], { cwd: two.path })).code).toBe(0);
  expect(JSON.stringify(read(file))).not.toContain(one.path);
  writeFileSync(file, '{ "mcpServers": { "skillhost": { "command": "other" } } }');
  for (const command of [
    ["connect", "windsurf", "--replace"],
    ["disconnect", "windsurf"],
  ]) {
    const refused = await runCli([...command, "--yes"], { cwd: two.path });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("does not start skillhost") });
  }
  expect(readFileSync(file, "utf8")).toBe('{ "mcpServers": { "skillhost": { "command": "other" } } }');
});

test.each([
  ["cursor", "{ nope", "line 1"],
  ["cursor", "[]", "does not contain an object"],
  ["cursor", '{ "mcpServers": [] }', '"mcpServers" in it is not an object'],
  ["codex", "[mcp_servers\n", "Invalid TOML"],
  ["codex", 'mcp_servers = { other = { command = "a" } }\n', "cannot be changed"],
])("%s: a file with %j is not changed", async (name, text, said) => {
  using place = project();
  const file = fileOf(name, place.path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  const { code, stderr } = await runCli(["connect", name, "--yes"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stderr).toContain(said);
  expect(stderr).toContain(file);
  expect(readFileSync(file, "utf8")).toBe(text);
});

test("a file of a project that is a link out of it is not changed; one of the user may be a link", async () => {
  using place = project();
  using elsewhere = workplace({ "mcp.json": "{}\n" });
  mkdirSync(place.at(".cursor"));
  symlinkSync(elsewhere.at("mcp.json"), place.at(".cursor/mcp.json"));
  const refused = await runCli(["connect", "cursor", "--yes"], { cwd: place.path });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("points out of the project") });
  expect(readFileSync(elsewhere.at("mcp.json"), "utf8")).toBe("{}\n");
  mkdirSync(join(home.path, ".cursor"));
  symlinkSync(elsewhere.at("mcp.json"), join(home.path, ".cursor/mcp.json"));
  expect((await runCli(["connect", "cursor", "--yes", "--user"], { cwd: place.path })).code).toBe(0);
  expect(read(elsewhere.at("mcp.json"))).toHaveProperty("mcpServers.skillhost");
});

test("a folder that cannot be written is named", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a"), ".cursor": "a file" });
  const { code, stderr } = await runCli(["connect", "cursor", "--yes"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stderr).toContain("could not be written");
});

test("--auto-approve adds the client's own rule, and disconnect removes it", async () => {
  using place = workplace({
    "skills/a/SKILL.md": skillDocument("a"),
    ".claude/settings.local.json": '{\n  "permissions": {\n    "allow": ["Bash(ls:*)"]\n  }\n}\n',
  });
  const file = place.at(".claude/settings.local.json");
  const before = readFileSync(file, "utf8");
  expect((await runCli(["connect", "claude-code", "--yes", "--auto-approve"], { cwd: place.path })).code).toBe(0);
  expect(read(file)).toEqual({ permissions: { allow: ["Bash(ls:*)", "mcp__skillhost"] } });
  expect((await runCli(["disconnect", "claude-code", "--yes"], { cwd: place.path })).code).toBe(0);
  expect(readFileSync(file, "utf8")).toBe(before);
  const { stdout } = await runCli(["connect", "gemini", "--print", "--auto-approve"], { cwd: place.path });
  expect(JSON.parse(stdout).mcpServers.skillhost.trust).toBe(true);
  const refused = await runCli(["connect", "cursor", "--auto-approve"], { cwd: place.path });
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("no setting for --auto-approve") });
});

test("an untrusted project with code is not connected", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/a/tools/t.js": "export default 1;" });
  const { code, stderr } = await runCli(["connect", "cursor", "--yes"], { cwd: place.path, isTrusted: false });
  expect(code).toBe(1);
  expect(stderr).toContain("is not trusted");
  expect(existsSync(place.at(".cursor"))).toBe(false);
});

test.each([["claude-code"], ["vscode"], ["codex"]])(
  "%s: a client that starts the entry as it is written can call the tools, and doctor tries it",
  async (name) => {
    using place = workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/a/tools/hello.ts": toolModule("hello", "Hello") });
    const { bin } = buildPackage();
    const run = (...args: string[]): string =>
      execFileSync(process.execPath, [bin, ...args], {
        cwd: place.path,
        encoding: "utf8",
        env: { ...process.env, SKILLHOST_TRUST: "1", NODE_OPTIONS: "" },
        stdio: ["ignore", "pipe", "ignore"],
      });
    run("connect", name, "--yes", "--allow", "hello");
    const entry = (
      read(fileOf(name, place.path))[keyOf(name)] as Record<string, { command: string; args: string[]; env?: Record<string, string> }>
    )["skillhost"]!;
    const client = new Client({ name: "test", version: "1" });
    // As a client that was started elsewhere.
    await client.connect(new StdioClientTransport({ ...entry, cwd: home.path, stderr: "ignore" }));
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toContain("hello");
    expect(await client.callTool({ name: "hello", arguments: {} })).toMatchObject({ content: [{ type: "text" }] });
    await client.close();
    const { data } = JSON.parse(run("doctor", "--json"));
    expect(data.servers).toMatchObject([{ name: expect.stringMatching(/^skillhost \(/), status: "ok" }]);
  },
  patience(60_000),
);

test("doctor runs no entry of another program, and none of an untrusted project", async () => {
  using place = workplace({
    "skills/a/SKILL.md": skillDocument("a"),
    ".cursor/mcp.json": '{ "mcpServers": { "evil": { "command": "/bin/evil", "args": ["skillhost", "mcp"] } } }',
    ".mcp.json": JSON.stringify({ mcpServers: { sly: { command: process.execPath, args: [ownProgram, "mcp", "--skills", "skills"] } } }),
    ".vscode/mcp.json": "{ nope",
  });
  const { stdout } = await runCli(["doctor", "--json"], { cwd: place.path, isTrusted: false });
  const { data, diagnostics } = JSON.parse(stdout);
  expect(data.servers.map(({ name, status }: { name: string; status: string }) => [name, status])).toEqual([
    ["sly (Claude Code)", "not_started"],
    ["evil (Cursor)", "not_started"],
  ]);
  expect(diagnostics).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ code: "DOCTOR_CLIENT_UNTRIED", message: expect.stringContaining("the project is not trusted") }),
      expect.objectContaining({ code: "DOCTOR_CLIENT_FILE", file: place.at(".vscode/mcp.json") }),
    ]),
  );
});
