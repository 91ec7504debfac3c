// Loading generated skills: a host's start, and JSON.parse with jiti for the same files.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { built } from "./support/built.mjs";
import { childTask, inChild, median, timed } from "./support/measure.mjs";
import { plainJiti } from "./support/plain.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { skillName, tempFolder, toolName, verbs, writeSkills } from "./support/skills.mjs";

// Sizes can be named as arguments.
const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [10, 100, 1000, 5000];
const roundsOf = (size) => (size > 1000 ? 2 : 3);
// Without its file cache jiti takes tens of milliseconds a module: more would measure patience.
const mostWithJiti = 100;
const mostWithJitiCache = 1000;

function compare() {
  for (const form of ["handlers", "definitions"]) {
    title(form === "handlers" ? "Loading: modules that are handlers only" : "Loading: modules that define tools with zod");
    const results = sizes.map((size) => ({ size, ...loadAll(size, form) }));
    table(results.flatMap((result) => rowsOf(result, { jiti: largest(results, "jiti"), cached: largest(results, "cached") })));
    const thousand = results.find(({ size }) => size === 1000);
    if (thousand === undefined) continue;
    const cpu = (runs) => median(runs.map(({ first }) => first.cpu));
    goal(`1,000 skills, ${form}, processor time to jiti with a filled cache`, cpu(thousand.host) / cpu(thousand.cached), 1, "×");
  }
  console.log("\nEach figure is a process of its own; the files' pages are in the system's cache. `cold` is the first process that");
  console.log(
    `reads the files, \`warm\` the median of up to three later ones, \`again\` a second host in the same process. ~ is extrapolated.`,
  );
}

function loadAll(size, form) {
  const { base, skills, remove } = tempFolder();
  try {
    writeSkills(skills, size, form);
    const open = () => inChild(import.meta.url, { loader: "skillhost", form, base, skills, size });
    const cold = open();
    const run = (fsCache) => inChild(import.meta.url, { loader: "jiti", base, skills, size, fsCache });
    const cache = join(base, "jiti-cache");
    const filled = size > mostWithJitiCache ? undefined : run(cache);
    const runs = { host: [], cached: [], jiti: [] };
    // In turn, so that whatever else the machine does meets all of them.
    for (let round = 0; round < roundsOf(size); round++) {
      runs.host.push(open());
      if (size <= mostWithJitiCache) runs.cached.push(run(cache));
      if (size <= mostWithJiti) runs.jiti.push(run(false));
    }
    return { size, cold, filled, ...runs };
  } finally {
    remove();
  }
}

/** The largest size that was measured with this loader, for extrapolation. */
function largest(results, loader) {
  return results.findLast((result) => result[loader].length > 0);
}

function rowsOf({ size, cold, host, jiti, cached, filled }, measured) {
  const ours = median(host.map(({ first }) => first.wall));
  const rows = [
    {
      skills: size,
      loader: "skillhost",
      "cold ms": cold.first.wall,
      "warm ms": ours,
      "again ms": median(host.map(({ second }) => second.wall)),
      "warm ms/skill": ours / size,
      "CPU ms": median(host.map(({ first }) => first.cpu)),
      "RSS MB": median(host.map(({ rss }) => rss)),
      "first call ms": median(host.map(({ call }) => call)),
      "to skillhost": "1×",
    },
  ];
  const plain = (loader, first, runs, source) => {
    const isExtrapolated = runs.length === 0;
    const { size: from, found } = isExtrapolated ? source : { size, found: runs };
    if (found === undefined) return;
    const per = median(found.map(({ first: { wall } }) => wall)) / from;
    const sign = (value) => (isExtrapolated ? `~${Math.round(value).toLocaleString("en-US")}` : value);
    rows.push({
      skills: size,
      loader,
      "cold ms": isExtrapolated ? undefined : first.first.wall,
      "warm ms": sign(per * size),
      "again ms": isExtrapolated ? undefined : median(runs.map(({ second }) => second.wall)),
      "warm ms/skill": per,
      "CPU ms": isExtrapolated ? undefined : median(runs.map(({ first: { cpu } }) => cpu)),
      "RSS MB": isExtrapolated ? undefined : median(runs.map(({ rss }) => rss)),
      "first call ms": undefined,
      "to skillhost": `${isExtrapolated ? "~" : ""}${ratio(per * size, ours)}`,
    });
  };
  plain("jiti", jiti[0], jiti, { size: measured.jiti?.size, found: measured.jiti?.jiti });
  plain("jiti, file cache", filled, cached, { size: measured.cached?.size, found: measured.cached?.cached });
  return rows;
}

async function measureHost({ base, skills, size, form }) {
  const { createHost, approveAll } = await built("index.js");
  const rssBefore = process.memoryUsage().rss;
  const start = () => createHost({ skillDirectories: [skills], watch: false, sessionsDirectory: join(base, "sessions") });
  const first = await timed(start);
  const rss = (process.memoryUsage().rss - rssBefore) / 1e6;
  const host = first.value;
  const problems = host.diagnostics.filter(({ severity }) => severity === "error");
  if (host.skills.length !== size || problems.length > 0) throw new Error(`${host.skills.length} skills: ${JSON.stringify(problems[0])}`);
  const session = await host.createSession({ onPermissionRequest: approveAll, persist: false });
  const expected = size * (form === "handlers" ? 3 : 4);
  const callable = [...session.catalog.executables.values()].filter(({ origin }) => origin.kind === "skill").length;
  if (callable !== expected) throw new Error(`${callable} tools instead of ${expected}`);
  const tool = toolName(size - 1, form === "handlers" ? "list" : "report");
  const call = await timed(() => session.callTool(tool, { query: "*" }));
  if (call.value.resultType !== "success") throw new Error(JSON.stringify(call.value));
  await host.close();
  const second = await timed(start);
  await second.value.close();
  return { first, second, rss, call: call.wall };
}

/** The same files by hand: JSON.parse for what is JSON, jiti for every module, nothing checked. */
async function measurePlain({ base, skills, size, fsCache }) {
  const jiti = await plainJiti(base, fsCache);
  const rssBefore = process.memoryUsage().rss;
  const load = async () => {
    const loaded = [];
    for (let index = 0; index < size; index++) loaded.push(await loadPlain(join(skills, skillName(index)), jiti));
    return loaded.length;
  };
  const first = await timed(load);
  const rss = (process.memoryUsage().rss - rssBefore) / 1e6;
  return { first, second: await timed(load), rss };
}

async function loadPlain(folder, jiti) {
  const json = (path) => JSON.parse(readFileSync(join(folder, path), "utf8"));
  const prompts = readdirSync(join(folder, "prompts")).map((name) => readFileSync(join(folder, "prompts", name), "utf8"));
  const modules = readdirSync(join(folder, "tools")).filter((name) => name.endsWith(".ts"));
  const exports = [];
  for (const name of modules) exports.push(await jiti.import(join(folder, "tools", name)));
  return { manifest: json("skill.json"), prompts, tools: verbs.map((verb) => json(`tools/${verb}.json`)), exports };
}

const task = childTask();
if (task === undefined) compare();
else console.log(JSON.stringify(await (task.loader === "skillhost" ? measureHost(task) : measurePlain(task))));
