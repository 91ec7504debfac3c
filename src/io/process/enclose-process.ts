import { execFile } from "node:child_process";
import { lstatSync, realpathSync, statSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { promisify } from "node:util";
import { findBubblewrap, masksOf, type ProcessLimits } from "./confine-process.ts";
import { openSandboxRuntime, type SandboxRuntime } from "./sandbox-runtime.ts";

/** All that an enclosed program reaches of this machine, besides the libraries of the system. Paths are absolute; missing ones are left out. */
export interface Enclosure {
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  /** Programs that it may start. */
  readonly programs: readonly string[];
  /** Whether it may connect to the network. Only Node.js reads it: a system sandbox gives no network. */
  readonly isOnline?: boolean | undefined;
  /** What it does not reach although it is named above. */
  readonly withheld?: Pick<ProcessLimits, "unreadable" | "unwritable"> | undefined;
}

/**
 * What encloses programs on this machine. `system`: the operating system shows a program only the files of its enclosure, and gives it no
 * network and no other processes. `node`: Node.js refuses JavaScript other files and programs, and the network if it has a permission for that
 * (from Node.js 25 on), but neither native code nor links are limited. `runtime`: an optional package does the same as `system` for Node.js.
 * `none`: nothing does.
 */
export type Sandbox =
  | { readonly kind: "system"; readonly by: string; readonly program: string }
  | { readonly kind: "runtime"; readonly by: string; readonly runtime: SandboxRuntime; readonly why: string }
  | { readonly kind: "node"; readonly by: string; readonly flag: string; readonly limitsNetwork: boolean; readonly why: string }
  | { readonly kind: "none"; readonly why: string };

let found: Promise<Sandbox> | undefined;

/** Finds out once what encloses Node.js here, by trial runs: an installed program or a known option may still not work. */
export function findSandbox(): Promise<Sandbox> {
  found ??= look();
  return found;
}

async function run(program: string, args: readonly string[]): Promise<{ stdout: string }> {
  return promisify(execFile)(program, [...args], { timeout: 10_000, env: {} });
}

async function look(): Promise<Sandbox> {
  const system = await findSystemSandbox();
  if (typeof system !== "string") return system;
  const runtime = await findRuntimeSandbox(system);
  if (typeof runtime !== "string") return runtime;
  const why = `${system}, and ${runtime}`;
  const flag = await findPermissionFlag();
  if (flag === undefined) return { kind: "none", why: `${why}, and Node.js ${process.versions.node} has no permission model` };
  const limitsNetwork = process.allowedNodeEnvironmentFlags.has(allowNetwork);
  return { kind: "node", by: `the permission model of Node.js ${process.versions.node}`, flag, limitsNetwork, why };
}

/** The sandbox of the optional package, where there is no other for the reason `why`. A string is the reason that it cannot be used either. @internal */
export async function findRuntimeSandbox(why: string): Promise<Extract<Sandbox, { kind: "runtime" }> | string> {
  const runtime = await openSandboxRuntime([...systemFolders, ...systemFiles]);
  return typeof runtime === "string" ? runtime : { kind: "runtime", by: runtime.by, runtime, why };
}

/** A string is the reason that bubblewrap cannot be used here. */
async function findSystemSandbox(): Promise<Sandbox | string> {
  const program = findBubblewrap();
  if (typeof program !== "string") return program.why;
  try {
    // The program that is enclosed later, because its libraries may lie anywhere.
    const [command, args] = enclosedCommand(program, { readable: [], writable: [], programs: [] }, "/", [process.execPath, "--version"]);
    await run(command, args);
    const { stdout } = await run(program, ["--version"]);
    return { kind: "system", by: stdout.trim().slice(0, 50), program };
  } catch {
    return "bubblewrap is installed, but this system does not allow it to create namespaces, or Node.js does not start in them";
  }
}

/** A trial, because the name of the option depends on the version, and it does not exist in every build. */
async function findPermissionFlag(): Promise<string | undefined> {
  for (const flag of ["--permission", "--experimental-permission"]) {
    try {
      const { stdout } = await run(process.execPath, [flag, "-p", 'process.permission.has("fs.read", "/")']);
      if (stdout.trim() === "false") return flag;
    } catch {
      // Not an option of this version.
    }
  }
  return undefined;
}

/** The memory for files in the private temporary folder. */
const temporaryBytes = 256 * 1024 * 1024;
/** The private temporary folder, which is also the home folder. */
export const enclosedTemporaryFolder = "/tmp";
// Without the folders of programs. Links, such as /lib to usr/lib, are made again as links.
const systemFolders = [
  ...["/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/local/lib", "/usr/local/share"],
  ...["/lib", "/lib32", "/lib64", "/nix/store", "/run/current-system/sw/lib"],
];
const systemFiles = ["/etc/ld.so.cache", "/etc/localtime", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/alternatives"];

/**
 * The command that runs another one in an enclosure of bubblewrap: its own file tree, which is read-only except for `writable` and a temporary
 * folder in memory, its own processes, and no network but a private loopback. Local sockets in readable folders can be connected to.
 */
export function enclosedCommand(
  program: string,
  { readable, writable, programs, withheld = nothingWithheld }: Enclosure,
  cwd: string,
  command: readonly string[],
): readonly [string, readonly string[]] {
  const { unreadable, unwritable } = withheld;
  const real = new RealPaths();
  const isKept = (path: string): boolean => unwritable.some((each) => isWithin(each, path, real));
  const shown = withoutNested([...readable, process.execPath, ...programs], real);
  const args = [
    ...["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"],
    ...["--cap-drop", "ALL", "--die-with-parent", "--new-session"],
    ...["--proc", "/proc", "--dev", "/dev"],
    ...["--size", String(temporaryBytes), "--tmpfs", enclosedTemporaryFolder],
    ...[...systemFolders, ...systemFiles].flatMap(asInSystem),
    ...shown.flatMap((path) => bound("--ro-bind", path, real)),
    // Last, because a bind mount hides what was mounted below it before.
    ...[...writable].sort(byLength).flatMap((path) => bound(isKept(path) ? "--ro-bind" : "--bind", path, real)),
    ...unwritable.filter((path) => writable.some((each) => isWithin(each, path, real))).flatMap((path) => ["--ro-bind", path, path]),
    ...masksOf(unreadable),
    // The folder that it starts in exists, even if nothing of it is shown.
    ...["--dir", cwd],
    ...["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", cwd, "--", ...command],
  ];
  return [program, args];
}

const nothingWithheld = { unreadable: [], unwritable: [] };

/** Both paths with links resolved, since those of rules are. */
function isWithin(folder: string, path: string, real: RealPaths): boolean {
  const [outer, inner] = [real.of(folder) ?? folder, real.of(path) ?? path];
  return inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep);
}

/** The real paths that `enclosedCommand` mounts for an enclosure, besides the libraries of the system. */
export function enclosedPaths({ readable, writable, programs }: Enclosure): readonly string[] {
  const real = new RealPaths();
  const shown = [...withoutNested([...readable, process.execPath, ...programs], real), ...writable];
  return [...new Set(shown.flatMap((path) => real.of(path) ?? []))];
}

function asInSystem(path: string): readonly string[] {
  const entry = lstatSync(path, { throwIfNoEntry: false });
  if (entry === undefined) return [];
  if (!entry.isSymbolicLink()) return ["--ro-bind", path, path];
  const target = realPathOf(path);
  if (target === undefined) return [];
  // A file may be linked from anywhere; folders lead to others of the list.
  return statSync(target).isDirectory() ? ["--symlink", target, path] : ["--ro-bind", target, path];
}

function bound(option: "--bind" | "--ro-bind", path: string, real: RealPaths): readonly string[] {
  const target = real.of(path);
  if (target === undefined) return [];
  return target === path ? [option, path, path] : [option, target, target, option, target, path];
}

/** Real paths, each looked up once: an enclosure asks for most of them several times. */
class RealPaths {
  readonly #known = new Map<string, string | undefined>();

  of(path: string): string | undefined {
    if (!this.#known.has(path)) this.#known.set(path, realPathOf(path));
    return this.#known.get(path);
  }
}

function realPathOf(path: string): string | undefined {
  try {
    // Most paths that are looked up do not exist, and an error takes longer to create than the system takes to answer.
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    return realpathSync.native(path);
  } catch {
    // Missing, or not readable for this user either.
    return undefined;
  }
}

/** Outer folders first, without what lies in one of them and needs no mount of its own. */
function withoutNested(paths: readonly string[], real: RealPaths): readonly string[] {
  const kept: string[] = [];
  for (const path of [...new Set(paths)].sort(byLength)) {
    const outer = kept.find((each) => path.startsWith(each.endsWith(sep) ? each : each + sep));
    // A link in a folder may lead out of it.
    if (outer === undefined || real.of(path) !== join(real.of(outer) ?? outer, path.slice(outer.length))) kept.push(path);
  }
  return kept;
}

function byLength(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : 1);
}

/** Allows all addresses: there is no permission for some. */
const allowNetwork = "--allow-net";

/** The arguments with which Node.js enforces an enclosure by itself. */
export function permissionArguments(
  { flag, limitsNetwork }: Extract<Sandbox, { kind: "node" }>,
  { readable, writable, programs, isOnline = false }: Enclosure,
): readonly string[] {
  const real = new RealPaths();
  const grants = (option: string, paths: readonly string[]): readonly string[] =>
    // Node.js 20 aborts when one grant is another one plus a separator, so each path is granted once.
    withoutNested(
      paths.flatMap((path) => [path, real.of(path) ?? path]),
      real,
    ).map((path) => `${option}=${isFolder(path) ? join(path, sep) : path}`);
  return [
    flag,
    "--allow-addons",
    ...(programs.length > 0 ? ["--allow-child-process"] : []),
    ...(limitsNetwork && isOnline ? [allowNetwork] : []),
    ...grants("--allow-fs-read", [...readable, ...writable, ...programs, dirname(process.execPath)]),
    ...grants("--allow-fs-write", writable),
  ];
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
