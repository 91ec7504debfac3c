import { expect, test } from "vitest";
import { parseMcpConfig } from "../../../src/formats/mcp/mcp-config.ts";
import { createVariableLookup } from "../../../src/formats/mcp/mcp-dialects.ts";

// One entry for each set of keys and each kind of value that published configurations were found to have.
const environment = { PAT: "p", HOST_URL: "h", GREP_KEY: "g", DB_HOST: "d", GH_PAT: "t" };
const places = { workspace: "/work", home: "/home/me", folder: "/plugin", data: "/data", separator: "/" };
const variables = createVariableLookup({ environment, places });
const local = { type: "stdio", args: [], env: {}, cwd: undefined, tools: undefined, timeout: undefined, isDisabled: false };
const remote = { headers: {}, oauth: undefined, tools: undefined, timeout: undefined, isDisabled: false };
const http = { ...remote, type: "http" };
const url = "https://mcp.example.com/mcp";

const mcpJson = "/p/.mcp.json";
const gemini = "/p/gemini-extension.json";
const vscode = "/p/.vscode/mcp.json";

test.each<[file: string, entry: object, spec: object, codes?: readonly string[]]>([
  [mcpJson, { command: "npx", args: ["tools@1.7.0"] }, { ...local, command: "npx", args: ["tools@1.7.0"] }],
  [mcpJson, { type: "stdio", command: "echo", args: ["fixture"] }, { ...local, command: "echo", args: ["fixture"] }],
  [mcpJson, { command: "uvx", args: ["a==0.2"], env: { K: "${PAT}" } }, { ...local, command: "uvx", args: ["a==0.2"], env: { K: "p" } }],
  [
    mcpJson,
    { command: "npx", args: ["tsx", "${CLAUDE_PLUGIN_ROOT}/src/index.ts"], env: { URL: "${HOST_URL}" } },
    { ...local, command: "npx", args: ["tsx", "/plugin/src/index.ts"], env: { URL: "h" } },
  ],
  [
    "/p/mcp-configs/mcp-servers.json",
    { command: "uvx", args: [], env: { TOKEN: "YOUR_TOKEN_HERE" }, description: "Tracks issues" },
    { ...local, command: "uvx", env: { TOKEN: "YOUR_TOKEN_HERE" } },
    ["MCP_VALUE_EXAMPLE"],
  ],
  [mcpJson, { name: "Memory Bank", description: "Remembers", command: "memory", args: [], env: {} }, { ...local, command: "memory" }],
  [
    mcpJson,
    { command: "npx", args: [], category: "Web", description: "d", complexity: "Low", enabled: false, env: { KEY: "" } },
    { ...local, command: "npx", env: { KEY: "" }, isDisabled: true },
    ["MCP_VALUE_EMPTY", "MCP_KEYS_UNKNOWN"],
  ],
  [
    mcpJson,
    { command: "ruby", args: ["-e", "puts JSON.generate({tools: [{name: 'a'}]})"], enabled: true },
    { ...local, command: "ruby", args: ["-e", "puts JSON.generate({tools: [{name: 'a'}]})"] },
  ],
  [
    mcpJson,
    { type: "stdio", command: "uvx", args: ["--from", "git+https://g.example/s"], _docs: "d", env: {} },
    { ...local, command: "uvx", args: ["--from", "git+https://g.example/s"] },
    ["MCP_KEYS_UNKNOWN"],
  ],
  [
    "/p/mcp.json",
    { type: "local", command: "gh", args: ["aw"], tools: ["compile", "logs"] },
    { ...local, command: "gh", args: ["aw"], tools: ["compile", "logs"] },
  ],
  [
    "/p/mcp/server.json",
    { command: "node", args: ["/abs/index.js"], description: "d", tools: ["log"] },
    { ...local, command: "node", args: ["/abs/index.js"], tools: ["log"] },
  ],
  [vscode, { command: "gh", args: ["aw"], cwd: "${workspaceFolder}" }, { ...local, command: "gh", args: ["aw"], cwd: "/work" }],
  [
    gemini,
    { program: "./dist/index.js", command: "node", args: ["scripts${/}start.js"], cwd: "${extensionPath}" },
    { ...local, command: "node", args: ["scripts/start.js"], cwd: "/plugin" },
    ["MCP_KEYS_UNKNOWN"],
  ],
  [
    gemini,
    { command: "node", args: ["${extensionPath}${/}example.js"], cwd: "${extensionPath}" },
    { ...local, command: "node", args: ["/plugin/example.js"], cwd: "/plugin" },
  ],
  [
    "/p/.codex-plugin/.mcp.json",
    { command: "npx", args: ["--stdio"], env_vars: ["DB_HOST"] },
    { ...local, command: "npx", args: ["--stdio"], env: { DB_HOST: "d" }, cwd: "/p" },
  ],
  [
    mcpJson,
    { command: "node", args: ["./mcp/server.mjs"], cwd: ".", tool_timeout_sec: 900 },
    { ...local, command: "node", args: ["./mcp/server.mjs"], cwd: "/p", timeout: 900_000 },
  ],
  [mcpJson, { type: "http", url }, { ...http, url }],
  [mcpJson, { type: "sse", url: "https://mcp.example.com/sse" }, { ...remote, type: "sse", url: "https://mcp.example.com/sse" }],
  [mcpJson, { type: "streamable-http", url }, { ...http, url }],
  [mcpJson, { url }, { ...http, url }],
  [mcpJson, { url, headers: { "X-Client": "Editor" } }, { ...http, url, headers: { "X-Client": "Editor" } }],
  [mcpJson, { type: "http", url, headers: { Authorization: "${ABSENT:-}" } }, { ...http, url }, ["MCP_VALUE_EMPTY"]],
  [
    mcpJson,
    { type: "http", url, headers: { Authorization: "Bearer ${GREP_KEY}" } },
    { ...http, url, headers: { Authorization: "Bearer g" } },
  ],
  [
    mcpJson,
    { type: "http", url, oauth: { clientId: "1.2", callbackPort: 3118 } },
    { ...http, url, oauth: { clientId: "1.2", callbackPort: 3118 } },
  ],
  [
    mcpJson,
    { type: "http", url, headers: { "X-B": "a@2_2" }, _meta: { icon: "./a (b).svg", titles: { a: "A" } } },
    { ...http, url, headers: { "X-B": "a@2_2" } },
    ["MCP_KEYS_UNKNOWN"],
  ],
  [mcpJson, { type: "http", url, note: "Official." }, { ...http, url }, ["MCP_KEYS_UNKNOWN"]],
  [mcpJson, { type: "http", url, description: "Deployments" }, { ...http, url }],
  [mcpJson, { type: "http", url, oauth_resource: url }, { ...http, url, oauth: { resource: url } }],
  [mcpJson, { type: "http", url, bearer_token_env_var: "GH_PAT" }, { ...http, url, headers: { Authorization: "Bearer t" } }],
  [gemini, { httpUrl: url }, { ...http, url }],
  [gemini, { httpUrl: url, oauth: { enabled: true } }, { ...http, url, oauth: {} }],
  [gemini, { httpUrl: url, authProviderType: "google_credentials" }, { ...http, url }, ["MCP_KEY_UNSUPPORTED"]],
  [
    gemini,
    { description: "d", httpUrl: url, headers: { Authorization: "Bearer $PAT" } },
    { ...http, url, headers: { Authorization: "Bearer p" } },
  ],
  ["/p/mcp_config.json", { serverUrl: url }, { ...http, url }],
  [
    "/p/src/mcp-servers.json",
    { id: "s", name: "Docs", emoji: "📚", description: "d", category: "c", url: "https://docs.example.com" },
    { ...http, url: "https://docs.example.com" },
    ["MCP_KEYS_UNKNOWN"],
  ],
])("a published entry is read: %s %j", (file, entry, spec, codes = []) => {
  const { servers, diagnostics } = parseMcpConfig(JSON.stringify({ mcpServers: { s: entry } }), { file, variables, folder: "/p" });
  expect(servers).toEqual([{ state: "ready", name: "s", spec: { name: "s", ...spec } }]);
  expect(diagnostics.map(({ code }) => code)).toEqual(codes);
});

test.each<[file: string, entry: object]>([
  [mcpJson, { type: "http", url: "" }],
  [vscode, { type: "stdio", command: "server", args: ["${input:org}"], env: { LOG_LEVEL: "debug" } }],
  ["/p/mcp.json", { type: "stdio", command: "server", args: ["${input:org}"] }],
  [vscode, { command: "npx", args: [], env: { FILE: "${input:file}" }, type: "stdio" }],
  [mcpJson, { command: "x", env: { KEY: "${user_config.key}" } }],
])("a published entry needs configuration: %s %j", (file, entry) => {
  const { servers, diagnostics } = parseMcpConfig(JSON.stringify({ mcpServers: { s: entry } }), { file, variables });
  expect(servers).toMatchObject([
    { state: "unconfigured", name: "s", server: { reason: expect.stringMatching(/ (?:Add|Move|Replace|Set|Use) /) } },
  ]);
  expect(diagnostics).toEqual([]);
});
