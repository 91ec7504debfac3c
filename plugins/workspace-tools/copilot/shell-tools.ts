import { limitsNote } from "../fault-texts.ts";
import type { CommandConfinement } from "../operations/command-confinement.ts";
import { describeCommand } from "../operations/describe-command.ts";
import type { Shell } from "../operations/shell.ts";
import type { Shells } from "../operations/shells.ts";
import { type Call, failure, type WorkspaceTool } from "../workspace-tool.ts";
import { maxWait, withLine } from "./bash.ts";
import { laterExitText, noShellsText, runningText, stoppedText, unknownShellText } from "./copilot-texts.ts";

interface ReadArgs {
  readonly shellId: string;
  readonly delay: number;
}

interface WriteArgs extends ReadArgs {
  readonly input: string;
}

const shellId = { type: "string", description: "The shellId that bash returned or was given." } as const;
const delay = { type: "number", minimum: 0, maximum: maxWait, description: "Seconds to wait for more output or for the end." } as const;
// Longer than these tools ever wait.
const timeout = (maxWait + 30) * 1000;

export function createReadBashTool(shells: Shells): WorkspaceTool<ReadArgs> {
  return {
    name: "read_bash",
    description: "Waits for a running command and returns its output since the last read. Returns at once when the command ends.",
    parameters: { type: "object", properties: { shellId, delay }, required: ["shellId", "delay"], additionalProperties: false },
    annotations: { readOnlyHint: true },
    timeout,
    async run({ shellId: id, delay: seconds }, call) {
      const shell = shells.find(call.sessionId, id);
      return shell === undefined ? failure(unknownText(id, call, shells)) : waitAndRead(shell, seconds, call, shells);
    },
  };
}

export function createWriteBashTool(shells: Shells, confinement: CommandConfinement): WorkspaceTool<WriteArgs> {
  return {
    name: "write_bash",
    description: `Sends input to a command that was started with mode "async", then reads its output like read_bash. A line break is added at the end, and {enter} stands for one.`,
    parameters: {
      type: "object",
      properties: { shellId, input: { type: "string", description: "The text to type." }, delay },
      required: ["shellId", "input", "delay"],
      additionalProperties: false,
    },
    annotations: { destructiveHint: true, openWorldHint: true },
    timeout,
    async describe({ shellId: id, input }, call) {
      const shell = shells.find(call.sessionId, id);
      if (shell === undefined) return { refusal: unknownText(id, call, shells) };
      // Any program may read the input, so it is not described as commands.
      const line = toInput(input).trimEnd();
      const isConfined = await confinement.covers(shell.spec.limits, line, call);
      const facts = { ...describeCommand(line), commands: [], canOfferSessionApproval: false, ...(isConfined && { isConfined }) };
      return { request: { kind: "shell", intention: `Give input to: ${shell.spec.command.slice(0, 500)}`, ...facts } };
    },
    async run({ shellId: id, input, delay: seconds }, call) {
      const shell = shells.find(call.sessionId, id);
      if (shell === undefined) return failure(unknownText(id, call, shells));
      const { mode, isDetached } = shell.spec;
      if (mode !== "async" || isDetached)
        return failure(`The command in shell "${id}" takes no input. Start one with mode "async", not detached, for that.`);
      if (!shell.write(toInput(input))) return failure(`The command in shell "${id}" has ended or takes no more input.`);
      return waitAndRead(shell, seconds, call, shells);
    },
  };
}

export function createStopBashTool(shells: Shells): WorkspaceTool<Pick<ReadArgs, "shellId">> {
  return {
    name: "stop_bash",
    description: "Stops a running command and all processes that it started.",
    parameters: { type: "object", properties: { shellId }, required: ["shellId"], additionalProperties: false },
    async run({ shellId: id }, call) {
      const shell = shells.find(call.sessionId, id);
      if (shell === undefined) return failure(unknownText(id, call, shells));
      await shells.stop(call.sessionId, shell);
      return stoppedText(id);
    },
  };
}

export function createListBashTool(shells: Shells): WorkspaceTool<Readonly<Record<never, never>>> {
  return {
    name: "list_bash",
    description: "Lists running commands, and ended commands whose output has not been read.",
    parameters: { type: "object", properties: {}, additionalProperties: false },
    annotations: { readOnlyHint: true },
    async run(_args, { sessionId }) {
      const all = shells.list(sessionId);
      return all.length === 0 ? noShellsText : ["Active shell sessions:", ...all.map(shellLines)].join("\n");
    },
  };
}

async function waitAndRead(shell: Shell, seconds: number, call: Call, shells: Shells): Promise<string> {
  await shell.wait(seconds * 1000, call.context.invocation.signal);
  const output = shell.output.take();
  const { id } = shell.spec;
  if (shell.exitCode === undefined) return withLine(output, runningText(id, seconds, output !== ""));
  shells.forget(call.sessionId, shell);
  return withLine(output, laterExitText(id, shell.exitCode)) + limitsNote(shell.exitCode, shell.spec.limits);
}

function unknownText(id: string, { sessionId }: Call, shells: Shells): string {
  return unknownShellText(
    id,
    shells.list(sessionId).map(({ spec }) => spec.id),
  );
}

function shellLines({ spec, pid, exitCode, elapsed, output }: Shell): string {
  const status = exitCode === undefined ? "running" : `completed (exit code: ${exitCode})`;
  const unread = output.isEmpty ? "no" : "yes";
  const facts = `  shellId: ${spec.id}, pid: ${pid}, mode: ${spec.mode}, status: ${status}, elapsed: ${elapsed}s, commands: 1, unread output: ${unread}`;
  return `${facts}\n    current command: ${spec.command.slice(0, 500)}`;
}

function toInput(text: string): string {
  const input = text.replaceAll("{enter}", "\n");
  return input.endsWith("\n") ? input : `${input}\n`;
}
