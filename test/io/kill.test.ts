import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openFileLog } from "../../src/io/log/append-log.ts";
import { compileSources } from "../compiled-sources.ts";
import { rounds } from "../rounds.ts";
import { patience } from "../slowness.ts";
import { emptyFolder } from "./temp-folder.ts";

const kills = rounds(8, 100);
const writers = 4;
const compiled = compileSources("test/io/log-writer-child.ts");

/** Lets a writer continue a log and kills it after it acknowledged some records. Resolves with the number of the last one. */
function writeUntilKilled(path: string, acknowledgements: number): Promise<number> {
  const child = spawn(process.execPath, [compiled("test/io/log-writer-child.ts"), path]);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
    if (output.split("\n").length > acknowledgements) child.kill("SIGKILL");
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (_code, signal) => {
      const complete = output.slice(0, output.lastIndexOf("\n")).split("\n");
      if (signal === "SIGKILL") resolve(Number(complete.at(-1)));
      else reject(new Error(`The writer ended by itself: ${output}`));
    });
  });
}

async function killAndCheck(folder: string, writer: number): Promise<void> {
  const path = join(folder, `log-${writer}.jsonl`);
  for (let round = writer; round < kills; round += writers) {
    const last = await writeUntilKilled(path, 1 + (round % 5));
    const log = openFileLog(path);
    const { records, diagnostics } = await log.read();
    await log.close();
    expect(diagnostics).toEqual([]);
    expect(records.length).toBeGreaterThan(last);
    expect(records.every((record, n) => record["n"] === n && (record["text"] as string).length === (n * 7919) % 60_000)).toBe(true);
  }
}

test(`a writer that is killed ${kills} times while it writes loses no acknowledged record`, {
  timeout: patience(20_000 + kills * 3_000),
}, async () => {
  const folder = emptyFolder();
  await Promise.all(Array.from({ length: writers }, (_, writer) => killAndCheck(folder, writer)));
});
