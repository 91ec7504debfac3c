import type { Limits } from "./command-confinement.ts";
import type { FileProblem, FilesChecked } from "./file-checks.ts";
import type { Machine } from "./machine.ts";
import { runProgram } from "./run-program.ts";

// Isolated (-I) and only parsed: no code of the workspace runs, and no files are written.
const script = `
import ast, json, sys
for path in json.load(sys.stdin):
    try:
        with open(path, "rb") as file: ast.parse(file.read(), path)
        fault = None
    except SyntaxError as error: fault = [error.lineno, error.offset, error.msg]
    except Exception as error: fault = [None, None, type(error).__name__]
    print(json.dumps([path, fault]))
`;

export interface CheckOptions {
  readonly cwd: string;
  readonly signal: AbortSignal;
  /** Milliseconds. */
  readonly timeout: number;
  /** What the operating system prevents the programs from doing. */
  readonly limits?: Limits | undefined;
}

/** Parses files with the Python of this machine. */
export async function checkPython(
  paths: readonly string[],
  options: CheckOptions,
  machine: Pick<Machine, "startProcess">,
): Promise<FilesChecked> {
  const command = process.platform === "win32" ? "python" : "python3";
  const run = await runProgram({ command, args: ["-I", "-c", script], input: JSON.stringify(paths), ...options }, machine);
  const seen = run.kind === "ended" && run.exitCode === 0 ? readAnswers(run.output) : new Map<string, Fault | null>();
  const why = run.kind === "missing" ? `there is no ${command} on this machine` : "Python did not say anything of it";
  const problems: FileProblem[] = [];
  for (const [path, fault] of seen) {
    if (fault !== null)
      problems.push({ path, line: fault[0] ?? undefined, column: fault[1] ?? undefined, severity: "error", message: fault[2] });
  }
  const unchecked = paths.filter((path) => !seen.has(path)).map((path) => ({ path, why }));
  return { by: `Python syntax (${command})`, checked: paths.filter((path) => seen.has(path)), unchecked, problems };
}

type Fault = readonly [line: number | null, column: number | null, message: string];

function readAnswers(output: string): ReadonlyMap<string, Fault | null> {
  const answers = new Map<string, Fault | null>();
  for (const line of output.split("\n")) {
    if (line.trim() === "") continue;
    const [path, fault] = JSON.parse(line) as [string, Fault | null];
    answers.set(path, fault);
  }
  return answers;
}
