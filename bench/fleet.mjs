// What a fleet on NATS costs: calls through workers beside bare requests, and skills on many hosts.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect } from "@nats-io/transport-node";
import { built } from "./support/built.mjs";
import { quantile } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";

const program = ["/usr/sbin/nats-server", "/usr/local/sbin/nats-server", "/usr/local/bin/nats-server", "/usr/bin/nats-server"].find(
  existsSync,
);
const file = fileURLToPath(import.meta.url);
const far = `import { defineTool } from "skillhost";
const parameters = { type: "object", properties: { text: { type: "string" } } };
export const echo = defineTool("echo", { description: "Gives the text back.", parameters, handler: ({ text }) => text });
export const spin = defineTool("spin", { description: "Computes for 10 ms.", parameters, handler: () => {
  const end = process.cpuUsage().user + 10_000;
  while (process.cpuUsage().user < end);
  return "done";
} });
export const pause = defineTool("pause", { description: "Waits for 5 ms.", parameters, handler: () => new Promise((done) => setTimeout(() => done("done"), 5)) });
`;

const [, , role, ...given] = process.argv;
if (role !== undefined) await roles()[role](...given);
else if (program === undefined)
  console.log("\nnot measured: fleet, because nats-server is not installed (Debian: apt-get install nats-server)");
else await main();

async function main() {
  const base = mkdtempSync(join(tmpdir(), "skillhost-bench-"));
  const children = [];
  try {
    const server = await startServer(base, children);
    await calls(server, base, children);
    await throughput(server, base, children);
    await distribution(server, base, children);
    await sessionMoves(server, base, children);
    await rollingRestart(server, base, children);
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(children.map((child) => child.ended));
    rmSync(base, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The parts that are processes of their own. They print a line when they are ready, and one as an answer to each line they read. */
function roles() {
  return {
    /** Answers requests with what they hold, as a program does that uses NATS alone. */
    async bare(servers) {
      const connection = await connect({ servers });
      connection.subscribe("bench.bare", { queue: "bench", callback: (_, message) => void message.respond(answerOf(message.json())) });
      await connection.flush();
      serveCpu();
    },
    async worker(servers, skills) {
      const { createHost } = await built("index.js");
      const { startToolWorker } = await built("plugins/nats/plugin.js");
      const host = await createHost({ skillDirectories: [skills], workingDirectory: skills, watch: false, logLevel: "error" });
      const worker = await startToolWorker(host, { servers });
      process.once("SIGTERM", async () => {
        await worker.drain();
        await host.close();
        process.exit(0);
      });
      serveCpu();
    },
    /** Follows the catalog, and says when a call gives each answer that it is asked for. */
    async follower(servers, folder, name) {
      const { createHost, approveAll } = await built("index.js");
      const { followSkills } = await built("plugins/nats/plugin.js");
      mkdirSync(folder, { recursive: true });
      const host = await createHost({ skillDirectories: [folder], workingDirectory: folder, watch: false, logLevel: "error" });
      await followSkills(host, { servers, folder, name });
      const session = await host.createSession({ persist: false, onPermissionRequest: approveAll });
      const holds = async (text) => session.catalog.executables.has("saved") && (await session.callTool("saved")).text === text;
      const answered = (text) =>
        new Promise((resolve) => {
          const look = async () => {
            if (!(await holds(text))) return;
            listening[Symbol.dispose]();
            resolve(Date.now());
          };
          const listening = session.onChanged(() => void look());
          void look();
        });
      console.log("ready");
      readLines(async (text) => console.log(await answered(text)));
    },
    /** Has a session with a log of so many bytes, until it is killed. */
    async owner(servers, folder, bytes) {
      const { createHost, approveAll } = await built("index.js");
      const host = await createHost(sessionHost(servers, folder));
      const tools = [{ name: "page", description: "Gives a page.", handler: () => "x".repeat(9_000) }];
      const session = await host.createSession({ persist: true, onPermissionRequest: approveAll, tools });
      for (let left = Number(bytes), turn = 0; left > 0; left -= 18_000, turn++) {
        await session.callTool("page", { text: "y".repeat(9_000) });
        if (turn % 50 === 0) await session.flush();
      }
      await session.flush();
      console.log(session.id);
      readLines(() => {});
      await new Promise(() => {});
    },
    /** Calls without a pause, until it is stopped. Each generation is a process. */
    async caller(servers, folder) {
      const { createHost, approveAll } = await built("index.js");
      const plugins = [{ use: "skillhost/plugins/nats", config: { servers } }];
      const host = await createHost({ plugins, skillDirectories: [], workingDirectory: folder, watch: false, logLevel: "error" });
      const session = await host.createSession({ persist: false, onPermissionRequest: approveAll });
      while (!session.catalog.executables.has("pause")) await sleep(10);
      console.log("ready");
      let [made, failed, isOver] = [0, 0, false];
      process.once("SIGTERM", () => {
        isOver = true;
      });
      const one = async () => {
        while (!isOver) {
          made++;
          const { ok, error } = await session.callTool("pause", {});
          if (ok) continue;
          failed++;
          process.stderr.write(`${error}\n`);
        }
      };
      await Promise.all(Array.from({ length: 8 }, one));
      await host.close();
      console.log(JSON.stringify({ made, failed }));
      process.exit(0);
    },
  };
}

function answerOf({ args }) {
  return JSON.stringify({ worker: "bare", type: "result", value: args.text });
}

function serveCpu() {
  console.log("ready");
  readLines(() => {
    const { user, system } = process.cpuUsage();
    console.log(user + system);
  });
}

function readLines(receive) {
  let rest = "";
  process.stdin.setEncoding("utf8").on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) void receive(line);
  });
}

