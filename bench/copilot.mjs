// Serving clients of the Copilot SDK beside the official runtime, where that is installed: calls of tools, sessions with
// many tools and skills, starting, memory, and how soon a saved skill is there. One client and one model for both, in turn.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { built } from "./support/built.mjs";
import {
  bare,
  environmentOf,
  hasOfficial,
  official,
  ours,
  Runtime,
  runtimes,
  startModel,
  workingFolder,
} from "./support/copilot-runtime.mjs";
import { median, quantile } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { tempFolder } from "./support/skills.mjs";

const roundsPerTurn = 25;
const turns = 12;
/** The official runtime takes so much longer that a third of the turns says enough. */
const theirTurns = 4;
const officialClient = new URL("./peers/copilot/node_modules/@github/copilot-sdk/dist/index.js", import.meta.url).href;

await built("base/package-root.js");
if (!hasOfficial) {
  console.log("The official runtime is skipped: it is not installed (npm install --ignore-scripts --prefix bench/peers/copilot).");
}
const place = tempFolder();
const model = await startModel();
const echoServer = [fileURLToPath(new URL("peers/sdk1-echo.mjs", import.meta.url)), "1"];

await measureCalls();
await measureCreating();
await measureStarting();
await measureFirstRequest();
await measureListing();
await measureEditing();
await measureStopping();
model.close();
place.remove();

function start(which) {
  return new Runtime(which, { base: baseOf(which), modelUrl: model.url });
}

function baseOf(which) {
  return join(place.base, `${which === ours ? "ours" : "theirs"}-${process.hrtime.bigint()}`);
}

async function measureCalls() {
  title(`A tool call, from the model's answer to its next request, ms (${turns} turns of ${roundsPerTurn} calls each)`);
  const own = await serverTime();
  const tool = {
    name: "look",
    description: "Looks something up.",
    parameters: { type: "object", properties: { text: { type: "string" } } },
  };
  const mcpServers = { box: { type: "local", command: process.execPath, args: echoServer, tools: ["*"] } };
  const kinds = [
    { what: "a client's tool", options: { tools: [{ ...tool, skipPermission: true }] }, call: "look" },
    { what: "with permission and hooks", options: { tools: [tool], hooks: true }, call: "look" },
    { what: "an MCP server's, over stdio", options: { mcpServers }, call: "box-echo", isAllowed: true },
  ];
  const rows = [];
  for (const { what, options, call, isAllowed } of kinds) {
    const sides = await Promise.all(runtimes.map(async (which) => ({ which, runtime: start(which), samples: [] })));
    for (const { runtime } of sides) await runtime.ping();
    for (let turn = -2; turn < turns; turn++) {
      for (const { which, runtime, samples } of sides) {
        if (which !== ours && turn >= theirTurns) continue;
        const sessionId = await runtime.create(options);
        if (isAllowed) await runtime.request("session.permissions.setApproveAll", { sessionId, enabled: true });
        const gaps = model.begin(roundsPerTurn, call);
        await runtime.say(sessionId, "Continue.");
        if (gaps().length !== roundsPerTurn) throw new Error(`${gaps().length} rounds instead of ${roundsPerTurn}.`);
        if (turn >= 0) samples.push(...gaps());
        await runtime.request("session.destroy", { sessionId });
      }
    }
    for (const { runtime } of sides) await runtime.end();
    for (const { which, samples } of sides) rows.push({ what, which, p50: quantile(samples, 0.5), p99: quantile(samples, 0.99) });
  }
  table(rows.map(({ what, which, p50, p99 }) => ({ call: what, runtime: which.name, "p50 ms": p50, "p99 ms": p99 })));
  console.log(`The MCP server's own time for such a call, beside a client with nothing in it but JSON: ${own.toFixed(2)} ms.`);
  const [plain, gated, remote] = rows.filter(({ which }) => which === ours);
  goal("a call of a client's tool, p50", plain.p50, 2, "ms");
  goal("a call of a client's tool, p99", plain.p99, 5, "ms");
  goal("a call with permission and hooks, p50", gated.p50, 3, "ms");
  goal("a call of an MCP server's tool over the server's own time, p50", remote.p50 - own, 1.5, "ms");
}

