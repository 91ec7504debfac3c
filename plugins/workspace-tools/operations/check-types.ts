import { stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { CheckOptions } from "./check-python.ts";
import type { FileProblem, FilesChecked } from "./file-checks.ts";
import type { Machine } from "./machine.ts";
import { runProgram } from "./run-program.ts";

/** A TypeScript project and its installed compiler. */
export interface TypeScriptProject {
  /** Absolute, like all paths here. */
  readonly config: string;
  readonly compiler: string;
}

/** The nearest project above a file. Undefined: there is none, or it has no installed compiler. */
export async function findProject(file: string, root: string): Promise<TypeScriptProject | undefined> {
  const config = await findAbove(dirname(file), root, "tsconfig.json");
  const compiler =
    config === undefined ? undefined : await findAbove(dirname(config), root, join("node_modules", "typescript", "bin", "tsc"));
  return config === undefined || compiler === undefined ? undefined : { config, compiler };
}

async function findAbove(folder: string, root: string, name: string): Promise<string | undefined> {
  for (let at = folder; ; at = dirname(at)) {
    const file = join(at, name);
    if ((await stat(file).catch(() => undefined))?.isFile() === true) return file;
    if (at === root || at === dirname(at)) return undefined;
  }
}

/** The command line of a project's compiler, as a user would type it. */
export function compilerLine({ config, compiler }: TypeScriptProject, root: string): string {
  return `${relative(root, compiler).split(sep).join("/")} -p ${relative(root, config).split(sep).join("/")} --noEmit`;
}

/** Checks a whole project with its compiler. `paths`: the files to report on. */
export async function checkTypes(
  paths: readonly string[],
  project: TypeScriptProject,
  options: CheckOptions,
  machine: Pick<Machine, "startProcess">,
): Promise<FilesChecked> {
  const { config, compiler } = project;
  const args = [compiler, "-p", config, "--noEmit", "--pretty", "false", "--listFiles"];
  const run = await runProgram({ command: process.execPath, args, ...options }, machine);
  const by = `TypeScript (${compilerLine(project, options.cwd)})`;
  const none = (why: string): FilesChecked => ({ by, checked: [], unchecked: paths.map((path) => ({ path, why })), problems: [] });
  if (run.kind === "stopped") return none(`the TypeScript compiler took longer than ${options.timeout / 1000} seconds`);
  if (run.kind !== "ended") return none("the TypeScript compiler could not be started");
  const { problems, general, files } = readOutput(run.output, options.cwd);
  if (files.size === 0) return none(general[0] ?? "the TypeScript compiler did not say what it checked");
  const asked = new Set(paths);
  const config0 = general.map((message) => ({ path: config, severity: "error" as const, message }));
  return {
    by,
    checked: paths.filter((path) => files.has(path)),
    unchecked: paths
      .filter((path) => !files.has(path))
      .map((path) => ({ path, why: `it is not part of ${relative(options.cwd, config)}` })),
    problems: [...config0, ...problems.filter(({ path }) => asked.has(path))],
  };
}

interface CompilerOutput {
  readonly problems: readonly FileProblem[];
  /** Messages without a file. */
  readonly general: readonly string[];
  readonly files: ReadonlySet<string>;
}

function readOutput(output: string, cwd: string): CompilerOutput {
  const [problems, general, files]: [FileProblem[], string[], Set<string>] = [[], [], new Set()];
  for (const line of output.split(/\r?\n/)) {
    const [, file, row, column, severity, message] = /^(.+?)\((\d+),(\d+)\): (error|warning) (TS\d+: .*)$/.exec(line) ?? [];
    if (file !== undefined) {
      problems.push({
        path: resolve(cwd, file),
        line: Number(row),
        column: Number(column),
        severity: severity === "warning" ? "warning" : "error",
        message: message!,
      });
    } else if (/^error TS\d+: /.test(line)) general.push(line.replace(/^error /, ""));
    else if (isAbsolute(line)) files.add(resolve(line));
  }
  return { problems, general, files };
}
