// A long run of one host under everything that happens to it: `npm run endurance -- --minutes 30 --seed 1`. It edits, breaks, adds and removes
// skills, opens and resumes sessions, calls through every entry point below, kills servers and misbehaves in isolated skills, and compares
// each result with a model of what must be true. Ends with 1 when a result was wrong or a record was lost. `--heap <folder>` writes what the
// process holds after the warm-up and at the end, and prints what has grown in between.
import { execFile } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Clients, canLimitWatches } from "./endurance/clients.mjs";
import { compareHeaps, growthPerHour, sample, standsStill, writeHeap } from "./endurance/growth.mjs";
import { openSmallDisk } from "./endurance/small-disk.mjs";
import { World } from "./endurance/world.mjs";
import { randomFrom } from "./random.mjs";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    seed: { type: "string", default: "1" },
    package: { type: "string" },
    heap: { type: "string" },
  },
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

// A temporary folder of its own, for its children as well: what other programs leave in the common one is not theirs.
const temporary = mkdtempSync(join(tmpdir(), "skillhost-endurance-"));
process.env.TMPDIR = temporary;
const random = randomFrom(seed);
const world = new World(random);
process.env.SKILLHOST_HOME = join(world.base, "home");
const { createHost } = await import(join(root, "dist/index.js"));

const counts = new Map();
const wrong = [];
const lost = [];
const skipped = [];
const count = (what) => counts.set(what, (counts.get(what) ?? 0) + 1);
const fault = (what, detail) => {
  wrong.push(`${what}: ${detail}`);
  console.log(`WRONG ${what}: ${detail}`);
};

const first = ["skill-a", "skill-b", "skill-c", "skill-d"];
for (const name of first) world.add(name);
let logged = 0;
const options = {
  skillDirectories: [world.folder],
  watch: true,
  trust: { folders: true },
  logger: { enabled: () => true, debug() {}, info() {}, warning() {}, error: () => void logged++ },
  mcpServers: { endurance: { command: process.execPath, args: [world.server] } },
};
const host = await createHost({ ...options, sessionsDirectory: join(world.base, "sessions") });
const isolated = await createHost({ ...options, mcpServers: {}, sessionsDirectory: join(world.base, "isolated"), isolation: "process" });
const clients = new Clients(bin, world);
const disk = openSmallDisk(world.base, random);
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
process.on("exit", () => disk?.close());
if (disk === undefined) skipped.push("a full disk: this system does not let one be mounted");
const small =
  disk && (await createHost({ ...options, mcpServers: {}, skillDirectories: [disk.world.folder], sessionsDirectory: disk.sessions }));
const kept = small && { session: await small.createSession({ persist: true }), calls: 0 };
const hasFewWatches = await canLimitWatches();
if (!hasFewWatches) skipped.push("watches of the system used up: this system does not let a process have a limit of its own");
let servers = await openServers();
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
  "MCP client": (tool, x) => clients.call("MCP client", tool, x),
  "MCP client over HTTP": (tool, x) => clients.call("MCP client over HTTP", tool, x),
  "Copilot client": (tool, x) => clients.call("Copilot client", tool, x),
  ...(hasFewWatches && { "MCP client without watches": (tool, x) => clients.call("MCP client without watches", tool, x) }),
  "command line": async (tool, x) => {
    const args = [bin, "call", tool, JSON.stringify({ x }), "--skills", world.folder, "--yes", "--json"];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: world.base, maxBuffer: 1e8 }).catch((error) => error);
    return JSON.parse(stdout).data?.result?.textResultForLlm ?? stdout;
  },
};
/** Hosts that watch by themselves in another process: they answer with the new version after a while. */
const late = new Set(["MCP client", "MCP client over HTTP", "Copilot client", "MCP client without watches"]);

/** A limit in steps: the result does not depend on the speed of the machine. */
const maxAttempts = 1_200;
const pause = (ms = 50) => new Promise((done) => setTimeout(done, ms));

