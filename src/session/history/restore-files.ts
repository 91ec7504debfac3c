import { realpath, rm } from "node:fs/promises";
import { errorMessage } from "../../base/errors.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import { type CapturedChange, contentId, type FileChanges, readRegularFile } from "./file-changes.ts";

/** A file that a rewind leaves as it is: another program changed it since, or what it contained before is not known. */
export interface SkippedFile {
  readonly path: string;
  readonly reason: "user-modified" | "skipped-capture";
}

export type Restoration =
  | { readonly kind: "done"; readonly restoredFiles: readonly string[]; readonly skippedFiles: readonly SkippedFile[] }
  /** Nothing is restored; `isRolledBack` is false when a file could not be put back either. */
  | { readonly kind: "failed"; readonly error: string; readonly isRolledBack: boolean; readonly restoredFiles: readonly string[] };

interface Planned {
  readonly path: string;
  readonly current: Buffer | null;
  readonly before: Buffer | null;
}

/** All changes of one file, the oldest first. */
export function changesByFile(changes: readonly CapturedChange[]): ReadonlyMap<string, readonly CapturedChange[]> {
  const byFile = new Map<string, CapturedChange[]>();
  for (const change of changes) byFile.set(change.path, [...(byFile.get(change.path) ?? []), change]);
  return byFile;
}

/** Whether what a file contained before these changes of it is known. */
export function isRestorable(changes: readonly CapturedChange[]): boolean {
  return changes.every(({ before, after }) => before !== undefined && after !== undefined);
}

/** Puts files back to what they contained before these changes: all of them, except those that are skipped, or none. */
export async function restoreFiles(store: FileChanges, changes: readonly CapturedChange[]): Promise<Restoration> {
  const planned: Planned[] = [];
  const skippedFiles: SkippedFile[] = [];
  for (const [path, own] of changesByFile(changes)) {
    const plan = await planOf(store, path, own);
    if (typeof plan === "string") skippedFiles.push({ path, reason: plan });
    else if (!isSame(plan.current, plan.before)) planned.push(plan);
  }
  const done: Planned[] = [];
  for (const plan of planned) {
    try {
      // Checked once more: a person may be editing.
      const now = await readRegularFile(plan.path);
      if (now === undefined || !isSame(now, plan.current)) {
        skippedFiles.push({ path: plan.path, reason: "user-modified" });
        continue;
      }
      await put(plan.path, plan.before);
      done.push(plan);
    } catch (error) {
      const left = await rollBack(done);
      const message = `${plan.path} could not be restored: ${errorMessage(error)}`;
      return { kind: "failed", error: message, isRolledBack: left.length === 0, restoredFiles: left };
    }
  }
  return { kind: "done", restoredFiles: done.map(({ path }) => path), skippedFiles };
}

async function planOf(store: FileChanges, path: string, changes: readonly CapturedChange[]): Promise<Planned | SkippedFile["reason"]> {
  if (!isRestorable(changes)) return "skipped-capture";
  // A change by others between two of the session's own would be lost, too.
  if (changes.some(({ before }, index) => index > 0 && before !== changes[index - 1]!.after)) return "user-modified";
  const before = await store.contentBefore(changes[0]!);
  if (before === undefined) return "skipped-capture";
  const current = await readRegularFile(path);
  if (current === undefined || !(await isInPlace(path))) return "user-modified";
  if (isSame(current, before)) return { path, current, before };
  return current !== null && contentId(current) === changes.at(-1)!.after ? { path, current, before } : "user-modified";
}

/** Whether no folder on the way to the file has become a link since. */
async function isInPlace(path: string): Promise<boolean> {
  try {
    return (await realpath(path)) === path;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

function isSame(one: Buffer | null, other: Buffer | null): boolean {
  return one === null || other === null ? one === other : one.equals(other);
}

async function put(path: string, content: Buffer | null): Promise<void> {
  if (content === null) await rm(path, { force: true });
  else await writeFileAtomic(path, content);
}

/** Returns the files that could not be put back. */
async function rollBack(done: readonly Planned[]): Promise<readonly string[]> {
  const left: string[] = [];
  for (const { path, current } of [...done].reverse()) {
    try {
      await put(path, current);
    } catch {
      left.push(path);
    }
  }
  return left;
}
