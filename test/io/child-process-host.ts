import { tmpdir } from "node:os";
import { spawnProcess } from "../../src/io/process/child-process.ts";

// A host that starts a child and a grandchild, prints both process ids, and evaluates its argument to end.
const stay = "setInterval(()=>{},1e3)";
const script = `const c=require('child_process').spawn(process.execPath,['-e',${JSON.stringify(stay)}]);console.log(process.pid+'\\n'+c.pid);${stay}`;
const spawned = await spawnProcess({ command: process.execPath, args: ["-e", script], cwd: tmpdir() });
if (spawned.kind !== "spawned") throw new Error(spawned.message);
spawned.process.stdout.once("data", (pids: Buffer) => {
  process.stdout.write(pids, () => new Function(process.argv[2] ?? "")());
});
