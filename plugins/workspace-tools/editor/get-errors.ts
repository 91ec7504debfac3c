import { dirname, extname, relative, sep } from "node:path";
import type { ToolContext } from "skillhost";
import { missingText } from "../fault-texts.ts";
import { type CheckOptions, checkPython } from "../operations/check-python.ts";
import { checkTypes, compilerLine, findProject, type TypeScriptProject } from "../operations/check-types.ts";
import type { CommandConfinement } from "../operations/command-confinement.ts";
import { checkSyntax, type FilesChecked, type SyntaxCheck, syntaxCheckOf } from "../operations/file-checks.ts";
import type { Machine } from "../operations/machine.ts";
import type { Place } from "../operations/places.ts";
import { filesOf, toSearchRoot } from "../operations/search-tree.ts";
import { SearchSteps } from "../operations/walk-files.ts";
import { boundsOf, type Call, failure, placeFor, type Refusal, type WorkspaceTool } from "../workspace-tool.ts";

interface ErrorsArgs {
  readonly filePaths?: readonly string[];
}

type Programs = Pick<Machine, "startProcess">;

interface Parts {
  readonly machine: Programs;
  readonly confinement: CommandConfinement;
}

const timeout = 120_000;
const maxFiles = 2_000;

const parameters = {
  type: "object",
  properties: {
    filePaths: {
      type: "array",
      items: { type: "string" },
      maxItems: 200,
      description: "The absolute paths of the files or folders to check. Default: all files of the workspace.",
    },
  },
  required: [],
} as const;

/** Without `parts` it runs no programs: neither the TypeScript compiler nor Python. */
export function createErrorsTool(parts: Parts | undefined): WorkspaceTool<ErrorsArgs> {
  // A compiler that is installed while the user decides was not part of the request.
  const machine = parts?.machine;
  const permitted = new WeakMap<ToolContext, ReadonlySet<string>>();
  return {
    name: "get_errors",
    description: `Checks files for errors: TypeScript types and syntax if the project has the compiler installed; JavaScript, JSON, YAML and Python syntax. Reports which files were checked, how, and which were not. Use it after editing a file.`,
    parameters,
    annotations: { readOnlyHint: true },
    timeout: timeout * 3,
    overridesBuiltInTool: true,
    async describe(args, call) {
      const found = await findTargets(args, call, machine !== undefined);
      if ("refusal" in found) return found;
      const { places, groups, root } = found;
      const lines = groups.flatMap(({ project }) => (project === undefined ? [] : compilerLine(project, root.real)));
      permitted.set(call.context, new Set(lines));
      const intention = "Check files for errors";
      // The compiler is a program of the workspace; all other checks only read files.
      if (lines.length > 0)
        return { request: { kind: "shell", intention, ...(await parts!.confinement.describe(lines.join(" && "), call)) }, places };
      const reals = places.map(({ real }) => real);
      return { request: { kind: "read", intention, path: reals[0], ...(reals.length > 1 && { possiblePaths: reals }) }, places };
    },
    async run(args, call) {
      const found = await findTargets(args, call, machine !== undefined);
      if ("refusal" in found) return failure(found.refusal);
      const { groups, root, isPart } = found;
      const limits = await parts?.confinement.limits("", call);
      const options = { cwd: root.real, signal: call.context.invocation.signal, timeout, limits };
      const mayRun = (line: string): boolean => permitted.get(call.context)?.has(line) !== false;
      const checks: FilesChecked[] = [];
      for (const group of groups) {
        checks.push(await check(group, options, { machine, mayRun }));
        if (options.signal.aborted) return failure("Checking the files was interrupted.");
      }
      return errorsText(checks, { show: (path) => shownFrom(root, path), isPart, isAsked: args.filePaths !== undefined });
    },
  };
}

interface Means {
  readonly machine: Programs | undefined;
  mayRun(line: string): boolean;
}

function check({ paths, project, syntax }: Group, options: CheckOptions, { machine, mayRun }: Means): Promise<FilesChecked> {
  if (machine !== undefined && project !== undefined && mayRun(compilerLine(project, options.cwd)))
    return checkTypes(paths, project, options, machine);
  if (machine !== undefined && syntax === "python") return checkPython(paths, options, machine);
  return typeof syntax === "object" ? checkSyntax(paths, syntax, options.signal) : Promise.resolve(notChecked(paths));
}

function notChecked(paths: readonly string[]): FilesChecked {
  return { by: "", checked: [], unchecked: paths.map((path) => ({ path, why: "there is no check for this kind of file" })), problems: [] };
}

/** Files that are checked together. Without `project` and `syntax`: they cannot be checked. */
interface Group {
  readonly paths: string[];
  readonly project?: TypeScriptProject | undefined;
  readonly syntax?: SyntaxCheck | "python" | undefined;
}

interface Targets {
  readonly root: Place;
  readonly places: readonly Place[];
  readonly groups: readonly Group[];
  /** There are more files than one call checks. */
  readonly isPart: boolean;
}