/** Repeats until it settles with something true. False: it never did. */
async function until(attempt) {
  for (let made = 0; made < maxAttempts; made++) {
    if (await attempt()) return true;
    await pause();
  }
  return false;
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

async function openServers() {
  const session = await host.createSession({ persist: false, onPermissionRequest: () => ({ kind: "approve-once" }) });
  await session.ready();
  return session;
}

/** The process of the MCP server that the host started, as its tool says. */
async function askServer() {
  const name = servers.listTools().find((tool) => tool.name.endsWith("pid"))?.name ?? "pid";
  return (await servers.callTool(name, {})).text;
}

/** Calls until the answer is right, where a host may be late. */
async function expectAnswer(entry, name) {
  const { version } = world.skills.get(name);
  const tool = world.toolOf(name);
  const x = `x${++next}`;
  const right = `${tool} ${version} ${x}`;
  let answer;
  const isRight = async () => {
    answer = await entryPoints[entry](tool, x).catch((error) => `threw ${error.message}`);
    return answer === right;
  };
  if (late.has(entry) ? await until(isRight) : await isRight()) return count(`calls by ${entry}`);
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
    const x = ["loops", "throws", "exits", "aborts", "crashes"][random(5)];
    const { ok } = await isolated.callTool(tool, { x });
    if (ok) fault("misbehaviour", `${x} succeeded`);
    count(`isolated code that ${x}`);
    // A child that ends again and again is started after a pause.
    const name = tool.slice(0, -"_misbehaves".length);
    if (!(await until(async () => (await isolated.callTool(name, { x: "again" })).ok)))
      fault("misbehaviour", `${name} never answered again after it ${x}`);
  },
  async killServer() {
    const pid = Number(await askServer());
    if (!Number.isInteger(pid)) return fault("MCP server", `answered ${await askServer()}`);
    process.kill(pid, "SIGKILL");
    count("servers killed");
    const isBack = async () => {
      const again = Number(await askServer());
      return Number.isInteger(again) && again !== pid;
    };
    if (!(await until(isBack))) fault("MCP server", "did not come back");
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
  async restartClient() {
    const kinds = [...late].filter((kind) => entryPoints[kind] !== undefined);
    const kind = kinds[random(kinds.length)];
    await clients.restart(kind);
    count("programs of clients restarted");
    await expectAnswer(kind, world.pick());
  },
  async jumpClock() {
    await expectAnswer("MCP client", world.pick());
    if (!clients.jump("MCP client")) return;
    count("jumps of the clock (Date of a child)");
    const name = world.pick();
    world.save(name);
    await settle();
    await expectAnswer("MCP client", name);
  },
  async fillDisk() {
    const tool = disk.world.toolOf("on-disk");
    const { version } = disk.world.skills.get("on-disk");
    const answer = async () => (await kept.session.callTool(tool, { x: "x" })).text;
    const isVersion = async (expected, when) => {
      const text = await answer();
      if (text !== `${tool} ${expected} x`) fault(`full disk, ${when}`, text);
    };
    disk.fill();
    count("times without space on the disk");
    if (disk.save()) fault("full disk", "a save succeeded");
    await small.reload();
    // A save that was cut off is not a version. What the session says of its records meanwhile is its affair; the call runs, or says why not.
    const { ok, text, error } = await kept.session.callTool(tool, { x: "x" });
    if (ok ? text !== `${tool} ${version} x` : !/space|ENOSPC/i.test(`${text} ${error}`)) fault("full disk", `${ok} ${text} ${error}`);
    disk.free();
    const saved = disk.world.save("on-disk");
    await small.reload();
    await isVersion(saved, "after it was freed");
    kept.calls++;
    await kept.session.disconnect();
    kept.session = await small.resumeSession(kept.session.id ?? kept.session.sessionId);
    const complete = (await kept.session.getMessages()).filter(
      ({ type, data }) => type === "tool.execution_complete" && data?.success !== false,
    );
    if (complete.length < kept.calls) lost.push(`the session on the full disk: ${complete.length} of ${kept.calls} calls`);
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
  restartClient: 1,
  jumpClock: 1,
  fillDisk: disk === undefined ? 0 : 1,
};
const lots = Object.entries(weights).flatMap(([name, weight]) => Array.from({ length: weight }, () => name));

/** Compares the stored records of a session with what was acknowledged. */
async function checkRecords(id, calls, when) {
  const exported = await host.exportSession(id);
  const stored = exported.split("\n").filter((line) => line.includes('"tool.execution_complete"')).length;
  if (stored < calls) lost.push(`${id}: ${stored} of ${calls} calls ${when}`);
}

/**
 * Brings what the run varies (skills, children, sessions and their history, clients) to the same state before each sample. Without it, the growth
 * would be that of the number of skills and of the conversations.
 */
async function rest() {
  for (const name of [...world.skills.keys()]) if (!first.includes(name)) world.remove(name);
  for (const name of first)
    if (world.skills.has(name)) world.save(name);
    else world.add(name);
  await settle();
  for (const [id, { session, calls }] of sessions) {
    await checkRecords(id, calls, "at rest");
    await session.disconnect();
    await host.deleteSession(id);
  }
  sessions.clear();
  await servers.disconnect();
  servers = await openServers();
  if (kept !== undefined) {
    await kept.session.disconnect();
    await small.deleteSession(kept.session.id ?? kept.session.sessionId);
    Object.assign(kept, { session: await small.createSession({ persist: true }), calls: 0 });
  }
  for (const name of first) await expectAnswer("isolated", name);
  for (const kind of late) if (entryPoints[kind] !== undefined) await expectAnswer(kind, first[0]);
  if (!(await standsStill())) count("samples although something was still running");
}

let isStuck = false;
/** Ends the run when a step does not end in so many ticks of a timer, which stand still with the process. */
async function withinTicks(work, step, maxTicks = 600) {
  let ticks = 0;
  let timer;
  const late = new Promise((_, reject) => {
    timer = setInterval(() => {
      if (++ticks < maxTicks) return;
      isStuck = true;
      reject(new Error(`${step} did not end within ${maxTicks} ticks`));
    }, 1_000);
  });
  await Promise.race([work, late]).finally(() => clearInterval(timer));
}

const startedAt = performance.now();
const end = startedAt + minutes * 60_000;
const between = Math.max(15_000, (minutes * 60_000) / 40);
const samples = [];
const heaps = [];

async function perform(step, work) {
  try {
    await withinTicks(work(), step);
  } catch (error) {
    fault(step, error.stack ?? String(error));
  }
}

async function measure() {
  await perform("rest", rest);
  samples.push(sample(startedAt));
}

let nextSample = startedAt + between;
while (performance.now() < end && !isStuck) {
  const step = lots[random(lots.length)];
  count("steps");
  await perform(step, steps[step]);
  if (isStuck || performance.now() < nextSample) continue;
  await measure();
  nextSample = performance.now() + between;
  if (values.heap !== undefined && heaps.length === 0 && performance.now() - startedAt > end / 3 - startedAt / 3)
    heaps.push(writeHeap(values.heap, "after-warm-up"));
}
if (!isStuck) {
  // A run without samples is too short to measure.
  if (samples.length > 0) await measure();
  if (values.heap !== undefined) heaps.push(writeHeap(values.heap, "at-the-end"));
  for (const [id, { calls }] of sessions) await checkRecords(id, calls, "at the end");
}
await clients.close();
await Promise.all([host.close(), isolated.close(), small?.close()]);
disk?.close();
world.close();
const leftBehind = readdirSync(temporary).filter((name) => name.startsWith("skillhost-"));
rmSync(temporary, { recursive: true, force: true });

console.log(`\nEndurance: ${minutes} minutes, seed ${seed}, Node ${process.version}`);
for (const [what, number] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1))) console.log(`  ${what}: ${number.toLocaleString("en-US")}`);
const growth = growthPerHour(samples);
console.log(`Growth per hour, by the slope of ${samples.length} samples at rest after garbage collection, without the first third:`);
if (growth === undefined) console.log("  not known: the run was too short");
else
  for (const [what, per] of Object.entries(growth)) console.log(`  ${what}: ${per.toFixed(2)} (last: ${samples.at(-1)[what].toFixed(1)})`);
if (heaps.length === 2) console.log(`Growth of the heap after the warm-up, by kind:\n${compareHeaps(...heaps)}`);
console.log(`Errors that the host logged: ${logged}. Temporary folders left: ${leftBehind.length === 0 ? "none" : leftBehind.join(", ")}.`);
for (const each of skipped) console.log(`skipped: ${each}`);
console.log(`${wrong.length} wrong results, ${lost.length} lost records`);
process.exitCode = wrong.length + lost.length + leftBehind.length > 0 ? 1 : 0;
