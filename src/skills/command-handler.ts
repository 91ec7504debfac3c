import { isAbsolute, resolve } from "node:path";
import { formatDiagnostic } from "../base/diagnostic.ts";
import { runProgram } from "../io/child-process.ts";
import type { CallReach, ToolContext, ToolInvocation } from "../tools/tool.ts";
import type { CheckedPrograms } from "./checked-programs.ts";
import { type Arguments, fillElement, fillElements, optionArgument } from "./fill-template.ts";

export interface CommandSpec {
  readonly command: string;
  readonly args: readonly string[];
  readonly stdin?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

const maxOutputBytes = 10 * 1024 * 1024;

/**
 * A handler that runs a program with an argument vector: never a shell, a minimal environment and what `env` adds.
 * The working directory is the session's unless `cwd` names one relative to the skill. What the program writes to
 * stdout is the result; stderr goes to the log only. The program and its children end with the call. An argument that the
 * program could take for an option is refused. With `checked`, `{baseDir}`, `./` and `cwd` are in a private copy of the skill's
 * folder.
 */
export function createCommandHandler(spec: CommandSpec, skillFolder: string, checked?: Pick<CheckedPrograms, "open">) {
  return async (args: Arguments, invocation: ToolInvocation, context?: Pick<ToolContext, "limits">): Promise<object> => {
    const option = optionArgument(spec.args, args);
    if (option !== undefined) return optionRefused(option);
    // Programs open the skill's files by name, so they get a folder whose names lead to what was checked.
    const opened = checked?.open();
    if (opened?.ok === false) return failure("The program of this tool must not run.", formatDiagnostic(opened.diagnostic));
    const folder = opened?.folder ?? skillFolder;
    const { kind: _, ...program } = programReach(spec, args, { folder, workingDirectory: invocation.workingDirectory });
    const limits = context?.limits;
    const outcome = await runProgram({
      ...program,
      ...(limits === undefined ? {} : { limits }),
      signal: invocation.signal,
      maxOutputBytes,
    });
    if (outcome.kind !== "exited")
      return failure("The program of this tool could not be run.", outcome.kind === "aborted" ? "aborted" : outcome.message);
    const log = outcome.stderrTail === "" ? {} : { sessionLog: outcome.stderrTail };
    const text = outcome.truncated
      ? `${outcome.stdout}\n[The output was longer than ${maxOutputBytes} bytes and ends here.]`
      : outcome.stdout;
    if (outcome.code === 0) return { textResultForLlm: text, resultType: "success", ...log };
    const how = outcome.code === null ? `was ended by ${outcome.signal}` : `ended with exit code ${outcome.code}`;
    return { ...failure([`The program of this tool ${how}.`, text].filter((part) => part !== "").join("\n"), outcome.stderrTail), ...log };
  };
}

/** The program of a call, with its arguments filled in. `folder` is the skill's, or a copy of it. */
export function programReach(
  spec: CommandSpec,
  args: Arguments,
  { folder, workingDirectory }: { readonly folder: string; readonly workingDirectory: string },
): Extract<CallReach, { kind: "program" }> {
  const stdin = spec.stdin === undefined ? undefined : fillElement(spec.stdin, args, folder);
  return {
    kind: "program",
    command: commandPath(spec.command, folder),
    args: fillElements(spec.args, args, folder),
    cwd: spec.cwd === undefined ? workingDirectory : resolve(folder, spec.cwd),
    env: Object.fromEntries(Object.entries(spec.env ?? {}).map(([name, value]) => [name, value.replaceAll("{baseDir}", folder)])),
    ...(stdin === undefined ? {} : { stdin }),
  };
}

/** `./x` and `{baseDir}/x` are files of the skill; a bare word is looked up on the PATH. */
function commandPath(command: string, folder: string): string {
  const expanded = command.replaceAll("{baseDir}", folder);
  return expanded.startsWith(".") && !isAbsolute(expanded) ? resolve(folder, expanded) : expanded;
}

function optionRefused(name: string): object {
  const text = `The argument "${name}" begins with a hyphen, so the program of this tool could take it for an option. Call the tool with another value, such as ./-name for a file.`;
  const advice = `The placeholder \${${name}} stands in "args" without "--" before it. Write "--" there if the program understands it, or pass the value on stdin.`;
  return failure(text, advice);
}

function failure(textResultForLlm: string, error: string): object {
  return { textResultForLlm, resultType: "failure", error };
}
