// From a save to the new handler's answer: a watching host, jiti with chokidar as one would put them together, and `bun --hot`.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { watch } from "chokidar";
import { built } from "./support/built.mjs";
import { childTask, inChild, quantile } from "./support/measure.mjs";
import { plainJiti } from "./support/plain.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { definingModule, skillName, tempFolder, toolName, writeSkills } from "./support/skills.mjs";

const skills = 20;
const savesPerRun = 40;
const runs = 3;
// What the watcher of the host waits for by default too, except before it reports the edit of one complete file.
const debounce = 15;
const peers = fileURLToPath(new URL("peers/bun/", import.meta.url));
const bun = join(peers, `node_modules/@oven/bun-${process.platform}-${process.arch}/bin/bun`);
const kinds = {
  module: "a module that defines a tool",
  helper: "a helper that it imports",
  rename: "the module, by rename",
};

function compare() {
  title(`From a save to the new handler's answer, with up to ${debounce} ms of waiting for further changes`);
  const loaders = ["skillhost", "jiti + chokidar", "jiti with file cache + chokidar", ...(existsSync(bun) ? ["bun --hot"] : [])];
  if (!existsSync(bun)) console.log("bun --hot is skipped: it is not installed (npm install --ignore-scripts --prefix bench/peers/bun).");
  const samples = new Map(loaders.map((loader) => [loader, {}]));
  // In turn, so that whatever else the machine does meets all of them.
  for (let run = 0; run < runs; run++) {
    for (const loader of loaders) collect(samples.get(loader), inChild(import.meta.url, { loader }));
  }
  table(Object.keys(kinds).flatMap((kind) => loaders.map((loader) => rowOf(kind, loader, samples))));
  for (const kind of Object.keys(kinds)) {
    const ours = samples.get("skillhost")[kind];
    goal(`${kinds[kind]}, p50`, quantile(ours, 0.5), 20, "ms");
    goal(`${kinds[kind]}, p99`, quantile(ours, 0.99), 25, "ms");
    const hot = samples.get("bun --hot")?.[kind];
    if (hot !== undefined) goal(`${kinds[kind]}, p50 to bun --hot`, quantile(ours, 0.5) / quantile(hot, 0.5), 1, "×");
  }
  console.log(`\n${runs * savesPerRun} saves of each kind and loader, ${skills} skills watched; the answer of each save is checked.`);
}

function collect(into, found) {
  for (const [kind, times] of Object.entries(found)) into[kind] = [...(into[kind] ?? []), ...times];
}

function rowOf(kind, loader, samples) {
  const times = samples.get(loader)[kind];
  const ours = samples.get("skillhost")[kind];
  return {
    saved: kinds[kind],
    loader,
    saves: times.length,
    "p50 ms": quantile(times, 0.5),
    "p90 ms": quantile(times, 0.9),
    "p99 ms": quantile(times, 0.99),
    "most ms": Math.max(...times),
    "p50 to skillhost": ratio(quantile(times, 0.5), quantile(ours, 0.5)),
  };
}

async function measure({ loader }) {
  const place = tempFolder();
  if (loader === "bun --hot") return measureBun(place);
  try {
    writeSkills(place.skills, skills, "definitions");
    const folder = join(place.skills, skillName(3), "tools");
    const file = join(folder, "define.ts");
    const helper = join(folder, "_answer.ts");
    writeFileSync(helper, helperModule(0));
    writeFileSync(file, withHelper(0));
    const live = loader === "skillhost" ? await openHost(place) : await openPlain(place, file, loader.includes("cache"));
    const found = {};
    let answer = 0;
    for (const kind of Object.keys(kinds)) {
      found[kind] = [];
      // The first few compile what is needed, here and there.
      for (let save = -5; save < savesPerRun; save++) {
        answer++;
        const took = await live.answers(answer, () => saveAs[kind](answer, file, helper));
        if (save >= 0) found[kind].push(took);
        // Between two keystrokes of a person, though not at the same beat each time.
        await sleep(30 + ((answer * 7) % 20));
      }
    }
    await live.close();
    return found;
  } finally {
    place.remove();
  }
}

