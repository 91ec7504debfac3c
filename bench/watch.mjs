// Watching thousands of skills: each directory by itself, chokidar behind the same interface, and chokidar alone.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { watch } from "chokidar";
import { built } from "./support/built.mjs";
import { childTask, inChild, inotifyWatches, median, quantile, timed } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { skillName, tempFolder } from "./support/skills.mjs";

const sizes = [1000, 5000];
const runs = 3;
const saves = 40;
const files = ["skill.json", "prompts/a.md", "prompts/b.md", "tools/a.json", "tools/b.json", "tools/c.json", "tools/d.ts"];
const watchers = {
  "skillhost, each directory": (root, onChange) => watchWith("directory", root, onChange),
  "skillhost over chokidar": (root, onChange) => watchWith("chokidar", root, onChange),
  "chokidar alone": watchPlainly,
};

function compare() {
  title("Watching skills of 3 folders and 7 files each");
  const results = sizes.flatMap(measureSize);
  table(results.map(({ skills, watcher, found, first }) => rowOf(skills, watcher, found, first)));
  const [{ found }] = results.filter(({ skills }) => skills === 5000);
  goal("5,000 skills, set-up", median(found.map(({ setUp }) => setUp)), 500, "ms");
  goal("5,000 skills, memory", median(found.map(({ rss }) => rss)), 40, "MB");
  console.log(`\nMedians of ${runs} processes each, in turn. Save to report has no debounce for chokidar alone, 15 ms for the others.`);
}

function measureSize(skills) {
  const { skills: root, remove } = tempFolder();
  try {
    for (let index = 0; index < skills; index++) writeEmptySkill(join(root, skillName(index)));
    const results = Object.keys(watchers).map((watcher) => ({ skills, watcher, found: [] }));
    for (let run = 0; run < runs; run++) for (const { watcher, found } of results) found.push(inChild(import.meta.url, { watcher, root }));
    return results.map((result) => ({ ...result, first: results[0].found }));
  } finally {
    remove();
  }
}

function writeEmptySkill(folder) {
  for (const part of ["prompts", "tools"]) mkdirSync(join(folder, part), { recursive: true });
  for (const file of files) writeFileSync(join(folder, file), "{}");
}

function rowOf(skills, watcher, found, first) {
  const middle = (of, key) => median(of.map((each) => each[key]));
  const reports = found.flatMap((each) => each.reports);
  return {
    skills,
    watcher,
    "set-up ms": middle(found, "setUp"),
    "CPU ms": middle(found, "cpu"),
    "RSS MB": middle(found, "rss"),
    "inotify watches": found[0].watches,
    "save → report p50 ms": quantile(reports, 0.5),
    "p99 ms": quantile(reports, 0.99),
    "set-up to first": ratio(middle(found, "setUp"), middle(first, "setUp")),
    "RSS to first": ratio(middle(found, "rss"), middle(first, "rss")),
  };
}

async function measure({ watcher, root }) {
  // What either has to load from disk does not belong to its set-up.
  await built("io/watch/watch-tree.js");
  globalThis.gc();
  const rssBefore = process.memoryUsage().rss;
  const watchesBefore = inotifyWatches();
  let heard = () => {};
  const { wall, cpu, value } = await timed(() => watchers[watcher](root, (path) => heard(path)));
  const rss = (process.memoryUsage().rss - rssBefore) / 1e6;
  const watches = watchesBefore === undefined ? undefined : inotifyWatches() - watchesBefore;
  const reports = await timeReports(root, (listener) => {
    heard = listener;
  });
  await value.close();
  return { setUp: wall, cpu, rss, watches, reports };
}

async function timeReports(root, listen) {
  const times = [];
  for (let save = 0; save < saves; save++) {
    const file = join(root, skillName(save), "tools", "d.ts");
    const reported = new Promise((resolve) => listen((path) => path === file && resolve()));
    const begin = performance.now();
    writeFileSync(file, `${save}`);
    await reported;
    times.push(performance.now() - begin);
  }
  return times;
}

async function watchWith(backend, root, onChange) {
  const { watchTree } = await built("io/watch/watch-tree.js");
  const watcher = watchTree({
    roots: [root],
    backend,
    onChange: (changes) => changes.forEach(({ path }) => void onChange(path)),
    onProblem: (problem) => console.error(problem),
  });
  await watcher.ready;
  return { close: () => watcher[Symbol.asyncDispose]() };
}

async function watchPlainly(root, onChange) {
  const watcher = watch(root, { ignoreInitial: true });
  watcher.on("all", (_event, path) => onChange(path));
  await new Promise((resolve) => watcher.on("ready", resolve));
  return { close: () => watcher.close() };
}

const task = childTask();
if (task === undefined) compare();
else console.log(JSON.stringify(await measure(task)));
