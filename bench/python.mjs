// What a call of a Python tool costs beside the handler itself, and how long a saved one takes to be the new one.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { built } from "./support/built.mjs";
import { quantile } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { tempFolder } from "./support/skills.mjs";

const calls = 2000;
const warmUp = 200;

if (spawnSync("python3", ["-c", "pass"]).status !== 0) {
  console.log("skipped: there is no python3 on this machine");
  process.exit(0);
}
const { createHost, approveAll } = await built("index.js");
const place = tempFolder();
const source = (reply) => `from skillhost import define_tool

@define_tool(description="Counts words.")
def count_words(text: str, at_least: int = 1) -> dict:
    return {"count": sum(len(word) >= at_least for word in text.split()), "reply": ${reply}}

@define_tool(description="Counts words, in a coroutine.")
async def count_words_async(text: str, at_least: int = 1) -> dict:
    return {"count": sum(len(word) >= at_least for word in text.split()), "reply": ${reply}}
`;
const file = join(place.skills, "py/tools/words.py");
mkdirSync(dirname(file), { recursive: true });
writeFileSync(join(place.skills, "py/SKILL.md"), "---\nname: py\ndescription: Counts words.\n---\n");
writeFileSync(file, source(0));
const args = { text: "one two three four five six seven eight nine ten", at_least: 4 };

title(`A Python tool's call, ms (${calls.toLocaleString("en-US")} calls each, one after the other)`);
const host = await createHost({
  plugins: ["skillhost/plugins/python-tools"],
  skillDirectories: [place.skills],
  watch: true,
  sessionsDirectory: place.base,
});
const session = await host.createSession({ onPermissionRequest: approveAll, persist: false });
const bare = await bareWorker();
const variants = [
  { name: "a line to Python and back, same function", run: () => bare.call(args) },
  { name: "through the host, a function", run: () => answerOf("count_words") },
  { name: "through the host, a coroutine", run: () => answerOf("count_words_async") },
];
for (const variant of variants) variant.times = [];
for (let round = -warmUp; round < calls; round++) {
  for (const { run, times } of variants) {
    const begun = performance.now();
    await run();
    if (round >= 0) times.push(performance.now() - begun);
  }
}
const line = quantile(variants[0].times, 0.5);
table(
  variants.map(({ name, times }) => ({
    call: name,
    "p50 ms": quantile(times, 0.5),
    "p99 ms": quantile(times, 0.99),
    "over the bare line ms": quantile(times, 0.5) - line,
    "to the bare line": ratio(quantile(times, 0.5), line),
  })),
);
// The handler itself takes microseconds: what a call takes is what it costs.
goal("a Python call, warm, p50", quantile(variants[1].times, 0.5), 1, "ms");

const reloads = [];
for (let turn = 1; turn <= 15; turn++) {
  const begun = performance.now();
  writeFileSync(file, source(turn));
  while ((await answerOf("count_words")).reply !== turn);
  reloads.push(performance.now() - begun);
}
title("A Python file saved to its new answer, ms");
table([{ what: "save to new answer", "p50 ms": quantile(reloads, 0.5), "most ms": Math.max(...reloads) }]);
bare.end();
await host.close();
place.remove();

async function answerOf(tool) {
  const { resultType, textResultForLlm } = await session.callTool(tool, args);
  if (resultType !== "success") throw new Error(`${tool}: ${textResultForLlm}`);
  return JSON.parse(textResultForLlm);
}

async function bareWorker() {
  const code = `import json, sys
for line in sys.stdin:
    given = json.loads(line)
    count = sum(len(word) >= given["at_least"] for word in given["text"].split())
    print(json.dumps({"count": count}), flush=True)
`;
  const child = spawn("python3", ["-c", code], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  return {
    async call(given) {
      const answer = once(lines, "line");
      child.stdin.write(`${JSON.stringify(given)}\n`);
      await answer;
    },
    end: () => child.kill(),
  };
}