/** A child of this file, after its first line. `ask` sends a line and gives the next one. */
async function start(children, ...args) {
  const child = spawn(process.execPath, [file, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  const lines = [];
  const waiting = [];
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    const whole = (rest + text).split("\n");
    rest = whole.pop();
    for (const line of whole) (waiting.shift() ?? ((one) => lines.push(one)))(line);
  });
  child.ended = new Promise((resolve) => child.once("close", resolve));
  const next = () => (lines.length > 0 ? Promise.resolve(lines.shift()) : new Promise((resolve) => waiting.push(resolve)));
  child.next = next;
  child.ask = (line) => {
    child.stdin.write(`${line}\n`);
    return next();
  };
  child.cpu = async () => Number(await child.ask("cpu"));
  child.line = await next();
  return child;
}

async function startServer(base, children) {
  const folder = join(base, "server");
  mkdirSync(folder);
  const child = spawn(program, ["-a", "127.0.0.1", "-p", "-1", "-js", "-sd", join(folder, "store"), "--ports_file_dir", folder], {
    stdio: "ignore",
  });
  children.push(child);
  child.ended = new Promise((resolve) => child.once("close", resolve));
  for (;;) {
    const name = readdirSync(folder).find((one) => one.endsWith(".ports"));
    if (name !== undefined) {
      try {
        return new URL(JSON.parse(readFileSync(join(folder, name), "utf8")).nats[0]).host;
      } catch {
        // It is being written.
      }
    }
    await sleep(20);
  }
}

function writeSkill(folder, code) {
  mkdirSync(join(folder, "tools"), { recursive: true });
  writeFileSync(join(folder, "SKILL.md"), "---\nname: far\ndescription: Tools of the benchmark.\n---\nUse them.\n");
  writeFileSync(join(folder, "tools", "far.ts"), code);
}

function workerSkills(base) {
  const skills = join(base, "worker-skills");
  if (!existsSync(skills)) writeSkill(join(skills, "far"), far);
  return skills;
}

async function openCaller(servers, base) {
  const { createHost, approveAll } = await built("index.js");
  const plugins = [{ use: "skillhost/plugins/nats", config: { servers } }];
  const host = await createHost({ plugins, skillDirectories: [], workingDirectory: base, watch: false, logLevel: "error" });
  const session = await host.createSession({ persist: false, onPermissionRequest: approveAll });
  while (!session.catalog.executables.has("echo")) await sleep(10);
  return { session, close: () => host.close() };
}

