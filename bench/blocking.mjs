// How long the event loop is held at a time while a server, or a model, gives as much as it may.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { built } from "./support/built.mjs";
import { goal, table, title } from "./support/report.mjs";
import { tempFolder } from "./support/skills.mjs";

const rounds = 4;
const goalMs = 50;
// Of its own, so that nothing of the server was seen before: that is when a list takes longest.
const home = tempFolder();
process.env.SKILLHOST_HOME = home.base;
const { createHost, approveAll } = await built("index.js");
const script = fileURLToPath(new URL("../test/doubles/mcp-servers/hostile-server.mjs", import.meta.url));
const rows = { type: "array", uniqueItems: true, items: { type: "object" } };
const big = { name: "big", description: "Takes rows.", parameters: { type: "object", properties: { rows } }, handler: () => "ok" };

title(`Longest time that the event loop is held, ms of this thread's processor time (first call, and the worst of ${rounds - 1} more)`);
const measured = [
  await measureServer("a result of 20,000 records, 1 MB", "unique", "hostile/attack"),
  await measureServer("a result of 80,000 records, 4 MB", "unique-large", "hostile/attack"),
  await measureServer("a schema whose references multiply", "fan-out", "hostile/attack"),
  await measureServer("a list of 9,000 tools, while it is read", "many-tools", undefined),
  await measureArguments("arguments of 250,000 items, not stored", false),
  await measureArguments("arguments of 250,000 items, stored", true),
];
table(measured);
home.remove();
for (const { what, first, later } of measured) goal(what, Math.max(first, later ?? 0), goalMs, "ms");

async function measureServer(what, attack, ref) {
  const host = await createHost({ skillDirectories: [], watch: false });
  // What the SDK does when the first server of a process is connected is not this server's doing.
  const calm = { command: process.execPath, args: [script, "calm"] };
  const session = await host.createSession({ onPermissionRequest: approveAll, mcpServers: { calm } });
  await session.callTool("calm/attack", {});
  const hostile = { command: process.execPath, args: [script, attack] };
  const open = () => host.createSession({ onPermissionRequest: approveAll, mcpServers: { hostile } });
  if (ref === undefined) {
    const first = await longestTurn(async () => until(async (own) => own.mcp.tools("hostile").length > 8_000, await open()));
    await host.close();
    return { what, first, later: undefined };
  }
  const attacked = await open();
  await until(async (own) => own.mcp.tools("hostile").length > 0, attacked);
  const measured = await measureCalls(what, () => attacked.callTool(ref, {}));
  await host.close();
  return measured;
}

async function measureArguments(what, isStored) {
  const place = tempFolder();
  const host = await createHost({ skillDirectories: [], watch: false, ...(isStored && { sessionsDirectory: place.base }) });
  const session = await host.createSession({ onPermissionRequest: approveAll, tools: [big] });
  const args = { rows: Array.from({ length: 250_000 }, (_, id) => ({ id })) };
  const measured = await measureCalls(what, () => session.callTool("big", args));
  await host.close();
  place.remove();
  return measured;
}

async function measureCalls(what, call) {
  const longest = [];
  for (let round = 0; round < rounds; round++) {
    globalThis.gc?.();
    const turn = await longestTurn(async () => {
      const { resultType, textResultForLlm } = await call();
      if (resultType !== "success") throw new Error(`${what}: ${textResultForLlm.slice(0, 200)}`);
    });
    longest.push(turn);
  }
  return { what, first: longest[0], later: Math.max(...longest.slice(1)) };
}

/** Milliseconds of the longest turn while this runs. */
async function longestTurn(run) {
  let longest = 0;
  let isOver = false;
  let last = processorTime();
  const turn = () => {
    longest = Math.max(longest, processorTime() - last);
    last = processorTime();
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await run();
  await new Promise((resolve) => setTimeout(resolve, 50));
  isOver = true;
  return longest;
}

async function until(holds, session) {
  while (!(await holds(session))) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Of this thread where the system has it, else of the process with its other threads. */
function processorTime() {
  try {
    return Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}
