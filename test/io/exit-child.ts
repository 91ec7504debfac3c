import { openFileLog } from "../../src/io/log/append-log.ts";

const log = openFileLog(process.argv[2] ?? "");
for (let n = 0; n < 100; n++) log.append({ n });
process.exit(3);