async function calls(servers, base, children) {
  const [rounds, perRound] = [30, 200];
  title(`A call through a worker, beside a request of NATS alone (${rounds} rounds of ${perRound}, in turn)`);
  const bare = await start(children, "bare", servers);
  const worker = await start(children, "worker", servers, workerSkills(base));
  const connection = await connect({ servers });
  const caller = await openCaller(servers, base);
  for (const bytes of [20, 10_000]) {
    const args = { text: "x".repeat(bytes) };
    // Of the size of a call, with its ids.
    const request = JSON.stringify({ v: 1, call: "0".repeat(32), session: "0".repeat(36), toolCall: "0".repeat(36), args });
    const variants = [
      {
        name: "request of NATS",
        peer: bare,
        run: async () => (await connection.request("bench.bare", request, { timeout: 10_000 })).json().value,
      },
      { name: "session.callTool", peer: worker, run: async () => (await caller.session.callTool("echo", args)).text },
    ];
    for (const variant of variants) Object.assign(variant, { times: [], own: 0, other: 0 });
    // What is compiled meanwhile is not a part of a call.
    for (let round = -15; round < rounds; round++) {
      for (const variant of variants) {
        const [own, other] = [process.cpuUsage(), await variant.peer.cpu()];
        const times = [];
        for (let call = 0; call < perRound; call++) {
          const begin = performance.now();
          if ((await variant.run()).length !== bytes) throw new Error(`${variant.name} gave another answer.`);
          times.push((performance.now() - begin) * 1000);
        }
        const used = process.cpuUsage(own);
        if (round < 0) continue;
        variant.times.push(...times);
        variant.own += used.user + used.system;
        variant.other += (await variant.peer.cpu()) - other;
      }
    }
    const count = rounds * perRound;
    const [alone] = variants;
    table(
      variants.map(({ name, times, own, other }) => ({
        [`${bytes.toLocaleString("en-US")} bytes`]: name,
        "p50 µs": quantile(times, 0.5),
        "p99 µs": quantile(times, 0.99),
        "p50 to NATS": ratio(quantile(times, 0.5), quantile(alone.times, 0.5)),
        "processor µs, caller": own / count,
        "processor µs, worker": other / count,
      })),
    );
    const [, ours] = variants;
    goal(`p50 to a bare request, ${bytes} bytes`, quantile(ours.times, 0.5) / quantile(alone.times, 0.5), 1.5, "×");
    goal("processor time of the caller", ours.own / count, 100, "µs");
    goal("processor time of the worker", ours.other / count, 100, "µs");
  }
  await caller.close();
  await connection.close();
  await end(bare, worker);
}

async function throughput(servers, base, children) {
  title(`A tool of 10 ms of processor time, 32 calls at once (${cpus().length} cores for caller, server and workers)`);
  const rows = [];
  // What two processes gain here without any fleet, for comparison.
  const alone = await spins(1);
  const both = await spins(2);
  for (const count of [1, 2]) {
    const workers = [];
    for (let one = 0; one < count; one++) workers.push(await start(children, "worker", servers, workerSkills(base)));
    const caller = await openCaller(servers, base);
    const total = 600 * count;
    let left = total;
    const begin = performance.now();
    await Promise.all(
      Array.from({ length: 32 }, async () => {
        while (left-- > 0) {
          const { ok, error } = await caller.session.callTool("spin", {});
          if (!ok) throw new Error(error);
        }
      }),
    );
    rows.push({
      workers: count,
      "calls/s": total / ((performance.now() - begin) / 1000),
      "loops alone, rounds/s": count === 1 ? alone : both,
    });
    await caller.close();
    await end(...workers);
  }
  table(rows);
  const [one, two] = rows.map((row) => row["calls/s"]);
  console.log(`two workers to one: ${(two / one).toFixed(2)}×; two loops to one, without a fleet: ${(both / alone).toFixed(2)}×`);
  goal("one worker to two, goal 1.8 times as many", 1.8 / (two / one), 1, "×");
}

/** Rounds of 10 ms per second that processes which only compute have on this machine. */
async function spins(count) {
  const code = `let n = 0; const end = Date.now() + 3000; while (Date.now() < end) { const t = process.cpuUsage().user + 10000; while (process.cpuUsage().user < t); n++; } console.log(n / 3);`;
  const runs = Array.from(
    { length: count },
    () =>
      new Promise((resolve, reject) => {
        const child = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] });
        let text = "";
        child.stdout.setEncoding("utf8").on("data", (piece) => {
          text += piece;
        });
        child.once("error", reject).once("close", () => resolve(Number(text)));
      }),
  );
  return (await Promise.all(runs)).reduce((sum, one) => sum + one, 0);
}

