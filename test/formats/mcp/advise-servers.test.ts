import { expect, test } from "vitest";
import { adviseServers } from "../../../src/formats/mcp/mcp-dialects.ts";
import type { McpServerSpec } from "../../../src/formats/mcp/mcp-server-spec.ts";
import { parseServerSpec } from "../../../src/formats/mcp/parse-server-spec.ts";

const host = { MY_API_KEY: "sk-secret", PATH: "/bin", lower_case: "v" };

function specOf(name: string, value: object): McpServerSpec {
  const { server } = parseServerSpec(name, value, { dialect: "session" });
  if (server.state !== "ready") throw new Error(server.state);
  return server.spec;
}

const advise = (...values: readonly object[]) =>
  adviseServers(
    values.map((value, index) => specOf(`s${index}`, value)),
    host,
  );
const codes = (...values: readonly object[]) => advise(...values).map(({ severity, code, source }) => `${severity} ${code} ${source}`);

test("an empty list of tools is probably not meant", () => {
  expect(codes({ command: "x", tools: [] }, { command: "x" }, { url: "https://a.example/", tools: ["a"] })).toEqual([
    "warning ADVICE_MCP_TOOLS_NONE s0",
  ]);
});

test("the name of a variable of the host is not its value", () => {
  expect(codes({ command: "x", env: { API_KEY: "MY_API_KEY", B: "lower_case", MODE: "production" } })).toEqual([
    "warning ADVICE_MCP_ENV_NAME s0",
    "warning ADVICE_MCP_ENV_NAME s0",
  ]);
  const [advice] = advise({ command: "x", env: { API_KEY: "MY_API_KEY" } });
  expect(advice?.message).toBe(
    'MCP server "s0": "env" → "API_KEY" is the name of the variable MY_API_KEY, not its value. Use the value, such as process.env.MY_API_KEY.',
  );
  expect(codes({ command: "x", env: { A: "constructor" }, args: ["PATH"] })).toEqual([]);
});

test.each<[object, string]>([
  [{ command: "${TOOL}" }, '"command"'],
  [{ command: "x", args: ["a", "--key=${KEY}"] }, '"args" → element 2'],
  [{ command: "x", env: { A: "${MY_API_KEY}" } }, '"env" → "A"'],
  [{ command: "x", cwd: "${workspaceFolder}" }, '"cwd"'],
  [{ url: "https://${HOST}/mcp" }, '"url"'],
  [{ url: "https://a.example/", headers: { Authorization: "Bearer ${TOKEN}" } }, '"headers" → "Authorization"'],
  [{ url: "https://a.example/", headers: { Authorization: "Bearer $TOKEN" } }, '"headers" → "Authorization"'],
])("a literal variable is reported: %j", (value, place) => {
  expect(advise(value)).toMatchObject([
    { code: "ADVICE_MCP_LITERAL_VARIABLE", message: expect.stringContaining(`${place} contains a variable`) },
  ]);
});

test("ordinary dollar signs and disabled servers are not reported", () => {
  expect(codes({ command: "sh", args: ["-c", "echo $5 $$ ${"], env: { A: "cost: $12" } })).toEqual([]);
  expect(codes({ command: "${X}", tools: [], disabled: true })).toEqual([]);
});

test("advice about servers shows names and no values", () => {
  const secret = "hunter2";
  const found = advise(
    { command: "x", env: { A: `${secret}\${X}` }, args: [`${secret}\${X}`] },
    { url: `https://a.example/${secret}\${X}`, headers: { B: `${secret} $TOKEN` } },
  );
  expect(found).toHaveLength(4);
  expect(JSON.stringify(found)).not.toContain(secret);
});
