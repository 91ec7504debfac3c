// What each reload leaves behind, and whether the handlers that it replaced are freed.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { built } from "./support/built.mjs";
import { childTask, inChild, settledHeap } from "./support/measure.mjs";
import { plainJiti } from "./support/plain.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { definingModule, skillName, tempFolder, writeSkills } from "./support/skills.mjs";

// jiti's own Babel takes long for each: what it keeps shows after fewer.
const loaders = {
  "skillhost, host": 2000,
  "skillhost, module loader alone": 2000,
  jiti: 500,
  "import() with ?v=": 2000,
};
// V8 keeps compiling, and discards compiled code, for a while; that memory does not grow with the reloads.
const warmUp = 500;

function compare() {
  title("Memory kept per reload of a module (3 KB, a zod schema)");
  const results = Object.entries(loaders).map(([loader, reloads]) => ({
    loader,
    reloads,
    ...inChild(import.meta.url, { loader, reloads }),
  }));
  const [ours] = results;
  table(
    results.map(({ loader, reloads, kept, rss, growth, freed, wall }) => ({
      loader,
      reloads,
      "heap KB/reload": kept,
      "heap grown at 25, 50, 75, 100 %, KB": growth.map((value) => Math.round(value)).join(", "),
      "RSS KB/reload": rss,
      "old handlers freed": `${freed} of ${reloads}`,
      "ms/reload": wall / reloads,
      "heap to host's": ratio(kept, ours.kept),
    })),
  );
  for (const { loader, reloads, kept, freed } of results.slice(0, 2)) {
    goal(`${loader}, kept per reload`, kept, 1, "KB");
    goal(`${loader}, old handlers not freed`, reloads - freed, 0, "handlers");
  }
}

async function measure({ loader, reloads }) {
  const place = tempFolder();
  let freed = 0;
  const registry = new FinalizationRegistry(() => freed++);
  globalThis.benchHandler = (handler) => registry.register(handler);
  try {
    writeSkills(place.skills, 1, "definitions");
    const file = join(place.skills, skillName(0), "tools", "define.ts");
    const { reload, close } = await open[loader](place, file);
    let answer = 0;
    for (; answer < Math.min(warmUp, reloads / 4); answer++) await reload(answer);
    const before = await settledHeap();
    const rssBefore = process.memoryUsage().rss;
    freed = 0;
    const growth = [];
    const begin = performance.now();
    let measuring = 0;
    for (let done = 1; done <= reloads; done++) {
      await reload(answer++);
      if (done % (reloads / 4) !== 0) continue;
      const since = performance.now();
      growth.push(((await settledHeap()) - before) / 1024);
      measuring += performance.now() - since;
    }
    const wall = performance.now() - begin - measuring;
    const rss = (process.memoryUsage().rss - rssBefore) / 1024 / reloads;
    const result = { kept: growth.at(-1) / reloads, rss, growth, freed, wall };
    await close();
    return result;
  } finally {
    place.remove();
  }
}

/** Hands each generation's handler to the registry that hears when it is freed. */
function moduleText(answer) {
  return `${definingModule(0, answer)}globalThis.benchHandler(report.handler);\n`;
}

const open = {
  "skillhost, host": async ({ base, skills }, file) => {
    const { createHost, approveAll } = await built("index.js");
    const host = await createHost({ skillDirectories: [skills], watch: false, sessionsDirectory: join(base, "sessions") });
    const session = await host.createSession({ onPermissionRequest: approveAll, persist: false });
    const reload = async (answer) => {
      writeFileSync(file, moduleText(answer));
      await host.reload();
      const { textResultForLlm } = await session.callTool("b0_report", { query: "*" });
      expectAnswer(JSON.parse(textResultForLlm).answer, answer);
    };
    return { reload, close: () => host.close() };
  },
  "skillhost, module loader alone": async (_place, file) => {
    const { createModuleLoader } = await built("io/module-loader/create-module-loader.js");
    const { createScope } = await built("io/scope.js");
    const skillhost = await built("index.js");
    const loader = createModuleLoader({ hostModules: { skillhost: () => Promise.resolve(skillhost) } });
    const reload = async (answer) => {
      writeFileSync(file, moduleText(answer));
      loader.invalidate([file]);
      const scope = createScope();
      call((await loader.load(file, scope)).exports.report, answer);
      await scope.dispose();
    };
    return { reload, close: () => loader[Symbol.dispose]() };
  },
  jiti: async ({ base }, file) => {
    const jiti = await plainJiti(base, false);
    const reload = async (answer) => {
      writeFileSync(file, moduleText(answer));
      call((await jiti.import(file)).report, answer);
    };
    return { reload, close: () => {} };
  },
  "import() with ?v=": async (_place, file) => {
    // Types are taken out once for all: what the import keeps is what is measured.
    const { transformSync } = await import("oxc-transform");
    const host = JSON.stringify(new URL("../dist/index.js", import.meta.url).href);
    const plain = (answer) => transformSync(file, moduleText(answer)).code.replace('"skillhost"', host);
    const script = file.replace(/\.ts$/, ".mjs");
    const reload = async (answer) => {
      writeFileSync(script, plain(answer));
      call((await import(`${pathToFileURL(script).href}?v=${answer}`)).report, answer);
    };
    return { reload, close: () => {} };
  },
};

function call(tool, answer) {
  expectAnswer(tool.handler(tool.parameters.parse({ query: "*" }), { toolName: "report" }).answer, answer);
}

function expectAnswer(found, expected) {
  if (found !== expected) throw new Error(`The call was answered by generation ${found} instead of ${expected}.`);
}

const task = childTask();
if (task === undefined) compare();
else console.log(JSON.stringify(await measure(task)));