/** What a call of the MCP server takes with nothing between. */
async function serverTime() {
  const child = spawn(process.execPath, echoServer, { stdio: ["pipe", "pipe", "ignore"] });
  let answered = () => {};
  createInterface({ input: child.stdout }).on("line", () => answered());
  const request = (method, params) =>
    new Promise((resolve) => {
      answered = resolve;
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })}\n`);
    });
  await request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bench", version: "1" } });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  const samples = [];
  for (let count = -50; count < 300; count++) {
    const begin = performance.now();
    await request("tools/call", { name: "echo", arguments: { text: "hello" } });
    if (count >= 0) samples.push(performance.now() - begin);
  }
  child.kill();
  return median(samples);
}

async function measureCreating() {
  title("session.create, ms");
  const tools = Array.from({ length: 1000 }, (_, index) => ({
    name: `tool_${index}`,
    description: `Looks up the records of ledger ${index}. Use it for questions about that ledger.`,
    parameters: { type: "object", properties: { query: { type: "string", description: "What to look for." } }, required: ["query"] },
  }));
  const skills = join(place.base, "many-skills");
  writeSkills(skills, 1000);
  const rows = [];
  for (const which of runtimes) {
    const times = { tools: [], first: [], skills: [], megabytes: [] };
    for (let process = 0; process < 3; process++) {
      const runtime = start(which);
      await runtime.ping();
      await runtime.create();
      times.first.push(await timeOfCreate(runtime, { skillDirectories: [skills] }));
      for (let count = 0; count < 4; count++) {
        times.skills.push(await timeOfCreate(runtime, { skillDirectories: [skills] }));
        times.tools.push(await timeOfCreate(runtime, { tools }));
      }
      const sessionId = await runtime.create({ skillDirectories: [skills] });
      const { skills: listed } = await runtime.request("session.skills.list", { sessionId });
      if (listed.length < 1000) throw new Error(`${listed.length} skills instead of 1,000.`);
      await runtime.end();
      times.megabytes.push(await megabytesWithSkills(which, skills));
    }
    rows.push({ which, times });
  }
  table(
    rows.map(({ which, times }) => ({
      runtime: which.name,
      "1,000 tools": median(times.tools),
      "1,000 skills, first": median(times.first),
      "1,000 skills, again": median(times.skills),
      "RSS with 1,000 skills, MB": median(times.megabytes),
    })),
  );
  const [{ times }] = rows;
  goal("a session with 1,000 tools", median(times.tools), 60, "ms");
  goal("a session with 1,000 skills before its first use", median(times.first), 40, "ms");
  goal("RSS with 1,000 skills", median(times.megabytes), 110, "MB");
}

async function timeOfCreate(runtime, options) {
  const begin = performance.now();
  const sessionId = await runtime.create(options);
  const took = performance.now() - begin;
  await runtime.request("session.destroy", { sessionId });
  return took;
}

/** Of a process with one session that has them, and nothing else before. */
async function megabytesWithSkills(which, skills) {
  const runtime = start(which);
  await runtime.ping();
  const sessionId = await runtime.create({ skillDirectories: [skills] });
  await runtime.request("session.skills.list", { sessionId });
  const megabytes = runtime.residentMegabytes;
  await runtime.end();
  return megabytes;
}

async function measureStarting() {
  title("From spawn to the answer to a first ping, ms");
  const sides = [ours, bare, ...(hasOfficial ? [official] : [])].map((which) => ({ which, times: [], megabytes: [] }));
  for (let round = -1; round < 11; round++) {
    for (const { which, times, megabytes } of sides) {
      const begin = performance.now();
      const runtime = start(which);
      await runtime.ping();
      if (round >= 0) times.push(performance.now() - begin);
      if (round >= 0) megabytes.push(runtime.residentMegabytes);
      await runtime.end();
    }
  }
  const [us, least] = sides;
  table(
    sides.map(({ which, times, megabytes }) => ({
      runtime: which.name,
      "median ms": median(times),
      "least ms": Math.min(...times),
      "to the bare server": ratio(median(times), median(least.times)),
      "RSS, MB": median(megabytes),
    })),
  );
  goal("spawn to ping, to a bare server", median(us.times) / median(least.times), 1.6, "×");
  goal("RSS at ping", median(us.megabytes), 80, "MB");
}

async function measureFirstRequest() {
  title("From spawn to a first session and to its first request to the model, ms (11 processes each, in turn)");
  const sides = runtimes.map((which) => ({ which, creates: [], sessions: [], requests: [] }));
  for (let round = -1; round < 11; round++) {
    for (const { which, creates, sessions, requests } of sides) {
      model.begin(0, "");
      const begin = performance.now();
      const runtime = start(which);
      await runtime.ping();
      const connected = performance.now();
      const sessionId = await runtime.create();
      const created = performance.now();
      const requested = model.nextRequest();
      await runtime.request("session.send", { sessionId, prompt: "Hi" });
      const took = (await requested) - begin;
      await runtime.end();
      if (round < 0) continue;
      creates.push(created - connected);
      sessions.push(created - begin);
      requests.push(took);
    }
  }
  table(
    sides.map(({ which, creates, sessions, requests }) => ({
      runtime: which.name,
      "first session.create": median(creates),
      "spawn to session": median(sessions),
      "spawn to request": median(requests),
      "least to request": Math.min(...requests),
    })),
  );
  const [us, they] = sides;
  goal("the first session.create", median(us.creates), 80, "ms");
  if (they === undefined) return;
  const waited = median(they.requests) - median(they.sessions);
  const times = median(us.requests) / median(they.requests);
  // A wait for something outside, such as a network that does not answer, would decide the ratio.
  if (waited > 1000)
    console.log(`Not decided: the official runtime waited ${waited.toFixed(0)} ms before its request (${times.toFixed(2)} ×).`);
  else goal("spawn to the first request, to the official runtime", times, 0.7, "×");
}

async function measureListing() {
  title("The skills of a session with 1,000 SKILL.md, ms (5 processes each, in turn)");
  const sides = runtimes.map((which) => ({ which, firsts: [], reloads: [] }));
  for (let round = 0; round < 5; round++) {
    for (const { which, firsts, reloads } of sides) {
      const folder = join(place.base, `listed-${which === ours ? "ours" : "theirs"}`);
      writeSkills(folder, 1000);
      const runtime = start(which);
      await runtime.ping();
      const sessionId = await runtime.create({ skillDirectories: [folder] });
      const begin = performance.now();
      await checkListed(runtime, sessionId, "");
      firsts.push(performance.now() - begin);
      for (let save = 0; save < 5; save++) {
        const mark = ` (round ${round}, save ${save})`;
        writeFileSync(skillFile(folder, save), skillText(save, mark));
        const saved = performance.now();
        await runtime.request("session.skills.reload", { sessionId });
        await checkListed(runtime, sessionId, mark);
        reloads.push(performance.now() - saved);
      }
      await runtime.end();
    }
  }
  table(
    sides.map(({ which, firsts, reloads }) => ({
      runtime: which.name,
      "first skills.list": median(firsts),
      "in the first process": firsts[0],
      "reload + list, one changed": median(reloads),
    })),
  );
  const [us, they] = sides;
  if (they === undefined) return;
  goal("the first skills.list of 1,000, to the official runtime", median(us.firsts) / median(they.firsts), 1, "×");
  goal("reload + list with one of 1,000 changed, to the official runtime", median(us.reloads) / median(they.reloads), 0.5, "×");
}

async function checkListed(runtime, sessionId, mark) {
  const { skills } = await runtime.request("session.skills.list", { sessionId });
  if (skills.length < 1000) throw new Error(`${skills.length} skills instead of 1,000.`);
  if (!skills.some(({ description }) => description.includes(mark))) throw new Error(`The change${mark} is missing.`);
}

async function measureEditing() {
  title("From saving a skill until an attached session is notified, ms (60 saves)");
  const rows = [];
  for (const which of runtimes) {
    const folder = join(place.base, `edited-${which === ours ? "ours" : "theirs"}`);
    writeSkills(folder, 20);
    const runtime = start(which);
    await runtime.ping();
    const sessionId = await runtime.create({ skillDirectories: [folder] });
    model.begin(0, "");
    await runtime.say(sessionId, "Hi");
    const times = [];
    for (let save = -3; save < 60; save++) {
      const announced = runtime.event(
        ({ type, data }) => type === "session.skills_loaded" && JSON.stringify(data).includes(`(save ${save})`),
      );
      const begin = performance.now();
      writeFileSync(skillFile(folder, (save + 3) % 20), skillText((save + 3) % 20, ` (save ${save})`));
      if (which !== ours) await runtime.request("session.skills.reload", { sessionId });
      await announced;
      if (save >= 0) times.push(performance.now() - begin);
    }
    await runtime.end();
    rows.push({ which, times });
  }
  table(
    rows.map(({ which, times }) => ({
      runtime: which === ours ? which.name : `${which.name}, asked to reload`,
      "p50 ms": quantile(times, 0.5),
      "p99 ms": quantile(times, 0.99),
    })),
  );
  goal("a saved skill in an attached session, p50", quantile(rows[0].times, 0.5), 25, "ms");
}

/** With the official client itself, which first ends its sessions and then the process. */
async function measureStopping() {
  title("client.stop() with an open session that has talked, ms (7 processes each, in turn)");
  if (!hasOfficial) return console.log("Skipped: the official client is not installed.");
  const { CopilotClient, RuntimeConnection } = await import(officialClient);
  const rows = ["stdio", "TCP"].flatMap((transport) => runtimes.map((which) => ({ transport, which, times: [] })));
  for (let round = 0; round < 7; round++) {
    for (const { transport, which, times } of rows) {
      const base = baseOf(which);
      const path = which === ours ? which.args[0] : which.command;
      const connection = transport === "TCP" ? RuntimeConnection.forTcp({ path }) : RuntimeConnection.forStdio({ path });
      const client = new CopilotClient({
        connection,
        workingDirectory: workingFolder(base),
        env: environmentOf(which, { base, modelUrl: model.url }),
        gitHubToken: "token-of-the-bench",
        logLevel: "error",
      });
      model.begin(0, "");
      const session = await client.createSession({ model: "claude-sonnet-4.5", onPermissionRequest: () => ({ kind: "approve-once" }) });
      await session.sendAndWait({ prompt: "Hi" });
      const begin = performance.now();
      const errors = await client.stop();
      times.push(performance.now() - begin);
      if (errors.length > 0) throw new Error(`${which.name} over ${transport} did not stop: ${errors[0].message}`);
    }
  }
  table(
    rows.map(({ transport, which, times }) => ({ transport, runtime: which.name, "p50 ms": median(times), "most ms": Math.max(...times) })),
  );
  for (const { transport, which, times } of rows)
    if (which === ours) goal(`client.stop() over ${transport}, p50`, median(times), 200, "ms");
}

function writeSkills(folder, count) {
  if (existsSync(folder)) return;
  for (let index = 0; index < count; index++) {
    mkdirSync(join(folder, nameOf(index)), { recursive: true });
    writeFileSync(skillFile(folder, index), skillText(index, ""));
  }
}

function nameOf(index) {
  return `bench-skill-${index}`;
}

function skillFile(folder, index) {
  return join(folder, nameOf(index), "SKILL.md");
}

function skillText(index, mark) {
  const body = "Look before you answer, and name the record's number in the answer.\n".repeat(20);
  return `---\nname: ${nameOf(index)}\ndescription: Answers questions about ledger ${index}${mark}.\n---\n\n# Ledger ${index}\n\n${body}`;
}
