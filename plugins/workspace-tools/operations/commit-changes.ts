import { basename, dirname } from "node:path";
import type { FileChange } from "./draft.ts";
import { FolderHandle } from "./folder-handle.ts";
import type { Machine } from "./machine.ts";
import type { Place } from "./places.ts";
import { encodeText } from "./text-encoding.ts";

/** The file that could not be changed. All other changes were undone. */
export interface CommitFault {
  readonly place: Place;
  readonly cause: unknown;
}

type Undo = () => Promise<unknown>;

/** Changes several files, or none of them. Undefined: all changes were made. */
export async function commitChanges(changes: readonly FileChange[], machine: Pick<Machine, "writeFile">): Promise<CommitFault | undefined> {
  const undo: Undo[] = [];
  // Deletions come last, so that no content is missing before everything else is written.
  for (const change of changes.toSorted((a, b) => Number(a.after === undefined) - Number(b.after === undefined))) {
    try {
      await put(change, undo, machine);
    } catch (cause) {
      await undoAll(undo);
      return { place: change.place, cause };
    }
  }
  return undefined;
}

async function put({ place: { real }, before, after, mode }: FileChange, undo: Undo[], machine: Pick<Machine, "writeFile">): Promise<void> {
  if (before === undefined) return after === undefined ? undefined : create(real, after, mode, undo);
  const name = basename(real);
  const original = encodeText(before.text, before);
  if (after === undefined) {
    await within(real, (folder) => folder.remove(name));
    undo.push(() => within(real, (folder) => folder.create(name, original, mode)));
    return;
  }
  await within(real, (folder) => folder.replace(name, encodeText(after, before), machine));
  undo.push(() => within(real, (folder) => folder.replace(name, original, machine)));
}

async function within(real: string, step: (folder: FolderHandle) => Promise<void>): Promise<void> {
  await using folder = await FolderHandle.open(dirname(real));
  await step(folder);
}

async function create(real: string, text: string, mode: number | undefined, undo: Undo[]): Promise<void> {
  const { folder, made } = await FolderHandle.make(dirname(real));
  await using held = folder;
  if (made.length > 0) undo.push(() => removeFolders(made));
  const name = basename(real);
  await held.create(name, text);
  undo.push(() => within(real, (again) => again.remove(name)));
  if (mode !== undefined) await held.chmod(name, mode);
}

/** Outermost first. */
async function removeFolders(made: readonly string[]): Promise<void> {
  for (const path of made.toReversed()) await within(path, (folder) => folder.removeFolder(basename(path)));
}

async function undoAll(undo: readonly Undo[]): Promise<void> {
  for (const step of undo.toReversed()) {
    // A failed step does not stop the others: undo as much as possible.
    await step().catch(() => undefined);
  }
}
