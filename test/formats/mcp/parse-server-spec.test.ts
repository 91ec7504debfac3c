import { describe, expect, test } from "vitest";
import { createVariableLookup, type McpDialect } from "../../../src/formats/mcp/mcp-dialects.ts";
import { parseServerSpec, type ServerSpecOptions, toServerConfig } from "../../../src/formats/mcp/parse-server-spec.ts";

const environment = { TOKEN: "s3cret", ORG: "acme", EMPTY: "", HOST: "mcp.example.com", PATH: "/bin" };
const places = { workspace: "/work", home: "/home/me", folder: "/plugin", data: "/data", separator: "/" };
const variables = createVariableLookup({ environment, places });

function read(value: unknown, dialect: McpDialect = "claude", options: Partial<ServerSpecOptions> = {}) {
  const { server, diagnostics } = parseServerSpec("one", value, { dialect, variables, ...options });
  return { server, codes: diagnostics.map(({ severity, code }) => `${severity} ${code}`), diagnostics };
}

function specOf(value: unknown, dialect?: McpDialect, options?: Partial<ServerSpecOptions>) {
  const { server } = read(value, dialect, options);
  if (server.state !== "ready") throw new Error(`${server.state}: ${JSON.stringify(server)}`);
  return server.spec;
}

const local = { name: "one", type: "stdio", args: [], env: {}, cwd: undefined, tools: undefined, timeout: undefined, isDisabled: false };
const remote = { name: "one", headers: {}, oauth: undefined, tools: undefined, timeout: undefined, isDisabled: false };

describe("an entry of any client becomes one of three transports", () => {
  test.each<[what: string, value: object, spec: object]>([
    ["a command without a type", { command: "npx", args: ["-y", "x@1.2.3"] }, { ...local, command: "npx", args: ["-y", "x@1.2.3"] }],
    ["stdio", { type: "stdio", command: "x" }, { ...local, command: "x" }],
    ["local", { type: "local", command: "x", tools: ["a", "b", "a"] }, { ...local, command: "x", tools: ["a", "b"] }],
    ["a command as one list", { type: "local", command: ["npx", "-y", "x"] }, { ...local, command: "npx", args: ["-y", "x"] }],
    ["an address without a type", { url: "https://a.example/mcp" }, { ...remote, type: "http", url: "https://a.example/mcp" }],
    ["httpUrl", { httpUrl: "https://a.example/mcp" }, { ...remote, type: "http", url: "https://a.example/mcp" }],
    ["serverUrl", { serverUrl: "https://a.example/mcp" }, { ...remote, type: "http", url: "https://a.example/mcp" }],
    ["streamable-http", { type: "streamable-http", url: "http://localhost:1/" }, { ...remote, type: "http", url: "http://localhost:1/" }],
    ["streamableHttp", { type: "streamableHttp", url: "http://localhost:1/" }, { ...remote, type: "http", url: "http://localhost:1/" }],
    ["transport", { transport: "streamable_http", url: "http://localhost:1/" }, { ...remote, type: "http", url: "http://localhost:1/" }],
    ["sse", { type: "sse", url: "https://a.example/mcp" }, { ...remote, type: "sse", url: "https://a.example/mcp" }],
    [
      "http whose address ends in /sse",
      { type: "http", url: "https://a.example/sse" },
      { ...remote, type: "http", url: "https://a.example/sse" },
    ],
    ["an upper-case type", { type: "HTTP", url: "https://a.example/" }, { ...remote, type: "http", url: "https://a.example/" }],
    ["null for what is absent", { type: null, command: "x", args: null, env: null, tools: null }, { ...local, command: "x" }],
  ])("%s", (_what, value, spec) => {
    const { server, codes } = read(value);
    expect(codes).toEqual([]);
    expect(server).toEqual({ state: "ready", name: "one", spec });
    expect(Object.isFrozen(server.state === "ready" && server.spec)).toBe(true);
  });
});

test("absent tools or a star select all tools, an empty list selects none, and a list selects the named ones", () => {
  expect(specOf({ command: "x", tools: ["*"] }).tools).toBeUndefined();
  expect(specOf({ command: "x", tools: [] }).tools).toEqual([]);
  expect(specOf({ command: "x", includeTools: ["a"], excludeTools: ["b"] }, "gemini")).toMatchObject({
    tools: ["a"],
    excludedTools: ["b"],
  });
  expect(specOf({ command: "x", enabled_tools: ["a"], disabled_tools: ["b"] }, "codex")).toMatchObject({
    tools: ["a"],
    excludedTools: ["b"],
  });
});

