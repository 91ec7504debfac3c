import { takeFileLock } from "../../src/io/file-lock.ts";

// Waits for a line on stdin, tries to take the lock, and prints the outcome. Holds the lock until it is killed or reads another line.
const path = process.argv[2] ?? "";
process.stdin.once("data", () => {
  void takeFileLock(path).then((taken) => {
    process.stdout.write(`${taken.kind}\n`);
    process.stdin.once("data", () => process.exit(0));
  });
});
process.stdout.write("ready\n");
