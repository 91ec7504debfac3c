// Serving MCP on standard input and output beside a bare server of the official SDK (both lines) and FastMCP, and being
// its client. The same raw client drives all servers, in turn.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { built } from "./support/built.mjs";
import { writeEchoSkill } from "./support/echo-skill.mjs";
import { median, timed } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { tempFolder, writeTextSkills } from "./support/skills.mjs";

const inFlight = 64;
const callsPerRound = 4000;
const rounds = 9;
const warmUp = 2;

const { createHost, approveAll } = await built("index.js");
const bin = fileURLToPath(new URL("../dist/cli/bin.js", import.meta.url));
const peerFile = (name) => fileURLToPath(new URL(`peers/${name}.mjs`, import.meta.url));
const hasFastMcp = existsSync(new URL("peers/node_modules/fastmcp", import.meta.url));
if (!hasFastMcp) console.log("FastMCP is skipped: it is not installed (npm ci --ignore-scripts --prefix bench/peers).");

await measureServing("the SDK's client", connectSdk);
await measureServing("a client with nothing in it but JSON", connect);
await measureListing();
await measureSkillListing(12_725);
await measureConnecting();
await measureHop();

function serversOf(count, base) {
  writeEchoSkill(base, count);
  return [
    { name: "skillhost mcp", args: [bin, "mcp", "--yes", "--skills", base], tool: "echo" },
    { name: "SDK 2, McpServer", args: [peerFile("sdk2-echo"), String(count)], tool: "echo" },
    { name: "SDK 1, low-level Server", args: [peerFile("sdk1-echo"), String(count)], tool: "echo" },
    ...(hasFastMcp ? [{ name: "FastMCP", args: [peerFile("fastmcp-echo"), String(count)], tool: "echo" }] : []),
  ];
}

async function measureServing(client, open) {
  title(
    `Calls per second over stdio by ${client}, ${inFlight} in flight (${rounds} rounds of ${callsPerRound.toLocaleString("en-US")} calls each)`,
  );
  const place = tempFolder();
  const servers = await Promise.all(
    serversOf(1, place.base).map(async (server) => ({ ...server, peer: await open(server.args), rates: [] })),
  );
  for (let round = -warmUp; round < rounds; round++) {
    for (const { peer, tool, rates } of servers) {
      const begin = performance.now();
      await pool(callsPerRound, inFlight, async (n) => {
        const { content } = await peer.request("tools/call", { name: tool, arguments: { text: `message ${n}` } });
        if (content[0].text !== `message ${n}`) throw new Error(`A wrong answer: ${JSON.stringify(content)}`);
      });
      if (round >= 0) rates.push(callsPerRound / ((performance.now() - begin) / 1000));
    }
  }
  await Promise.all(servers.map(({ peer }) => peer.close()));
  place.remove();
  const ours = median(servers[0].rates);
  table(
    servers.map(({ name, rates }) => ({
      server: name,
      "median calls/s": median(rates),
      "most calls/s": Math.max(...rates),
      "ours to it": ratio(ours, median(rates)),
    })),
  );
  atLeast("of the bare SDK 2 server's calls/s", ours / median(servers[1].rates), 1);
  atLeast("of the SDK 1 low-level server's calls/s", ours / median(servers[2].rates), 0.75);
  if (hasFastMcp) atLeast("of FastMCP's calls/s", ours / median(servers[3].rates), 1);
}

async function measureListing() {
  title("Listing 1,000 tools over stdio, ms");
  const place = tempFolder();
  const servers = await Promise.all(
    serversOf(1000, place.base).map(async (server) => ({ ...server, peer: await connect(server.args), times: [] })),
  );
  for (const server of servers) server.first = (await timed(() => listAll(server.peer))).wall;
  for (let round = 0; round < 25; round++)
    for (const { peer: client, times } of servers) times.push((await timed(() => listAll(client))).wall);
  for (const { peer: client } of servers) client.close();
  place.remove();
  table(
    servers.map(({ name, first, times }) => ({
      server: name,
      "first ms": first,
      "median ms": median(times),
      "least ms": Math.min(...times),
      "to SDK 1 low-level": ratio(median(times), median(servers[2].times)),
    })),
  );
  goal("listing 1,000 tools, warm", median(servers[0].times), 10, "ms");
}

async function listAll(client) {
  let [count, cursor] = [0, undefined];
  do {
    const { tools, nextCursor } = await client.request("tools/list", cursor === undefined ? {} : { cursor });
    count += tools.length;
    cursor = nextCursor;
  } while (cursor !== undefined);
  if (count !== 1000) throw new Error(`${count} tools instead of 1,000.`);
}

/** All pages of `skills/list`, in processes that have not read the files of the skills for it before. */
async function measureSkillListing(size) {
  title(`Listing ${size.toLocaleString("en-US")} skills over stdio (skills/list, all pages)`);
  const place = tempFolder();
  writeTextSkills(place.skills, size);
  const rows = [];
  for (let round = 0; round < 3; round++) {
    const client = await connect([bin, "mcp", "--yes", "--skills", place.skills]);
    const before = memoryOf(client.pid);
    const begin = performance.now();
    let [count, pages, cursor] = [0, 0, undefined];
    do {
      const page = await client.request("skills/list", cursor === undefined ? {} : { cursor });
      count += page.skills.length;
      pages++;
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    const wall = performance.now() - begin;
    rows.push({
      round,
      pages,
      ms: wall,
      "RSS before, MB": before.resident,
      "RSS MB": memoryOf(client.pid).resident,
      "most MB": memoryOf(client.pid).most,
    });
    client.close();
    if (count !== size) throw new Error(`${count} skills instead of ${size}.`);
  }
  place.remove();
  table(rows);
  goal("all pages of skills/list", median(rows.map(({ ms }) => ms)), 2000, "ms");
  if (process.platform === "linux") goal("RSS after all pages", median(rows.map((row) => row["RSS MB"])), 400, "MB");
}

function memoryOf(pid) {
  if (process.platform !== "linux") return { resident: Number.NaN, most: Number.NaN };
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const megabytes = (field) => Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)[1]) / 1024;
  return { resident: megabytes("VmRSS"), most: megabytes("VmHWM") };
}

