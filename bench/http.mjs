// Serving MCP over HTTP to fifty clients at once, beside servers of the official SDK (both lines) and FastMCP: three tools that compute,
// fetch a page and keep values. The same raw clients drive all servers, in turn. The last row is the floor: Node's HTTP server with the
// tools and without MCP.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openConnection } from "./support/http-client.mjs";
import { jsonSchemaOf, workload } from "./support/http-workload.mjs";
import { median, quantile } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { tempFolder } from "./support/skills.mjs";

const clientCount = 50;
const callsPerRound = 3000;
const rounds = 5;
const warmUp = 1;

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const hasFastMcp = existsSync(new URL("peers/node_modules/fastmcp", import.meta.url));
if (!hasFastMcp) console.log("FastMCP is skipped: it is not installed (npm ci --ignore-scripts --prefix bench/peers).");

const page = createServer((_request, response) => response.end("A page."));
await new Promise((resolve) => page.listen(0, "127.0.0.1", resolve));
const pageUrl = `http://127.0.0.1:${page.address().port}/`;

const place = tempFolder();
writeWorkloadSkill(join(place.base, "served"));
const servers = [
  { name: "skillhost mcp --http", args: [file("peers/skillhost-http.mjs"), join(place.base, "served")] },
  { name: "SDK 2, McpServer, sessions", args: [file("peers/sdk2-http.mjs")] },
  { name: "SDK 1, low-level Server, sessions", args: [file("peers/sdk1-http.mjs")] },
  ...(hasFastMcp ? [{ name: "FastMCP", args: [file("peers/fastmcp-http.mjs")], stderr: "ignore" }] : []),
  { name: "bare Node server, no MCP", args: [file("peers/bare-http.mjs")] },
];
for (const server of servers) Object.assign(server, { rates: [], costs: [], latencies: [], errors: 0 }, await start(server));
for (const server of servers) server.clients = await Promise.all(Array.from({ length: clientCount }, () => connect(server.url)));
for (let round = -warmUp; round < rounds; round++) for (const server of servers) await measure(server, round >= 0);

title(
  `Calls over HTTP by ${clientCount} clients, three tools in turn (${rounds} rounds of ${callsPerRound.toLocaleString("en-US")} calls each)`,
);
const [ours, official] = servers;
const floor = servers.at(-1);
table(
  servers.map((server) => ({
    server: server.name,
    "median calls/s": median(server.rates),
    "ours to it": ratio(median(ours.rates), median(server.rates)),
    "CPU µs a call": median(server.costs),
    "p50 ms": quantile(server.latencies, 0.5),
    "p99 ms": quantile(server.latencies, 0.99),
    "RSS MB": residentMegabytes(server.process.pid),
    errors: server.errors,
  })),
);
const share = median(ours.rates) / median(official.rates);
console.log(`${share >= 3 ? "met   " : "MISSED"}  calls/s: ${share.toFixed(2)} times the official SDK's server, goal 3 or more`);
const possible = median(official.costs) / median(floor.costs);
console.log(
  `By processor time a call: ${ratio(median(official.costs), median(ours.costs))} of the official server's; the bare server would reach ${possible.toFixed(2)}×.`,
);
goal("p99, to the official SDK's server", quantile(ours.latencies, 0.99) / quantile(official.latencies, 0.99), 1, "×");

for (const { process: child, clients } of servers) {
  for (const client of clients) client.close();
  child.kill();
}
page.close();
place.remove();

async function measure(server, counts) {
  let next = 0;
  const used = processorMicroseconds(server.process.pid);
  const begin = performance.now();
  await Promise.all(
    server.clients.map(async (client) => {
      while (next < callsPerRound) {
        const { name, args, expected } = callOf(next++);
        const sent = performance.now();
        const text = await client.call(name, args).catch((error) => error);
        if (counts) server.latencies.push(performance.now() - sent);
        if (typeof text !== "string" || (expected !== undefined && text !== expected)) server.errors++;
      }
    }),
  );
  if (!counts) return;
  server.rates.push(callsPerRound / ((performance.now() - begin) / 1000));
  server.costs.push((processorMicroseconds(server.process.pid) - used) / callsPerRound);
}

function callOf(n) {
  const calls = [
    { name: "digest", args: { text: `text ${n}` } },
    { name: "fetch_page", args: { url: pageUrl }, expected: "A page." },
    { name: "keep_value", args: { key: `key ${n}`, value: `value ${n}` } },
  ];
  return calls[n % calls.length];
}

/** Starts a server's process and waits for its address. */
async function start({ args, stderr = "inherit" }) {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", stderr] });
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('{"url":')) return { process: child, ...JSON.parse(line) };
  }
  throw new Error(`${args[0]} ended without an address.`);
}

/** A client of revision 2025-11-25 with a session and one connection of its own. */
async function connect(url) {
  const connection = openConnection(url);
  const headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
  let id = 0;
  const send = (message) => connection.send(JSON.stringify({ jsonrpc: "2.0", ...message }), headers);
  const ask = async (method, params) => {
    const response = await send({ id: ++id, method, params });
    const { status, text } = response;
    const json = text.startsWith("{")
      ? text
      : text
          .split("\n")
          .findLast((line) => line.startsWith("data: {"))
          ?.slice(6);
    if (status !== 200 || json === undefined) throw new Error(`HTTP ${status}: ${text}`);
    const message = JSON.parse(json);
    if (message.error !== undefined) throw new Error(message.error.message);
    return { response, result: message.result };
  };
  const { response } = await ask("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "bench", version: "1.0.0" },
  });
  Object.assign(headers, { "Mcp-Session-Id": response.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25" });
  await send({ method: "notifications/initialized" });
  return {
    call: async (name, args) => {
      const { result } = await ask("tools/call", { name, arguments: args });
      if (result.isError === true) throw new Error(result.content[0].text);
      return result.content[0].text;
    },
    close: () => connection.close(),
  };
}

/** The same tools as a skill: its module imports what they run. */
function writeWorkloadSkill(folder) {
  mkdirSync(join(folder, "workload", "tools"), { recursive: true });
  const own = join(folder, "workload", "tools", "_workload.mjs");
  writeFileSync(own, readFileSync(file("support/http-workload.mjs")));
  writeFileSync(join(folder, "workload", "skill.json"), JSON.stringify({ name: "workload", description: "The tools of a benchmark." }));
  const definitions = workload.map((tool, index) => {
    const { name, description } = tool;
    const parts = `description: ${JSON.stringify(description)}, parameters: ${JSON.stringify(jsonSchemaOf(tool))}`;
    return `  defineTool(${JSON.stringify(name)}, { ${parts}, handler: workload[${index}].run }),`;
  });
  const lines = ['import { defineTool } from "skillhost";', 'import { workload } from "./_workload.mjs";', "export default ["];
  writeFileSync(join(folder, "workload", "tools", "workload.mjs"), [...lines, ...definitions, "];", ""].join("\n"));
}

function residentMegabytes(pid) {
  if (process.platform !== "linux") return undefined;
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(kilobytes) / 1024;
}

/** The processor time of a process so far. */
function processorMicroseconds(pid) {
  if (process.platform !== "linux") return Number.NaN;
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  // Fields 14 and 15 in ticks of 10 ms.
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}
