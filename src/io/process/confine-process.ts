import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { promisify } from "node:util";

/** What a program and all that it starts is kept from, by the operating system. Paths are absolute, with links followed. */
export interface ProcessLimits {
  /** Existing files and folders that are empty to it. */
  readonly unreadable: readonly string[];
  /** Existing files and folders that it cannot change. */
  readonly unwritable: readonly string[];
  /** It has no network but a loopback of its own. */
  readonly isOffline: boolean;
}

/** Whether this machine can keep programs to limits. */
export type Confinement =
  | { readonly kind: "enforced"; readonly by: string; readonly program: string }
  | { readonly kind: "not-enforced"; readonly why: string };

/** What has fewer paths fits into the arguments of one program. */
export const maxLimitedPaths = 500;

let found: Promise<Confinement> | undefined;

/** Looks once, and tries it out: that it is installed does not mean that it may be used. */
export function findConfinement(): Promise<Confinement> {
  found ??= look();
  return found;
}

// Never by PATH, in which a project may have put a folder of its own.
const folders = ["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"];

async function look(): Promise<Confinement> {
  if (process.platform !== "linux") return { kind: "not-enforced", why: "confining programs requires Linux with bubblewrap" };
  const program = folders.map((folder) => `${folder}/bwrap`).find((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true);
  if (program === undefined) return { kind: "not-enforced", why: "bubblewrap (bwrap) is not installed" };
  try {
    const limits = { unreadable: [], unwritable: [], isOffline: true };
    const [command, args] = confinedCommand(program, limits, "/", ["/bin/sh", "-c", "exit 0"]);
    await run(command, args);
    const { stdout } = await run(program, ["--version"]);
    return { kind: "enforced", by: stdout.trim().slice(0, 50), program };
  } catch {
    return { kind: "not-enforced", why: "bubblewrap is installed, but this system does not allow it to create namespaces" };
  }
}

async function run(program: string, args: readonly string[]): Promise<{ stdout: string }> {
  return promisify(execFile)(program, [...args], { timeout: 10_000, env: {} });
}

/**
 * The command that runs another one within limits. It sees all files, its own processes and the devices as before. In a user
 * namespace of its own it can neither remove the mounts nor look through /proc at what processes outside of it see.
 */
export function confinedCommand(
  program: string,
  { unreadable, unwritable, isOffline }: ProcessLimits,
  cwd: string,
  command: readonly string[],
): readonly [string, readonly string[]] {
  const masks = unreadable.flatMap((path) => (isFolder(path) ? ["--tmpfs", path, "--remount-ro", path] : ["--ro-bind", "/dev/null", path]));
  const args = [
    ...["--unshare-user", "--cap-drop", "ALL", "--die-with-parent", "--dev-bind", "/", "/"],
    ...(isOffline ? ["--unshare-net"] : []),
    // Before the masks: what is bound again comes with all that it contains.
    ...unwritable.flatMap((path) => ["--ro-bind", path, path]),
    ...masks,
    ...["--chdir", cwd, "--", ...command],
  ];
  return [program, args];
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
