import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { SourceFile } from "./files.ts";

const probe = fileURLToPath(new URL("./probe.mjs", import.meta.url));
const batchSize = 100;

/** True for a source that cannot nest deeply enough to overflow the parser's stack, whatever is in it. */
export function isSurelyShallow(text: string): boolean {
  if (text.length > 16_384) return false;
  return (text.match(/[([{<`?]|=>/g)?.length ?? 0) <= 1000;
}

/** The files among these that the parser does not survive, found out by parsing them in another process first. */
export async function findTooDeep(files: readonly SourceFile[], signal: AbortSignal): Promise<ReadonlySet<string>> {
  const tooDeep = new Set<string>();
  let at = 0;
  while (at < files.length) {
    const batch = files.slice(at, at + batchSize);
    const parsed = await countParsed(batch, signal);
    const failed = batch[parsed];
    if (failed) tooDeep.add(failed.path);
    at += parsed + (failed ? 1 : 0);
  }
  return tooDeep;
}

/** How many files, from the first, the probe got through. */
function countParsed(files: readonly SourceFile[], signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { signal, timeout: 60_000, windowsHide: true };
    execFile(process.execPath, [probe, ...files.map((file) => file.absolute)], options, (error, stdout) => {
      if (signal.aborted) reject(signal.reason);
      else resolve(error ? stdout.split("\n").length - 1 : files.length);
    });
  });
}
