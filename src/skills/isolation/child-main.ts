import { parentPort } from "node:worker_threads";
import { identityOf } from "../../io/process/mount-identity.ts";
import { type ChildFrame, FrameSplitter, type MountsAsked, mountsAsked, throughHost } from "./child-frames.ts";
import { connectThroughHost } from "./child-network.ts";
import { serveSkill } from "./serve-skill.ts";

// The program of a child: a worker thread has a port, a process talks over its standard streams, one frame per line.
if (parentPort !== null) {
  const port = parentPort;
  port.on(
    "message",
    serveSkill((text) => port.postMessage(text), { caches: true }),
  );
} else {
  const write = process.stdout.write.bind(process.stdout);
  // What a tool prints must not mix with the frames.
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write;
  const send = (text: string): void => void write(`${text}\n`);
  // Nothing is kept on disk: the code of a skill could change what is kept for others.
  const serve = serveSkill(send, { caches: false });
  const connected = process.argv.includes(throughHost) ? connectThroughHost((frame) => send(JSON.stringify(frame))) : undefined;
  const receive = (text: string): void => {
    // Before any code of the skill runs.
    if (text.startsWith(mountsAsked))
      send(JSON.stringify({ mounts: (JSON.parse(text) as MountsAsked).mounts.map((path) => identityOf(path) ?? null) }));
    else if (connected !== undefined && text.startsWith('{"kind":"connected",')) connected(JSON.parse(text) as ChildFrame);
    else serve(text);
  };
  const lines = new FrameSplitter(receive, () => process.exit(1));
  process.stdin.on("data", (chunk: Buffer) => lines.add(chunk));
  // The host has gone.
  process.stdin.on("end", () => process.exit(0));
}
