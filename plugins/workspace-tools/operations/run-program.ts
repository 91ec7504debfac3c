import type { Limits } from "./command-confinement.ts";
import type { Machine } from "./machine.ts";
import { Shell } from "./shell.ts";

export interface ProgramSpec {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Milliseconds that it may take. */
  readonly timeout: number;
  readonly signal: AbortSignal;
  /** What it reads. Default: nothing. */
  readonly input?: string;
  /** What it is kept from. */
  readonly limits?: Limits | undefined;
}

/** What a program came to; `output` is what it wrote on either stream. */
export type ProgramRun =
  | { readonly kind: "ended"; readonly exitCode: number; readonly output: string }
  | { readonly kind: "stopped"; readonly output: string }
  | { readonly kind: "missing" }
  | { readonly kind: "failed" };

/** Runs a program to its end, without a shell, and stops it with all it started when it takes too long. */
export async function runProgram(spec: ProgramSpec, machine: Pick<Machine, "startProcess">): Promise<ProgramRun> {
  const { command, args, cwd, timeout, signal, limits, input = "" } = spec;
  const started = await machine.startProcess({ command, args, cwd, limits });
  if (started.kind === "not-found") return { kind: "missing" };
  if (started.kind !== "spawned") return { kind: "failed" };
  started.process.stdin.end(input);
  const shell = new Shell({ id: command, command, mode: "sync", isDetached: false }, started.process);
  await shell.wait(timeout, signal);
  const { exitCode } = shell;
  if (exitCode !== undefined) return { kind: "ended", exitCode, output: shell.output.take() };
  await shell.stop();
  return { kind: "stopped", output: shell.output.take() };
}
