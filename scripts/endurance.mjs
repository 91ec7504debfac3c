// A long run of one host under everything that happens to it: `npm run endurance -- --minutes 30 --seed 1`. It edits, breaks, adds and removes
// skills, opens and resumes sessions, calls through every entry point below, kills servers and misbehaves in isolated skills, and compares
// each result with a model of what must be true. Ends with 1 when a result was wrong or a record was lost.
import { execFile } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { growthPerHour, sample } from "./endurance/growth.mjs";
import { World } from "./endurance/world.mjs";
import { randomFrom } from "./random.mjs";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "30" }, seed: { type: "string", default: "1" }, package: { type: "string" } },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
if (!(minutes > 0) || !Number.isInteger(seed)) {
  console.error("Give the length as --minutes 30 and the seed as --seed 1.");
  process.exit(2);
}
const root = values.package ?? fileURLToPath(new URL("..", import.meta.url));
const bin = join(root, "dist/cli/bin.js");
if (!existsSync(bin)) {
  console.error("Build first: npm run build");
  process.exit(2);
}
// Collections of garbage, so that what is measured is what is held.
setFlagsFromString("--expose-gc");
globalThis.gc ??= runInNewContext("gc");

const before = new Set(readdirSync(tmpdir()));
const random = randomFrom(seed);
const world = new World(random);
process.env.SKILLHOST_HOME = join(world.base, "home");
const { createHost } = await import(join(root, "dist/index.js"));

const counts = new Map();
const wrong = [];
const lost = [];
const skipped = [
  "a full disk: this program does not mount one",
  "watches of the system used up",
  "a clock that jumps: processes have no clock of their own",
];
const count = (what) => counts.set(what, (counts.get(what) ?? 0) + 1);
const fault = (what, detail) => {
  wrong.push(`${what}: ${detail}`);
  console.log(`WRONG ${what}: ${detail}`);
};

for (const letter of ["a", "b", "c", "d"]) world.add(`skill-${letter}`);
const log = [];
const keep = (message) => void (log.length < 1_000 && log.push(message));
const options = {
  skillDirectories: [world.folder],
  watch: true,
  trust: { folders: true },
  logger: { enabled: () => true, debug() {}, info() {}, warning() {}, error: keep },
  mcpServers: { endurance: { command: process.execPath, args: [world.server] } },
};
const host = await createHost({ ...options, sessionsDirectory: join(world.base, "sessions") });
const isolated = await createHost({ ...options, mcpServers: {}, sessionsDirectory: join(world.base, "isolated"), isolation: "process" });
const mcp = await connectMcp();
const servers = await host.createSession({ persist: false, onPermissionRequest: () => ({ kind: "approve-once" }) });
await servers.ready();
/** Stored sessions, with the calls that each has acknowledged. */
const sessions = new Map();
let next = 0;

const entryPoints = {
  host: async (tool, x) => (await host.callTool(tool, { x })).text,
  session: async (tool, x) => {
    const [id, entry] = await someSession();
    const result = await entry.session.callTool(tool, { x });
    if (result.ok) sessions.get(id).calls++;
    return result.text;
  },
  isolated: async (tool, x) => (await isolated.callTool(tool, { x })).text,
  "MCP client": async (tool, x) => (await mcp.client.callTool({ name: tool, arguments: { x } })).content[0]?.text,
  "command line": async (tool, x) => {
    const args = [bin, "call", tool, JSON.stringify({ x }), "--skills", world.folder, "--yes", "--json"];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: world.base, maxBuffer: 1e8 }).catch((error) => error);
    return JSON.parse(stdout).data?.result?.textResultForLlm ?? stdout;
  },
};
/** Hosts that watch by themselves in another process: they answer with the new version after a while. */
const late = new Set(["MCP client"]);

async function connectMcp() {
  const client = new Client({ name: "endurance", version: "1" });
  const args = [bin, "mcp", "--yes", "--skills", world.folder];
  const transport = new StdioClientTransport({
    command: process.execPath,
    args,
    cwd: world.base,
    env: { ...process.env },
    stderr: "ignore",
  });
  await client.connect(transport);
  return { client, transport };
}