test("a server is switched off by either word", () => {
  const isDisabled = (value: object) => specOf({ command: "x", ...value }).isDisabled;
  expect([isDisabled({ disabled: true }), isDisabled({ enabled: false })]).toEqual([true, true]);
  expect([isDisabled({ disabled: false }), isDisabled({ enabled: true }), isDisabled({})]).toEqual([false, false, false]);
});

test("timeouts are in milliseconds or seconds, and an invalid one is omitted with a warning", () => {
  expect(specOf({ command: "x", timeout: 30_000 }).timeout).toBe(30_000);
  expect(specOf({ command: "x", tool_timeout_sec: 900 }).timeout).toBe(900_000);
  expect(specOf({ command: "x", timeout: 1e12 }).timeout).toBe(2_147_483_647);
  for (const timeout of [0, -1, "30", {}]) expect(read({ command: "x", timeout }).codes).toEqual(["warning MCP_TIMEOUT_INVALID"]);
});

test("a relative cwd starts at the folder that is given; programs of skills and plugins start there anyway", () => {
  expect(specOf({ command: "x", cwd: "./servers" })).toMatchObject({ cwd: "./servers" });
  expect(specOf({ command: "x", cwd: "./servers" }, "claude", { folder: "/project" })).toMatchObject({ cwd: "/project/servers" });
  expect(specOf({ command: "x", workingDirectory: "/abs" }, "claude", { folder: "/project" })).toMatchObject({ cwd: "/abs" });
  expect(specOf({ command: "x" }, "claude", { folder: "/project" })).toMatchObject({ cwd: undefined });
  expect(specOf({ command: "x" }, "skill", { folder: "/skills/a" })).toMatchObject({ cwd: "/skills/a" });
  expect(specOf({ command: "x", cwd: "." }, "codex", { folder: "/plugin" })).toMatchObject({ cwd: "/plugin" });
});

test("fields of Codex name variables of the host, which are passed on", () => {
  const codex = { command: "x", env_vars: ["ORG", "MISSING"], env: { A: "b" } };
  const { server, codes } = read(codex, "codex");
  expect(server).toMatchObject({ spec: { env: { ORG: "acme", A: "b" } } });
  expect(codes).toEqual(["info MCP_VARIABLE_UNSET"]);
  expect(specOf({ url: "https://a.example/", bearer_token_env_var: "TOKEN" }, "codex")).toMatchObject({
    headers: { Authorization: "Bearer s3cret" },
  });
  expect(specOf({ url: "https://a.example/", env_http_headers: { "X-Org": "ORG" }, http_headers: { B: "c" } })).toMatchObject({
    headers: { "X-Org": "acme", B: "c" },
  });
  const missing = read({ url: "https://a.example/", bearer_token_env_var: "MISSING" }, "codex");
  expect(missing.server).toMatchObject({
    state: "unconfigured",
    server: { name: "one", type: "http", reason: expect.stringContaining('"MISSING"') },
  });
});

test("what is said about signing in is kept", () => {
  const oauth = (value: unknown, rest: object = {}) => {
    const spec = specOf({ url: "https://a.example/", oauth: value, ...rest });
    return spec.type === "stdio" ? undefined : spec.oauth;
  };
  expect(oauth({ clientId: "1.2", callbackPort: 3118 })).toEqual({ clientId: "1.2", callbackPort: 3118 });
  expect(oauth({ enabled: true })).toEqual({});
  expect(oauth({ client_id: "a", client_secret: "b", scope: "read write" })).toEqual({
    clientId: "a",
    clientSecret: "b",
    scopes: ["read", "write"],
  });
  expect(oauth(undefined, { oauth_resource: "https://a.example" })).toEqual({ resource: "https://a.example" });
  expect(oauth(undefined)).toBeUndefined();
  for (const wrong of [{ clientId: 5 }, { scopes: ["a b"] }, { scopes: [1] }, { callbackPort: 70_000 }, "yes"])
    expect(read({ url: "https://a.example/", oauth: wrong })).toMatchObject({
      server: { state: "refused" },
      codes: ["error MCP_FIELD_TYPE"],
    });
});

