import { createProcessIo, keepHeapSmall } from "./process-io.ts";

const { io, leave } = createProcessIo(process);
const argv = process.argv.slice(2);
// Copilot SDK clients start their runtime this way and wait for it, so only needed modules are loaded.
const isRuntime = argv.includes("--headless");
if (isRuntime) keepHeapSmall();
const run = isRuntime ? (await import("./commands/headless.ts")).headless : (await import("./main.ts")).main;
process.exitCode = await run(argv, io);
leave();
