import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { checkFolders, checkMachine, supportedNode } from "../../src/cli/commands/doctor.ts";
import { createHost } from "../../src/index.ts";
import { patience } from "../slowness.ts";
import { runCli, skillDocument, startCli, toolModule, workplace } from "./run-cli.ts";

const peer = (name: string): string => fileURLToPath(new URL(`../doubles/mcp-servers/${name}`, import.meta.url));
const local = (...habit: string[]): object => ({ command: process.execPath, args: [peer("raw-server.mjs"), ...habit] });

interface Listed {
  readonly name: string;
  readonly status: string;
  readonly steps: readonly { readonly step: string; readonly state: string; readonly detail: string }[];
  readonly stderrTail?: string;
}

interface Answer {
  readonly ok: boolean;
  readonly data: { readonly servers: readonly Listed[]; readonly machine: object; readonly skills: object };
  readonly diagnostics: readonly {
    readonly severity: string;
    readonly code: string;
    readonly message: string;
    readonly file?: string;
    readonly range?: object;
  }[];
}

async function examine(mcpServers: object, files: Readonly<Record<string, string>> = {}, argv: readonly string[] = [], env = {}) {
  const place = workplace({ "skillhost.json": JSON.stringify({ mcpServers, sessionsDirectory: "./sessions" }), ...files });
  onTestFinished(() => place[Symbol.dispose]());
  const { code, stdout } = await runCli(["doctor", "--json", ...argv], { cwd: place.path, env });
  const { ok, data, diagnostics }: Answer = JSON.parse(stdout);
  const states = (name: string) => data.servers.find((server) => server.name === name)?.steps.map(({ step, state }) => `${step} ${state}`);
  return { code, ok, data, diagnostics, states, codes: diagnostics.map(({ severity, code: found }) => `${severity} ${found}`), place };
}

describe("doctor reports the steps of each MCP server", () => {
  test("a working server passes all steps", async () => {
    const { code, ok, states, data, codes } = await examine({ a: { ...local(), tools: ["echo"] } });
    expect({ code, ok, codes }).toEqual({ code: 0, ok: true, codes: [] });
    expect(states("a")).toEqual(["start ok", "tools ok", "access skipped", "time ok", "log ok", "calls skipped"]);
    const [server] = data.servers;
    expect(server?.status).toBe("ok");
    expect(server?.steps[0]?.detail).toContain("protocol 2025-11-25");
    expect(server?.steps[1]?.detail).toMatch(/^1 of its \d+ tools/);
  });

  test("each failing server is reported with a remedy and its position in the file, and does not affect the others", async () => {
    const servers = {
      works: local(),
      missing: { command: "no-such-program-here" },
      exits: local("exit-at-once"),
      never: { ...local("never"), timeout: 300 },
      named: { ...local(), tools: ["ecko"] },
    };
    const { code, data, diagnostics, states, place } = await examine(servers);
    expect(code).toBe(1);
    expect(data.servers.map(({ name, status }) => `${name} ${status}`)).toEqual([
      "works ok",
      "missing failed",
      "exits failed",
      "never failed",
      "named ok",
    ]);
    expect(states("missing")?.[0]).toBe("start failed");
    expect(states("never")).toContain("time failed");
    expect(states("named")).toContain("tools warning");
    expect(data.servers[2]?.stderrTail).toContain("config missing: set a token");
    const found = (of: string) => diagnostics.find(({ message }) => message.includes(` ${of} `) || message.includes(`"${of}"`));
    expect(found("missing")).toMatchObject({
      severity: "error",
      code: "DOCTOR_MCP_START",
      file: place.at("skillhost.json"),
      range: { start: { line: 1 } },
    });
    expect(found("exits")).toMatchObject({ code: "DOCTOR_MCP_START", message: expect.stringContaining("exited with code 3") });
    expect(found("never")).toMatchObject({ code: "DOCTOR_MCP_TIMEOUT", message: expect.stringContaining('longer "timeout"') });
    expect(found("named")).toMatchObject({
      severity: "warning",
      code: "DOCTOR_MCP_TOOL_UNKNOWN",
      message: expect.stringContaining('Did you mean "echo"?'),
    });
  });

  test("unreachable servers and servers that require a sign-in are reported", async () => {
    const http = createServer((_request, response) => void response.writeHead(401, { "www-authenticate": "Bearer" }).end());
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void http.close());
    const { port } = http.address() as AddressInfo;
    const { states, data, diagnostics } = await examine({
      locked: { url: `http://127.0.0.1:${port}/mcp`, headers: { Authorization: "Bearer hunter2-hunter2" } },
      gone: { url: "http://127.0.0.1:9/mcp" },
    });
    expect(data.servers.map(({ name, status }) => `${name} ${status}`)).toEqual(["locked needs-auth", "gone failed"]);
    expect([states("locked")?.[2], states("gone")?.[2]]).toEqual(["access failed", "access failed"]);
    expect(diagnostics).toMatchObject([
      { code: "DOCTOR_MCP_ACCESS", message: expect.stringContaining("Sign in") },
      { code: "DOCTOR_MCP_ACCESS" },
    ]);
    expect(JSON.stringify([data, diagnostics])).not.toContain("hunter2");
  });

  test("a server that is not started is reported with the reason", async () => {
    const { code, data, codes } = await examine({
      fill: { url: "" },
      off: { command: "x", disabled: true },
      none: { ...local(), tools: [] },
      bad: { command: 5 },
    });
    expect(code).toBe(1);
    expect(data.servers.map(({ name, status, steps }) => `${name} ${status} ${steps.length}`)).toEqual([
      "fill not_configured 0",
      "off disabled 0",
      "none not_started 0",
      "bad not_configured 0",
    ]);
    expect(codes).toEqual(["error MCP_FIELD_TYPE", "warning DOCTOR_MCP_UNCONFIGURED", "warning ADVICE_MCP_TOOLS_NONE"]);
  });

  test("a server of a skill, and values that are names of variables, are reported", async () => {
    const manifest = {
      name: "a",
      mcpServers: { own: { command: process.execPath, args: [peer("raw-server.mjs")], env: { KEY: "PLANTED" } } },
    };
    const files = { "skills/a/SKILL.md": skillDocument("a"), "skills/a/skill.json": JSON.stringify(manifest) };
    const { data, diagnostics, place } = await examine({}, files, [], { PLANTED: "hunter2" });
    expect(data.servers).toMatchObject([
      { name: "own", status: "ok", origin: { kind: "skill", source: "a" }, file: place.at("skills/a/skill.json") },
    ]);
    expect(diagnostics).toMatchObject([
      { code: "ADVICE_MCP_ENV_NAME", file: place.at("skills/a/skill.json"), range: { start: { line: 1 } } },
    ]);
    expect(JSON.stringify([data, diagnostics])).not.toContain("hunter2");
  });
});

