import { createProcessIo } from "./process-io.ts";
import { keepHeapSmall } from "./small-heap.ts";

const { io, leave } = createProcessIo(process);
const argv = process.argv.slice(2);
// Clients of the Copilot SDK start their runtime like this, and wait for it: nothing is loaded that they do not need.
const isRuntime = argv.includes("--headless");
if (isRuntime) keepHeapSmall();
const run = isRuntime ? (await import("./commands/headless.ts")).headless : (await import("./main.ts")).main;
process.exitCode = await run(argv, io);
leave();
