// A thousand sessions on one host, and one save while they are open, beside a host with a single session.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { built } from "./support/built.mjs";
import { childTask, inChild, median, settledHeap, timed } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { definingModule, skillName, tempFolder, toolName, writeSkills } from "./support/skills.mjs";

const skills = 100;
const saves = 15;

function compare() {
  title(`Sessions of one host with ${skills} skills (400 tools)`);
  const results = [
    { sessions: 1, listens: false },
    { sessions: 1000, listens: false },
    { sessions: 1, listens: true },
    { sessions: 1000, listens: true },
  ].map((given) => ({ ...given, ...inChild(import.meta.url, given) }));
  table(
    results.map(({ sessions, listens, opened, kept, catalogs, save, seen }) => ({
      sessions,
      "listen to tools_updated": listens ? "all" : "none",
      "ms/session to open": opened / sessions,
      "KB/session": sessions === 1 ? undefined : kept / sessions,
      "different catalogs": catalogs,
      "save → skills.changed ms": median(save),
      "save → all have it ms": median(seen),
      "to one session": ratio(median(seen), median(results.find((other) => other.sessions === 1 && other.listens === listens).seen)),
    })),
  );
  for (const { sessions, listens, catalogs } of results) {
    if (sessions > 1)
      goal(`catalogs of ${sessions.toLocaleString("en-US")} sessions${listens ? " that listen" : ""}`, catalogs, 1, "catalog");
  }
  console.log("\nThe 15 ms of debounce are in both times of a save. A session without listeners makes its catalog when it is next read.");
}

async function measure({ sessions, listens }) {
  const place = tempFolder();
  try {
    writeSkills(place.skills, skills, "definitions");
    const { createHost, approveAll } = await built("index.js");
    const host = await createHost({ skillDirectories: [place.skills], sessionsDirectory: join(place.base, "sessions") });
    const file = join(place.skills, skillName(7), "tools", "define.ts");
    let notified = 0;
    const open = async () => {
      const session = await host.createSession({ onPermissionRequest: approveAll, persist: false });
      if (listens) session.on("session.tools_updated", () => notified++);
      return session;
    };
    // The first assembles the catalog; it is not one of those that are measured.
    const first = await open();
    void first.tools;
    const before = await settledHeap();
    const all = [];
    const { wall: opened } = await timed(async () => {
      for (let n = 0; n < sessions; n++) all.push(await open());
      for (const session of all) void session.tools;
    });
    const kept = ((await settledHeap()) - before) / 1024;
    const catalogs = new Set([first, ...all].map(({ catalog }) => catalog)).size;
    const save = [];
    const seen = [];
    for (let answer = 1; answer <= saves; answer++) {
      const changed = new Promise((resolve) => {
        const subscription = host.on("skills.changed", () => resolve(subscription[Symbol.dispose]()));
      });
      const begin = performance.now();
      writeFileSync(file, described(answer));
      await changed;
      save.push(performance.now() - begin);
      await expectNew(all, answer);
      seen.push(performance.now() - begin);
    }
    if (listens && notified < all.length * saves) throw new Error(`${notified} notifications instead of ${all.length * saves}`);
    await host.close();
    return { opened, kept, catalogs, save, seen };
  } finally {
    place.remove();
  }
}

/** Changes what models read of the tool, so that every listener has news. */
function described(answer) {
  return definingModule(7, answer).replace("Reports the records", `Reports (${answer}) the records`);
}

async function expectNew(all, answer) {
  // Listeners are notified in a microtask of their own.
  await Promise.resolve();
  for (const session of all) {
    const tool = session.catalog.executables.get(toolName(7, "report"));
    if (!tool.definition.description.startsWith(`Reports (${answer})`)) throw new Error("A session has an older tool.");
  }
}

const task = childTask();
if (task === undefined) compare();
else console.log(JSON.stringify(await measure(task)));
