import { relative, sep } from "node:path";
import type { ToolContext } from "skillhost";
import { limitsNote } from "../fault-texts.ts";
import type { CommandConfinement, Limits } from "../operations/command-confinement.ts";
import type { Machine } from "../operations/machine.ts";
import type { Place } from "../operations/places.ts";
import { type ProgramRun, runProgram } from "../operations/run-program.ts";
import { findTestRun, knownRunners } from "../operations/test-runners.ts";
import { type Call, failure, placeFor, type Refusal, type WorkspaceTool } from "../workspace-tool.ts";
import { middleCut } from "./editor-texts.ts";

interface RunTestsArgs {
  readonly command?: string;
  readonly files?: readonly string[];
  readonly explanation?: string;
  readonly timeout?: number;
}

export interface RunTestsParts {
  readonly machine: Pick<Machine, "startProcess">;
  readonly confinement: CommandConfinement;
  /** Undefined: this machine has no bash, so only the commands of the project are run. */
  readonly bash: string | undefined;
}

const defaultTimeout = 300_000;
const maxTimeout = 600_000;
const maxOutput = 30_000;

const parameters = {
  type: "object",
  properties: {
    files: {
      type: "array",
      items: { type: "string" },
      maxItems: 200,
      description: "The absolute paths of the test files to run. Default: all tests.",
    },
    command: { type: "string", minLength: 1, description: "The command line to run instead of the detected one." },
    explanation: { type: "string", description: "Which tests are run, shown to the user in the permission prompt." },
    timeout: {
      type: "number",
      minimum: 0,
      maximum: maxTimeout,
      description: `Timeout in milliseconds. Default: ${defaultTimeout}.`,
    },
  },
  required: [],
} as const;

export function createRunTestsTool({ machine, confinement, bash }: RunTestsParts): WorkspaceTool<RunTestsArgs> {
  // The permitted command is run, even if the project's files change in the meantime.
  const permitted = new WeakMap<ToolContext, Plan>();
  return {
    name: "run_tests",
    description:
      "Runs the tests of the project and returns their output. The runner is detected: a test script or runner in package.json, pytest, Maven, Gradle, Go, Cargo. Prefer it to running tests in the terminal.",
    parameters,
    annotations: { destructiveHint: true, openWorldHint: true },
    // Longer than the tool ever waits.
    timeout: maxTimeout + 30_000,
    overridesBuiltInTool: true,
    async describe(args, call) {
      const planned = await plan(args, call, bash);
      if ("refusal" in planned) return planned;
      permitted.set(call.context, planned);
      return {
        request: { kind: "shell", intention: args.explanation ?? "Run tests", ...(await confinement.describe(planned.line, call)) },
        places: planned.places,
      };
    },
    async run(args, call) {
      const planned = permitted.get(call.context) ?? (await plan(args, call, bash));
      if ("refusal" in planned) return failure(planned.refusal);
      const { timeout = defaultTimeout } = args;
      const { signal } = call.context.invocation;
      const limits = await confinement.limits(planned.line, call);
      const run = await runProgram({ ...planned.program, cwd: call.workingDirectory, timeout, signal, limits }, machine);
      return signal.aborted ? failure("The tests were interrupted.") : toResult(planned, run, { timeout, limits });
    },
  };
}

interface Plan {
  /** As a user would type it. */
  readonly line: string;
  readonly because: string | undefined;
  readonly program: { readonly command: string; readonly args: readonly string[] };
  readonly places: readonly Place[];
}

async function plan({ command, files = [] }: RunTestsArgs, call: Call, bash: string | undefined): Promise<Plan | Refusal> {
  if (command !== undefined) {
    if (files.length > 0) return { refusal: "Give either files or a command." };
    if (bash === undefined) return { refusal: "There is no bash here, so no command line can be run. Leave command out." };
    return { line: command, because: undefined, program: { command: bash, args: ["--noprofile", "--norc", "-c", command] }, places: [] };
  }
  const here = await placeFor(".", call, "read");
  if ("refusal" in here) return here;
  const places = [here.place];
  for (const file of files) {
    const found = await placeFor(file, call, "read");
    if ("refusal" in found) return found;
    places.push(found.place);
  }
  const names = places.slice(1).map(({ real }) => nameFrom(here.place, real));
  const run = await findTestRun(here.place.real, names);
  if (run === undefined) {
    return {
      refusal: `How the tests are run could not be found out: there is none of ${knownRunners} in ${here.place.path}. Give a command.`,
    };
  }
  const { because, args } = run;
  return { line: [run.command, ...args].map(quoted).join(" "), because, program: { command: run.command, args }, places };
}

/** Never a name that a program would read as an option. */
function nameFrom({ real: folder }: Place, file: string): string {
  const name = relative(folder, file).split(sep).join("/");
  return name.startsWith("-") ? `./${name}` : name;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function toResult(
  { line, because, program }: Plan,
  run: ProgramRun,
  { timeout, limits }: { timeout: number; limits: Limits | undefined },
): unknown {
  const head = because === undefined ? `$ ${line}` : `$ ${line} (because of ${because})`;
  if (run.kind === "missing") return failure(`The tests could not be run: there is no ${program.command} on this machine.\n${head}`);
  if (run.kind === "failed") return failure(`The tests could not be run: ${program.command} could not be started.\n${head}`);
  const output = middleCut(run.output.trimEnd(), maxOutput);
  if (run.kind === "ended")
    return [`Exit code: ${run.exitCode}`, head, ...(output === "" ? [] : [output])].join("\n") + limitsNote(run.exitCode, limits);
  return failure([`The tests were stopped after ${timeout / 1000} seconds.`, head, ...(output === "" ? [] : [output])].join("\n"));
}
