import { execFile } from "node:child_process";

/** `reason` is for the model, `detail` (what git printed) for the log. */
export interface GitFault {
  readonly ok: false;
  readonly reason: string;
  readonly detail: string;
}

export type GitOutcome = { readonly ok: true; readonly names: readonly string[] } | GitFault;

export interface GitOptions {
  readonly cwd: string;
  readonly signal: AbortSignal;
}

// The repository's settings must not start programs, and reading must not write to its index.
const guards = ["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"];
const timeout = 15_000;
const maxBuffer = 16 * 1024 * 1024;

/** Runs a git command that lists names with `-z`. */
export async function listNames(args: readonly string[], options: GitOptions): Promise<GitOutcome> {
  const answer = await runGit(args, options);
  // During a merge conflict git lists a name once for each side.
  return answer.ok ? { ok: true, names: [...new Set(answer.output.split("\0"))].filter((name) => name !== "") } : answer;
}

/** Returns why changes cannot be listed here. Outside a repository, `git diff` would compare two paths instead. */
export async function findObstacle(options: GitOptions): Promise<GitFault | undefined> {
  const answer = await runGit(["rev-parse", "--is-inside-work-tree"], options);
  if (!answer.ok) return answer;
  const reason = "This is a bare repository or a .git folder, which has no working tree.";
  return answer.output.trim() === "true" ? undefined : { ok: false, reason, detail: `git rev-parse: ${answer.output.trim()}` };
}

type GitAnswer = { readonly ok: true; readonly output: string } | GitFault;

/** Runs git without a shell. */
function runGit(args: readonly string[], { cwd, signal }: GitOptions): Promise<GitAnswer> {
  const options = { cwd, signal, timeout, maxBuffer, env: gitEnvironment(), windowsHide: true };
  return new Promise((resolve) => {
    execFile("git", [...guards, ...args], options, (error, output, stderr) => {
      if (error === null) resolve({ ok: true, output });
      else resolve({ ok: false, reason: reasonOf(error, stderr, signal), detail: `git ${args[0]}: ${stderr.trim() || error.message}` });
    });
  });
}

/** The host's environment without the variables that select another repository, and with English messages. */
function gitEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^GIT_(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|COMMON_DIR|NAMESPACE|PREFIX)$/.test(name),
  );
  return { ...Object.fromEntries(own), LC_ALL: "C", GIT_TERMINAL_PROMPT: "0" };
}

function reasonOf(error: Error & { code?: unknown; killed?: boolean }, stderr: string, signal: AbortSignal): string {
  if (signal.aborted) return "The call was cancelled.";
  if (error.code === "ENOENT") return "git is not installed, or not on the PATH of the host.";
  if (error.code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") return "There are too many changed files to list them.";
  if (error.killed) return `git did not answer within ${timeout / 1000} seconds.`;
  if (/not a git repository/i.test(stderr)) return "This folder is not part of a git repository.";
  if (/dubious ownership/i.test(stderr))
    return "git refuses this repository because it belongs to another user. Its owner can allow it with `git config --global --add safe.directory <folder>`.";
  return "git could not list the changes.";
}
