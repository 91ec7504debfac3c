// Reads every MCP server of a collection of published configurations, and says what came out.
//
//   npm run mcp-corpus -- <samples.json>
//
// The file is a list of { repo, path, kind, name, cfg }: one server's entry each, with the file that it is from.
// Exit 0: every entry was read as its own fields say. 1: some were not. 2: wrong usage.
import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";

const dist = new URL("../build/dist/formats/mcp/", import.meta.url);

process.exitCode = await main(process.argv.slice(2));

async function main([file, ...rest]) {
  if (file === undefined || rest.length > 0 || !existsSync(file)) return usage("Give a file of samples.");
  if (!existsSync(new URL("mcp-config.js", dist))) return usage("There is no build. Run `npm run build` first.");
  const { parseMcpConfig } = await import(new URL("mcp-config.js", dist));
  const { createVariableLookup } = await import(new URL("mcp-dialects.js", dist));
  const samples = JSON.parse(readFileSync(file, "utf8"));
  const start = performance.now();
  const results = samples.map((sample) => readSample(sample, { parseMcpConfig, createVariableLookup }));
  report(results, performance.now() - start);
  return results.every(({ faults }) => faults.length === 0) ? 0 : 1;
}

function usage(message) {
  console.error(`${message}\nUsage: npm run mcp-corpus -- <samples.json>`);
  return 2;
}

function readSample(sample, { parseMcpConfig, createVariableLookup }) {
  const { path, name, cfg } = sample;
  const places = { workspace: "/work", home: "/home/me", folder: "/plugin", data: "/data", separator: "/" };
  // Every variable has a value, so that a server is unconfigured only if a user has to fill in a value.
  const environment = Object.fromEntries(
    [...JSON.stringify(cfg).matchAll(/[A-Z][A-Z0-9_]+/g)].map(([variable]) => [variable, `value of ${variable}`]),
  );
  const variables = createVariableLookup({ environment, places });
  const config = parseMcpConfig(JSON.stringify(wrap(sample)), { file: path, variables });
  const server = config.servers[0];
  return {
    sample,
    config,
    server,
    faults: [...compare(server, expected(name, cfg)), ...config.servers.slice(1).map(() => "a second server")],
  };
}

function wrap({ kind, path, name, cfg }) {
  if (kind === "openclaw.plugin.json") return { id: "x", mcp: { [name]: cfg } };
  if (kind === ".vscode/mcp.json") return { servers: { [name]: cfg } };
  if (/^\d+$/.test(name)) return { servers: [cfg] };
  if (basename(path) === ".mcp.json" && path.length % 2 === 0) return { [name]: cfg };
  return { mcpServers: { [name]: cfg } };
}

/** What the entry's own fields say, by rules that are not the reader's. */
function expected(name, cfg) {
  const isLocal = "command" in cfg && !["http", "sse", "streamable-http"].includes(cfg.type);
  const asks = JSON.stringify(cfg).match(/\$\{(?:input:|user_config\.)/) !== null;
  const url = cfg.url ?? cfg.httpUrl ?? cfg.serverUrl;
  return {
    name: /^\d+$/.test(name) ? cfg.id : name,
    state: asks || url === "" ? "unconfigured" : "ready",
    type: isLocal ? "stdio" : cfg.type === "sse" ? "sse" : "http",
    isDisabled: cfg.enabled === false,
    tools: cfg.tools,
    ...(isLocal
      ? { command: cfg.command, args: (cfg.args ?? []).length, env: [...Object.keys(cfg.env ?? {}), ...(cfg.env_vars ?? [])].sort() }
      : { url, headers: [...Object.keys(cfg.headers ?? {}), ...(cfg.bearer_token_env_var ? ["Authorization"] : [])].sort() }),
    timeout: cfg.tool_timeout_sec === undefined ? undefined : cfg.tool_timeout_sec * 1_000,
  };
}

function compare(server, wanted) {
  if (server === undefined) return ["no server was found"];
  if (server.state !== wanted.state) return [`${server.state}, expected ${wanted.state}`];
  const got = server.state === "ready" ? seen(server.spec) : { name: server.name, type: server.server.type };
  return Object.keys(got).flatMap((key) =>
    JSON.stringify(got[key]) === JSON.stringify(wanted[key])
      ? []
      : [`${key} is ${JSON.stringify(got[key])}, expected ${JSON.stringify(wanted[key])}`],
  );
}

function seen(spec) {
  const { name, type, isDisabled, tools, timeout } = spec;
  const own =
    type === "stdio"
      ? { command: spec.command, args: spec.args.length, env: Object.keys(spec.env).sort() }
      : { url: spec.url, headers: Object.keys(spec.headers).sort() };
  return { name, type, isDisabled, tools, timeout, ...own };
}

function report(results, milliseconds) {
  for (const { sample, faults } of results)
    for (const fault of faults) console.log(`${sample.repo} ${sample.path} ${sample.name}: ${fault}`);
  const count = (of) => results.filter(of).length;
  const codes = {};
  for (const { config } of results)
    for (const { code, severity } of config.diagnostics) codes[`${severity} ${code}`] = (codes[`${severity} ${code}`] ?? 0) + 1;
  console.table(Object.fromEntries(Object.entries(codes).map(([code, times]) => [code, { times }])));
  for (const { sample, server } of results)
    if (server?.state === "unconfigured") console.log(`${sample.path} ${server.name} needs configuration: ${server.server.reason}`);
  const states = ["ready", "unconfigured", "refused"].map((state) => `${count(({ server }) => server?.state === state)} ${state}`);
  console.log(
    `${results.length} entries, ${count(({ faults }) => faults.length === 0)} read right: ${states.join(", ")}, ${Math.round(milliseconds)} ms`,
  );
}