describe("a server with unfilled fields names the field, its place and how to fix it", () => {
  test.each<[what: string, value: object, dialect: McpDialect, reason: RegExp]>([
    ["an empty address", { type: "http", url: "" }, "claude", /It has no URL\. Set .*"url"/],
    ["no address at all", { type: "http" }, "claude", /It has no URL/],
    ["an example for an address", { httpUrl: "<your server>" }, "gemini", /It has no URL.*"httpUrl"/],
    ["an empty command", { type: "stdio", command: " " }, "claude", /It has no command\. Set .*"command"/],
    ["an input in an argument", { command: "x", args: ["${input:org}"] }, "vscode", /"\$\{input:org\}" in "args" → element 1/],
    ["an input in the environment", { command: "x", env: { P: "${input:p}" } }, "vscode", /in "env" → "P"/],
    ["an input in a file of another client", { command: "x", args: ["${input:org}"] }, "claude", /\$\{input:org\}/],
    ["a setting of a plugin", { url: "https://a.example/", headers: { A: "${user_config.key}" } }, "claude", /\$\{user_config\.key\}/],
    ["a variable in the address", { url: "https://${MISSING}/mcp" }, "claude", /Set the environment variable MISSING/],
    ["a variable in the command", { command: "${MISSING}" }, "claude", /Set the environment variable MISSING/],
    ["a place that is not known", { command: "${CLAUDE_PLUGIN_ROOT}/x" }, "claude", /"\$\{CLAUDE_PLUGIN_ROOT\}" in "command" has no value/],
  ])("%s", (_what, value, dialect, reason) => {
    const withoutPlaces = createVariableLookup({ environment });
    const { server, codes } = read(value, dialect, { variables: withoutPlaces });
    expect(server).toMatchObject({ state: "unconfigured", name: "one", server: { name: "one", reason: expect.stringMatching(reason) } });
    expect(codes.filter((code) => code.startsWith("error"))).toEqual([]);
  });
});

describe("what cannot be used refuses the server", () => {
  const url = "https://a.example/";
  test.each<[what: string, value: unknown, code: string]>([
    ["no object", "npx x", "MCP_ENTRY_TYPE"],
    ["a list", [], "MCP_ENTRY_TYPE"],
    ["null", null, "MCP_ENTRY_TYPE"],
    ["nothing in it", {}, "MCP_ENTRY_EMPTY"],
    ["an unknown type", { type: "ws", url: "wss://a.example" }, "MCP_TYPE_UNKNOWN"],
    ["a type that is not a string", { type: 5, command: "x" }, "MCP_FIELD_TYPE"],
    ["a command that is a number", { command: 5 }, "MCP_FIELD_TYPE"],
    ["arguments as text", { command: "x", args: "-y" }, "MCP_FIELD_TYPE"],
    ["an argument that is an object", { command: "x", args: [{}] }, "MCP_FIELD_TYPE"],
    ["an environment as a list", { command: "x", env: ["A=b"] }, "MCP_FIELD_TYPE"],
    ["a variable that is an object", { command: "x", env: { A: {} } }, "MCP_FIELD_TYPE"],
    ["a variable with an equals sign in its name", { command: "x", env: { "A=B": "c" } }, "MCP_ENV_NAME"],
    ["a variable without a name", { command: "x", env: { "": "c" } }, "MCP_ENV_NAME"],
    ["NUL in the command", { command: "x\0y" }, "MCP_FIELD_TEXT"],
    ["NUL in an argument", { command: "x", args: ["a\0"] }, "MCP_FIELD_TEXT"],
    ["NUL in a variable", { command: "x", env: { A: "\0" } }, "MCP_FIELD_TEXT"],
    ["an argument of 200 kB", { command: "x", args: ["a".repeat(200_000)] }, "MCP_FIELD_TEXT"],
    ["tools as text", { command: "x", tools: "*" }, "MCP_FIELD_TYPE"],
    ["a tool that is a number", { command: "x", tools: [1] }, "MCP_FIELD_TYPE"],
    ["disabled as text", { command: "x", disabled: "yes" }, "MCP_FIELD_TYPE"],
    ["an invalid URL", { url: "a.example/mcp" }, "MCP_URL_INVALID"],
    ["a file's address", { url: "file:///etc/passwd" }, "MCP_URL_INVALID"],
    ["a password in the address", { url: "https://me:pw@a.example/" }, "MCP_URL_PASSWORD"],
    ["a line break in a header", { url, headers: { A: "b\r\nEvil: yes" } }, "MCP_HEADER"],
    ["an invalid header name", { url, headers: { "A b": "c" } }, "MCP_HEADER"],
    ["a header beyond Latin-1", { url, headers: { A: "→" } }, "MCP_HEADER"],
    ["headers as a list", { url, headers: [] }, "MCP_FIELD_TYPE"],
    ["eleven thousand arguments", { command: "x", args: Array(11_000).fill("a") }, "MCP_FIELD_TYPE"],
    ["a function", { command: () => "x" }, "MCP_ENTRY_UNREADABLE"],
  ])("%s", (_what, value, code) => {
    const { server, diagnostics } = read(value);
    expect(server).toEqual({ state: "refused", name: "one" });
    expect(diagnostics).toContainEqual(expect.objectContaining({ severity: "error", code, source: "one" }));
  });

  test("a getter that throws, and a cycle", () => {
    const throwing = Object.defineProperty({}, "command", {
      enumerable: true,
      get: () => {
        throw new Error("no");
      },
    });
    const cycle: Record<string, unknown> = { command: "x" };
    cycle["env"] = cycle;
    expect(read(throwing).codes).toEqual(["error MCP_ENTRY_UNREADABLE"]);
    expect(read(cycle).codes).toEqual(["error MCP_ENTRY_UNREADABLE"]);
  });

  test.each(["", "  ", "a\nb", "x".repeat(201), "__proto__", "a\u001b[2J"])("the name %j", (name) => {
    const { server, diagnostics } = parseServerSpec(name, { command: "x" }, { dialect: "session" });
    expect(server.state).toBe("refused");
    expect(diagnostics.map(({ code }) => code)).toEqual(["MCP_NAME"]);
  });
});

