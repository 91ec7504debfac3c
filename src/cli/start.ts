import { createProcessIo, keepHeapSmall } from "./process-io.ts";

const { io, leave } = createProcessIo(process);
const argv = process.argv.slice(2);
// Copilot SDK clients start their runtime this way and wait for it, so only needed modules are loaded.
const isRuntime = argv[0] !== "complete" && argv.includes("--headless");
if (isRuntime) keepHeapSmall();
process.exitCode = await run();
leave();

async function run(): Promise<number> {
  if (isRuntime) return (await import("./commands/headless.ts")).headless(argv, io);
  // What follows is an unfinished command line, and not to be parsed as one.
  if (argv[0] === "complete") return (await import("./commands/complete.ts")).complete(argv.slice(1), io);
  return (await import("./main.ts")).main(argv, io);
}
