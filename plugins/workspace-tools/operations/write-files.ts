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

/** Planned or actual result of an edit. */
export type FileEdit =
  | { readonly kind: "edited"; readonly text: string }
  | { readonly kind: "ambiguous"; readonly count: number }
  | { readonly kind: "failed"; readonly fault: EditFault; readonly cause?: unknown };

/** A passage of a file and its replacement. */
export interface Passage {
  readonly old: string;
  readonly new: string;
}

/** Changes files. Concurrent changes of the same file run one after another, so none is lost. */
export class FileWriter {
  readonly #machine: Pick<Machine, "writeFile">;
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(machine: Pick<Machine, "writeFile">) {
    this.#machine = machine;
  }

  /** Creates a file and its parent folders. Does not change an existing file. */
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

  /** Replaces a passage, keeping the file's encoding and line breaks. */
  edit(place: Place, passage: Passage): Promise<PlannedEdit> {
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

  /** Runs a step while no other step of this writer changes these files. */
  async alone<T>(places: readonly Place[], step: () => Promise<T>): Promise<T> {
    const keys = new Set(places.map(({ real }) => real));
    // Each step waits only for earlier ones, so there is no deadlock.
    const before = Promise.allSettled([...keys].map((key) => this.#queues.get(key)));
    const mine = before.then(step);
    for (const key of keys) this.#queues.set(key, mine);
    try {
      return await mine;
    } finally {
      for (const key of keys) if (this.#queues.get(key) === mine) this.#queues.delete(key);
    }
  }

  /** Makes drafted changes, all or none. Undefined: they are made. Call it within `alone` for their files. */
  commit(changes: readonly FileChange[]): Promise<CommitFault | undefined> {
    return commitChanges(changes, this.#machine);
  }
}

export type PlannedEdit =
  | Exclude<FileEdit, { kind: "edited" }>
  | (Extract<FileEdit, { kind: "edited" }> & { readonly before: DecodedText });

/** Plans an edit of a file in its current state. */
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

/** An empty passage matches only an empty file. */
function edited(text: string, { old, new: put }: Passage): TextEdit {
  if (old !== "") return replaceOnce(text, old, put);
  if (text !== "") return { kind: "missing" };
  return { kind: "edited", text: put };
}
