import { openFileLog } from "../../src/io/log/append-log.ts";

// Writes to a log until it is killed, and prints the number of each stored record on a line.
const log = openFileLog(process.argv[2] ?? "");
const { records } = await log.read();
let n = records.length;
for (;;) {
  // Batches have all sizes, so that a kill interrupts long and short writes.
  const batch = 1 + (n % 7);
  for (let i = 0; i < batch; i++, n++) log.append({ n, text: "x".repeat((n * 7919) % 60_000) });
  await log.flush();
  process.stdout.write(`${n - 1}\n`);
}
