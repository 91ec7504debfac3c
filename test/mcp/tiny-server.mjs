// An MCP server of the era with a handshake, in a few lines, with faults by option:
//   fork      starts a process of its own that does not end when asked to
//   stubborn  does not end either, neither when asked to nor when its input ends
//   exit      writes to stderr and exits with code 3, at once
// `call` of the tool "die" makes it exit with code 9; of "pids" gives its process ids.
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [marker, startsFile, ...manners] = process.argv.slice(2);
const has = (manner) => manners.includes(manner);
const deaf = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('up')";

if (startsFile) appendFileSync(startsFile, `${process.pid}\n`);
if (has("exit")) {
  process.stderr.write("No database at hand.\n");
  process.exit(3);
}
const children = [];
if (has("fork")) {
  // The marker is an argument of the child, too, so that it can be found among all processes.
  const child = spawn(process.execPath, ["-e", deaf, "--", marker], { stdio: ["ignore", "pipe", "ignore"] });
  children.push(child.pid);
  await new Promise((resolve) => child.stdout.once("data", resolve));
}
if (has("stubborn")) {
  process.on("SIGTERM", () => {});
  setInterval(() => {}, 1000);
}

const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "tiny", version: "1" } }),
  "tools/list": () => ({ tools: ["pids", "die"].map((name) => ({ name, inputSchema: { type: "object" } })) }),
  "tools/call": ({ name }) => {
    if (name === "die") process.exit(9);
    return { content: [{ type: "text", text: JSON.stringify([process.pid, ...children]) }] };
  },
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const outcome = answer ? { result: answer(params) } : { error: { code: -32601, message: "Method not found" } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...outcome })}\n`);
});
