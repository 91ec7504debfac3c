import { setTimeout as delay } from "node:timers/promises";
import { takeFileLock } from "../io/file-lock.ts";
import { recoverProject } from "./commit.ts";
import { isUnsettled } from "./journal-file.ts";
import { projectLock } from "./package-project.ts";

/** How a project is for who is about to read its packages. */
export type Settled =
  | { readonly kind: "settled" }
  /** A command was killed here. What it had begun has been taken back: these paths. */
  | { readonly kind: "recovered"; readonly paths: readonly string[] }
  /** A command is still at work: what is there may be of before and of after it. */
  | { readonly kind: "busy" };

const longestWait = 10_000;

/**
 * Has who reads a project's packages see them as they were before a command or as they are after it: waits while one moves
 * them, and takes back what one that was killed had begun. Costs one look at the disk when there is nothing to do.
 * @throws HostError `PACKAGES_JOURNAL`; the system's error where node_modules may not be written to.
 */
export async function settleProject(project: string, signal: AbortSignal): Promise<Settled> {
  const deadline = Date.now() + longestWait;
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
