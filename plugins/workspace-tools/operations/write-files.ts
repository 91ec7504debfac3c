import { basename, dirname } from "node:path";
import { type CommitFault, commitChanges } from "./commit-changes.ts";
import type { FileChange } from "./draft.ts";
import { replaceOnce, type TextEdit } from "./edit-text.ts";
import { FolderHandle } from "./folder-handle.ts";
import type { Machine } from "./machine.ts";
import { readText, type TextFault } from "./open-file.ts";
import type { Place } from "./places.ts";
import { type DecodedText, encodeText } from "./text-encoding.ts";

export type Creation = { readonly kind: "created" } | { readonly kind: "exists" } | { readonly kind: "failed"; readonly cause: unknown };

export type EditFault = TextFault | "missing-passage" | "unwritable";

/** What an edit would come to, or came to. */
export type FileEdit =
  | { readonly kind: "edited"; readonly text: string }
  | { readonly kind: "ambiguous"; readonly count: number }
  | { readonly kind: "failed"; readonly fault: EditFault; readonly cause?: unknown };

/** One passage of a file, and what takes its place. */
export interface Passage {
  readonly old: string;
  readonly new: string;
}

/** Changes files, each one step after the other: edits of one file that come at once all count. */
export class FileWriter {
  readonly #machine: Pick<Machine, "writeFile">;
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(machine: Pick<Machine, "writeFile">) {
    this.#machine = machine;
  }

  /** Makes a file, and the folders that it is to lie in. One that exists is left alone. */
  create(place: Place, text: string): Promise<Creation> {
    const { real } = place;
    return this.alone([place], async () => {
      try {
        const { folder } = await FolderHandle.make(dirname(real));
        await using held = folder;
        await held.create(basename(real), text);
        return { kind: "created" };
      } catch (cause) {
        return (cause as NodeJS.ErrnoException).code === "EEXIST" ? { kind: "exists" } : { kind: "failed", cause };
      }
    });
  }

  /** Puts something else in a passage's place, in the file's own encoding and with its own line breaks. */
  edit(place: Place, passage: Passage): Promise<FileEdit> {
    return this.alone([place], async () => {
      const planned = await planEdit(place, passage);
      if (planned.kind !== "edited") return planned;
      try {
        await using folder = await FolderHandle.open(dirname(place.real));
        await folder.replace(basename(place.real), encodeText(planned.text, planned.before), this.#machine);
        return planned;
      } catch (cause) {
        return { kind: "failed", fault: "unwritable", cause };
      }
    });
  }

  /** Takes a step for which nobody else changes any of these files. */
  async alone<T>(places: readonly Place[], step: () => Promise<T>): Promise<T> {
    const keys = new Set(places.map(({ real }) => real));
    // Each waits only for those that came before it, so that none ever waits for another in a circle.
    const before = Promise.allSettled([...keys].map((key) => this.#queues.get(key)));
    const mine = before.then(step);
    for (const key of keys) this.#queues.set(key, mine);
    try {
      return await mine;
    } finally {
      for (const key of keys) if (this.#queues.get(key) === mine) this.#queues.delete(key);
    }
  }

  /** Makes changes that were drafted, all or none; undefined: they are made. Within `alone` for their files. */
  commit(changes: readonly FileChange[]): Promise<CommitFault | undefined> {
    return commitChanges(changes, this.#machine);
  }
}

export type PlannedEdit =
  | Exclude<FileEdit, { kind: "edited" }>
  | (Extract<FileEdit, { kind: "edited" }> & { readonly before: DecodedText });

/** What an edit would make of a file as it is now. */
export async function planEdit(place: Place, passage: Passage): Promise<PlannedEdit> {
  const read = await readText(place);
  return typeof read === "string" ? { kind: "failed", fault: read } : toFileEdit(read.decoded, passage);
}

function toFileEdit(before: DecodedText, passage: Passage): PlannedEdit {
  const edit = edited(before.text, passage);
  if (edit.kind === "ambiguous") return edit;
  if (edit.kind === "missing") return { kind: "failed", fault: "missing-passage" };
  return { kind: "edited", text: edit.text, before };
}

/** Nothing to look for is found in a file that is empty, and nowhere else. */
function edited(text: string, { old, new: put }: Passage): TextEdit {
  if (old !== "") return replaceOnce(text, old, put);
  if (text !== "") return { kind: "missing" };
  return { kind: "edited", text: put };
}
