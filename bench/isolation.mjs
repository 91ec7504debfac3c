// What isolation costs: the same skill in the process of the host, in a worker thread, and in a process with limits.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { built } from "./support/built.mjs";
import { quantile } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { tempFolder } from "./support/skills.mjs";

const { createHost } = await built("index.js");
const tiers = ["off", "worker", "process"];
const warmUp = 300;
const rounds = 40;
const callsPerRound = 100;
const reloads = 15;
const deadline = 100;
/** Between two saves, for the same time in each tier: spare children are started meanwhile. */
const pause = 2_000;

const source = (answer) => `import { defineTool } from "skillhost";
const parameters = { type: "object", properties: { query: { type: "string" } }, required: ["query"] } as const;
export const quick = defineTool("quick", { description: "Answers.", skipPermission: true, parameters, handler: ({ query }: any) => query + ${answer} });
export const loops = defineTool("loops", { description: "Never ends.", skipPermission: true, timeout: ${deadline}, handler: () => { for (;;); } });
`;

const opened = [];
for (const tier of tiers) {
  const { base, skills, remove } = tempFolder();
  const folder = join(skills, "s/tools");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(skills, "s/SKILL.md"), "---\nname: s\ndescription: Measured.\n---\nMeasured.\n");
  writeFileSync(join(folder, "all.ts"), source(0));
  const start = performance.now();
  const host = await createHost({
    skillDirectories: [skills],
    watch: false,
    sessionsDirectory: base,
    isolation: tier,
    trust: { folders: true },
  });
  const session = await host.createSession({ persist: false });
  const first = await session.callTool("quick", { query: "a" });
  const started = performance.now() - start;
  if (first.text !== "a0") throw new Error(`${tier}: ${first.text} ${first.error}`);
  opened.push({ tier, host, session, folder, remove, started, times: [], reloads: [], firsts: [], answer: 0 });
}

for (const { session } of opened) for (let n = 0; n < warmUp; n++) await session.callTool("quick", { query: "a" });
// In turn, so that what else the machine does meets all of them.
for (let round = 0; round < rounds; round++) {
  for (const { session, times } of opened) {
    for (let call = 0; call < callsPerRound; call++) {
      const start = performance.now();
      await session.callTool("quick", { query: "a" });
      times.push((performance.now() - start) * 1000);
    }
  }
}
for (let round = 0; round < reloads; round++) {
  await new Promise((done) => setTimeout(done, pause));
  for (const each of opened) {
    writeFileSync(join(each.folder, "all.ts"), source(++each.answer));
    const start = performance.now();
    await each.host.reload();
    const loaded = performance.now();
    const { text } = await each.session.callTool("quick", { query: "a" });
    each.reloads.push(performance.now() - start);
    each.firsts.push(performance.now() - loaded);
    if (text !== `a${each.answer}`) throw new Error(`${each.tier} answered ${text} after a reload`);
  }
}
const ends = new Map();
for (const { tier, session } of opened.slice(1)) {
  const times = [];
  for (let n = 0; n < 5; n++) {
    const start = performance.now();
    const { ok } = await session.callTool("loops", {});
    times.push(performance.now() - start - deadline);
    if (ok) throw new Error("An endless loop succeeded.");
    // After the pause that follows ends in a row.
    while (!(await session.callTool("quick", { query: "a" })).ok) await new Promise((done) => setTimeout(done, 50));
  }
  ends.set(tier, times);
}
const memory = memoryOfChildren();
const [off] = opened;
title(`The cost of isolation (${(rounds * callsPerRound).toLocaleString("en-US")} calls, ${reloads} reloads of each)`);
table(
  opened.map(({ tier, started, times, reloads: took, firsts }) => ({
    isolation: tier,
    "host to first answer ms": started,
    "call p50 µs": quantile(times, 0.5),
    "call p99 µs": quantile(times, 0.99),
    "reload to answer p50 ms": quantile(took, 0.5),
    "first call p50 ms": quantile(firsts, 0.5),
    "reload to off": ratio(quantile(took, 0.5), quantile(off.reloads, 0.5)),
    "endless loop ends after deadline ms": ends.has(tier) ? quantile(ends.get(tier), 0.5) : undefined,
    "child MB": tier === "process" ? memory : undefined,
  })),
);
const over = (index) => quantile(opened[index].times, 0.5) - quantile(off.times, 0.5);
goal("call in a worker over in-process, p50", over(1), 60, "µs");
goal("call in a process over in-process, p50", over(2), 150, "µs");
goal("an endless loop ends after its deadline, in a worker", quantile(ends.get("worker"), 0.5), 55, "ms");
goal("an endless loop ends after its deadline, in a process", quantile(ends.get("process"), 0.5), 55, "ms");
goal("first call of a generation in a process", quantile(opened[2].firsts, 0.5), 20, "ms");
goal("reload in a process to in-process", quantile(opened[2].reloads, 0.5) / quantile(off.reloads, 0.5), 1.5, "×");
if (memory !== undefined) goal("memory of a process", memory, 25, "MB beyond what it shares");
for (const { host, remove } of opened) {
  await host.close();
  remove();
}

/** Private memory of the children of this process and theirs, which a sandbox starts; undefined where there is no /proc. */
function memoryOfChildren() {
  if (!existsSync("/proc/self/smaps_rollup")) return undefined;
  const parents = new Map();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const parent = /^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
      parents.set(pid, parent);
    } catch {
      // It has ended.
    }
  }
  const isOurs = (pid) => pid !== undefined && (parents.get(pid) === String(process.pid) || isOurs(parents.get(pid)));
  let most;
  for (const pid of parents.keys()) {
    if (!isOurs(pid)) continue;
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    const kilobytes = [...text.matchAll(/^Private_(?:Clean|Dirty): +(\d+) kB$/gm)].reduce((sum, [, number]) => sum + Number(number), 0);
    most = Math.max(most ?? 0, kilobytes / 1024);
  }
  return most;
}