async function measureConnecting() {
  title("Connecting ten servers at once, ms");
  const config = (n) => ({ command: process.execPath, args: [peerFile("sdk1-echo"), String(n + 1)] });
  const times = { bare: [], ours: [] };
  for (let round = 0; round < 5; round++) {
    const begin = performance.now();
    const clients = await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const client = await connect(config(n).args);
        await client.request("tools/list", {});
        return client;
      }),
    );
    times.bare.push(performance.now() - begin);
    for (const client of clients) client.close();
    const place = tempFolder();
    const mcpServers = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`server${n}`, config(n)]));
    const host = await createHost({
      skillDirectories: [],
      watch: false,
      sessionsDirectory: place.base,
      mcpServers,
      mcp: { cacheDirectory: place.base },
    });
    const session = await host.createSession({ persist: false });
    const ownBegin = performance.now();
    await session.ready();
    await until(() => session.listTools().filter(({ source }) => source.kind === "mcp").length === 55);
    times.ours.push(performance.now() - ownBegin);
    await host.close();
    place.remove();
  }
  table([
    { client: "raw, all at the same time (the slowest of them)", "median ms": median(times.bare), "least ms": Math.min(...times.bare) },
    {
      client: "a session of ours",
      "median ms": median(times.ours),
      "least ms": Math.min(...times.ours),
      ratio: ratio(median(times.ours), median(times.bare)),
    },
  ]);
  goal("ten servers, to the slowest of raw clients", median(times.ours) / median(times.bare), 1.1, "×");
}

async function measureHop() {
  title("A call through a session to an MCP server, beside the connection alone, µs");
  const place = tempFolder();
  const { connectServer } = await built("mcp/connection/connect-server.js");
  const { silentLogger } = await built("base/logger.js");
  const args = [peerFile("sdk1-echo"), "1"];
  const host = await createHost({
    skillDirectories: [],
    watch: false,
    sessionsDirectory: place.base,
    mcpServers: { hop: { command: process.execPath, args } },
    mcp: { cacheDirectory: place.base },
  });
  const session = await host.createSession({ persist: false, onPermissionRequest: approveAll });
  await session.ready();
  await until(() => session.listTools().some(({ name }) => name === "hop-echo"));
  const spec = {
    name: "hop",
    type: "stdio",
    command: process.execPath,
    args,
    env: {},
    cwd: undefined,
    tools: undefined,
    timeout: undefined,
    isDisabled: false,
  };
  const connection = await connectServer(spec, { workingDirectory: process.cwd(), log: silentLogger });
  const variants = [
    { name: "connection.callTool", run: (n) => connection.callTool("echo", { text: `m${n}` }), cpu: [], wall: [] },
    { name: "session.callTool", run: (n) => session.callTool("hop-echo", { text: `m${n}` }), cpu: [], wall: [] },
  ];
  const calls = 2000;
  for (let round = -2; round < 11; round++) {
    for (const { run, cpu, wall } of variants) {
      const took = await timed(async () => {
        for (let n = 0; n < calls; n++) await run(n);
      });
      if (round < 0) continue;
      cpu.push((took.cpu / calls) * 1000);
      wall.push((took.wall / calls) * 1000);
    }
  }
  await connection[Symbol.asyncDispose]();
  await host.close();
  place.remove();
  table(variants.map(({ name, cpu, wall }) => ({ call: name, "our CPU µs, median": median(cpu), "wall µs, median": median(wall) })));
  console.log("A call asks for permission here, and a callback gives it.");
  goal("what the session adds, CPU", median(variants[1].cpu) - median(variants[0].cpu), 20, "µs");
}

/** The client that most hosts have: the SDK's first line. */
async function connectSdk(args) {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: "ignore" }));
  return { request: (_method, params) => client.callTool(params), close: () => client.close() };
}

/** A client with nothing in it but JSON and lines. */
async function connect(args) {
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "ignore"] });
  const waiting = new Map();
  let last = 0;
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id, result, error } = JSON.parse(line);
    const wait = waiting.get(id);
    waiting.delete(id);
    if (error) wait?.reject(new Error(error.message));
    else wait?.resolve(result);
  });
  child.once("exit", () => {
    for (const { reject } of waiting.values()) reject(new Error(`${args.join(" ")} ended.`));
  });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const request = (method, params) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      waiting.set(id, { resolve, reject });
      send({ id, method, params });
    });
  await request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bench", version: "1" } });
  send({ method: "notifications/initialized" });
  return { request, pid: child.pid, close: () => child.kill() };
}

async function pool(count, width, run) {
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) await run(next++);
    }),
  );
}

async function until(isTrue) {
  const deadline = performance.now() + 30_000;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error("It did not come to that within 30 s.");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

function atLeast(what, value, limit) {
  console.log(`${value >= limit ? "met   " : "MISSED"}  ${what}: ${value.toFixed(2)}×, goal ${limit}× or more`);
}
