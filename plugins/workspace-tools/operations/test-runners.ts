import { stat } from "node:fs/promises";
import { basename, dirname, extname, join, relative } from "node:path";
import { openFile, readWhole } from "./open-file.ts";

/** A command that runs the tests of a project. */
export interface TestRun {
  /** Why this command was chosen, such as a file of the project. */
  readonly because: string;
  readonly command: string;
  readonly args: readonly string[];
}

/** The supported runners, for a message when none was found. */
export const knownRunners = "package.json (a test script, vitest, jest, mocha), pytest, pom.xml, build.gradle, go.mod and Cargo.toml";

/** Finds the command that runs the tests of a folder. `files`: the tests to run, relative to it. Undefined: no known runner. */
export async function findTestRun(folder: string, files: readonly string[]): Promise<TestRun | undefined> {
  for (const find of [ofNode, ofPython, ofMaven, ofGradle, ofGo, ofCargo]) {
    const run = await find(folder, files);
    if (run !== undefined) return run;
  }
  return undefined;
}

type FindRun = (folder: string, files: readonly string[]) => Promise<TestRun | undefined>;

const ofNode: FindRun = async (folder, files) => {
  const manifest = await readManifest(join(folder, "package.json"));
  if (manifest === undefined) return undefined;
  const { scripts, packages, manager: named } = manifest;
  const manager = named ?? (await managerOf(folder));
  const script = scripts.get("test");
  // The placeholder of npm, which only fails.
  if (script !== undefined && !script.includes("no test specified")) {
    const because = `the script "test" of package.json`;
    // yarn and bun pass further arguments on without the dashes.
    const rest = files.length === 0 ? [] : [...(manager === "npm" || manager === "pnpm" ? ["--"] : []), ...files];
    return { because, command: manager, args: [manager === "bun" ? "run" : "", "test", ...rest].filter((arg) => arg !== "") };
  }
  const runner = ["vitest", "jest", "mocha"].find((name) => packages.has(name));
  if (runner === undefined) return undefined;
  // "--no": does not download a missing package.
  return {
    because: `${runner} in package.json`,
    command: "npx",
    args: ["--no", runner, ...(runner === "vitest" ? ["run"] : []), ...files],
  };
};

async function managerOf(folder: string): Promise<string> {
  if (await exists(join(folder, "pnpm-lock.yaml"))) return "pnpm";
  if (await exists(join(folder, "yarn.lock"))) return "yarn";
  return (await exists(join(folder, "bun.lock"))) || (await exists(join(folder, "bun.lockb"))) ? "bun" : "npm";
}

const ofPython: FindRun = async (folder, files) => {
  const marks = ["pytest.ini", "conftest.py", "tests/conftest.py"];
  let because = await firstOf(folder, marks);
  for (const [name, section] of [
    ["pyproject.toml", "[tool.pytest"],
    ["setup.cfg", "[tool:pytest]"],
    ["tox.ini", "[pytest]"],
  ] as const) {
    if (because === undefined && (await textOf(join(folder, name))).includes(section)) because = name;
  }
  const isPython = async (): Promise<boolean> => (await firstOf(folder, ["pyproject.toml", "setup.py", "requirements.txt"])) !== undefined;
  if (because === undefined && (await isPython()) && (await exists(join(folder, "tests")))) because = "a Python project with tests";
  const command = process.platform === "win32" ? "python" : "python3";
  return because === undefined ? undefined : { because, command, args: ["-m", "pytest", ...files] };
};

const ofMaven: FindRun = async (folder, files) => {
  if (!(await exists(join(folder, "pom.xml")))) return undefined;
  const command = await wrapperOr(folder, "mvnw", "mvn");
  const only = files.length === 0 ? [] : [`-Dtest=${files.map(classOf).join(",")}`];
  return { because: "pom.xml", command, args: ["--batch-mode", "--no-transfer-progress", "test", ...only] };
};

const ofGradle: FindRun = async (folder, files) => {
  const because = await firstOf(folder, ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]);
  if (because === undefined) return undefined;
  const only = files.flatMap((file) => ["--tests", `*${classOf(file)}`]);
  return { because, command: await wrapperOr(folder, "gradlew", "gradle"), args: ["test", "--console=plain", ...only] };
};

const ofGo: FindRun = async (folder, files) => {
  if (!(await exists(join(folder, "go.mod")))) return undefined;
  const packages = new Set(files.map((file) => `./${relative(folder, join(folder, dirname(file))).replaceAll("\\", "/")}`));
  return { because: "go.mod", command: "go", args: ["test", ...(packages.size === 0 ? ["./..."] : packages)] };
};

const ofCargo: FindRun = async (folder, files) => {
  if (!(await exists(join(folder, "Cargo.toml")))) return undefined;
  const only = files.filter((file) => dirname(file) === "tests").flatMap((file) => ["--test", classOf(file)]);
  return { because: "Cargo.toml", command: "cargo", args: ["test", ...only] };
};

function classOf(file: string): string {
  return basename(file, extname(file));
}

async function wrapperOr(folder: string, wrapper: string, program: string): Promise<string> {
  const name = process.platform === "win32" ? `${wrapper}${wrapper === "mvnw" ? ".cmd" : ".bat"}` : wrapper;
  return (await exists(join(folder, name))) ? join(folder, name) : program;
}

interface Manifest {
  readonly scripts: ReadonlyMap<string, string>;
  readonly packages: ReadonlySet<string>;
  readonly manager: string | undefined;
}

/** Undefined: missing or invalid. */
async function readManifest(file: string): Promise<Manifest | undefined> {
  let json: unknown;
  try {
    json = JSON.parse(await textOf(file));
  } catch {
    // Missing or invalid: it does not define tests.
    return undefined;
  }
  const fields = recordOf(json);
  const scripts = Object.entries(recordOf(fields["scripts"])).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  const packages = [fields["dependencies"], fields["devDependencies"]].flatMap((list) => Object.keys(recordOf(list)));
  const [manager] = String(fields["packageManager"] ?? "").split("@");
  const isKnown = ["npm", "pnpm", "yarn", "bun"].includes(manager ?? "");
  return { scripts: new Map(scripts), packages: new Set(packages), manager: isKnown ? manager : undefined };
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : {};
}

const maxManifestBytes = 1024 * 1024;

/** Empty if it is missing, not a file, or too large to be a project file. */
async function textOf(file: string): Promise<string> {
  const opened = await openFile({ real: file });
  if (!opened.ok) return "";
  try {
    return (await readWhole(opened.file, opened.size, maxManifestBytes))?.toString("utf8") ?? "";
  } finally {
    await opened.file.close();
  }
}

async function firstOf(folder: string, names: readonly string[]): Promise<string | undefined> {
  for (const name of names) if (await exists(join(folder, name))) return name;
  return undefined;
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
