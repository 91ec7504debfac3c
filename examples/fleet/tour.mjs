// A fleet on this machine, in half a minute: a server, two workers, three hosts; push, update, kill and drain under load.
// Needs nats-server in the PATH, and skillhost with @nats-io/transport-node, @nats-io/kv and @nats-io/obj: node tour.mjs
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

// The command, in words: another one can be given, such as SKILLHOST="node /somewhere/dist/cli.js".
const [program, ...first] = (process.env.SKILLHOST ?? "npx skillhost").split(" ");
const nats = `nats://127.0.0.1:${process.env.NATS_PORT ?? "4222"}`;
const base = mkdtempSync(join(tmpdir(), "fleet-tour-"));
const running = new Set();
const began = performance.now();
const say = (text) => void process.stdout.write(`[${((performance.now() - began) / 1000).toFixed(1).padStart(5)} s] ${text}\n`);

process.env.PATH += ":/usr/sbin:/usr/local/sbin";
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(base, { recursive: true, force: true, maxRetries: 5 });
});

const tool = (name, code) => `import { defineTool } from "skillhost";
export default defineTool("${name}", { description: "${name}.", annotations: { readOnlyHint: true }, handler: ${code} });
`;

function writeSkill(folder, name, tools) {
  mkdirSync(join(folder, "tools"), { recursive: true });
  writeFileSync(join(folder, "SKILL.md"), `---\nname: ${name}\ndescription: A skill of the tour.\n---\nUse its tools.\n`);
  for (const [file, code] of Object.entries(tools)) writeFileSync(join(folder, "tools", `${file}.ts`), tool(file, code));
}

/** Starts a program, and settles when its output has this. */
async function start(name, command, args, ready, cwd = base) {
  const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, SKILLHOST_TRUST: "1" } });
  running.add(child);
  let text = "";
  child.ended = new Promise((resolve) => child.once("close", (code, signal) => resolve(signal ?? code)));
  void child.ended.then(() => running.delete(child));
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (piece) => {
      text += piece;
    });
  }
  while (!ready.test(text)) {
    if (child.exitCode !== null) throw new Error(`${name} ended:\n${text}`);
    await sleep(20);
  }
  say(`${name}: ${ready.exec(text)[0]}`);
  return Object.assign(child, { url: /http:\S+/.exec(text)?.[0] });
}

/** Runs a command of skillhost, and shows what it says. */
function run(...args) {
  say(`$ skillhost ${args.map((arg) => arg.replace(`${base}/`, "")).join(" ")}`);
  const { status, stdout, stderr } = spawnSync(program, [...first, ...args, "--nats", nats], { cwd: base, encoding: "utf8" });
  for (const line of `${stdout}${status === 0 ? "" : stderr}`.trim().split("\n")) say(`  ${line}`);
  if (status !== 0) throw new Error(`It ended with ${status}.`);
}

const startWorker = (name) =>
  start(name, program, [...first, "worker", "--nats", nats, "--skills", join(base, "worker-skills")], /[Ss]erving[^\n]*/);

async function startHost(name) {
  const folder = join(base, name);
  mkdirSync(join(folder, "skills"), { recursive: true });
  const config = { servers: nats, follow: "pushed", hostName: name, mcp: true };
  writeFileSync(join(folder, "skillhost.json"), JSON.stringify({ plugins: [{ use: "skillhost/plugins/nats", config }] }));
  return start(name, program, [...first, "mcp", "--http", "0", "--no-token", "--yes", "--skills", "skills"], /Serving MCP at \S+/, folder);
}

/** Calls a tool over MCP, revision 2026-07-28, of which each request stands alone. */
async function call({ url }, name) {
  const meta = "io.modelcontextprotocol/";
  const _meta = {
    [`${meta}protocolVersion`]: "2026-07-28",
    [`${meta}clientInfo`]: { name: "tour", version: "1" },
    [`${meta}clientCapabilities`]: {},
  };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": name,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {}, _meta } }),
  });
  const text = await response.text();
  const { result, error } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
  if (error !== undefined || result.isError === true) throw new Error(error?.message ?? result.content[0].text);
  return result.content[0].text;
}

/** Calls until the answer is this one. */
async function until(host, name, wanted) {
  for (;;) {
    const answer = await call(host, name).catch(() => undefined);
    if (answer === wanted) return;
    await sleep(5);
  }
}

mkdirSync(join(base, "worker-skills"));
writeSkill(join(base, "worker-skills", "remote"), "remote", { where: "() => `worker ${process.pid}`" });
const server = await start(
  "nats-server",
  "nats-server",
  ["-a", "127.0.0.1", "-p", new URL(nats).port, "-js", "-sd", join(base, "store")],
  /Server is ready/,
);
let workers = [await startWorker("worker 1"), await startWorker("worker 2")];
const hosts = [];
for (const name of ["host-a", "host-b", "host-c"]) hosts.push(await startHost(name));

const skill = join(base, "weather");
for (const answer of ["sunny", "rainy"]) {
  writeSkill(skill, "weather", { forecast: `() => "${answer}"` });
  run("push", skill);
  const pushed = performance.now();
  await Promise.all(hosts.map((host) => until(host, "forecast", answer)));
  say(`all hosts answer "${answer}", ${Math.round(performance.now() - pushed)} ms after the push has ended`);
}
run("status");
run("rollback", "weather");
await Promise.all(hosts.map((host) => until(host, "forecast", "sunny")));
say('all hosts answer "sunny" again');

await Promise.all(hosts.map((host) => until(host, "where", `worker ${workers[0].pid}`)));
const calls = { made: 0, failed: 0, isOver: false, by: new Map() };
const caller = async (host) => {
  while (!calls.isOver) {
    calls.made++;
    try {
      const answer = await call(host, "where");
      calls.by.set(answer, (calls.by.get(answer) ?? 0) + 1);
    } catch (error) {
      calls.failed++;
      say(`a call failed: ${error.message}`);
    }
  }
};
const callers = hosts.flatMap((host) => [caller(host), caller(host)]);
await sleep(1_000);
say(`${calls.made} calls, ${calls.failed} failed; by ${[...calls.by].map(([who, count]) => `${who}: ${count}`).join(", ")}`);
workers[0].kill("SIGKILL");
say(`worker 1 was killed (${await workers[0].ended})`);
await sleep(3_000);
say(`${calls.made} calls, ${calls.failed} failed`);
workers = [await startWorker("worker 3"), workers[1]];
workers[1].kill("SIGTERM");
say(`worker 2 was drained (exit code ${await workers[1].ended})`);
await sleep(1_000);
calls.isOver = true;
await Promise.all(callers);
say(`${calls.made} calls, ${calls.failed} failed; by ${[...calls.by].map(([who, count]) => `${who}: ${count}`).join(", ")}`);
for (const host of hosts) host.kill("SIGTERM");
say(`the hosts have ended (${(await Promise.all(hosts.map(({ ended }) => ended))).join(", ")})`);
workers[0].kill("SIGTERM");
await workers[0].ended;
server.kill("SIGTERM");
await server.ended;
process.exit(calls.failed === 0 ? 0 : 1);
