import { readText, type TextFault } from "./open-file.ts";
import type { Place } from "./places.ts";
import type { DecodedText } from "./text-encoding.ts";

/** A file before and after a change. */
export interface FileChange {
  readonly place: Place;
  /** Undefined: the file does not exist yet. */
  readonly before: DecodedText | undefined;
  /** Undefined: the file is deleted. */
  readonly after: string | undefined;
  /** The mode of a new file. Undefined: the default. */
  readonly mode: number | undefined;
}

export type DraftText = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly fault: TextFault };

interface DraftFile {
  readonly place: Place;
  readonly before: DecodedText | undefined;
  readonly ownMode: number | undefined;
  after: string | undefined;
  mode: number | undefined;
}

/** Drafts changes of files before any of them is made. Each step sees the effects of the earlier ones. */
export class Draft {
  readonly #files = new Map<string, DraftFile>();

  /** The changed files, in the order of first access. */
  get changes(): readonly FileChange[] {
    return [...this.#files.values()].filter(({ before, after }) => before?.text !== after);
  }

  async read(place: Place): Promise<DraftText> {
    const file = await this.#find(place);
    if (typeof file === "string") return { ok: false, fault: file };
    return file.after === undefined ? { ok: false, fault: "missing" } : { ok: true, text: file.after };
  }

  /** Creates the file if it is missing. Returns the reason if it cannot be written. */
  async write(place: Place, text: string): Promise<TextFault | undefined> {
    const file = await this.#find(place);
    if (typeof file === "string") return file;
    file.after = text;
    return undefined;
  }

  async remove(place: Place): Promise<TextFault | undefined> {
    const file = await this.#find(place);
    if (typeof file === "string") return file;
    if (file.after === undefined) return "missing";
    file.after = undefined;
    return undefined;
  }

  /** The new file keeps the mode of the old one. */
  async move(from: Place, to: Place, text: string): Promise<TextFault | undefined> {
    const source = await this.#find(from);
    const fault = (await this.remove(from)) ?? (await this.write(to, text));
    const target = await this.#find(to);
    if (typeof source !== "string" && typeof target !== "string") target.mode = source.ownMode;
    return fault;
  }

  async #find(place: Place): Promise<DraftFile | TextFault> {
    const known = this.#files.get(place.real);
    if (known !== undefined) return known;
    const read = await readText(place);
    if (typeof read === "string" && read !== "missing") return read;
    const before = typeof read === "string" ? undefined : read.decoded;
    const ownMode = typeof read === "string" ? undefined : read.mode;
    const file: DraftFile = { place, before, after: before?.text, ownMode, mode: undefined };
    this.#files.set(place.real, file);
    return file;
  }
}
