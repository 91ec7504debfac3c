import { limitsNote } from "../fault-texts.ts";
import type { CommandConfinement } from "../operations/command-confinement.ts";
import type { Shell } from "../operations/shell.ts";
import type { ShellStart, Shells } from "../operations/shells.ts";
import { type Call, failure, type WorkspaceTool } from "../workspace-tool.ts";
import { detachedText, exitText, interruptedText, runningText, startedText } from "./copilot-texts.ts";

interface BashArgs {
  readonly command: string;
  readonly description: string;
  readonly shellId?: string;
  readonly mode?: "sync" | "async";
  readonly detach?: boolean;
  readonly initial_wait?: number;
}

const defaultWait = 30;
export const maxWait = 600;

export function createBashTool(shells: Shells, confinement: CommandConfinement): WorkspaceTool<BashArgs> {
  return {
    name: "bash",
    description: `Runs a command with bash in the working directory. Each command runs in a new shell: variables and the current directory are not kept.
- sync (default) waits until the command ends, at most initial_wait seconds. A command that takes longer keeps running; wait for it with read_bash. Background processes of the command end with it, and its stdin is empty.
- async starts the command and returns: for servers, and for commands that need input with write_bash. Read its output with read_bash.
- stdout and stderr are returned in the order in which they were written.`,
    parameters: {
      type: "object",
      properties: {
        command: { type: "string", minLength: 1, description: "The command line." },
        description: { type: "string", description: "What the command does, in a few words, shown to the user in the permission prompt." },
        shellId: { type: "string", minLength: 1, maxLength: 64, description: "A name for the shell. Default: the next free number." },
        mode: { type: "string", enum: ["sync", "async"], description: "Default: sync." },
        detach: { type: "boolean", description: "With async: the command keeps running after the session ends. Default: false." },
        initial_wait: {
          type: "number",
          minimum: 0,
          maximum: maxWait,
          description: `With sync: seconds to wait for the command to end. Default: ${defaultWait}.`,
        },
      },
      required: ["command", "description"],
      additionalProperties: false,
    },
    annotations: { destructiveHint: true, openWorldHint: true },
    // Longer than the tool ever waits: a command that takes longer keeps running and is not a failure.
    timeout: (maxWait + 30) * 1000,
    async describe({ command, description }, call) {
      return { request: { kind: "shell", intention: description, ...(await confinement.describe(command, call)) } };
    },
    async run(args, call) {
      const { mode = "sync", detach = false } = args;
      const isDetached = mode === "async" && detach;
      const { command, shellId: id } = args;
      const limits = await confinement.limits(command, call);
      const started = await shells.start(call.sessionId, {
        command,
        workingDirectory: call.workingDirectory,
        mode,
        isDetached,
        id,
        limits,
      });
      if (started.kind !== "started") return failure(startFault(started, id));
      return mode === "sync" ? waitForEnd(started.shell, args, call, shells) : leaveRunning(started.shell, call, shells);
    },
  };
}

async function waitForEnd(shell: Shell, { initial_wait = defaultWait }: BashArgs, call: Call, shells: Shells): Promise<unknown> {
  const { signal } = call.context.invocation;
  await reportOutput(shell, call, () => shell.wait(initial_wait * 1000, signal));
  if (shell.exitCode !== undefined) {
    shells.forget(call.sessionId, shell);
    const { exitCode } = shell;
    const text = withLine(shell.output.take(), exitText(exitCode)) + limitsNote(exitCode, shell.spec.limits);
    // Programs read the code here: a command can print any text, and a long text is cut.
    return { resultType: "success", textResultForLlm: text, toolTelemetry: { exitCode } };
  }
  if (signal.aborted) return interrupted(shell, call, shells);
  // A sync command stays attached to the session. An async one, such as a server, may never end.
  call.context.background(shell.ended);
  const output = shell.output.take();
  return withLine(output, runningText(shell.spec.id, initial_wait, output !== ""));
}

/** Milliseconds between two reports of the output of a running command. */
const reportInterval = 400;

/** Reports all output of a command so far while it is waited for, and at the end of the wait. */
async function reportOutput(shell: Shell, { context }: Call, wait: () => Promise<void>): Promise<void> {
  const report = (): void => context.progress({ partialOutput: shell.output.text });
  const timer = setInterval(report, reportInterval);
  try {
    await wait();
  } finally {
    clearInterval(timer);
  }
  report();
}

async function leaveRunning(shell: Shell, call: Call, shells: Shells): Promise<unknown> {
  // The session may have ended during the start.
  if (call.context.invocation.signal.aborted) return interrupted(shell, call, shells);
  return shell.spec.isDetached ? detachedText(shell.spec.id) : startedText(shell.spec.id);
}

async function interrupted(shell: Shell, { sessionId }: Call, shells: Shells): Promise<unknown> {
  await shells.stop(sessionId, shell);
  return failure(interruptedText);
}

function startFault(start: Exclude<ShellStart, { kind: "started" }>, id: string | undefined): string {
  if (start.kind === "busy") return `A command is still running in the shell "${id}". Use another shellId, or stop it with stop_bash.`;
  if (start.kind === "too-many") return "Too many commands are running. List them with list_bash and stop some with stop_bash.";
  if (start.kind === "too-long") return "The command is too long. Write it to a file with create, and run that.";
  return "The command could not be started: the shell or the working directory does not exist.";
}

/** The output of a command, followed by a line of our own. */
export function withLine(output: string, line: string): string {
  return output === "" || output.endsWith("\n") ? output + line : `${output}\n${line}`;
}
