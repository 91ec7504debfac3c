import { Worker } from "node:worker_threads";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { createScope } from "../../src/io/scope.ts";

// A debugger in another thread: it sets a breakpoint on a line of the source, as editors do, and prints where it stops.
const debuggerSource = `
const { Session } = require("node:inspector");
const { SourceMap } = require("node:module");
const { parentPort, workerData } = require("node:worker_threads");
const session = new Session();
session.connectToMainThread();
// A session alone keeps no thread alive.
setInterval(() => {}, 1000);
const maps = new Map();
session.on("Debugger.scriptParsed", ({ params }) => {
  if (!params.url.endsWith(workerData.name)) return;
  const map = new SourceMap(JSON.parse(Buffer.from(params.sourceMapURL.split("base64,")[1], "base64").toString()));
  maps.set(params.scriptId, { map, url: params.url });
  for (let line = params.startLine; line <= params.endLine; line++) {
    for (let column = 0; column < 200; column++) {
      const entry = map.findEntry(line, column);
      if (entry.originalLine + 1 !== workerData.line || entry.generatedLine !== line) continue;
      session.post("Debugger.setBreakpoint", { location: { scriptId: params.scriptId, lineNumber: line, columnNumber: entry.generatedColumn } });
      return;
    }
  }
});
session.on("Debugger.paused", ({ params }) => {
  const { location } = params.callFrames[0];
  const found = maps.get(location.scriptId);
  const entry = found && found.map.findEntry(location.lineNumber, location.columnNumber);
  parentPort.postMessage({ paused: entry && { source: entry.originalSource, line: entry.originalLine + 1 } });
  session.post("Debugger.resume");
});
session.post("Debugger.enable", () => parentPort.postMessage("ready"));
`;

const [file = "", line = ""] = process.argv.slice(2);
const worker = new Worker(debuggerSource, { eval: true, workerData: { name: file.split(/[\\/]/).pop(), line: Number(line) } });
const stops: unknown[] = [];
worker.on("message", (message: unknown) => {
  if (message !== "ready") stops.push((message as { paused: unknown }).paused);
  else void run();
});

async function run(): Promise<void> {
  const loader = createModuleLoader({ hostModules: {} });
  const { exports } = await loader.load(file, createScope());
  // This wait lets the thread of the debugger set its breakpoint.
  while (stops.length === 0) {
    (exports["default"] as () => unknown)();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  process.stdout.write(JSON.stringify(stops[0]));
  // A process does not end while it is being debugged.
  await worker.terminate();
  process.exit(0);
}
