import { StringDecoder } from "node:string_decoder";
import { onAbort } from "../base/wait-for.ts";
import { type ManagedProcess, type ProcessSpec, type SpawnFailure, spawnProcess } from "./spawn-process.ts";

/** A program for `runProgram`. */
export interface ProgramSpec extends ProcessSpec {
  /** Default: empty input. */
  readonly stdin?: string;
  readonly signal: AbortSignal;
  /** Milliseconds between asking the program to end and making it, default 2000. */
  readonly graceMs?: number;
  /** Limit of `stdout`; bytes beyond it are dropped. */
  readonly maxOutputBytes: number;
  /** Text as it arrives, whole characters only. It must not throw. */
  onOutput?(text: string, stream: "stdout" | "stderr"): void;
}

/** What became of a program: its output and exit code, or the reason that it has none. */
export type ProgramOutcome =
  | {
      readonly kind: "exited";
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
      readonly stdout: string;
      /** The last 16 kB: where programs say why they failed. */
      readonly stderrTail: string;
      /** Whether stdout was longer than allowed. */
      readonly truncated: boolean;
    }
  | SpawnFailure
  | { readonly kind: "aborted" };

/**
 * Runs a program to its end, without a shell and with a minimal environment: no keys and tokens of the host. The processes
 * of its group end with it, and when `signal` fires. Never rejects: a program that cannot be started is an outcome.
 */
export async function runProgram(spec: ProgramSpec): Promise<ProgramOutcome> {
  if (spec.signal.aborted) return { kind: "aborted" };
  const spawned = await spawnProcess(spec);
  if (spawned.kind !== "spawned") return spawned;
  const { process } = spawned;
  const stdout = new Head(spec.maxOutputBytes);
  const stderr = new Tail(STDERR_TAIL);
  process.stdout.on("data", (chunk: Buffer) => stdout.add(chunk));
  process.stderr.on("data", (chunk: Buffer) => stderr.add(chunk));
  forwardOutput(process, spec);
  process.stdin.end(spec.stdin ?? "");
  return (await endOrAbort(process, spec))
    ? { kind: "aborted" }
    : { kind: "exited", ...(await process.ended), stdout: stdout.text(), stderrTail: stderr.text(), truncated: stdout.isTruncated };
}

const STDERR_TAIL = 16_384;

async function endOrAbort(process: ManagedProcess, { signal, graceMs }: ProgramSpec): Promise<boolean> {
  let stopped: Promise<unknown> | undefined;
  let isAborted = (): void => {};
  const aborted = new Promise<void>((resolve) => {
    isAborted = resolve;
  });
  const abort = (): void => {
    stopped = process.stop(graceMs);
    isAborted();
  };
  // It may have fired already, while the program was being started.
  const waiting = onAbort(signal, abort);
  await Promise.race([process.ended, aborted]);
  waiting[Symbol.dispose]();
  await stopped;
  return stopped !== undefined;
}

function forwardOutput(process: ManagedProcess, { onOutput }: ProgramSpec): void {
  if (onOutput === undefined) return;
  for (const name of ["stdout", "stderr"] as const) {
    const decoder = new StringDecoder("utf8");
    const forward = (text: string): void => {
      if (text !== "") onOutput(text, name);
    };
    process[name].on("data", (chunk: Buffer) => forward(decoder.write(chunk)));
    process[name].on("end", () => forward(decoder.end()));
  }
}

/** The first bytes of a stream. */
class Head {
  readonly #max: number;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  isTruncated = false;

  constructor(max: number) {
    this.#max = max;
  }

  add(chunk: Buffer): void {
    const kept = chunk.subarray(0, this.#max - this.#size);
    if (kept.length < chunk.length) this.isTruncated = true;
    if (kept.length === 0) return;
    // A copy where something is cut off, so that the rest of the chunk is not kept with it.
    this.#chunks.push(kept.length < chunk.length ? Buffer.from(kept) : chunk);
    this.#size += kept.length;
  }

  text(): string {
    const decoder = new StringDecoder("utf8");
    const whole = decoder.write(Buffer.concat(this.#chunks));
    // A character that was cut in two by us is left out; one that the program did not finish is shown as such.
    return this.isTruncated ? whole : whole + decoder.end();
  }
}

/** The last bytes of a stream. */
class Tail {
  readonly #max: number;
  #chunks: Buffer[] = [];
  #size = 0;
  #isCut = false;

  constructor(max: number) {
    this.#max = max;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    // Cut now and then rather than at each chunk: a program may write byte by byte.
    if (this.#size > this.#max * 4 || this.#chunks.length > 256) this.#cut();
  }

  text(): string {
    this.#cut();
    const bytes = this.#chunks[0] ?? Buffer.alloc(0);
    // Bytes 10xxxxxx at the start are the rest of a character that was cut in two.
    let start = 0;
    while (this.#isCut && start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
    return bytes.toString("utf8", start);
  }

  #cut(): void {
    const all = Buffer.concat(this.#chunks);
    this.#isCut ||= all.length > this.#max;
    this.#chunks = [Buffer.from(all.subarray(Math.max(0, all.length - this.#max)))];
    this.#size = this.#chunks[0]?.length ?? 0;
  }
}