test("doctor prints its checks and their results as text", async () => {
  using place = workplace({
    "skillhost.json": JSON.stringify({ mcpServers: { a: local(), b: local("exit-at-once") }, sessionsDirectory: "./sessions" }),
    "skills/x/SKILL.md": skillDocument("x"),
    "skills/x/tools/greet.ts": toolModule("greet", "Hello"),
    "skills/y/SKILL.md": skillDocument("y"),
    "skills/y/tools/bad.ts": "export default (\n",
  });
  const { code, stdout, stderr } = await runCli(["doctor"], { cwd: place.path });
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  expect(stdout).toMatch(/^machine {2}Node \d+\.\d+\.\d+, \d+ folders to watch/);
  expect(stdout).toMatch(/^shell {4}rules about paths and addresses are (?:enforced|not enforced) \(.+\) for programs$/m);
  expect(stdout).toContain("skills   2 skills, 1 tool\n");
  expect(stdout).toMatch(/^server {3}a {2}stdio {2}works {2}skillhost\.json$/m);
  expect(stdout).toMatch(/^ {9}start {2}failed {2}The MCP server b exited with code 3/m);
  expect(stdout).toContain("         | config missing: set a token\n");
  expect(stdout).toMatch(/^skills\/y\/tools\/bad\.ts:\d+:\d+ error DOCTOR_SKILL The skill "y" has errors: MODULE_SYNTAX /m);
  expect(stdout).toMatch(/^Found 2 errors\.\n$/m);
});

test("doctor counts the calls in stored sessions", async () => {
  const id = "s-1";
  const event = (type: string, data: object, index: number) =>
    JSON.stringify({ id: `e${index}`, timestamp: "2026-01-01T00:00:00.000Z", parentId: index === 0 ? null : `e${index - 1}`, type, data });
  const log = [
    event("session.start", { sessionId: id, startTime: "2026-01-01T00:00:00.000Z", options: {} }, 0),
    event("tool.execution_start", { toolCallId: "c1", toolName: "a-echo", mcpServerName: "a", mcpToolName: "echo" }, 1),
    event("tool.execution_start", { toolCallId: "c2", toolName: "other" }, 2),
  ];
  const { data } = await examine({ a: local() }, { [`sessions/${id}/events.jsonl`]: `${log.join("\n")}\n` });
  const step = data.servers[0]?.steps.find(({ step: name }) => name === "calls");
  expect(step?.detail).toBe("1 call in the last 1 session");
});

test.runIf(process.platform === "linux")("an interrupted doctor leaves no process behind", async () => {
  const marker = `marker-${process.pid}-${Math.random().toString(36).slice(2)}`;
  using place = workplace({
    "skillhost.json": JSON.stringify({ mcpServers: { a: local("never", marker) }, sessionsDirectory: "./sessions" }),
  });
  const cli = startCli(["doctor"], { cwd: place.path });
  expect(await eventually(() => running(marker) > 0)).toBe(true);
  cli.interrupt();
  expect((await cli.done).code).toBe(1);
  expect(await eventually(() => running(marker) === 0)).toBe(true);
});

