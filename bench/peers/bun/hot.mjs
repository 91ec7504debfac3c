// Measures `bun --hot` in its own process: bun evaluates the entry again after each save, and the entry gives its tool to this driver.
import { renameSync, writeFileSync } from "node:fs";

/** Runs once: what it keeps in `globalThis.hotBench` survives reloads. `saves` holds the texts, made before any time is taken. */
export function startHotBench(report, saves) {
  let waiting;
  const bench = { reloaded: (next) => waiting?.(next) };
  globalThis.hotBench = bench;
  const answerOf = (tool) => tool.handler(tool.parameters.parse({ query: "*" }), { toolName: "report" }).answer;
  if (answerOf(report) !== 0) throw new Error("The first answer must be 0.");
  void measure(saves, (notify) => {
    waiting = notify && ((next) => notify(answerOf(next)));
  });
}

async function measure(saves, listen) {
  const found = {};
  for (const { kind, counts, answer, pause, file, text, renamed } of saves) {
    const took = await new Promise((resolve, reject) => {
      const lost = setTimeout(() => reject(new Error(`The save of answer ${answer} was never answered.`)), 10_000);
      listen((given) => {
        if (given !== answer) return;
        clearTimeout(lost);
        resolve(performance.now() - begin);
      });
      const begin = performance.now();
      if (renamed) {
        writeFileSync(`${file}.tmp`, text);
        renameSync(`${file}.tmp`, file);
      } else writeFileSync(file, text);
    });
    listen(undefined);
    found[kind] ??= [];
    if (counts) found[kind].push(took);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  console.log(JSON.stringify(found));
  process.exit(0);
}