async function someSession() {
  if (sessions.size < 3 || random(6) === 0) {
    const session = await host.createSession({ persist: true });
    sessions.set(session.id ?? session.sessionId, { session, calls: 0 });
    count("sessions opened");
  }
  const entries = [...sessions];
  return entries[random(entries.length)];
}

/** The process of the MCP server that the host started, as its tool says. */
async function askServer() {
  const name = servers.listTools().find((tool) => tool.name.endsWith("pid"))?.name ?? "pid";
  return (await servers.callTool(name, {})).text;
}

/** Calls until the answer is right, where a host may be late; the limit of time ends a run that would never end. */
async function expectAnswer(entry, name) {
  const { version } = world.skills.get(name);
  const tool = world.toolOf(name);
  const x = `x${++next}`;
  const right = `${tool} ${version} ${x}`;
  const until = Date.now() + 60_000;
  let answer;
  do {
    answer = await entryPoints[entry](tool, x).catch((error) => `threw ${error.message}`);
    if (answer === right) return count(`calls by ${entry}`);
    if (late.has(entry)) await new Promise((done) => setTimeout(done, 50));
  } while (late.has(entry) && Date.now() < until);
  fault(`call by ${entry}`, `${JSON.stringify(String(answer).slice(0, 300))} instead of ${JSON.stringify(right)}`);
}

