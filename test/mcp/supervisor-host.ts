import { countProcesses, realSupervisor, tinySpec } from "./tiny-servers.ts";

// A host with misbehaving servers, which ends in the requested way once all are ready.
const [marker = "", end = ""] = process.argv.slice(2);
const lease = realSupervisor().acquire([
  tinySpec("plain", marker),
  tinySpec("forks", marker, ["fork"]),
  tinySpec("resists", marker, ["fork", "stubborn"]),
]);
await lease.ready(new AbortController().signal, { waitMs: 15_000 });
// This one has the marker among its arguments, too.
const running = countProcesses(marker) - 1;
const states = lease.servers.map(({ state }) => state).join(" ");
process.stdout.write(`${states}, ${running} processes\n`, () => new Function(end)());
