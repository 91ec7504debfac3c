import { join } from "node:path";
import { HostError } from "../../base/errors.ts";
import { minimalEnvironment } from "../../io/process/child-environment.ts";
import { type ManagedProcess, type ProcessSpec, runProgram, type SpawnFailure, spawnProcess } from "../../io/process/child-process.ts";

/** The variables with which users configure git's connections. Everything else that begins with `GIT_` is left out. */
const passed: readonly string[] = [
  "SSH_AUTH_SOCK",
  "GIT_SSH_COMMAND",
  "GIT_SSL_CAINFO",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "XDG_CONFIG_HOME",
  ...["http_proxy", "https_proxy", "all_proxy", "no_proxy"].flatMap((name) => [name, name.toUpperCase()]),
];

/**
 * Options that keep git from running anything or asking anybody, whatever its configuration says. The user's own configuration stays in
 * force for the rest: credentials, proxies, and replaced addresses (`url.insteadOf`).
 */
function fixedOptions(repository: string): readonly string[] {
  const settings = [
    `core.hooksPath=${join(repository, "no-hooks")}`,
    "core.fsmonitor=false",
    "protocol.allow=never",
    "protocol.https.allow=always",
    // "user": not after a redirect.
    "protocol.ssh.allow=user",
    "protocol.http.allow=user",
    "protocol.file.allow=user",
    "protocol.ext.allow=never",
    "transfer.fsckObjects=true",
    // Everything arrives as one pack, whose size can be watched.
    "fetch.unpackLimit=1",
    "transfer.unpackLimit=1",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "credential.interactive=false",
    // A transfer that stalls for a minute is given up.
    "http.lowSpeedLimit=100",
    "http.lowSpeedTime=60",
  ];
  return [`--git-dir=${repository}`, "--literal-pathspecs", "--no-replace-objects", ...settings.flatMap((setting) => ["-c", setting])];
}

/**
 * The process of a git command in a repository of our own. The working directory is that repository too, so that the configuration of a
 * project has no effect.
 */
function specOf(repository: string, args: readonly string[]): ProcessSpec {
  const { env } = process;
  const environment = minimalEnvironment({
    ...Object.fromEntries(passed.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))),
    LC_ALL: "C",
    GIT_TERMINAL_PROMPT: "0",
    // Empty, so that neither core.askPass nor SSH_ASKPASS opens a window.
    GIT_ASKPASS: "",
    GCM_INTERACTIVE: "never",
    GIT_LFS_SKIP_SMUDGE: "1",
    GIT_NO_LAZY_FETCH: "1",
  });
  return { command: "git", args: [...fixedOptions(repository), ...args], cwd: repository, environment };
}

export interface GitEnd {
  readonly code: number | null;
  readonly stdout: string;
  /** The end of what git reported. */
  readonly stderr: string;
}

/**
 * Runs a git command to its end. Any exit code is a result.
 * @throws HostError `GIT_MISSING`; the signal's reason.
 */
export async function runGit(repository: string, args: readonly string[], signal: AbortSignal): Promise<GitEnd> {
  const outcome = await runProgram({ ...specOf(repository, args), signal, maxOutputBytes: 1024 * 1024 });
  if (outcome.kind === "aborted") {
    signal.throwIfAborted();
    throw new HostError("GIT_FETCH", "git was stopped.");
  }
  if (outcome.kind !== "exited") throw unavailable(outcome);
  return { code: outcome.code, stdout: outcome.stdout, stderr: outcome.stderrTail.trim() };
}

/** Starts a git command, whose output is read as it arrives. @throws HostError `GIT_MISSING` */
export async function startGit(repository: string, args: readonly string[]): Promise<ManagedProcess> {
  const spawned = await spawnProcess(specOf(repository, args));
  if (spawned.kind !== "spawned") throw unavailable(spawned);
  return spawned.process;
}

function unavailable({ kind, message }: SpawnFailure): HostError {
  const why = kind === "not-found" ? "The program git was not found." : message;
  return new HostError("GIT_MISSING", `${why} Skills in Git repositories need it: install git (https://git-scm.com), and run this again.`);
}
