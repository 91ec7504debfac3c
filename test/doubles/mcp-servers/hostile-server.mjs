// A server that attacks its host: `node hostile-server.mjs <attack>`. Its tool `attack` answers each call. The attack is in
// the answer or in the tool definitions.
const [, , attack = ""] = process.argv;
const raw = (text) => process.stdout.write(`${text}\n`);
const send = (message) => raw(JSON.stringify({ jsonrpc: "2.0", ...message }));
const object = { type: "object", properties: {} };
const tool = (more) => ({ name: "attack", description: "Attacks.", inputSchema: object, ...more });

/** Written by hand because JSON.stringify cannot nest that deeply. */
const nested = (depth, open, close, core) => open.repeat(depth) + core + close.repeat(depth);
const deepSchema = () => nested(4_000, '{"type":"object","properties":{"a":', "}}", '{"type":"string"}');
const records = (count) => Array.from({ length: count }, (_, id) => ({ id, name: `record ${id}`, tags: ["x"] }));
const fanOut = () => {
  const $defs = { d0: { type: "string" } };
  for (let i = 1; i < 40; i++) $defs[`d${i}`] = { anyOf: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }] };
  return { type: "object", properties: { a: { $ref: "#/$defs/d39" } }, $defs };
};
const rows = { type: "object", properties: { rows: { type: "array", uniqueItems: true, items: { type: "object" } } } };

const lists = {
  "deep-schema": (id) => raw(`{"jsonrpc":"2.0","id":${id},"result":{"tools":[{"name":"attack","inputSchema":${deepSchema()}}]}}`),
  "many-values": (id) => raw(`{"jsonrpc":"2.0","id":${id},"result":{"tools":[${Array(2_000_000).fill("{}").join()}]}}`),
  "many-tools": (id) =>
    send({ id, result: { tools: records(9_000).map(({ id: n, name }) => ({ name: `t${n}`, description: name, inputSchema: object })) } }),
  "many-entries": (id) => send({ id, result: { tools: [tool()], resources: Array(200_000).fill(0) } }),
  unique: (id) => send({ id, result: { tools: [tool({ outputSchema: rows })] } }),
  "unique-large": (id) => send({ id, result: { tools: [tool({ outputSchema: rows })] } }),
  pattern: (id) =>
    send({ id, result: { tools: [tool({ outputSchema: { type: "object", properties: { text: { pattern: "^(a+)+$" } } } })] } }),
  "fan-out": (id) => send({ id, result: { tools: [tool({ outputSchema: fanOut() })] } }),
};

const structured = {
  unique: () => ({ rows: records(20_000) }),
  "unique-large": () => ({ rows: records(80_000) }),
  pattern: () => ({ text: `${"a".repeat(50_000)}!` }),
  "fan-out": () => ({ a: 1 }),
};

const answers = {
  initialize: (id) =>
    send({ id, result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "hostile", version: "1" } } }),
  "tools/list": (id) => (lists[attack] ?? ((own) => send({ id: own, result: { tools: [tool()] } })))(id),
  "tools/call": (id) => {
    if (attack === "deep-question")
      raw(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"a":${nested(4_000, "[", "]", "1")}}}`);
    if (attack === "deep-notice")
      raw(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${nested(4_000, "[", "]", "1")}}}`);
    if (attack === "deep-answer")
      return raw(`{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":${nested(4_000, '{"a":', "}", "1")}}}`);
    send({ id, result: { content: [{ type: "text", text: "done" }], structuredContent: structured[attack]?.() } });
  },
};

let text = "";
process.stdin.on("data", (chunk) => {
  text += chunk;
  const lines = text.split("\n");
  text = lines.pop();
  for (const line of lines.filter((each) => each !== "")) {
    const { id, method } = JSON.parse(line);
    if (id === undefined || method === undefined) continue;
    if (answers[method] !== undefined) answers[method](id);
    else send({ id, error: { code: -32601, message: "unknown" } });
  }
});
process.stdin.on("end", () => process.exit(0));
