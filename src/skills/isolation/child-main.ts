import { parentPort } from "node:worker_threads";
import { FrameSplitter } from "./child-frames.ts";
import { serveSkill } from "./serve-skill.ts";

// The program of a child: a worker thread has a port, a process talks over its standard streams, one frame per line.
if (parentPort !== null) {
  const port = parentPort;
  port.on(
    "message",
    serveSkill((text) => port.postMessage(text)),
  );
} else {
  const write = process.stdout.write.bind(process.stdout);
  // What a tool prints must not mix with the frames.
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write;
  const receive = serveSkill((text) => void write(`${text}\n`));
  const lines = new FrameSplitter(receive, () => process.exit(1));
  process.stdin.on("data", (chunk: Buffer) => lines.add(chunk));
  // The host has gone.
  process.stdin.on("end", () => process.exit(0));
}
