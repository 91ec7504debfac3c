// A server for tests of hosts and sessions: `node hosted-server.mjs <name> [silent]`. Tools: who, echo, meta, env, sample (asks
// a model), confirm (asks the user), report (progress and a log line), fail, grow (adds a tool), change (changes the description of echo).
const [, , name = "hosted", habit] = process.argv;
const write = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (value) => ({ content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }] });
const answer = (id, value) => write({ id, result: text(value) });
const listChanged = () => write({ method: "notifications/tools/list_changed" });
const asked = new Map();
let question = 0;

function ask(id, method, params) {
  const own = `ask-${++question}`;
  asked.set(own, ({ result, error }) => answer(id, error === undefined ? result : { refused: error.message }));
  write({ id: own, method, params });
}

const object = { type: "object", properties: {} };
const echo = {
  name: "echo",
  description: "Says it again.",
  inputSchema: { ...object, properties: { text: { type: "string" } }, required: ["text"] },
};
const definitions = [
  echo,
  ...["who", "meta", "env", "sample", "confirm", "report", "fail", "grow", "change"].map((tool) => ({ name: tool, inputSchema: object })),
];

const tools = {
  who: (id) => answer(id, { name, pid: process.pid, cwd: process.cwd() }),
  echo: (id, { text: said }) => answer(id, said),
  meta: (id, _args, meta) => answer(id, meta),
  env: (id) => answer(id, { ...process.env }),
  sample: (id) =>
    ask(id, "sampling/createMessage", {
      messages: [{ role: "user", content: { type: "text", text: "Name a colour." } }],
      systemPrompt: "Be brief.",
      maxTokens: 10,
    }),
  confirm: (id) =>
    ask(id, "elicitation/create", { message: "Sure?", requestedSchema: { type: "object", properties: { ok: { type: "boolean" } } } }),
  report: (id, _args, { progressToken }) => {
    write({ method: "notifications/progress", params: { progressToken, progress: 1, total: 2, message: "half" } });
    write({ method: "notifications/message", params: { level: "warning", data: "nearly full" } });
    write({ method: "notifications/progress", params: { progressToken, progress: 2, total: 2 } });
    answer(id, "reported");
  },
  fail: (id) => write({ id, result: { ...text("It is broken."), isError: true } }),
  grow: (id) => {
    definitions.push({ name: "grown", inputSchema: object });
    tools.grown = (call) => answer(call, "grown");
    answer(id, "ok");
    listChanged();
  },
  change: (id) => {
    echo.description = "Says it again, with a new description.";
    answer(id, "ok");
    listChanged();
  },
};

const methods = {
  initialize: (id, { protocolVersion }) => {
    if (habit === "silent") return;
    const capabilities = { tools: { listChanged: true }, logging: {} };
    write({ id, result: { protocolVersion, capabilities, serverInfo: { name, version: "1" }, instructions: `I am ${name}.` } });
  },
  "tools/list": (id) => write({ id, result: { tools: definitions } }),
  "tools/call": (id, { name: tool, arguments: args = {}, _meta = {} }) => tools[tool](id, args, _meta),
  "logging/setLevel": (id) => write({ id, result: {} }),
  ping: (id) => write({ id, result: {} }),
};

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const { id, method, params = {}, ...reply } of lines.map((line) => JSON.parse(line))) {
    if (method === undefined) asked.get(id)?.(reply);
    else if (methods[method] !== undefined) methods[method](id, params);
    else if (id !== undefined && habit !== "silent") write({ id, error: { code: -32601, message: "Method not found" } });
  }
});
process.stdin.on("end", () => process.exit(0));
