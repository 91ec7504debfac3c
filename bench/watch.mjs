// Measures both ways of watching, side by side in one run: time to set up, memory, kernel watches, and the time from a
// save to its report. `node --expose-gc bench/watch.mjs [skills…]`; SKILLHOST_DIST points to another build than ../dist.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const dist = process.env.SKILLHOST_DIST ?? fileURLToPath(new URL("../dist", import.meta.url));
const [only, folder] = process.argv[2] === "--one" ? process.argv.slice(3) : [];
if (only === undefined) compare(process.argv.slice(2).map(Number).filter(Number.isFinite));
else console.log(JSON.stringify(await measure(only, folder)));

function compare(sizes) {
  for (const size of sizes.length > 0 ? sizes : [1000, 5000]) {
    const folder = makeSkills(size);
    try {
      console.log(`\n${size} skills (3 folders and 7 files each)`);
      // A process each, in turn and twice over, so that neither inherits the other's memory or a warm disk alone.
      for (const backend of ["directory", "chokidar", "directory", "chokidar"]) {
        const child = spawnSync(process.execPath, ["--expose-gc", fileURLToPath(import.meta.url), "--one", backend, folder], {
          encoding: "utf8",
        });
        if (child.status !== 0) throw new Error(child.stderr);
        const { setUp, cpu, rss, watches, directories, save } = JSON.parse(child.stdout);
        console.log(
          `${backend.padEnd(10)} set-up ${setUp} ms (CPU ${cpu} ms), RSS +${rss} MB, inotify watches ${watches}, folders ${directories}, save to report p50 ${save[0]} ms, p99 ${save[1]} ms`,
        );
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

function makeSkills(count) {
  const root = mkdtempSync(join(tmpdir(), "watch-bench-"));
  for (let i = 0; i < count; i++) {
    const skill = join(root, `skill-${i}`);
    mkdirSync(join(skill, "tools"), { recursive: true });
    mkdirSync(join(skill, "prompts"));
    for (const file of ["skill.json", "prompts/a.md", "prompts/b.md", "tools/a.json", "tools/b.json", "tools/c.json", "tools/d.ts"]) {
      writeFileSync(join(skill, file), "{}");
    }
  }
  return root;
}

async function measure(backend, root) {
  const { watchTree } = await import(pathToFileURL(resolve(dist, "io/watch-tree.js")).href);
  if (backend === "chokidar") await import("chokidar");
  let heard = () => {};
  globalThis.gc?.();
  const rssBefore = process.memoryUsage().rss;
  const cpuBefore = process.cpuUsage();
  const begin = performance.now();
  const watcher = watchTree({
    roots: [root],
    backend,
    onChange: (changes) => heard(changes),
    onProblem: (problem) => console.error(problem),
  });
  await watcher.ready;
  const setUp = Math.round(performance.now() - begin);
  const { user, system } = process.cpuUsage(cpuBefore);
  const rss = Math.round(((process.memoryUsage().rss - rssBefore) / 1e6) * 10) / 10;
  const watches = countWatches();
  const save = await saves(root, (listener) => {
    heard = listener;
  });
  const { directories } = watcher.counts;
  await watcher[Symbol.asyncDispose]();
  return { setUp, cpu: Math.round((user + system) / 1000), rss, watches, directories, save };
}

async function saves(root, listen) {
  const times = [];
  for (let i = 0; i < 40; i++) {
    const file = join(root, `skill-${i}`, "tools", "d.ts");
    const reported = new Promise((done) => listen((changes) => changes.some((change) => change.path === file) && done()));
    const begin = performance.now();
    writeFileSync(file, `${i}`);
    await reported;
    times.push(performance.now() - begin);
  }
  times.sort((a, b) => a - b);
  return [times[20].toFixed(1), times[39].toFixed(1)];
}

function countWatches() {
  if (process.platform !== "linux") return "?";
  let count = 0;
  for (const fd of readdirSync("/proc/self/fdinfo")) {
    try {
      count += readFileSync(`/proc/self/fdinfo/${fd}`, "utf8")
        .split("\n")
        .filter((line) => line.startsWith("inotify")).length;
    } catch {
      // The descriptor of the listing itself is closed by now.
    }
  }
  return count;
}
