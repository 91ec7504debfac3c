import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { type CliRun, type CliSetup, runCli, skillDocument, type Workplace, workplace } from "../cli/run-cli.ts";
import { packageTarball } from "./tar-kit.ts";

/** The folder of the test that runs, with an empty project in it. */
export let place: Workplace;

/** Gives each test of a file a project, and a home folder, of its own. */
export function useProjects(): void {
  let homeBefore: string | undefined;
  // npm's libraries are large: loading them must not count towards a test's time.
  beforeAll(() => Promise.all([import("@npmcli/arborist"), import("pacote")]), 60_000);
  beforeEach(() => {
    place = workplace({ "project/package.json": '{ "name": "project", "version": "1.0.0" }\n' });
    homeBefore = process.env["SKILLHOST_HOME"];
    process.env["SKILLHOST_HOME"] = place.at("home");
  });
  afterEach(() => {
    if (homeBefore === undefined) delete process.env["SKILLHOST_HOME"];
    else process.env["SKILLHOST_HOME"] = homeBefore;
    place[Symbol.dispose]();
  });
  afterAll(() => {
    if (withLinter !== undefined) rmSync(withLinter, { recursive: true });
    withLinter = undefined;
  });
}

/** A copy of a folder whose project has the package. */
let withLinter: string | undefined;

/** Adds the package of `skillTarball()` to the project. npm does it once for each file of tests; later calls copy what it made. */
export async function addLinter(): Promise<void> {
  if (withLinter !== undefined) {
    cpSync(withLinter, place.path, { recursive: true });
    return;
  }
  expect(await run(["add", skillTarball(), "--yes"])).toMatchObject({ code: 0 });
  withLinter = mkdtempSync(join(tmpdir(), "with-linter-"));
  cpSync(place.path, withLinter, { recursive: true });
}

/** Runs the command line in the project, with an npm of its own that has no network. */
export function run(argv: readonly string[], setup: CliSetup = {}): Promise<CliRun> {
  const env = {
    npm_config_userconfig: place.at("npmrc"),
    npm_config_globalconfig: place.at("npmrc-of-the-machine"),
    npm_config_cache: place.at("npm-cache"),
    npm_config_offline: "true",
  };
  return runCli(argv, { cwd: place.at("project"), ...setup, env: { ...env, ...setup.env } });
}

interface Envelope {
  readonly ok: boolean;
  readonly data: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: string; readonly message: string };
}

export async function json(argv: readonly string[], setup: CliSetup = {}): Promise<Envelope & { readonly code: number }> {
  const { stdout, code } = await run([...argv, "--json"], setup);
  return { ...(JSON.parse(stdout) as Envelope), code };
}

export const lintTool: { readonly name: string; readonly description: string; readonly parameters: object } = {
  name: "lint",
  description: "Checks a file.",
  parameters: { type: "object", properties: { path: { type: "string" } } },
};

/** Writes the tarball of a package that is a skill, and gives the argument to add it by. */
export function skillTarball(version = "1.0.0", tool: object = lintTool, files: Readonly<Record<string, string>> = {}): string {
  const manifest = { name: "linter", version, scripts: { postinstall: "touch ran-a-script" } };
  const all = { "SKILL.md": skillDocument("linter"), "tools/lint.json": JSON.stringify(tool), ...files };
  writeFileSync(place.at(`linter-${version}.tgz`), packageTarball(manifest, all));
  return `../linter-${version}.tgz`;
}

/** A file of the test's folder. */
export const read = (path: string): string => readFileSync(place.at(path), "utf8");
/** What lies in node_modules. */
export const installed = (): string[] => readdirSync(place.at("project/node_modules")).filter((name) => name !== ".package-lock.json");
