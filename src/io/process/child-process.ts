import { type ChildProcess, spawn } from "node:child_process";
import { statSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { errorMessage } from "../../base/errors.ts";
import { onAbort } from "../../base/wait.ts";
import { minimalEnvironment } from "./child-environment.ts";
import { planLaunch } from "./child-launch.ts";
import { confinedCommand, findConfinement, type ProcessLimits } from "./confine-process.ts";
import { hasLivingGroup, killAtExit, signalTree, untrack } from "./process-tree.ts";

/** A program for `runProgram`. */
export interface ProgramSpec extends ProcessSpec {
  /** Default: empty input. */
  readonly stdin?: string;
  readonly signal: AbortSignal;
  /** Milliseconds between SIGTERM and SIGKILL, default 2000. */
  readonly graceMs?: number;
  /** Limit of `stdout`; bytes beyond it are dropped. */
  readonly maxOutputBytes: number;
  /** Receives output as it arrives, whole characters only. Must not throw. */
  onOutput?(text: string, stream: "stdout" | "stderr"): void;
}

/** The outcome of a program: its output and exit code, or the reason that it has none. */
export type ProgramOutcome =
  | {
      readonly kind: "exited";
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
      readonly stdout: string;
      /** The last 16 kB, in which programs report why they failed. */
      readonly stderrTail: string;
      /** Whether stdout was longer than allowed. */
      readonly truncated: boolean;
    }
  | SpawnFailure
  | { readonly kind: "aborted" };

/** Runs a program, as `runProgram` of load-parts.ts documents it. */
export async function runProgram(spec: ProgramSpec): Promise<ProgramOutcome> {
  if (spec.signal.aborted) return { kind: "aborted" };
  const spawned = await spawnProcess(spec);
  if (spawned.kind !== "spawned") return spawned;
  const { process } = spawned;
  const stdout = new Head(spec.maxOutputBytes);
  const stderr = new Tail(stderrTailBytes);
  process.stdout.on("data", (chunk: Buffer) => stdout.add(chunk));
  process.stderr.on("data", (chunk: Buffer) => stderr.add(chunk));
  forwardOutput(process, spec);
  process.stdin.end(spec.stdin ?? "");
  return (await endOrAbort(process, spec))
    ? { kind: "aborted" }
    : { kind: "exited", ...(await process.ended), stdout: stdout.text(), stderrTail: stderr.text(), truncated: stdout.isTruncated };
}

const stderrTailBytes = 16_384;

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
    // A truncated chunk is copied, so that its rest is not kept in memory.
    this.#chunks.push(kept.length < chunk.length ? Buffer.from(kept) : chunk);
    this.#size += kept.length;
  }

  text(): string {
    const decoder = new StringDecoder("utf8");
    const whole = decoder.write(Buffer.concat(this.#chunks));
    // An incomplete last character is omitted if the limit cut it; otherwise it shows as U+FFFD.
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
    // Not trimmed at each chunk, because a program may write byte by byte.
    if (this.#size > this.#max * 4 || this.#chunks.length > 256) this.#cut();
  }

  text(): string {
    this.#cut();
    const bytes = this.#chunks[0] ?? Buffer.alloc(0);
    // Bytes 10xxxxxx at the start are the rest of a truncated character.
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

/** A program to start. */
export interface ProcessSpec {
  /** A program, never a shell line. */
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Added to `minimalEnvironment()`. */
  readonly env?: Readonly<Record<string, string>>;
  /** The complete environment, instead of `env`: nothing is added to it. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Restrictions that the operating system enforces. Where it cannot, the program is not started. */
  readonly limits?: ProcessLimits | undefined;
}

/** How a program ended. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A running program, in a process group of its own. Disposing of it stops it and waits for its end. */
export interface ManagedProcess extends AsyncDisposable {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Settles when the program has ended, its output has been read, and nothing is left of its group. Never rejects. */
  readonly ended: Promise<ProcessExit>;
  /** Sends SIGTERM to its process group, and SIGKILL after `graceMs` (2000). */
  stop(graceMs?: number): Promise<ProcessExit>;
}

/** Why a program could not be started. */
export type SpawnFailure = { readonly kind: "not-found" | "failed-to-start"; readonly message: string };
/** A program that was started, or why it was not. */
export type Spawned = { readonly kind: "spawned"; readonly process: ManagedProcess } | SpawnFailure;

// A background process that the program started may hold its pipes open for ever.
const outputGraceMs = 500;
// After SIGKILL only the kernel can delay the end of a process (a hung network disk). The caller must not wait for that.
const killGraceMs = 5000;

/** Starts a program. The program and its process group are killed when this process ends. A failure is a value; it never throws. */
export async function spawnProcess(spec: ProcessSpec): Promise<Spawned> {
  const env = { ...(spec.environment ?? minimalEnvironment(spec.env)) };
  if (!isDirectory(spec.cwd)) return failed(`The working directory ${spec.cwd} does not exist.`);
  try {
    const launch = planLaunch({ command: spec.command, args: spec.args, cwd: spec.cwd, env });
    if (launch.kind === "not-found") return notFound(spec.command);
    if (launch.kind === "refused") return failed(launch.message);
    const confined = await confine(spec, launch);
    if (typeof confined === "string") return failed(confined);
    const child = spawn(confined.file, confined.args, {
      cwd: spec.cwd,
      env,
      detached: process.platform !== "win32",
      stdio: "pipe",
      windowsHide: true,
      windowsVerbatimArguments: launch.verbatim,
    });
    if (child.pid !== undefined) killAtExit(child);
    return await started(child, spec.command);
  } catch (error) {
    return failed(`${spec.command} could not be started: ${errorMessage(error)}`);
  }
}

interface Launched {
  readonly file: string;
  readonly args: readonly string[];
}

/** Returns a string with the reason when the program cannot be confined. */
async function confine({ limits, cwd }: ProcessSpec, { file, args }: Launched): Promise<Launched | string> {
  if (limits === undefined) return { file, args };
  const confinement = await findConfinement();
  if (confinement.kind === "not-enforced") return `The program cannot be confined: ${confinement.why}.`;
  const [program, confined] = confinedCommand(confinement.program, limits, cwd, [file, ...args]);
  return { file: program, args: confined };
}

function started(child: ChildProcess, command: string): Promise<Spawned> {
  return new Promise((resolve) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      resolve(error.code === "ENOENT" ? notFound(command) : failed(`${command} could not be started: ${errorMessage(error)}`));
    });
    child.once("spawn", () => resolve({ kind: "spawned", process: manage(child) }));
  });
}

function manage(child: ChildProcess): ManagedProcess {
  const { stdin, stdout, stderr } = child as ChildProcess & { stdin: Writable; stdout: Readable; stderr: Readable };
  // A program that does not read its input, or a signal that cannot be delivered, must not crash the host.
  for (const emitter of [stdin, stdout, stderr, child]) emitter.on("error", () => {});
  const ended = endOf(child);
  const stop = async (graceMs = 2000): Promise<ProcessExit> => {
    signalTree(child, "SIGTERM");
    const kill = setTimeout(() => signalTree(child, "SIGKILL"), graceMs);
    let giveUp: NodeJS.Timeout | undefined;
    const patience = new Promise<ProcessExit>((resolve) => {
      giveUp = setTimeout(() => resolve({ code: null, signal: "SIGKILL" }), graceMs + killGraceMs);
    });
    const exit = await Promise.race([ended, patience]);
    clearTimeout(kill);
    clearTimeout(giveUp);
    return exit;
  };
  return {
    pid: child.pid!,
    stdin,
    stdout,
    stderr,
    ended,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}

function endOf(child: ChildProcess): Promise<ProcessExit> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => {
      // Checked now, because the id of an empty group may be reused later.
      const hasLeftovers = hasLivingGroup(child);
      const finish = (): void => {
        clearTimeout(grace);
        if (hasLeftovers) signalTree(child, "SIGKILL");
        untrack(child);
        for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
        resolve({ code, signal });
      };
      // After a turn of the event loop, so that output that has arrived already is read first.
      const grace = setTimeout(() => setImmediate(finish), outputGraceMs);
      child.once("close", finish);
    });
  });
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Missing, unreadable or not a valid path: no program can run in it.
    return false;
  }
}

function notFound(command: string): SpawnFailure {
  return { kind: "not-found", message: `Command ${command} was not found. Install it, or use its full path.` };
}

function failed(message: string): SpawnFailure {
  return { kind: "failed-to-start", message };
}
