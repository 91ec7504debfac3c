import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { HostError } from "../base/errors.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { isReallyInside } from "../io/confine-path.ts";
import { type FileLock, takeFileLock } from "../io/file-lock.ts";
import { isUnsettled, manifests, recoverProject } from "./commit.ts";

/** A folder with a package.json whose dependencies contain skills. */
export interface PackageProject {
  readonly folder: string;
  /** `user`: the packages of the user, outside of any project. */
  readonly scope: "project" | "user";
}

interface ProjectClaim extends Disposable {
  /** The paths that were rolled back after an interrupted command. */
  readonly recovered: readonly string[];
}

interface ClaimOptions {
  readonly signal: AbortSignal;
  /** `any`: nothing is installed, so another package manager may manage the project. */
  readonly manager?: "npm" | "any";
  /** Called once when another process holds the lock. */
  onWait(): void;
}

const longestWait = 120_000;

/**
 * Locks a project for installations by this process, and rolls back what a killed one began.
 * @throws HostError `PACKAGES_BUSY` when another process does not finish; `PACKAGES_MANAGER` when npm does not manage the project.
 */
export async function claimProject(project: PackageProject, { signal, manager = "npm", onWait }: ClaimOptions): Promise<ProjectClaim> {
  if (manager === "npm") refuseOtherManagers(project.folder);
  refuseLinksOut(project.folder);
  await prepare(project);
  const lock = await waitForLock(projectLock(project.folder), signal, onWait);
  try {
    const recovered = await recoverProject(project.folder);
    return { recovered, [Symbol.dispose]: () => lock.release() };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** The lock file of processes that change a project's packages. */
function projectLock(folder: string): string {
  return join(folder, "node_modules", ".skillhost.lock");
}

/** npm's library writes through links, and git can store links. */
function refuseLinksOut(folder: string): void {
  const linked = ["node_modules", ...manifests].find((name) => !isReallyInside(folder, join(folder, name)));
  if (linked === undefined) return;
  const message = `${join(folder, linked)} is, or is below, a symbolic link that points out of the project, so nothing was changed. Remove the link.`;
  throw new HostError("PATH_OUTSIDE", message);
}

function refuseOtherManagers(folder: string): void {
  if (existsSync(join(folder, "package-lock.json"))) return;
  const others = { "pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun" };
  const found = Object.entries(others).find(([file]) => existsSync(join(folder, file)));
  if (found === undefined) return;
  const [file, name] = found;
  const message = `${name} manages this project (${file}). Install the package with "${name} add", add it to "skillhost": { "packages": ["…"] } in package.json, then run "skillhost lock".`;
  throw new HostError("PACKAGES_MANAGER", message);
}

async function prepare({ folder, scope }: PackageProject): Promise<void> {
  await mkdir(join(folder, "node_modules"), { recursive: true });
  if (scope !== "user" || existsSync(join(folder, "package.json"))) return;
  const manifest = { name: "skillhost-user-packages", private: true, description: "Packages installed with skillhost add --user." };
  await writeFileAtomic(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

async function waitForLock(path: string, signal: AbortSignal, onWait: () => void): Promise<FileLock> {
  const deadline = Date.now() + longestWait;
  for (let pause = 20; ; pause = Math.min(pause * 1.5, 500)) {
    signal.throwIfAborted();
    const taken = await takeFileLock(path);
    if (taken.kind === "held") return taken.lock;
    if (pause === 20) onWait();
    if (Date.now() > deadline) {
      const who = taken.holder === undefined ? "another program" : `process ${taken.holder.pid}`;
      throw new HostError(
        "PACKAGES_BUSY",
        `Another process is changing the packages of this project: ${who}. Try again when it is done (${path}).`,
      );
    }
    await delay(pause, undefined, { signal });
  }
}

/** The state of a project's packages before they are read. */
export type Settled =
  | { readonly kind: "settled" }
  /** A command was killed here, and its changes to these paths were rolled back. */
  | { readonly kind: "recovered"; readonly paths: readonly string[] }
  /** A command is still running: packages may be partly old and partly new. */
  | { readonly kind: "busy" };

const longestSettling = 10_000;

/**
 * Waits until a project's packages are consistent: while a command moves them, and after a killed one by rolling back. Costs one file
 * system access when there is nothing to do.
 * @throws HostError `PACKAGES_JOURNAL`; the system's error where node_modules cannot be written.
 */
export async function settleProject(project: string, signal: AbortSignal): Promise<Settled> {
  const deadline = Date.now() + longestSettling;
  for (let pause = 10; isUnsettled(project); pause = Math.min(pause * 1.5, 100)) {
    signal.throwIfAborted();
    const taken = await takeFileLock(projectLock(project));
    if (taken.kind === "held") {
      try {
        const paths = await recoverProject(project);
        if (paths.length > 0) return { kind: "recovered", paths };
      } finally {
        taken.lock.release();
      }
    } else if (Date.now() > deadline) return { kind: "busy" };
    else await delay(pause, undefined, { signal });
  }
  return { kind: "settled" };
}
