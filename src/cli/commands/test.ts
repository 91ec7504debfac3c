import type { Diagnostic } from "../../base/diagnostic.ts";
import { onAbort } from "../../base/wait.ts";
import { type TreeWatcher, watchTree } from "../../io/watch/watch-tree.ts";
import { fixedPart, resolveRoot } from "../../skills/store/skill-roots.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { skillDirectories } from "../open-host.ts";
import { findTests, type TestFolder } from "../test-run/find-tests.ts";
import { runTests } from "../test-run/run-tests.ts";
import { summaryLines, type TestReporter, type TestRun } from "../test-run/test-report.ts";

export interface TestOptions {
  readonly watch?: boolean;
  readonly reporter: TestReporter;
  /** Makes real requests and writes recordings; `replay` answers all from them. */
  readonly record?: boolean;
  readonly replay?: boolean;
  readonly updateSnapshots?: boolean;
}

/** Runs tests of skills. The exit code is 1 if a test fails, or if there are none. */
export async function test(context: CommandContext, folders: readonly string[], options: TestOptions): Promise<number> {
  if (options.watch === true) return watchTests(context, folders, options);
  const files = findTests(context, folders).flatMap((folder) => folder.files);
  if (files.length === 0) throw noTests();
  const run = await runFiles(files, context, options);
  const ok = run.counts.failed === 0;
  context.out.envelope({ ok, data: run, diagnostics: [] });
  return ok ? 0 : 1;
}

function noTests(): CliError {
  return new CliError("TESTS_NONE", 'No tests found. The tests of a skill are files such as "test/weather.test.ts" in its folder.', 1);
}

async function runFiles(files: readonly string[], { io, out }: CommandContext, options: TestOptions): Promise<TestRun> {
  const { reporter } = options;
  const isColoured = out.style.red("") !== "";
  const run = await runTests({
    files,
    ...(!out.isJson && reporter !== "json" && { reporter }),
    io,
    env: { ...(isColoured ? { FORCE_COLOR: "1" } : { NO_COLOR: "1", FORCE_COLOR: undefined }), ...kitVariables(options) },
    onText: (text) => io.stdout.write(text),
  });
  if (out.isJson) return run;
  if (reporter === "json") out.json(run);
  // Programs read the other reports, so nothing may follow them.
  for (const line of summaryLines(run, out)) reporter === "spec" ? out.line(line) : out.note(line);
  return run;
}

/** What the kit reads in `skillhost/testing`. */
function kitVariables({ record, replay, updateSnapshots }: TestOptions): Readonly<Record<string, string>> {
  return {
    ...(record === true && { SKILLHOST_RECORDINGS: "record" }),
    ...(replay === true && { SKILLHOST_RECORDINGS: "replay" }),
    ...(updateSnapshots === true && { SKILLHOST_SNAPSHOTS: "update" }),
  };
}

/** Files that tests write themselves: another run because of them would not end. */
const writtenByTests = /\.recording\.json$|\.snapshot\.\w+$/;

/** Runs all tests, then after each change those of the changed folders, until the command is stopped. */
async function watchTests(context: CommandContext, folders: readonly string[], options: TestOptions): Promise<number> {
  const { io, out } = context;
  const named = folders.length > 0 ? findTests(context, folders).map(({ path }) => path) : undefined;
  const roots = named ?? skillDirectories(context).map((root) => fixedPart(resolveRoot(root, io.cwd)));
  const changes = new ChangedPaths();
  await using watcher: TreeWatcher = watchTree({
    roots,
    onChange: (found) => changes.add(found.flatMap(({ path }) => (writtenByTests.test(path) ? [] : [path]))),
    onProblem: (problem: Diagnostic) => out.complainOf(problem),
  });
  await watcher.ready;
  using _stopping = onAbort(io.signal, () => changes.end());
  let changed: readonly string[] | undefined;
  while (!io.signal.aborted) {
    const found = findTests(context, folders);
    const files = affected(found, changed).flatMap((folder) => folder.files);
    if (files.length === 0) out.note("No tests found.");
    else await runAndReport(files, context, options);
    if (io.signal.aborted) break;
    out.note("Watching for changes. Press Ctrl-C to stop.");
    changed = await changes.next();
  }
  return 0;
}

async function runAndReport(files: readonly string[], context: CommandContext, options: TestOptions): Promise<void> {
  try {
    const run = await runFiles(files, context, options);
    if (context.out.isJson) context.out.json({ type: "tests", ...run });
  } catch (error) {
    if (!context.io.signal.aborted) throw error;
  }
}

/** The folders with a changed file; all if something else changed. */
function affected(folders: readonly TestFolder[], changed: readonly string[] | undefined): readonly TestFolder[] {
  if (changed === undefined) return folders;
  const isIn = (path: string, folder: string): boolean =>
    path === folder || path.startsWith(`${folder}/`) || path.startsWith(`${folder}\\`);
  const isForeign = changed.some((path) => !folders.some((folder) => isIn(path, folder.path)));
  return isForeign ? folders : folders.filter((folder) => changed.some((path) => isIn(path, folder.path)));
}

/** Paths that have changed since they were last asked for. */
class ChangedPaths {
  #paths: string[] = [];
  #wake: (() => void) | undefined;

  add(paths: readonly string[]): void {
    this.#paths.push(...paths);
    if (paths.length > 0) this.#wake?.();
  }

  /** Settles `next` without a change. */
  end(): void {
    this.#wake?.();
  }

  async next(): Promise<readonly string[]> {
    if (this.#paths.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = undefined;
    const paths = this.#paths;
    this.#paths = [];
    return paths;
  }
}