/** The same saves in a process of bun, which evaluates an entry again that imports the modules of all skills. */
function measureBun(place) {
  try {
    writeSkills(place.skills, skills, "definitions");
    // Only what a tool's module needs of the package: bun evaluates it again as well.
    const define = fileURLToPath(new URL("../dist/define.js", import.meta.url));
    mkdirSync(join(place.base, "node_modules/skillhost"));
    writeFileSync(join(place.base, "node_modules/skillhost/package.json"), '{"name":"skillhost","type":"module","main":"index.js"}');
    writeFileSync(join(place.base, "node_modules/skillhost/index.js"), `export * from ${JSON.stringify(define)};\n`);
    const folder = join(place.skills, skillName(3), "tools");
    const [file, helper] = [join(folder, "define.ts"), join(folder, "_answer.ts")];
    writeFileSync(helper, helperModule(0));
    writeFileSync(file, withHelper(0));
    let answer = 0;
    const saves = Object.keys(kinds).flatMap((kind) =>
      Array.from({ length: savesPerRun + 5 }, (_, index) => {
        answer++;
        const isHelper = kind === "helper";
        const text = isHelper ? helperModule(answer) : withHelper(answer);
        const pause = 30 + ((answer * 7) % 20);
        return { kind, counts: index >= 5, answer, pause, file: isHelper ? helper : file, text, renamed: kind === "rename" };
      }),
    );
    writeFileSync(join(place.base, "saves.json"), JSON.stringify(saves));
    const others = Array.from({ length: skills }, (_, index) => index).filter((index) => index !== 3);
    const imports = others.map((index) => `import "./skills/${skillName(index)}/tools/define.ts";`).join("\n");
    const entry = join(place.base, "entry.ts");
    writeFileSync(
      entry,
      `${imports}
import { report } from ${JSON.stringify(file)};
if (globalThis.hotBench !== undefined) globalThis.hotBench.reloaded(report);
else {
  const { startHotBench } = await import(${JSON.stringify(join(peers, "hot.mjs"))});
  startHotBench(report, JSON.parse(await Bun.file(${JSON.stringify(join(place.base, "saves.json"))}).text()));
}
`,
    );
    const ran = spawnSync(bun, ["--hot", "--no-clear-screen", entry], { encoding: "utf8", timeout: 120_000, cwd: place.base });
    const last = ran.stdout.trim().split("\n").at(-1) ?? "";
    if (ran.status !== 0 || !last.startsWith("{")) throw new Error(`bun --hot failed: ${ran.stderr}${ran.stdout}`);
    return JSON.parse(last);
  } finally {
    place.remove();
  }
}

const saveAs = {
  module: (answer, file) => writeFileSync(file, withHelper(answer)),
  helper: (answer, _file, helper) => writeFileSync(helper, helperModule(answer)),
  rename: (answer, file) => {
    writeFileSync(`${file}.tmp`, withHelper(answer));
    renameSync(`${file}.tmp`, file);
  },
};

const helperModule = (answer) => `export const fromHelper: number = ${answer};\n`;

// What the tool answers with is the larger of the two: whichever was saved last.
function withHelper(answer) {
  const code = definingModule(3, answer, 'import { fromHelper } from "./_answer.ts";\n');
  return code.replace("return { answer,", "return { answer: Math.max(answer, fromHelper),");
}

async function openHost({ base, skills: root }) {
  const { createHost, approveAll } = await built("index.js");
  const host = await createHost({ skillDirectories: [root], sessionsDirectory: join(base, "sessions") });
  const session = await host.createSession({ onPermissionRequest: approveAll, persist: false });
  const call = async () => JSON.parse((await session.callTool(toolName(3, "report"), { query: "*" })).textResultForLlm).answer;
  return {
    answers: (answer, save) => untilAnswered(answer, save, call, (onChange) => host.on("skills.changed", onChange)),
    close: () => host.close(),
  };
}

async function openPlain({ base, skills: root }, file, isCached) {
  const jiti = await plainJiti(base, isCached ? join(base, "jiti-cache") : false);
  const load = async () => (await jiti.import(file)).report;
  let tool = await load();
  const listeners = new Set();
  let timer;
  const reload = async () => {
    tool = await load();
    for (const notify of listeners) notify();
  };
  const watcher = watch(root, { ignoreInitial: true });
  watcher.on("all", () => {
    clearTimeout(timer);
    timer = setTimeout(reload, debounce);
  });
  await new Promise((resolve) => watcher.on("ready", resolve));
  const listen = (notify) => {
    listeners.add(notify);
    return { [Symbol.dispose]: () => listeners.delete(notify) };
  };
  const call = () => tool.handler(tool.parameters.parse({ query: "*" }), { toolName: "report" }).answer;
  return {
    answers: (answer, save) => untilAnswered(answer, save, call, listen),
    close: () => watcher.close(),
  };
}

/** Milliseconds from the save until a call gives the new answer; it calls after each notification. */
function untilAnswered(answer, save, call, listen) {
  return new Promise((resolve, reject) => {
    const lost = setTimeout(() => reject(new Error(`The save of answer ${answer} was never answered.`)), 10_000);
    const subscription = listen(async () => {
      if ((await call()) !== answer) return;
      resolve(performance.now() - begin);
      clearTimeout(lost);
      subscription[Symbol.dispose]();
    });
    const begin = performance.now();
    save();
  });
}

const task = childTask();
if (task === undefined) compare();
else console.log(JSON.stringify(await measure(task)));
