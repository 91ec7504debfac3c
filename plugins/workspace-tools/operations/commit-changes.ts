import { chmod, mkdir, rmdir, unlink, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { FileChange } from "./draft.ts";
import type { Machine } from "./machine.ts";
import type { Place } from "./places.ts";
import { encodeText } from "./text-encoding.ts";

/** The file that could not be changed, for which all others are as they were. */
export interface CommitFault {
  readonly place: Place;
  readonly cause: unknown;
}

type Undo = () => Promise<unknown>;

/** Makes changes of several files, all or none. Undefined: they are made. */
export async function commitChanges(changes: readonly FileChange[], machine: Pick<Machine, "writeFile">): Promise<CommitFault | undefined> {
  const undo: Undo[] = [];
  // What goes, goes last: until then everything is somewhere.
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
  const original = encodeText(before.text, before);
  if (after === undefined) await unlink(real);
  else await machine.writeFile(real, encodeText(after, before));
  undo.push(() => machine.writeFile(real, original));
}

async function create(real: string, text: string, mode: number | undefined, undo: Undo[]): Promise<void> {
  const folder = dirname(real);
  const first = await mkdir(folder, { recursive: true });
  if (first !== undefined) undo.push(() => removeFolders(folder, first));
  // "wx": neither over a file nor through a link that has come to lie there.
  await writeFile(real, text, { flag: "wx" });
  undo.push(() => unlink(real));
  if (mode !== undefined) await chmod(real, mode);
}

async function removeFolders(folder: string, first: string): Promise<void> {
  for (let at = folder; at.length >= first.length; at = dirname(at)) await rmdir(at);
}

async function undoAll(undo: readonly Undo[]): Promise<void> {
  for (const step of undo.toReversed()) {
    // One that fails keeps no other back: the more is as it was, the better.
    await step().catch(() => undefined);
  }
}
