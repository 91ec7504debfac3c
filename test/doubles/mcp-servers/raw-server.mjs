// A server of the old protocol, written by hand. Its first argument selects a behaviour. Its tools: echo, env, wait,
// big (bytes), pid (its own and its child's), die (exit code), ask (roots), progress.
import { spawn } from "node:child_process";

const habit = process.argv[2] ?? "plain";
const write = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const answer = (id, result) => write({ id, result });
const text = (value) => ({ content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }] });
const waiting = new Map();
let child;

if (habit === "exit-at-once") {
  process.stderr.write("config missing: set a token\n");
  process.exit(3);
}
if (habit === "fork" || habit === "stubborn") {
  // The child outlives its parent unless the whole process group is ended.
  child = spawn(process.execPath, ["-e", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"], { stdio: "ignore" });
}
if (habit === "stubborn") process.on("SIGTERM", () => {});
if (habit === "garbage") setInterval(() => process.stdout.write("Listening on port 3000\n{not json\n[1,2]\n"), 5);
if (habit === "flood") {
  const line = `${"x".repeat(1000)}\n`;
  setInterval(() => {
    for (let count = 0; count < 50; count++) process.stderr.write(line);
  }, 1);
}

const tools = {
  echo: (id, args) => answer(id, text(args)),
  env: (id) => answer(id, text({ ...process.env })),
  wait: (id) => waiting.set(id, "waiting"),
  cancelled: (id) => answer(id, text([...waiting.values()])),
  big: (id, { bytes }) => answer(id, text("x".repeat(bytes))),
  pid: (id) => answer(id, text([process.pid, child?.pid ?? 0])),
  die: (_id, { code }) => {
    process.stderr.write("out of luck\n");
    process.exit(code);
  },
  fail: (id) => write({ id, error: { code: -32050, message: "no such thing", data: { hint: 1 } } }),
  strange: (id) => answer(id, { content: "not a list" }),
  ask: (id, { method, params }) => {
    waiting.set("asked", (reply) => answer(id, text(reply)));
    write({ id: "asked", method, params });
  },
  progress: (id, { times }, meta) => {
    for (let count = 1; count <= times; count++) {
      write({ method: "notifications/progress", params: { progressToken: meta.progressToken, progress: count, total: times } });
    }
    answer(id, text("done"));
  },
  slow: (id, { every, times }, meta) => {
    let count = 0;
    const timer = setInterval(() => {
      write({ method: "notifications/progress", params: { progressToken: meta.progressToken, progress: ++count } });
      if (count < times) return;
      clearInterval(timer);
      answer(id, text("slow but done"));
    }, every);
  },
  change: (id, { times }) => {
    for (let count = 0; count < times; count++) write({ method: "notifications/tools/list_changed" });
    write({
      method: "notifications/message",
      params: { level: "error", logger: "disk", data: "full, password=hunter2 Bearer abcdefghijklmnop" },
    });
    answer(id, text("changed"));
  },
  touch: (id, { uri }) => {
    write({ method: "notifications/resources/updated", params: { uri } });
    answer(id, text("touched"));
  },
};

const methods = {
  initialize: (id, params) => {
    if (habit === "never") return;
    const capabilities = { tools: { listChanged: true }, resources: { subscribe: true }, prompts: {}, logging: {} };
    answer(id, {
      protocolVersion: params.protocolVersion,
      capabilities,
      serverInfo: { name: "raw", version: "1" },
      instructions: "Be kind.",
    });
  },
  ping: (id) => answer(id, {}),
  "tools/list": (id, params) => {
    const names = Object.keys(tools);
    const page = Number(params?.cursor ?? 0);
    if (habit === "endless-list")
      return answer(id, { tools: [{ name: `t${page}`, inputSchema: { type: "object" } }], nextCursor: "again" });
    const list = names.slice(page, page + 5).map((name) => ({ name, inputSchema: { type: "object" } }));
    // Both entries violate the protocol; the client must skip them without failing the rest.
    if (page === 0) list.push({ name: "odd", inputSchema: { type: "string" } }, "no tool at all");
    answer(id, { tools: list, ...(page + 5 < names.length && { nextCursor: String(page + 5) }) });
  },
  "tools/call": (id, params) => {
    if (habit === "exit-mid-call") return process.exit(9);
    tools[params.name](id, params.arguments ?? {}, params._meta ?? {});
  },
  "logging/setLevel": (id) => answer(id, {}),
  "resources/subscribe": (id) => answer(id, {}),
  "resources/unsubscribe": (id, { uri }) => {
    process.stderr.write(`unsubscribed ${uri}\n`);
    answer(id, {});
  },
  "x/echo": (id, params) => answer(id, { params }),
  "notifications/initialized": () => {},
  "notifications/cancelled": (_id, { requestId }) => waiting.set(requestId, "cancelled"),
};

function receive(message) {
  const { id, method, params } = message;
  if (method === undefined) return waiting.get(id)?.(message);
  if (methods[method] !== undefined) return methods[method](id, params);
  if (habit === "exit-on-unknown") process.exit(1);
  if (habit === "stuck-on-unknown") for (;;);
  if (habit === "silent-on-unknown") return;
  if (id !== undefined) write({ id, error: { code: -32601, message: "Method not found" } });
}

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) receive(JSON.parse(line));
});
process.stdin.on("end", () => {
  if (habit !== "stubborn") process.exit(0);
});