async function distribution(servers, base, children) {
  const [hosts, saves] = [20, 30];
  title(`${hosts} hosts that follow a catalog, each a process`);
  const followers = [];
  for (let at = 0; at < hosts; at += 4) {
    const some = Array.from({ length: 4 }, (_, one) =>
      start(children, "follower", servers, join(base, `host-${at + one}`), `host-${at + one}`),
    );
    followers.push(...(await Promise.all(some)));
  }
  const { openSkillCatalog } = await built("plugins/nats/plugin.js");
  const catalog = await openSkillCatalog({ servers });
  const skill = join(base, "pushed");
  const save = (text) =>
    writeSkill(
      skill,
      `import { defineTool } from "skillhost";\nexport default defineTool("saved", { description: "Answers.", handler: () => ${JSON.stringify(text)} });\n`,
    );
  const pushed = async (text, files) => {
    const answers = followers.map((one) => one.ask(text));
    const began = Date.now();
    await catalog.push({ name: "far", folder: skill, files: ["SKILL.md", "tools/far.ts", ...files] });
    return (await Promise.all(answers)).map((at) => Number(at) - began);
  };
  const measured = async (what, count, files) => {
    const [each, last] = [[], []];
    for (let round = -2; round < count; round++) {
      const text = `${what} ${round}`;
      save(text);
      for (const one of files) appendFileSync(join(skill, one), text);
      const times = await pushed(text, files);
      if (round >= 0) each.push(...times);
      if (round >= 0) last.push(Math.max(...times));
      await sleep(200);
    }
    return {
      what,
      "one host, p50 ms": quantile(each, 0.5),
      "one host, p99 ms": quantile(each, 0.99),
      "all hosts, p50 ms": quantile(last, 0.5),
      each,
      last,
    };
  };
  const small = await measured("a saved skill of 1 KB", saves, []);
  // It cannot be compressed.
  writeFileSync(join(skill, "data.bin"), randomBytes(1_000_000));
  const large = await measured("a skill of 1 MB", 10, ["data.bin"]);
  table([small, large].map(({ each: _, last: __, ...row }) => row));
  goal("a save answers on each host, p99", small["one host, p99 ms"], 150, "ms");
  goal("a skill of 1 MB answers on all hosts, p50", large["all hosts, p50 ms"], 1_000, "ms");
  await catalog[Symbol.asyncDispose]();
  await end(...followers);
}

function sessionHost(servers, folder) {
  const plugins = [{ use: "skillhost/plugins/nats", config: { servers, sessions: true } }];
  return { plugins, skillDirectories: [], workingDirectory: folder, watch: false, logLevel: "error" };
}

async function sessionMoves(servers, base, children) {
  const moves = 5;
  title(`A session moves when its host is killed (${moves} times each, a lease of 3 s)`);
  const { createHost, approveAll } = await built("index.js");
  const rows = [];
  for (const bytes of [20_000, 17_000_000]) {
    const times = [];
    const used = [];
    for (let move = 0; move < moves; move++) {
      const owner = await start(children, "owner", servers, base, String(bytes));
      const host = await createHost(sessionHost(servers, base));
      await host.listSessions();
      owner.kill("SIGKILL");
      const [began, cpu] = [performance.now(), process.cpuUsage()];
      await host.resumeSession(owner.line, { onPermissionRequest: approveAll });
      times.push(performance.now() - began);
      const { user, system } = process.cpuUsage(cpu);
      used.push((user + system) / 1_000);
      await host.close();
    }
    const row = { "log, bytes": bytes, "p50 ms": quantile(times, 0.5), "most ms": Math.max(...times), "processor ms": quantile(used, 0.5) };
    rows.push(row);
  }
  table(rows);
  goal("a session of 17 MB moves, the slowest", rows[1]["most ms"], 5_000, "ms");
}

async function rollingRestart(servers, base, children) {
  title("Rolling restart by SIGTERM under load: three hosts with 8 calls each at once, two workers");
  const startWorker = () => start(children, "worker", servers, workerSkills(base));
  const startCaller = () => start(children, "caller", servers, base);
  const workers = [await startWorker(), await startWorker()];
  const callers = [await startCaller(), await startCaller(), await startCaller()];
  let [made, failed, restarts] = [0, 0, 0];
  const stop = async (caller) => {
    const said = caller.next();
    caller.kill("SIGTERM");
    const counts = JSON.parse(await said);
    made += counts.made;
    failed += counts.failed;
    await caller.ended;
  };
  for (let round = 0; round < 2; round++) {
    for (const at of workers.keys()) {
      const next = await startWorker();
      workers[at].kill("SIGTERM");
      await workers[at].ended;
      workers[at] = next;
      restarts++;
    }
    for (const at of callers.keys()) {
      const next = await startCaller();
      await stop(callers[at]);
      callers[at] = next;
      restarts++;
    }
  }
  for (const caller of callers) await stop(caller);
  await end(...workers);
  table([{ restarts, calls: made, failed }]);
  goal("failed calls", failed, 0, "calls");
}

async function end(...some) {
  for (const child of some) child.kill("SIGKILL");
  await Promise.all(some.map((child) => child.ended));
}