test("numbers and booleans where text belongs are taken as written, null takes a variable away", () => {
  const { server, codes } = read({ command: "x", args: ["--port", 8080], env: { DEBUG: true, GONE: null } });
  expect(server).toMatchObject({ spec: { args: ["--port", "8080"], env: { DEBUG: "true" } } });
  expect(server).not.toHaveProperty("spec.env.GONE");
  expect(codes).toEqual(["info MCP_FIELD_QUOTES", "info MCP_FIELD_QUOTES"]);
});

test("keys of __proto__ leave no trace", () => {
  const value = JSON.parse('{"command":"x","env":{"__proto__":"y","constructor":"z"},"__proto__":{"args":["evil"]}}');
  const spec = specOf(value);
  expect(spec).toMatchObject({ args: [] });
  expect(spec.type === "stdio" && Object.entries(spec.env)).toEqual([["constructor", "z"]]);
});

test("says which keys have no effect, and what to do", () => {
  const { codes, diagnostics } = read({
    command: "x",
    name: "Pretty",
    description: "Does things.",
    envFile: ".env",
    trust: true,
    alwaysAllow: ["a"],
    headers: { A: "b" },
    note: "n",
    _docs: "d",
    emoji: "📚",
  });
  expect(codes).toEqual([
    "warning MCP_KEYS_UNUSED",
    "warning MCP_KEY_UNSUPPORTED",
    "info MCP_KEY_UNSUPPORTED",
    "info MCP_KEY_UNSUPPORTED",
    "info MCP_KEYS_UNKNOWN",
  ]);
  expect(diagnostics.at(-1)?.message).toBe('MCP server "one": "note", "_docs", "emoji": unknown key, ignored.');
});

test("says when a value is still that of an example, or empty, or a whole command line", () => {
  const codes = (value: object) => read(value).codes;
  expect(codes({ command: "x", env: { K: "YOUR_API_KEY_HERE" } })).toEqual(["warning MCP_VALUE_EXAMPLE"]);
  expect(codes({ command: "x", env: { K: "..." } })).toEqual(["warning MCP_VALUE_EXAMPLE"]);
  expect(codes({ command: "x", args: ["--ref=YOUR_REF"] })).toEqual(["warning MCP_VALUE_EXAMPLE"]);
  expect(codes({ url: "https://a.example/", headers: { Authorization: "Bearer <token>" } })).toEqual(["warning MCP_VALUE_EXAMPLE"]);
  expect(codes({ command: "x", env: { K: "" } })).toEqual(["info MCP_VALUE_EMPTY"]);
  expect(codes({ command: "npx -y x" })).toEqual(["warning MCP_COMMAND_WORDS"]);
  expect(codes({ command: "C:\\Program Files\\x.exe" })).toEqual([]);
});

