import { openFileLog } from "../../src/io/log/append-log.ts";

// Writes to a log until it is killed, and says of every record when it is kept: by its number, one a line.
const log = openFileLog(process.argv[2] ?? "");
const { records } = await log.read();
let n = records.length;
for (;;) {
  // Batches of all sizes, so that a kill finds long and short writes.
  const batch = 1 + (n % 7);
  for (let i = 0; i < batch; i++, n++) log.append({ n, text: "x".repeat((n * 7919) % 60_000) });
  await log.flush();
  process.stdout.write(`${n - 1}\n`);
}
