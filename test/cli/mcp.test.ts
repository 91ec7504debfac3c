import { expect, test } from "vitest";
import { runCli, skillDocument, startCli, toolModule, workplace } from "./run-cli.ts";

const files = { "skills/greeter/SKILL.md": skillDocument("greeter"), "skills/greeter/tools/hello.ts": toolModule("hello", "Hello") };

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1.0.0" } },
};

function post(url: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  const all = { "Content-Type": "application/json", Accept: "application/json, text/event-stream", ...headers };
  return fetch(url, { method: "POST", headers: all, body: JSON.stringify(body) });
}

test("mcp serves over HTTP until it is interrupted, and prints the URL", async () => {
  using place = workplace(files);
  const cli = startCli(["mcp", "--http", "0", "--yes"], { cwd: place.path });
  const url = /http:\S+/.exec(await cli.line((line) => line.startsWith("Serving MCP at")))?.[0] ?? "";
  expect((await post(url, initialize)).status).toBe(401);
  const configuration = JSON.parse(/^\{.*\}$/m.exec(cli.stderr)?.[0] ?? "").mcpServers.skillhost;
  expect(configuration).toEqual({ type: "http", url, headers: { Authorization: expect.stringMatching(/^Bearer [\w-]{43}$/) } });
  const { headers } = configuration;
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
  const opened = await post(url, initialize, headers);
  const session = { ...headers, "Mcp-Session-Id": opened.headers.get("mcp-session-id") ?? "" };
  const called = await post(url, { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "hello", arguments: {} } }, session);
  expect(await called.text()).toContain("Hello");
  cli.interrupt();
  expect(await cli.done).toMatchObject({ code: 0 });
  await expect(post(url, initialize)).rejects.toThrow();
});

test("mcp --health answers whether it lives and takes work, and what its clients called", async () => {
  using place = workplace(files);
  const cli = startCli(["mcp", "--http", "0", "--no-token", "--yes", "--health", "0"], { cwd: place.path });
  const url = /http:\S+/.exec(await cli.line((line) => line.startsWith("Serving MCP at")))?.[0] ?? "";
  await expect.poll(() => cli.stderr).toContain("Health: ");
  const health = /Health: (\S+)\/readyz/.exec(cli.stderr)?.[1] ?? "";
  const opened = await post(url, initialize);
  const session = { "Mcp-Session-Id": opened.headers.get("mcp-session-id") ?? "" };
  await (await post(url, { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "hello", arguments: {} } }, session)).text();
  expect((await fetch(`${health}/readyz`)).status).toBe(200);
  const metrics = await (await fetch(`${health}/metrics`)).text();
  expect(metrics).toContain('skillhost_tool_calls_total{tool="hello",outcome="success"} 1\n');
  cli.interrupt();
  expect(await cli.done).toMatchObject({ code: 0 });
  await expect(fetch(`${health}/livez`)).rejects.toThrow();
  const wrong = await runCli(["mcp", "--health", "here"], { cwd: place.path });
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("such as 0.0.0.0:9090") });
});

test("mcp accepts --no-token on loopback addresses only", async () => {
  using place = workplace(files);
  const cli = startCli(["mcp", "--http", "0", "--no-token"], { cwd: place.path });
  const url = /http:\S+/.exec(await cli.line(() => true))?.[0] ?? "";
  expect((await post(url, initialize)).status).toBe(200);
  cli.interrupt();
  expect(await cli.done).toMatchObject({ code: 0, stderr: "" });
  const refused = await runCli(["mcp", "--http", "0", "--no-token", "--host", "0.0.0.0"], { cwd: place.path });
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("--no-token is allowed only for loopback addresses")]);
  const unclear = await runCli(["mcp", "--http", "0", "--no-token"], { cwd: place.path, env: { SKILLHOST_TOKEN: "ours" } });
  expect([unclear.code, unclear.stderr]).toEqual([2, expect.stringContaining("SKILLHOST_TOKEN exclude each other")]);
});

test("mcp creates a token outside the loopback address and prints it to stderr, or uses a given one and does not print it", async () => {
  using place = workplace(files);
  const open = startCli(["mcp", "--http", "0", "--host", "0.0.0.0", "--json"], { cwd: place.path });
  const { data } = JSON.parse(await open.line(() => true));
  const url = `http://127.0.0.1:${new URL(data.url).port}/mcp`;
  const header = /^Authorization: (Bearer \S+)$/m.exec(open.stderr)?.[1] ?? "";
  expect((await post(url, initialize)).status).toBe(401);
  expect((await post(url, initialize, { Authorization: header })).status).toBe(200);
  open.interrupt();
  await open.done;
  const known = startCli(["mcp", "--http", "0", "--host", "0.0.0.0"], { cwd: place.path, env: { SKILLHOST_TOKEN: "ours-alone" } });
  const other = /:(\d+)\/mcp/.exec(await known.line(() => true))?.[1];
  expect((await post(`http://127.0.0.1:${other}/mcp`, initialize, { Authorization: "Bearer ours-alone" })).status).toBe(200);
  known.interrupt();
  expect((await known.done).stderr).toBe("");
});

test("mcp denies calls that no rule allows, and lists only tools that pass the filters", async () => {
  const more = {
    "skills/greeter/tools/bye.ts": toolModule("bye", "Bye"),
    "skills/greeter/tools/secret.ts": toolModule("secret", "Secret"),
  };
  using place = workplace({ ...files, ...more });
  const cli = startCli(["mcp", "--http", "0", "--no-token", "--allow", "hello", "--excluded", "secret"], { cwd: place.path });
  const url = /http:\S+/.exec(await cli.line(() => true))?.[0] ?? "";
  const session = { "Mcp-Session-Id": (await post(url, initialize)).headers.get("mcp-session-id") ?? "" };
  const ask = async (method: string, params: object = {}): Promise<string> =>
    (await post(url, { jsonrpc: "2.0", id: 2, method, params }, session)).text();
  expect(await ask("tools/list")).not.toContain("secret");
  expect(await ask("tools/call", { name: "hello" })).not.toContain("isError");
  expect(await ask("tools/call", { name: "bye" })).toContain("--allow <rule>");
  expect(await ask("tools/call", { name: "secret" })).toContain("-32602");
  cli.interrupt();
  await cli.done;
});

test("mcp answers as many requests of an address in ten seconds as --max-requests allows", async () => {
  using place = workplace(files);
  const cli = startCli(["mcp", "--http", "0", "--no-token", "--max-requests", "2"], { cwd: place.path });
  const url = /http:\S+/.exec(await cli.line(() => true))?.[0] ?? "";
  // The window of ten seconds may end between two requests, but not between each of many.
  const statuses: number[] = [];
  for (let sent = 0; sent < 6; sent++) statuses.push((await post(url, initialize)).status);
  expect([statuses.slice(0, 2), statuses.includes(429)]).toEqual([[200, 200], true]);
  cli.interrupt();
  await cli.done;
});

test("mcp reports invalid options", async () => {
  for (const argv of [
    ["--http", "http"],
    ["--http", "65536"],
    ["--http", "-1"],
    ["--http", "0", "--max-requests", "0"],
    ["--http", "0", "--max-requests", "1.5"],
    ["--http", "0", "--max-requests", "many"],
    ["--http", "0", "--allow", "shell("],
  ]) {
    const { code, stderr } = await runCli(["mcp", ...argv]);
    expect([argv, code === 0, stderr === ""]).toEqual([argv, false, false]);
  }
  const { code, stderr } = await runCli(["mcp"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("--http")]);
});