test("a header that is empty once it is filled in is not sent", () => {
  const { server } = read({ url: "https://a.example/", headers: { Authorization: "${MISSING:-}", "X-A": "b" } });
  expect(server).toMatchObject({ spec: { headers: { "X-A": "b" } } });
  expect(server).not.toHaveProperty("spec.headers.Authorization");
});

test("options of a session are literal in every field", () => {
  const value = { command: "${TOKEN}", args: ["$TOKEN", "${env:TOKEN}"], env: { A: "${TOKEN}", B: "TOKEN" }, cwd: "${HOME}" };
  const { server, codes } = read(value, "session");
  expect(server).toMatchObject({ spec: value });
  expect(codes).toEqual([]);
  expect(specOf({ url: "https://a.example/${TOKEN}", headers: { A: "Bearer ${TOKEN}" } }, "session")).toMatchObject({
    url: "https://a.example/${TOKEN}",
    headers: { A: "Bearer ${TOKEN}" },
  });
});

test("with envValueMode indirect the values of env are names of variables", () => {
  const { server, diagnostics } = read({ command: "x", args: ["TOKEN"], env: { A: "TOKEN", B: "sk-1234" } }, "session", {
    envValueMode: "indirect",
  });
  expect(server).toMatchObject({ spec: { args: ["TOKEN"], env: { A: "s3cret" } } });
  expect(server).not.toHaveProperty("spec.env.B");
  expect(diagnostics).toMatchObject([{ severity: "warning", code: "MCP_VARIABLE_UNSET" }]);
  expect(diagnostics[0]?.message).not.toContain("sk-1234");
});

test("no diagnostic shows the value of a variable, a header or anything else that may be secret", () => {
  const secret = "hunter2";
  const lookup = createVariableLookup({ environment: { S: `${secret}\r\n→`, P: `https://u:${secret}@a.example/`, U: `no-url-${secret}` } });
  const entries: object[] = [
    { url: "https://a.example/", headers: { A: "${S}" } },
    { url: "${P}" },
    { url: "${U}" },
    { url: "https://a.example/", bearer_token_env_var: "S" },
    { command: "x", env: { A: `${secret}\0` }, args: [[secret]], tools: secret, timeout: secret, disabled: secret },
    { command: "x", oauth: { clientSecret: secret }, cwd: `${secret}\0` },
    { command: `${secret}\0`, headers: { A: `${secret}\n` } },
    { type: "http", url: `ftp://${secret}`, oauth: { clientSecret: [secret], scopes: [secret, 1] } },
  ];
  for (const entry of entries) {
    const { diagnostics } = read(entry, "claude", { variables: lookup });
    expect(diagnostics.length).toBeGreaterThan(0);
    expect(JSON.stringify(diagnostics)).not.toContain(secret);
  }
});

test("a server that needs configuration can be given to a session, and stays what it is", () => {
  const { server } = read({ type: "http", url: "" });
  if (server.state !== "unconfigured") throw new Error(server.state);
  expect(read(server.server, "session").server).toMatchObject({ state: "unconfigured", server: { reason: server.server.reason } });
  expect(read({ reason: "because", command: "x" }, "session").server.state).toBe("ready");
  expect(read({ reason: "because" }, "claude").server.state).toBe("refused");
});

test.each<[object, McpDialect]>([
  [
    { command: "npx", args: ["a", "b"], env: { A: "${TOKEN}" }, cwd: "x", tools: ["t"], excludeTools: ["u"], timeout: 5, disabled: true },
    "claude",
  ],
  [{ command: "x", tools: [] }, "claude"],
  [{ url: "https://a.example/", headers: { A: "b" }, oauth: { clientId: "a", scopes: ["s"] }, oauth_resource: "r" }, "codex"],
  [{ type: "sse", url: "https://a.example/" }, "claude"],
])("a server read from a file can be given to a session as it is: %j", (value, dialect) => {
  const spec = specOf(value, dialect);
  const again = read(toServerConfig(spec), "session", { variables: undefined });
  expect(again.server).toEqual({ state: "ready", name: "one", spec });
  expect(again.codes).toEqual([]);
  expect(read(spec, "session").server).toEqual({ state: "ready", name: "one", spec });
});
