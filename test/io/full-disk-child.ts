import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openFileLog } from "../../src/io/log/append-log.ts";

// Fills the given small disk with a log, makes room by deleting another file, and prints the outcome.
const disk = process.argv[2] ?? "";
const ballast = join(disk, "ballast");
const codes: string[] = [];
writeFileSync(ballast, Buffer.alloc(70 * 1024));
const log = openFileLog(join(disk, "log"), { onDiagnostic: ({ code }) => codes.push(code) });
for (let n = 0; n < 2500; n++) {
  log.append({ n, text: "about thirty bytes" });
  if (n % 100 === 0) await log.flush().catch(() => {});
}
rmSync(ballast);
await log.close();
const { records } = await openFileLog(join(disk, "log")).read();
process.stdout.write(JSON.stringify({ codes, inOrder: records.every((record, n) => record["n"] === n), records: records.length }));
