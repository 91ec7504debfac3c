import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { replaceOnce, type TextEdit } from "./edit-text.ts";
import type { Machine } from "./machine.ts";
import { type FileFault, openFile, readWhole } from "./open-file.ts";
import type { Place } from "./places.ts";
import { diffOfChange } from "./text-diff.ts";
import { type DecodedText, decodeText, encodeText } from "./text-encoding.ts";

/** Larger files are not edited: a model has no business with all of them at once. */
export const maxEditedBytes: number = 20 * 1024 * 1024;

export type Creation = { readonly kind: "created" } | { readonly kind: "exists" } | { readonly kind: "failed"; readonly cause: unknown };

export type EditFault = FileFault | "too-large" | "binary" | "encoding" | "missing-passage" | "unwritable";

/** What an edit would come to, or came to. */
export type FileEdit =
  | { readonly kind: "edited"; readonly text: string; readonly diff: string }
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
  create({ real }: Place, text: string): Promise<Creation> {
    return this.#inOrder(real, async () => {
      try {
        await mkdir(dirname(real), { recursive: true });
        // "wx": neither over a file nor through a link that has come to lie there.
        await writeFile(real, text, { flag: "wx" });
        return { kind: "created" };
      } catch (cause) {
        return (cause as NodeJS.ErrnoException).code === "EEXIST" ? { kind: "exists" } : { kind: "failed", cause };
      }
    });
  }

  /** Puts something else in a passage's place, in the file's own encoding and with its own line breaks. */
  edit(place: Place, passage: Passage): Promise<FileEdit> {
    return this.#inOrder(place.real, async () => {
      const planned = await planEdit(place, passage);
      if (planned.kind !== "edited") return planned;
      try {
        await this.#machine.writeFile(place.real, encodeText(planned.text, planned.decoded));
        return planned;
      } catch (cause) {
        return { kind: "failed", fault: "unwritable", cause };
      }
    });
  }

  async #inOrder<T>(key: string, step: () => Promise<T>): Promise<T> {
    const before = this.#queues.get(key) ?? Promise.resolve();
    const mine = before.then(step, step);
    this.#queues.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#queues.get(key) === mine) this.#queues.delete(key);
    }
  }
}

type PlannedEdit = Exclude<FileEdit, { kind: "edited" }> | (Extract<FileEdit, { kind: "edited" }> & { readonly decoded: DecodedText });

/** What an edit would make of a file as it is now. */
export async function planEdit(place: Place, passage: Passage): Promise<PlannedEdit> {
  const opened = await openFile(place);
  if (!opened.ok) return { kind: "failed", fault: opened.fault };
  try {
    const bytes = await readWhole(opened.file, opened.size, maxEditedBytes);
    if (bytes === undefined) return { kind: "failed", fault: "too-large" };
    const decoded = decodeText(bytes);
    if (decoded === undefined) return { kind: "failed", fault: "binary" };
    // Written again it would be another file, also where nobody touched it.
    if (!decoded.isExact) return { kind: "failed", fault: "encoding" };
    return toFileEdit(place, decoded, passage);
  } finally {
    await opened.file.close();
  }
}

function toFileEdit({ path }: Place, decoded: DecodedText, passage: Passage): PlannedEdit {
  const { text } = decoded;
  const edit = edited(text, passage);
  if (edit.kind === "ambiguous") return edit;
  if (edit.kind === "missing") return { kind: "failed", fault: "missing-passage" };
  const change = { before: text, after: edit.text, at: edit.at, removed: edit.removed, added: edit.added };
  return { kind: "edited", text: edit.text, diff: diffOfChange(path, change), decoded };
}

/** Nothing to look for is found in a file that is empty, and nowhere else. */
function edited(text: string, { old, new: put }: Passage): TextEdit {
  if (old !== "") return replaceOnce(text, old, put);
  if (text !== "") return { kind: "missing" };
  return { kind: "edited", text: put, at: 0, removed: 0, added: put.length };
}