const settle = () => Promise.all([host.reload(), isolated.reload()]);
const steps = {
  async save() {
    const name = world.pick();
    const before = world.skills.get(name).version;
    const tool = world.toolOf(name);
    const version = world.save(name);
    count("saves");
    // While it is reloaded, either version may answer, and no other.
    const during = await Promise.all(Array.from({ length: 5 }, () => host.callTool(tool, { x: "during" })));
    for (const { text } of during)
      if (![`${tool} ${before} during`, `${tool} ${version} during`].includes(text)) fault("call during a save", text);
    await settle();
    for (const entry of ["host", "isolated"]) await expectAnswer(entry, name);
  },
  async break() {
    const name = world.pick();
    world.break(name);
    count("broken saves");
    await settle();
    for (const entry of ["host", "isolated", "session"]) await expectAnswer(entry, name);
    if (!host.diagnostics.some(({ severity, file }) => severity === "error" && file?.includes(name)))
      fault("diagnostics", `nothing about ${name}`);
    world.save(name);
    await settle();
    await expectAnswer("host", name);
  },
  async add() {
    if (world.skills.size > 12) return;
    const name = `skill-n${++next}`;
    world.add(name);
    count("skills added");
    await settle();
    await expectAnswer("host", name);
  },
  async remove() {
    if (world.skills.size < 4) return;
    const name = world.pick();
    world.remove(name);
    count("skills removed");
    await settle();
    for (const each of [host, isolated])
      if (each.tools.some((tool) => tool.name === world.toolOf(name))) fault("removal", `${name} is still offered`);
  },
  async call() {
    const entries = Object.keys(entryPoints);
    const entry = entries[random(10) === 0 ? entries.length - 1 : random(entries.length - 1)];
    await expectAnswer(entry, world.pick());
  },
  async misbehave() {
    const tool = `${world.toolOf(world.pick())}_misbehaves`;
    const x = ["loops", "throws", "exits"][random(3)];
    const { ok } = await isolated.callTool(tool, { x });
    if (ok) fault("misbehaviour", `${x} succeeded`);
    count(`isolated code that ${x}`);
    // A child that ends again and again is started after a pause.
    const name = tool.slice(0, -"_misbehaves".length);
    const until = Date.now() + 60_000;
    while (!(await isolated.callTool(name, { x: "again" })).ok) {
      if (Date.now() > until) return fault("misbehaviour", `${name} never answered again after it ${x}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  },
  async killServer() {
    const pid = Number(await askServer());
    if (!Number.isInteger(pid)) return fault("MCP server", `answered ${await askServer()}`);
    process.kill(pid, "SIGKILL");
    count("servers killed");
    const until = Date.now() + 60_000;
    for (;;) {
      const again = Number(await askServer());
      if (Number.isInteger(again) && again !== pid) return;
      if (Date.now() > until) return fault("MCP server", "did not come back within a minute");
      await new Promise((done) => setTimeout(done, 100));
    }
  },
  async resume() {
    const [id, { session, calls }] = await someSession();
    await session.disconnect();
    const resumed = await host.resumeSession(id);
    const events = await resumed.getMessages();
    const kept = events.filter(({ type, data }) => type === "tool.execution_complete" && data?.success !== false).length;
    if (kept < calls) {
      lost.push(`${id}: ${kept} of ${calls} calls`);
      console.log(`LOST ${lost.at(-1)}`);
    }
    count("sessions resumed");
    sessions.set(id, { session: resumed, calls });
    if (calls > 40 || sessions.size > 6) {
      await resumed.disconnect();
      await host.deleteSession(id);
      sessions.delete(id);
      count("sessions deleted");
    }
  },
  async useUpDescriptors() {
    const held = [];
    try {
      while (held.length < 20_000) held.push(openSync("/dev/null", "r"));
    } catch {
      count("times without descriptors");
    }
    const name = world.pick();
    // Whatever fails now must say so, and nothing may stay wrong.
    await settle().catch(() => {});
    await host.callTool(world.toolOf(name), { x: "x" }).catch(() => {});
    for (const fd of held) closeSync(fd);
    world.save(name);
    await settle();
    await expectAnswer("host", name);
  },
  async restartMcp() {
    await mcp.client.close();
    Object.assign(mcp, await connectMcp());
    count("MCP servers of ours restarted");
    await expectAnswer("MCP client", world.pick());
  },
};
const weights = {
  save: 10,
  call: 16,
  break: 4,
  add: 2,
  remove: 2,
  misbehave: 2,
  killServer: 1,
  resume: 3,
  useUpDescriptors: process.platform === "linux" ? 1 : 0,
  restartMcp: 1,
};
const lots = Object.entries(weights).flatMap(([name, weight]) => Array.from({ length: weight }, () => name));

const startedAt = performance.now();
const end = startedAt + minutes * 60_000;
const samples = [];
let nextSample = startedAt;
while (performance.now() < end) {
  const step = lots[random(lots.length)];
  count("steps");
  try {
    await steps[step]();
  } catch (error) {
    fault(step, error.stack ?? String(error));
  }
  if (performance.now() >= nextSample) {
    samples.push(sample(startedAt));
    nextSample += Math.max(1_000, (minutes * 60_000) / 60);
  }
}
for (const [id, { calls }] of sessions) {
  const exported = await host.exportSession(id);
  const kept = exported.split("\n").filter((line) => line.includes('"tool.execution_complete"')).length;
  if (kept < calls) lost.push(`${id}: ${kept} of ${calls} calls at the end`);
}
await mcp.client.close();
await Promise.all([host.close(), isolated.close()]);
world.close();
const leftBehind = readdirSync(tmpdir()).filter((name) => !before.has(name) && name.startsWith("skillhost-")).length;

console.log(`\nEndurance: ${minutes} minutes, seed ${seed}, Node ${process.version}`);
for (const [what, number] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1))) console.log(`  ${what}: ${number.toLocaleString("en-US")}`);
const growth = growthPerHour(samples);
console.log(`Growth per hour, by the slope of ${samples.length} samples after garbage collection, without the first third:`);
if (growth === undefined) console.log("  not known: the run was too short");
else
  for (const [what, per] of Object.entries(growth)) console.log(`  ${what}: ${per.toFixed(2)} (last: ${samples.at(-1)[what].toFixed(1)})`);
console.log(`Errors that the host logged: ${log.length}. Temporary folders left: ${leftBehind}.`);
for (const each of skipped) console.log(`skipped: ${each}`);
console.log(`${wrong.length} wrong results, ${lost.length} lost records`);
process.exitCode = wrong.length + lost.length + leftBehind > 0 ? 1 : 0;
