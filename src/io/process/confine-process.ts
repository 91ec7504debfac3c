import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { promisify } from "node:util";

/** Restrictions of a program and its child processes, enforced by the operating system. Paths are absolute, with links resolved. */
export interface ProcessLimits {
  /** Existing files and folders that appear empty. */
  readonly unreadable: readonly string[];
  /** Existing files and folders that are read-only. */
  readonly unwritable: readonly string[];
  /** The only network is a private loopback. */
  readonly isOffline: boolean;
}

/** Whether this machine can enforce limits. */
export type Confinement =
  | { readonly kind: "enforced"; readonly by: string; readonly program: string }
  | { readonly kind: "not-enforced"; readonly why: string };

/** Up to this number, the paths fit into the arguments of one program. */
export const maxLimitedPaths = 500;

let found: Promise<Confinement> | undefined;

/** Detects bubblewrap once, with a trial run: an installed program may still be forbidden by the system. */
export function findConfinement(): Promise<Confinement> {
  found ??= look();
  return found;
}

// Not by PATH, which may contain a folder of the project.
const folders = ["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"];

/** The installed bubblewrap, or why it cannot be used. */
export function findBubblewrap(): string | { readonly why: string } {
  if (process.platform !== "linux") return { why: "confining programs requires Linux with bubblewrap" };
  const program = folders.map((folder) => `${folder}/bwrap`).find((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true);
  return program ?? { why: "bubblewrap (bwrap) is not installed" };
}

async function look(): Promise<Confinement> {
  const program = findBubblewrap();
  if (typeof program !== "string") return { kind: "not-enforced", ...program };
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
 * The command that runs another one within limits. The program sees all files, its own processes and the devices as before. It
 * runs in a separate user namespace, so it can neither remove the mounts nor use /proc of outside processes to bypass them.
 */
export function confinedCommand(
  program: string,
  { unreadable, unwritable, isOffline }: ProcessLimits,
  cwd: string,
  command: readonly string[],
): readonly [string, readonly string[]] {
  const args = [
    ...["--unshare-user", "--cap-drop", "ALL", "--die-with-parent", "--dev-bind", "/", "/"],
    ...(isOffline ? ["--unshare-net"] : []),
    // Before the masks, because a bind mount makes everything below it visible again.
    ...unwritable.flatMap((path) => ["--ro-bind", path, path]),
    ...masksOf(unreadable),
    ...["--chdir", cwd, "--", ...command],
  ];
  return [program, args];
}

/** The arguments that make files and folders appear empty. */
export function masksOf(unreadable: readonly string[]): readonly string[] {
  return unreadable.flatMap((path) => (isFolder(path) ? ["--tmpfs", path, "--remount-ro", path] : ["--ro-bind", "/dev/null", path]));
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
