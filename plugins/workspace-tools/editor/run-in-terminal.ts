import { limitsNote } from "../fault-texts.ts";
import type { CommandConfinement } from "../operations/command-confinement.ts";
import type { Shell } from "../operations/shell.ts";
import type { ShellStart, Shells } from "../operations/shells.ts";
import { type Call, failure, type WorkspaceTool } from "../workspace-tool.ts";

interface TerminalArgs {
  readonly command: string;
  readonly explanation?: string;
  readonly isBackground?: boolean;
  readonly timeout?: number;
}

const defaultTimeout = 120_000;
const maxTimeout = 600_000;
/** How long to wait for a background command, so that one that fails at once reports it. */
const firstWords = 1_000;

export function createTerminalTool(shells: Shells, confinement: CommandConfinement): WorkspaceTool<TerminalArgs> {
  return {
    name: "run_in_terminal",
    description: `Runs a command with bash in the working directory and returns its output. Each command runs in a new shell: variables and the current directory are not kept. Stdin is empty.
With isBackground it keeps running until the session ends, for servers and watchers: to read its later output, redirect it to a file and read that.`,
    parameters: {
      type: "object",
      properties: {
        command: { type: "string", minLength: 1, description: "The command line." },
        explanation: { type: "string", description: "What the command does, in one sentence, shown to the user in the permission prompt." },
        isBackground: { type: "boolean", description: "Whether it keeps running in the background. Default: false." },
        timeout: {
          type: "number",
          minimum: 0,
          maximum: maxTimeout,
          description: `Timeout in milliseconds for a command that is not in the background. Default: ${defaultTimeout}.`,
        },
      },
      required: ["command"],
    },
    annotations: { destructiveHint: true, openWorldHint: true },
    // Longer than the tool ever waits.
    timeout: maxTimeout + 30_000,
    overridesBuiltInTool: true,
    async describe({ command, explanation = "Run a command" }, call) {
      return { request: { kind: "shell", intention: explanation, ...(await confinement.describe(command, call)) } };
    },
    async run(args, call) {
      const { command, isBackground = false } = args;
      const mode = isBackground ? "async" : "sync";
      const limits = await confinement.limits(command, call);
      const request = { command, workingDirectory: call.workingDirectory, mode, isDetached: false, limits } as const;
      const started = await shells.start(call.sessionId, request);
      if (started.kind !== "started") return failure(startFaults[started.kind]);
      return isBackground ? listenFirst(started.shell, call, shells) : waitForEnd(started.shell, args, call, shells);
    },
  };
}

async function waitForEnd(shell: Shell, { timeout = defaultTimeout }: TerminalArgs, call: Call, shells: Shells): Promise<unknown> {
  const { signal } = call.context.invocation;
  await shell.wait(timeout, signal);
  if (shell.exitCode !== undefined) return ended(shell, shell.exitCode, call, shells);
  await shells.stop(call.sessionId, shell);
  if (signal.aborted) return failure("The command was interrupted.");
  const advice = "Give a longer timeout, or run it with isBackground.";
  return failure(withLine(shell.output.take(), `[The command was stopped after ${timeout / 1000} seconds. ${advice}]`));
}

async function listenFirst(shell: Shell, call: Call, shells: Shells): Promise<unknown> {
  const { signal } = call.context.invocation;
  await shell.wait(firstWords, signal);
  if (shell.exitCode !== undefined) return ended(shell, shell.exitCode, call, shells);
  if (!signal.aborted) return withLine(shell.output.take(), `[The command continues in the background. Its process id is ${shell.pid}.]`);
  await shells.stop(call.sessionId, shell);
  return failure("The command was interrupted.");
}

function ended(shell: Shell, exitCode: number, call: Call, shells: Shells): string {
  shells.forget(call.sessionId, shell);
  const output = shell.output.take();
  return exitCode === 0 && output.trim() !== ""
    ? output
    : withLine(output, `Command exited with code ${exitCode}`) + limitsNote(exitCode, shell.spec.limits);
}

const startFaults: Readonly<Record<Exclude<ShellStart["kind"], "started">, string>> = {
  busy: "The command could not be started. Try again.",
  "too-many": "Too many commands are running in the background. Stop some of them with kill and their process ids.",
  "too-long": "The command is too long. Write it to a file with create_file, and run that.",
  failed: "The command could not be started: the shell or the working directory does not exist.",
};

function withLine(output: string, line: string): string {
  return output === "" || output.endsWith("\n") ? output + line : `${output}\n${line}`;
}
