import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { type Linter, linters, syntaxCheck } from "./_linters.ts";

export interface Target {
  readonly real: string;
  readonly isFolder: boolean;
}

/** One run of one linter. */
export interface Check {
  readonly linter: Linter;
  readonly cwd: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The equivalent shell command in the working directory, for permission requests. */
  readonly commandLine: string;
}

export interface Plan {
  readonly checks: readonly Check[];
  /** What is not checked and why, for the model. */
  readonly notes: readonly string[];
}

const syntaxScript = fileURLToPath(new URL("../scripts/find-syntax-errors.mjs", import.meta.url));

/** Finds the project's linters for these files without running anything. */
export async function planChecks(workingDirectory: string, targets: readonly Target[]): Promise<Plan> {
  const root = await findRepository(workingDirectory);
  const checks: Check[] = [];
  const notes: string[] = [];
  const unchecked = new Set(targets);
  for (const linter of linters) {
    for (const [cwd, own] of await groupByProject(linter, targets, root)) {
      const program = await findProgram(linter, cwd, root);
      if (program === undefined) {
        notes.push(`${linter.name} is set up in ${shown(workingDirectory, cwd)} but not installed.`);
        continue;
      }
      checks.push(createCheck(linter, { cwd, program, targets: own, workingDirectory }));
      // A folder with Python may contain JavaScript, too, which Ruff does not check.
      for (const target of own) if (linter.npmPackage !== undefined || !target.isFolder) unchecked.delete(target);
    }
  }
  const parsed = [...unchecked].filter(({ real, isFolder }) => isFolder || syntaxCheck.files.test(real));
  if (parsed.length > 0) {
    const program = [process.execPath, syntaxScript];
    checks.push(createCheck(syntaxCheck, { cwd: workingDirectory, program, targets: parsed, workingDirectory }));
  }
  const others = [...unchecked].filter((target) => !parsed.includes(target)).map(({ real }) => shown(workingDirectory, real));
  if (others.length > 0) notes.push(`Not checked, because the project has no linter for them: ${others.join(", ")}`);
  return { checks, notes };
}

/** The path relative to the working directory, with forward slashes. */
export function shown(workingDirectory: string, path: string): string {
  return relative(workingDirectory, path).split(sep).join("/") || ".";
}

/** Linters above the working directory are used only within the same repository. */
async function findRepository(workingDirectory: string): Promise<string> {
  for (const folder of foldersUp(workingDirectory)) if (await stat(join(folder, ".git")).catch(() => undefined)) return folder;
  return workingDirectory;
}

/** A folder and its parents up to `root`. */
function foldersUp(start: string, root?: string): readonly string[] {
  const parent = dirname(start);
  return start === root || parent === start ? [start] : [start, ...foldersUp(parent, root)];
}

/** The targets of a linter by the folder in which it is configured. */
async function groupByProject(linter: Linter, targets: readonly Target[], root: string): Promise<ReadonlyMap<string, readonly Target[]>> {
  const groups = new Map<string, Target[]>();
  for (const target of targets.filter(({ real, isFolder }) => isFolder || linter.files.test(basename(real)))) {
    const project = await findProject(linter, target.isFolder ? target.real : dirname(target.real), root);
    if (project !== undefined) groups.set(project, [...(groups.get(project) ?? []), target]);
  }
  return groups;
}

async function findProject(linter: Linter, start: string, root: string): Promise<string | undefined> {
  for (const folder of foldersUp(start, root)) {
    const names = await readdir(folder).catch(() => []);
    if (names.some((name) => linter.configFile.test(name)) || (await dependsOn(linter, folder))) return folder;
  }
  return undefined;
}

async function dependsOn({ name, npmPackage }: Linter, folder: string): Promise<boolean> {
  if (npmPackage === undefined) return new RegExp(`\\b${name}\\b`).test((await readText(join(folder, "pyproject.toml"))) ?? "");
  const { dependencies, devDependencies } = await readPackage(folder);
  return Object.hasOwn({ ...dependencies, ...devDependencies }, npmPackage);
}

/** The program and its first arguments. Undefined: the linter is not installed. */
async function findProgram({ name, npmPackage }: Linter, project: string, root: string): Promise<readonly string[] | undefined> {
  for (const folder of foldersUp(project, root)) {
    if (npmPackage === undefined) {
      const file = join(folder, ".venv", ...(process.platform === "win32" ? ["Scripts", `${name}.exe`] : ["bin", name]));
      if ((await stat(file).catch(() => undefined))?.isFile()) return [file];
      continue;
    }
    // The script behind the launcher in node_modules/.bin, which is a shell script or batch file on some systems.
    const packageFolder = join(folder, "node_modules", npmPackage);
    const { bin } = await readPackage(packageFolder);
    const script = typeof bin === "string" ? bin : bin?.[name];
    if (typeof script === "string") return [process.execPath, resolve(packageFolder, script)];
  }
  return npmPackage === undefined ? [name] : undefined;
}

interface Package {
  readonly bin?: string | Readonly<Record<string, unknown>>;
  readonly dependencies?: object;
  readonly devDependencies?: object;
}

async function readPackage(folder: string): Promise<Package> {
  try {
    const value: unknown = JSON.parse((await readText(join(folder, "package.json"))) ?? "{}");
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    // Treat an invalid package.json as empty.
    return {};
  }
}

async function readText(file: string): Promise<string | undefined> {
  const found = await stat(file).catch(() => undefined);
  return found?.isFile() && found.size <= 1024 * 1024 ? readFile(file, "utf8").catch(() => undefined) : undefined;
}

interface CheckParts {
  readonly cwd: string;
  readonly program: readonly string[];
  readonly targets: readonly Target[];
  readonly workingDirectory: string;
}

function createCheck(linter: Linter, { cwd, program, targets, workingDirectory }: CheckParts): Check {
  const [command = "", ...first] = program;
  // With "./" and "--", no file name can be read as an option.
  const paths = targets.map(({ real }) => `./${relative(cwd, real).split(sep).join("/")}`);
  const args = [...linter.args, "--", ...paths];
  const script = first[0] ?? command;
  const words = [script.includes(sep) ? shown(cwd, script) : script, ...args];
  const folder = cwd === workingDirectory ? [] : [`cd ${quoted(shown(workingDirectory, cwd))}`];
  return { linter, cwd, command, args: [...first, ...args], commandLine: [...folder, words.map(quoted).join(" ")].join(" && ") };
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