async function findTargets({ filePaths }: ErrorsArgs, call: Call, runsPrograms: boolean): Promise<Targets | Refusal> {
  const here = await placeFor(".", call, "read");
  if ("refusal" in here) return here;
  const places: Place[] = [];
  for (const path of filePaths ?? ["."]) {
    const found = await placeFor(path, call, "read");
    if ("refusal" in found) return found;
    places.push(found.place);
  }
  const files = await filesIn(places, call);
  if ("refusal" in files) return files;
  // Programs run in the working directory.
  return {
    root: here.place,
    places: [here.place, ...places],
    groups: await groupsOf(files.paths, here.place.real, runsPrograms),
    isPart: files.isPart,
  };
}

async function filesIn(
  places: readonly Place[],
  call: Call,
): Promise<{ readonly paths: readonly string[]; readonly isPart: boolean } | Refusal> {
  const paths = new Set<string>();
  const steps = new SearchSteps();
  for (const place of places) {
    const root = await toSearchRoot(place);
    if (root === undefined) return { refusal: missingText(place.path) };
    const files = filesOf(root, { hidden: false, accepts: () => true }, boundsOf(call, steps));
    for (let step = await files.next(); ; step = await files.next()) {
      if (step.done === true && step.value) return { paths: [...paths], isPart: true };
      if (step.done === true) break;
      if (paths.size >= maxFiles) return { paths: [...paths], isPart: true };
      paths.add(step.value.path);
    }
  }
  return { paths: [...paths], isPart: false };
}

async function groupsOf(paths: readonly string[], root: string, runsPrograms: boolean): Promise<readonly Group[]> {
  const groups = new Map<unknown, Group>();
  const projects = new Map<string, TypeScriptProject | undefined>();
  for (const path of paths) {
    const project = runsPrograms ? await projectOf(path, root, projects) : undefined;
    const syntax = isCommented(path) ? undefined : /\.pyi?$/i.test(path) ? "python" : syntaxCheckOf(path);
    const key = project?.config ?? syntax;
    const group: Group = groups.get(key) ?? { paths: [], project, syntax };
    group.paths.push(path);
    groups.set(key, group);
  }
  return [...groups.values()];
}

async function projectOf(
  path: string,
  root: string,
  known: Map<string, TypeScriptProject | undefined>,
): Promise<TypeScriptProject | undefined> {
  if (!/\.[mc]?tsx?$/i.test(path) || relative(root, path).startsWith("..")) return undefined;
  const folder = dirname(path);
  if (!known.has(folder)) known.set(folder, await findProject(path, root));
  return known.get(folder);
}

/** Files with .json names that may contain comments by convention. */
function isCommented(path: string): boolean {
  return /(^|[\\/])(tsconfig[^\\/]*\.json|jsconfig\.json|\.vscode[\\/][^\\/]*\.json|\.eslintrc\.json)$/i.test(path);
}

function shownFrom({ path, real }: Place, file: string): string {
  return file.startsWith(real + sep) ? path + file.slice(real.length) : file;
}

interface ErrorsShown {
  show(path: string): string;
  /** There are more files than were checked. */
  readonly isPart: boolean;
  /** The call names the files. */
  readonly isAsked: boolean;
}

const maxProblems = 100;
const maxNamed = 20;

/** The result of checking files: the problems, and which files were and were not checked. */
function errorsText(checks: readonly FilesChecked[], { show, isPart, isAsked }: ErrorsShown): string {
  const problems = checks.flatMap((check) => check.problems);
  const lines = problems.slice(0, maxProblems).map(({ path, line, column, severity, message }) => {
    const place = [show(path), ...(line === undefined ? [] : [line, ...(column === undefined ? [] : [column])])].join(":");
    return `${place}: ${severity}: ${message}`;
  });
  const more = problems.length > maxProblems ? [`[${problems.length - maxProblems} more problems are omitted.]`] : [];
  const checked = checks.filter((check) => check.checked.length > 0);
  const nothing = checked.length === 0 ? "Nothing was checked." : "No errors found.";
  const part = isPart ? ["[There are more files than one call checks. Name files or folders.]"] : [];
  const head = lines.length > 0 ? [...lines, ...more] : [nothing];
  return [...head, ...checkedLines(checked), ...uncheckedLines(checks, show, isAsked), ...part].join("\n");
}

function checkedLines(checks: readonly FilesChecked[]): readonly string[] {
  if (checks.length === 0) return [];
  return [`Checked: ${checks.map(({ by, checked }) => `${counted(checked.length)} for ${by}`).join("; ")}.`];
}

/** Files that the call names are listed; all others are counted by kind, since there may be thousands. */
function uncheckedLines(checks: readonly FilesChecked[], show: ErrorsShown["show"], isAsked: boolean): readonly string[] {
  const unchecked = checks.flatMap((check) => check.unchecked);
  if (unchecked.length === 0) return [];
  if (isAsked && unchecked.length <= maxNamed) return ["Not checked:", ...unchecked.map(({ path, why }) => `${show(path)}: ${why}`)];
  const kinds = new Map<string, number>();
  for (const { path, why } of unchecked) {
    const kind = `${extname(path) || "without an extension"}, ${why}`;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  const shown = [...kinds].sort(([, a], [, b]) => b - a).slice(0, maxNamed);
  return ["Not checked:", ...shown.map(([kind, count]) => `${counted(count)} (${kind})`)];
}

function counted(count: number): string {
  return count === 1 ? "1 file" : `${count} files`;
}
