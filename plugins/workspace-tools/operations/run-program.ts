import type { Limits } from "./command-confinement.ts";
import type { Machine } from "./machine.ts";
import { Shell } from "./shell.ts";

export interface ProgramSpec {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Milliseconds. */
  readonly timeout: number;
  readonly signal: AbortSignal;
  /** Standard input. Default: empty. */
  readonly input?: string;
  /** What the operating system prevents it from doing. */
  readonly limits?: Limits | undefined;
}

/** Outcome of a program. `output`: both of its output streams. */
export type ProgramRun =
  | { readonly kind: "ended"; readonly exitCode: number; readonly output: string }
  | { readonly kind: "stopped"; readonly output: string }
  | { readonly kind: "missing" }
  | { readonly kind: "failed" };

/** Runs a program without a shell. Stops it and all its child processes when it takes too long. */
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
