// The client that the MCP conformance suite runs: it creates a host that connects to the server of the suite, and runs the
// scenario through the public API. MCP_CONFORMANCE_SCENARIO names the scenario, MCP_CONFORMANCE_CONTEXT has its parameters, and
// the last argument is the server's URL.
// Usage: node client.mjs <url>, with SKILLHOST_DIST as the path of the compiled sources (default: dist).
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const dist = resolve(process.env["SKILLHOST_DIST"] ?? fileURLToPath(new URL("../../dist", import.meta.url)));
const { approveAll, createHost } = await import(pathToFileURL(join(dist, "index.js")).href);

const scenario = process.env["MCP_CONFORMANCE_SCENARIO"] ?? "";
const context = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}");
const url = process.argv.at(-1);
const home = mkdtempSync(join(tmpdir(), "skillhost-conformance-"));

const host = await createHost({
  skillDirectories: [],
  watch: false,
  workingDirectory: home,
  logLevel: process.env["SKILLHOST_LOG"] ?? "warning",
  sessionsDirectory: join(home, "sessions"),
  approvalsDirectory: join(home, "approvals"),
  mcp: { cacheDirectory: join(home, "cache"), credentialsDirectory: join(home, "oauth") },
  mcpServers: { conformance: { type: "http", url, oauth: oauthOptions() } },
});
try {
  const session = await host.createSession({
    persist: false,
    onPermissionRequest: approveAll,
    onMcpAuthorization: signIn,
    onElicitationRequest: () => ({ action: "accept", content: scenario.includes("defaults") ? {} : { confirmed: true } }),
    toolSearch: { enabled: false },
  });
  const [server] = await host.connectServers();
  say("connected", server);
  if (server?.status !== "connected") process.exitCode = 1;
  if (scenario.startsWith("sep-2640-client-")) await useSkills(session);
  else if (context.toolCalls !== undefined) await callAsGiven(session, context.toolCalls);
  else await useTools(session);
  if (scenario === "http-standard-headers") await useResourcesAndPrompts(session);
} finally {
  await host.close();
  rmSync(home, { recursive: true, force: true });
}

function oauthOptions() {
  const { client_id: clientId, client_secret: clientSecret, issuer } = context;
  if (scenario.startsWith("auth/client-credentials")) return { clientId, clientSecret, grantType: "client_credentials" };
  if (scenario === "auth/pre-registration") return { clientId, clientSecret, issuer };
  // The URL that the suite expects when an authorization server supports client metadata documents.
  return { clientMetadataUrl: "https://conformance-test.local/client-metadata.json" };
}

/** Follows the URL as a browser whose user agrees to everything. */
async function signIn({ url: address }) {
  const response = await fetch(address, { redirect: "manual" });
  return { callbackUrl: response.headers.get("location") };
}

async function useTools(session) {
  const tools = session.listTools().filter(({ source }) => source.kind === "mcp");
  for (const tool of tools) {
    for (const args of argumentsFor(tool, tools)) {
      // The suite decides whether a call should fail.
      say(tool.namespacedName, await session.callTool(tool.name, args));
    }
  }
}

/** Calls a tool with the suite's arguments; optional ones may be null. */
async function callAsGiven(session, calls) {
  for (const { name, arguments: args } of calls) say(name, await session.callTool(`conformance/${name}`, args));
}

function argumentsFor({ namespacedName, parameters }, tools) {
  const name = nativeName(namespacedName);
  if (name === "add_numbers") return [{ a: 5, b: 3 }];
  // Sends the received schema of another tool back to the server.
  const other = tools.find((tool) => tool.namespacedName !== namespacedName);
  if (parameters?.properties?.schema !== undefined && other !== undefined) return [{ schema: other.parameters }];
  return [Object.fromEntries((parameters?.required ?? []).map((key) => [key, "x"]))];
}

function nativeName(namespacedName) {
  return namespacedName.slice(namespacedName.indexOf("/") + 1);
}

async function useResourcesAndPrompts(session) {
  for (const { uri } of session.listResources()) say(uri, await session.readResource(uri));
  for (const { name } of session.listPrompts()) say(name, await session.getPrompt(name));
}

/** Loads each skill as the `skill` tool does, then reads its other files. */
async function useSkills(session) {
  const skills = session.listSkills();
  say("skills", skills);
  if (scenario === "sep-2640-client-no-prefetch") return;
  for (const skill of skills) {
    try {
      say(skill.name, await skill.instructions());
      say(skill.name, Buffer.from(await skill.read("references/FORMS.md")).toString());
    } catch (error) {
      process.exitCode = 1;
      say(skill.name, `${error.code} ${error.message}`);
    }
  }
}

function say(what, value) {
  process.stdout.write(`${what} ${JSON.stringify(value)}\n`);
}
