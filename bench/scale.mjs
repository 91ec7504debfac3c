// Many skills that are only texts: a host's start, reloads, and a save beside them.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { built } from "./support/built.mjs";
import { childTask, inChild, median, timed } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { definingModule, tempFolder, toolName, writeTextSkills } from "./support/skills.mjs";

const sizes = [10, 1_000, 10_000, 12_725];
const saves = 20;

function compare() {
  title("Skills of one SKILL.md each (8 KB on average)");
  const results = sizes.map(measureSize);
  const few = results[0];
  table(
    results.map(({ size, first, later }) => ({
      skills: size,
      "ready ms": first.ready.wall,
      "again ms": later.ready.wall,
      "ready CPU ms": later.ready.cpu,
      "RSS MB": later.rss,
      "reload, nothing changed, ms": later.unchanged.wall,
      "reload, one changed, ms": later.one.wall,
      "save p50 ms": later.save,
      "to few": ratio(later.save, few.later.save),
    })),
  );
  const [ten, most] = [results.find(({ size }) => size === 10_000), results.at(-1)];
  goal("10,000 skills, ready in the first process", ten.first.ready.wall, 3000, "ms");
  goal("10,000 skills, ready in the second process", ten.later.ready.wall, 1000, "ms");
  goal("10,000 skills, RSS", ten.later.rss, 300, "MB");
  goal("a save beside 12,725 skills, to one beside 10", most.later.save / few.later.save, 1.5, "×");
  console.log(
    `\nEach size is measured in two processes, one after the other, with a cache folder of their own. A save is of a tool module, until a call of an open session`,
  );
  console.log(`gives the new answer; the median of ${saves}.`);
}

function measureSize(size) {
  const place = tempFolder();
  try {
    writeTextSkills(place.skills, size);
    const own = join(place.base, "own", "answering");
    mkdirSync(join(own, "tools"), { recursive: true });
    writeFileSync(join(own, "SKILL.md"), "---\nname: answering\ndescription: Answers with a number.\n---\nUse the tool.\n");
    // Empty at first: the second process finds what the first one wrote.
    process.env.XDG_CACHE_HOME = join(place.base, "cache");
    const open = () => inChild(import.meta.url, { base: place.base, skills: place.skills, own, size });
    return { size, first: open(), later: open() };
  } finally {
    place.remove();
  }
}

async function measure({ base, skills, own, size }) {
  const { createHost, approveAll } = await built("index.js");
  const save = (answer) => writeFileSync(join(own, "tools", "define.ts"), definingModule(0, answer));
  save(0);
  const options = { skillDirectories: [skills, join(base, "own")], workingDirectory: base, sessionsDirectory: join(base, "sessions") };
  const { value: host, ...ready } = await timed(() => createHost({ ...options, trust: { folders: true } }));
  const rss = process.memoryUsage().rss / 1024 / 1024;
  if (host.skills.length !== size + 1) throw new Error(`${host.skills.length} skills were loaded`);
  await host.reload();
  const { value: _, ...unchanged } = await timed(() => host.reload());
  writeTextSkills(skills, 1, "changed");
  const { value: __, ...one } = await timed(() => host.reload());
  const session = await host.createSession({ onPermissionRequest: approveAll });
  await sleep(1000);
  const times = [];
  for (let answer = 1; answer <= saves; answer++) {
    const begin = performance.now();
    save(answer);
    while (!(await answers(session, answer))) await sleep(1);
    times.push(performance.now() - begin);
    await sleep(100);
  }
  await host.close();
  console.log(JSON.stringify({ ready, rss, unchanged, one, save: median(times) }));
}

async function answers(session, answer) {
  const { textResultForLlm } = await session.callTool(toolName(0, "report"), { query: "*" });
  return JSON.parse(textResultForLlm).answer === answer;
}

const task = childTask();
if (task === undefined) compare();
else await measure(task);