/** The number of processes with a text in their command line. */
function running(text: string): number {
  const lines = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry));
  return lines.filter((pid) => commandLine(pid).includes(text)).length;
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    // The process has ended.
    return "";
  }
}

async function eventually(holds: () => boolean): Promise<boolean> {
  const deadline = Date.now() + patience(10_000);
  while (!holds() && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
  return holds();
}

describe("doctor checks the machine", () => {
  const fine = {
    nodeVersion: "22.12.0",
    watchLimit: 8192,
    folders: 100,
    confinement: "enforced (bubblewrap 0.8.0)",
    isolation: "enforced (bubblewrap 0.8.0)",
  };

  test("the version of Node.js must match package.json", () => {
    const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
    expect(supportedNode).toBe(manifest.engines.node);
    expect(checkMachine(fine)).toEqual([]);
    for (const nodeVersion of ["18.20.0", "20.10.0", "21.7.3", "22.0.0"])
      expect(checkMachine({ ...fine, nodeVersion })).toMatchObject([{ severity: "error", code: "DOCTOR_NODE_VERSION" }]);
  });

  test("the limit on watches must cover all folders", () => {
    expect(checkMachine({ ...fine, folders: 5_000 })).toMatchObject([{ severity: "warning", code: "DOCTOR_WATCH_LIMIT" }]);
    expect(checkMachine({ ...fine, folders: 5_000, watchLimit: undefined })).toEqual([]);
  });

  test("folders must be writable, and private files must be private", () => {
    using place = workplace({ file: "x", "open/x": "" });
    const check = (path: string, isPrivate = false) => checkFolders([{ what: "sessions", path: place.at(path), isPrivate }]);
    expect(check("not/yet/there")).toEqual([]);
    expect(check("file")).toMatchObject([{ severity: "error", code: "DOCTOR_FOLDER", file: place.at("file") }]);
    expect(check("file/below")).toMatchObject([{ code: "DOCTOR_FOLDER" }]);
    expect(check("open")).toEqual([]);
  });
});

describe("the cache of modules", () => {
  const cachePlace = () => {
    const place = workplace({
      "skills/greet/SKILL.md": skillDocument("greet"),
      "skills/greet/tools/greet.ts": toolModule("greet", "Hello."),
    });
    onTestFinished(() => place[Symbol.dispose]());
    onTestFinished(() => void vi.unstubAllEnvs());
    vi.stubEnv("XDG_CACHE_HOME", join(place.path, "cache"));
    vi.stubEnv("SKILLHOST_CACHE", "");
    return { cwd: place.path, folder: join(place.path, "cache", "skillhost") };
  };
  // Only Linux has this variable.
  test.skipIf(process.platform !== "linux")("is shown, filled by a command, and cleared", async () => {
    const { cwd, folder } = cachePlace();
    const shown = async () => JSON.parse((await runCli(["doctor", "--json"], { cwd })).stdout).data.cache;
    await runCli(["list"], { cwd });
    expect(await shown()).toMatchObject({ folder: join(folder, "transforms"), entries: 1 });
    expect((await runCli(["doctor"], { cwd })).stdout).toMatch(/^cache {4}\S+transforms, 1 file, 0\.0 MB$/m);
    for (const name of ["compiled", "skills"]) mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, "mine.txt"), "");
    const cleared = await runCli(["doctor", "--clear-cache"], { cwd });
    expect(cleared).toMatchObject({ code: 0, stdout: expect.stringContaining("Cleared the cache") });
    expect([readdirSync(folder).toSorted(), filesBelow(join(folder, "transforms"))]).toEqual([["mine.txt", "transforms"], 0]);
    const again = await runCli(["doctor", "--clear-cache", "--json"], { cwd });
    expect(JSON.parse(again.stdout).data).toMatchObject({ cleared: { entries: 0, bytes: 0 } });
  });

  test("is neither created nor shown with SKILLHOST_CACHE=off or the option cache: false", async () => {
    const { cwd, folder } = cachePlace();
    await using host = await createHost({ workingDirectory: cwd, skillDirectories: ["skills"], watch: false, cache: false });
    expect(host.skills.map(({ state }) => state)).toEqual(["active"]);
    vi.stubEnv("SKILLHOST_CACHE", "off");
    expect((await runCli(["doctor"], { cwd })).stdout).toMatch(/^cache {4}off$/m);
    expect((await runCli(["doctor", "--clear-cache"], { cwd })).stdout).toContain("Nothing was cleared: off.");
    expect(existsSync(folder)).toBe(false);
  });
});

function filesBelow(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length;
}
