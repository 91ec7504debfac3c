// What a start costs: commands, imports and servers, beside bare Node.js and beside the same code before it is bundled. Variants take
// turns in one run. Processor time counts all threads of a process; on a busy machine it says more than wall time.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath, pathToFileURL } from "node:url";
import { built } from "./support/built.mjs";
import { ours, Runtime, startModel } from "./support/copilot-runtime.mjs";
import { median } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { tempFolder } from "./support/skills.mjs";

const rounds = 15;
await built("index.js");
const folder = (path) => fileURLToPath(new URL(path, import.meta.url));
const builds = { shipped: folder("../dist/"), unbundled: folder("../build/dist/") };

const { base, remove } = tempFolder();
process.env.SKILLHOST_HOME = join(base, "home");
process.env.XDG_CACHE_HOME = join(base, "cache");
const project = writeProject(join(base, "project"));
const reporter = join(base, "report-cpu.cjs");
writeFileSync(
  reporter,
  `process.once("exit", () => { const { user, system } = process.cpuUsage(); require("node:fs").writeSync(3, String(user + system)); });`,
);
try {
  await measureProcesses();
  await measureServers();
} finally {
  remove();
}

function writeProject(at) {
  const skill = join(at, "skills/greeting");
  mkdirSync(join(skill, "tools"), { recursive: true });
  writeFileSync(join(skill, "SKILL.md"), "---\nname: greeting\ndescription: Greets people by name.\n---\nBe kind.\n");
  const tool = `import { defineTool } from "skillhost";
export default defineTool("greet", { description: "Greets.", handler: ({ name }: Record<string, unknown>) => \`Hello \${name}\` });
`;
  writeFileSync(join(skill, "tools/greet.ts"), tool);
  return at;
}

async function measureProcesses() {
  const run = (dist, ...args) => [join(dist, "cli/bin.js"), "--trust", ...args];
  const load = (dist, file, names = "") => evaluate(`import ${names}${JSON.stringify(pathToFileURL(join(dist, file)).href)}`);
  const ofBuild = ([name, dist]) => [
    { what: `skillhost call, ${name}`, args: run(dist, "call", "greet", '{"name":"Ada"}', "--yes") },
    { what: `skillhost list, ${name}`, args: run(dist, "list") },
    { what: `import "skillhost", ${name}`, args: load(dist, "index.js") },
    { what: `import { defineTool } from "skillhost/define", ${name}`, args: load(dist, "define.js", "{ defineTool } from ") },
  ];
  const variants = [
    { what: "node -e 0", args: ["-e", "0"] },
    { what: "an empty module", args: evaluate("") },
    { what: "import of a host's modules, unbundled", args: load(builds.unbundled, "host/create-host.js") },
    ...Object.entries(builds).flatMap(ofBuild),
  ].map((variant) => ({ ...variant, samples: [] }));
  // The first round fills what the system and Node.js keep.
  for (let round = 0; round <= rounds; round++)
    for (const { args, samples } of variants) {
      const sample = await runOnce(args);
      if (round > 0) samples.push(sample);
    }
  const medians = variants.map(({ what, samples }) => [what, ["wall", "cpu"].map((which) => median(samples.map((each) => each[which])))]);
  const [[, [bareWall, bareCpu]]] = medians;
  title(`Starts: medians of ${rounds}, in turn`);
  table(
    medians.map(([what, [wall, cpu]]) => ({
      what,
      "ms wall": wall,
      "to node": ratio(wall, bareWall),
      "ms processor": cpu,
      "processor to node": ratio(cpu, bareCpu),
    })),
  );
  const cpuOf = (name) => medians.find(([what]) => what === name)[1][1];
  const over = (name) => cpuOf(name) - cpuOf("an empty module");
  for (const command of ["call", "list"])
    goal(`skillhost ${command} to node -e 0, processor time`, cpuOf(`skillhost ${command}, shipped`) / bareCpu, 3, "times");
  const imported = cpuOf('import "skillhost", shipped') / cpuOf("import of a host's modules, unbundled");
  goal('import "skillhost" to an import of a host\'s modules, unbundled, processor time', imported, 0.25, "times");
  goal('import "skillhost" over an empty module, processor time', over('import "skillhost", shipped'), 20, "ms");
  const define = over('import { defineTool } from "skillhost/define", shipped');
  goal('import { defineTool } from "skillhost/define" over an empty module, processor time', define, 20, "ms");
}

function evaluate(code) {
  return ["--input-type=module", "-e", code];
}

/** Wall time of a process, and the processor time that it says it took when it ends. */
async function runOnce(args) {
  const begin = performance.now();
  const child = spawn(process.execPath, ["--require", reporter, ...args], { cwd: project, stdio: ["ignore", "ignore", "pipe", "pipe"] });
  const [complaint, used, code] = await Promise.all([text(child.stderr), text(child.stdio[3]), once(child, "close")]);
  const wall = performance.now() - begin;
  if (code[0] !== 0) throw new Error(`node ${args.join(" ")} ended with ${code[0]}: ${complaint}`);
  return { wall, cpu: Number(used) / 1000 };
}

async function measureServers() {
  const model = await startModel();
  const samples = {};
  const add = (name, value) => {
    samples[name] ??= [];
    samples[name].push(value);
  };
  try {
    for (let round = 0; round <= rounds; round++)
      for (const [name, dist] of Object.entries(builds)) {
        const bin = join(dist, "cli/bin.js");
        const mcp = await firstMcpAnswer(bin);
        const copilot = await firstCopilotAnswers(bin, model.url);
        if (round === 0) continue;
        add(`skillhost mcp, ${name}: spawn to the answer to initialize`, mcp);
        add(`Copilot runtime, ${name}: spawn to the answer to ping`, copilot.ping);
        add(`Copilot runtime, ${name}: the first session.create`, copilot.create);
      }
  } finally {
    model.close();
  }
  title(`Servers: medians of ${rounds}, in turn`);
  table(Object.entries(samples).map(([what, values]) => ({ what, "ms wall": median(values) })));
  goal("Copilot runtime: the first session.create", median(samples["Copilot runtime, shipped: the first session.create"]), 80, "ms");
}

async function firstMcpAnswer(bin) {
  const begin = performance.now();
  const child = spawn(process.execPath, [bin, "--trust", "mcp"], { cwd: project, stdio: ["pipe", "pipe", "ignore"] });
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "bench", version: "1" } };
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`);
  const [answer] = await once(child.stdout, "data");
  const wall = performance.now() - begin;
  if (!String(answer).includes('"result"')) throw new Error(`The answer to initialize is ${answer}`);
  child.kill("SIGKILL");
  await once(child, "close");
  return wall;
}

async function firstCopilotAnswers(bin, modelUrl) {
  const begin = performance.now();
  const runtime = new Runtime({ ...ours, args: [bin, ...ours.args.slice(1)] }, { base, modelUrl });
  try {
    await runtime.ping();
    const ping = performance.now() - begin;
    await runtime.create();
    return { ping, create: performance.now() - begin - ping };
  } finally {
    await runtime.end();
  }
}
