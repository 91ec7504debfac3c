import { Transform } from "node:stream";
import { type DoubleFaults, ServerDouble } from "./server-double.ts";

interface RunFaults extends DoubleFaults {
  /** Writes this many bytes at a time. */
  readonly chunk?: number;
}

const { chunk, ...faults } = JSON.parse(process.env["DOUBLE_FAULTS"] ?? "{}") as RunFaults;

/** Runs the double as a program, on its pipes. */
export function runDouble(): void {
  const output = chunk === undefined ? process.stdout : inPieces(chunk);
  new ServerDouble(process.stdin, output, process.env, faults);
  process.stderr.write("(node:1) ExperimentalWarning: this line must not reach the user\n");
}

function inPieces(size: number): Transform {
  const pieces = new Transform({
    transform(bytes: Buffer, _encoding, done) {
      for (let at = 0; at < bytes.length; at += size) this.push(bytes.subarray(at, at + size));
      done();
    },
    readableHighWaterMark: 1,
  });
  pieces.pipe(process.stdout);
  return pieces;
}
